//! A result: tables, and how they were made.

use serde_json::{Map, Value};

use crate::{Cell, Table};

/// One result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// The heading.
    pub title: String,
    /// How the result was made: seed, parameters, cost model, versions. In the order in which they are shown.
    pub sections: Vec<Section>,
    /// What was asked for, in words from which the same runs can be made again. Only JSON has them.
    pub specs: Vec<Spec>,
    /// The tables.
    pub tables: Vec<Table>,
    /// Sentences at the end, about the whole result: losses, doubts, what to do next.
    pub notes: Vec<String>,
}

/// What was asked for: one run, or several that differ in target, scheduler or settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// What the result calls it.
    pub name: String,
    /// Options by name, those that have their defaults left out.
    pub words: Map<String, Value>,
}

/// Named values that belong together, such as the cost model.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// Its name.
    pub name: String,
    /// The values.
    pub entries: Vec<Entry>,
}

/// A named value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// The value.
    pub value: Cell,
}

impl Document {
    /// An empty document.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// Notes a value in a section, which is made at its first value.
    pub fn set(&mut self, section: &str, name: impl Into<String>, value: Cell) {
        let entry = Entry { name: name.into(), value };
        match self.sections.iter_mut().find(|known| known.name == section) {
            Some(known) => known.entries.push(entry),
            None => {
                self.sections.push(Section { name: section.to_owned(), entries: vec![entry] });
            }
        }
    }

    /// Notes what was asked for.
    pub fn describe_spec(&mut self, name: impl Into<String>, words: Map<String, Value>) {
        self.specs.push(Spec { name: name.into(), words });
    }

    /// The table with this id.
    pub fn table(&self, id: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.id == id)
    }
}
