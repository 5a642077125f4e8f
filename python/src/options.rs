//! The options of a run, as `session` declares them.

use fairground_session::{Count, Kind, OptionGroup, OptionRow, RunSpec, did_you_mean};
use pyo3::prelude::*;

/// An option: a keyword of the Python module.
#[pyclass(frozen, get_all)]
pub(crate) struct Opt {
    /// Its name in a spec.
    name: &'static str,
    /// Its values: `flag`, `number`, `text`, `file`, `choice`.
    kind: &'static str,
    /// Whether it may be absent.
    optional: bool,
    /// Whether it takes several values.
    many: bool,
    /// Whether several values make several runs, so that one run takes one.
    compared: bool,
    /// Whether it takes names with values.
    assigns: bool,
    /// The targets on which it has an effect: `sim`, `vm`, `host`.
    targets: Vec<&'static str>,
    /// The default, as JSON.
    default: String,
    /// Its meaning.
    doc: String,
    /// The words of a choice, each with its meaning.
    choices: Vec<(&'static str, &'static str)>,
}

impl From<&OptionRow> for Opt {
    fn from(row: &OptionRow) -> Self {
        let (kind, choices) = match row.kind {
            Kind::Flag => ("flag", &[][..]),
            Kind::U32 | Kind::U64 | Kind::Size => ("number", &[][..]),
            Kind::Text | Kind::Table if row.or_file => ("file", &[][..]),
            Kind::Text | Kind::Table => ("text", &[][..]),
            Kind::File => ("file", &[][..]),
            Kind::Choice(words) => ("choice", words),
        };
        Self {
            name: row.name,
            kind,
            optional: row.count == Count::AtMostOne,
            many: row.count == Count::Many,
            compared: row.compared,
            assigns: row.assigns,
            targets: row.targets.words(),
            default: (row.default)().to_string(),
            doc: row.value_doc(),
            choices: choices.iter().map(|word| (word.word, word.doc)).collect(),
        }
    }
}

/// The options of a run, in the order of the command line.
#[pyfunction]
pub(crate) fn options() -> Vec<Opt> {
    RunSpec::options().map(Opt::from).collect()
}

/// The known name that a mistyped one may mean.
#[pyfunction]
pub(crate) fn nearest(name: &str, known: Vec<String>) -> Option<String> {
    did_you_mean(name, known.iter().map(String::as_str)).map(str::to_owned)
}
