//! JSON for programs.
//!
//! ```json
//! {
//!   "schema": "fairground-report",
//!   "schema_version": 2,
//!   "title": "…",
//!   "verdicts": [{ "run": "cfs", "level": "failure", "text": "…", "details": [] }],
//!   "summary": [],
//!   "sections": [{ "name": "cost model", "entries": [{ "name": "switch", "value": 1000, "unit": "ns" }] }],
//!   "specs": [{ "name": "hogs:3 under cfs", "words": { "workload": "hogs:3", "cpus": 4 } }],
//!   "tables": [{
//!     "id": "tasks",
//!     "title": "…",
//!     "columns": [{ "name": "task", "unit": null }, { "name": "wait", "unit": "ns" },
//!                 { "name": "cfs", "unit": "mixed" }],
//!     "rows": [["hog", 1500000, { "value": 12.5, "unit": "percent" }]],
//!     "notes": []
//!   }],
//!   "notes": []
//! }
//! ```
//!
//! Values are raw: durations in ns, numbers unrounded, `null` for what was not measured. A cell is a bare value in
//! the unit of its column; in a column of unit `mixed`, and wherever a cell has another unit than its column, it is
//! an object with a unit of its own. New keys may appear within a version; any other change raises
//! [`SCHEMA_VERSION`].
//!
//! The types below make the text and its schema ([`json_schema`]).

use schemars::JsonSchema;
use serde::Serialize;

use crate::cell::whole;
use crate::{Cell, Column, Document, Spec, Table, Verdict};

/// The name of the format.
pub const SCHEMA: &str = "fairground-report";
/// The version of the format.
pub const SCHEMA_VERSION: u32 = 2;

/// A result: tables, and how they were made.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "fairground-report, version 2")]
struct JsonDocument<'a> {
    /// The format's name.
    #[schemars(extend("const" = SCHEMA))]
    schema: &'static str,
    /// The format's version. New keys may appear within a version; any other change raises it.
    #[schemars(extend("const" = SCHEMA_VERSION))]
    schema_version: u32,
    /// The heading, for people.
    title: &'a str,
    /// Statements that a reader must know first: what ended a run, what is partial, which tasks never ran. Empty when all went
    /// well.
    verdicts: &'a [Verdict],
    /// The result in sentences, for people.
    #[schemars(default)]
    summary: &'a [String],
    /// How the result was made: seed, parameters, cost model, versions.
    sections: Vec<JsonSection<'a>>,
    /// Descriptions from which the same runs can be made again.
    #[serde(skip_serializing_if = "<[Spec]>::is_empty")]
    #[schemars(default)]
    specs: &'a [Spec],
    /// The tables.
    tables: Vec<JsonTable<'a>>,
    /// Sentences about the whole result: losses, doubts, what to do next.
    notes: Vec<&'a String>,
}

/// Named values that belong together.
#[derive(Serialize, JsonSchema)]
struct JsonSection<'a> {
    /// Its name.
    name: &'a str,
    /// The values.
    entries: Vec<JsonEntry<'a>>,
}

/// A named value.
#[derive(Serialize, JsonSchema)]
struct JsonEntry<'a> {
    /// Its name.
    name: &'a str,
    /// The value.
    value: Raw<'a>,
    /// Its unit; null for texts and plain numbers.
    unit: Option<&'a str>,
}

/// A table.
#[derive(Serialize, JsonSchema)]
struct JsonTable<'a> {
    /// Its name for programs, which does not change within a version.
    id: &'a str,
    /// Its name for people.
    title: &'a str,
    /// The columns.
    columns: Vec<JsonColumn<'a>>,
    /// Rows of one value for each column.
    rows: Vec<Vec<JsonValue<'a>>>,
    /// Sentences about this table.
    notes: &'a [String],
}

/// A column.
#[derive(Serialize, JsonSchema)]
struct JsonColumn<'a> {
    /// Its name, which does not change within a version.
    name: &'a str,
    /// The unit of its bare values; null for texts and plain numbers, `mixed` where each value has its own.
    unit: Option<&'a str>,
}

/// A value of a table.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum JsonValue<'a> {
    /// In the unit of its column.
    Bare(Raw<'a>),
    /// In a unit of its own.
    Own {
        /// The value.
        value: Raw<'a>,
        /// Its unit; null for texts and plain numbers.
        unit: Option<&'a str>,
    },
}

/// A value without its unit: durations are in ns.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum Raw<'a> {
    /// Not measured.
    Missing(()),
    /// A whole number.
    Whole(i64),
    /// A number with a fraction.
    Number(f64),
    /// A text.
    Text(&'a str),
}

/// The JSON Schema of [`Document::to_json`].
pub fn json_schema() -> serde_json::Value {
    schemars::schema_for!(JsonDocument<'static>).to_value()
}

impl Document {
    /// The document as one JSON object; ends with a line break.
    pub fn to_json(&self) -> String {
        let sections = self.sections.iter().map(|section| JsonSection {
            name: &section.name,
            entries: section
                .entries
                .iter()
                .map(|entry| JsonEntry {
                    name: &entry.name,
                    value: raw(&entry.value),
                    unit: entry.value.raw_unit(),
                })
                .collect(),
        });
        let document = JsonDocument {
            schema: SCHEMA,
            schema_version: SCHEMA_VERSION,
            title: &self.title,
            verdicts: &self.verdicts,
            summary: &self.summary,
            sections: sections.collect(),
            specs: &self.specs,
            tables: self.tables.iter().map(table).collect(),
            notes: self.all_notes().collect(),
        };
        let text = serde_json::to_string_pretty(&document)
            .expect("every key is a text, and no value can fail");
        text + "\n"
    }
}

fn table(table: &Table) -> JsonTable<'_> {
    let columns = table.columns.iter();
    JsonTable {
        id: &table.id,
        title: &table.title,
        columns: columns
            .map(|column| JsonColumn { name: &column.name, unit: column.raw_unit() })
            .collect(),
        rows: table
            .rows
            .iter()
            .map(|row| table.columns.iter().zip(row).map(|(c, cell)| value(c, cell)).collect())
            .collect(),
        notes: &table.notes,
    }
}

fn value<'a>(column: &Column, cell: &'a Cell) -> JsonValue<'a> {
    if column.explains(cell) {
        JsonValue::Bare(raw(cell))
    } else {
        JsonValue::Own { value: raw(cell), unit: cell.raw_unit() }
    }
}

/// The bare value.
fn raw(cell: &Cell) -> Raw<'_> {
    match cell {
        _ if cell.is_missing() => Raw::Missing(()),
        Cell::Text(text) => Raw::Text(text),
        Cell::Int(value) => Raw::Whole(*value),
        Cell::Float { value, .. } | Cell::Percent { value, .. } | Cell::Quantity { value, .. } => {
            Raw::Number(*value)
        }
        Cell::Duration { ns } => whole(*ns).map_or(Raw::Number(*ns), Raw::Whole),
        Cell::NotMeasured => Raw::Missing(()),
    }
}
