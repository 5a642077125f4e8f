//! A result: tables, and how they were made.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{Cell, Table};

/// One result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// Statements that a reader must know first, the worst first.
    pub verdicts: Vec<Verdict>,
    /// The heading.
    pub title: String,
    /// The result in sentences, the most important first.
    pub summary: Vec<String>,
    /// The run that the tables are about, where they do not name another; empty where they are of several or of none.
    pub run: String,
    /// How the result was made: seed, parameters, cost model, versions. In the order in which they are shown.
    pub sections: Vec<Section>,
    /// Descriptions from which the same runs can be made again. Only JSON has them.
    pub specs: Vec<Spec>,
    /// The tables.
    pub tables: Vec<Table>,
    /// Sentences at the end, about the whole result: losses, doubts, what to do next.
    pub notes: Vec<String>,
    /// Paragraphs that explain what was asked and how to read it: notes, but text has them only where all is asked for.
    pub about: Vec<String>,
}

/// Description of one run, or of several that differ in target, scheduler or settings.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "JsonSpec")]
pub struct Spec {
    /// Its name in the result.
    pub name: String,
    /// Options by name, as the command line, experiment files and Python take them; those that have their defaults
    /// are left out.
    pub words: Map<String, Value>,
}

/// How bad a [`Verdict`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// A run did not do what was asked for.
    Failure,
    /// The result holds, with a restriction.
    Warning,
}

impl Level {
    /// As the page's style names it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Level::Failure => "failure",
            Level::Warning => "warning",
        }
    }
}

/// A statement that heads a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "JsonVerdict")]
pub struct Verdict {
    /// The run; empty where the result is of none.
    pub run: String,
    /// `failure`: a run did not do what was asked for. `warning`: the result holds, with a restriction.
    #[schemars(with = "String")]
    pub level: Level,
    /// The statement.
    pub text: String,
    /// Explanation: the line of the source, the last callbacks.
    pub details: Vec<String>,
}

impl Verdict {
    /// The statement with its run before it.
    pub fn line(&self) -> String {
        let colon = if self.run.is_empty() { "" } else { ": " };
        format!("{}{colon}{}", self.run, self.text)
    }
}

/// Named values that belong together, such as the cost model.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// Its name.
    pub name: String,
    /// The values.
    pub entries: Vec<Parameter>,
}

/// A named value.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// The value.
    pub value: Cell,
    /// It is what it usually is: the text for people has it only where all is asked for.
    pub is_usual: bool,
}

impl Document {
    /// An empty document.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// Notes a value in a section, which is made at its first value.
    pub fn set(&mut self, section: &str, name: impl Into<String>, value: Cell) {
        self.set_entry(section, Parameter { name: name.into(), value, is_usual: false });
    }

    /// The same of a value that is what it usually is.
    pub fn set_usual(&mut self, section: &str, name: impl Into<String>, value: Cell) {
        self.set_entry(section, Parameter { name: name.into(), value, is_usual: true });
    }

    fn set_entry(&mut self, section: &str, entry: Parameter) {
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

    /// Adds a statement that heads the result, behind those that are as bad.
    pub fn add_verdict(&mut self, verdict: Verdict) {
        let place = self.verdicts.partition_point(|known| known.level <= verdict.level);
        self.verdicts.insert(place, verdict);
    }

    /// Explanations and notes, in the order in which they are shown.
    pub(crate) fn all_notes(&self) -> impl Iterator<Item = &String> {
        self.about.iter().chain(&self.notes)
    }

    /// The table with this id.
    pub fn table(&self, id: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.id == id)
    }
}
