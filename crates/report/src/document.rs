//! A result: tables, and how they were made.

use crate::{Cell, Table};

/// One result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// The heading.
    pub title: String,
    /// How the result was made: seed, parameters, cost model, versions. In the order in which they are shown.
    pub sections: Vec<Section>,
    /// The tables.
    pub tables: Vec<Table>,
    /// Sentences at the end, about the whole result: losses, doubts, what to do next.
    pub notes: Vec<String>,
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

    /// The table with this id.
    pub fn table(&self, id: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.id == id)
    }
}
