//! JSON for programs.
//!
//! ```json
//! {
//!   "schema": "fairground-report",
//!   "schema_version": 1,
//!   "title": "…",
//!   "sections": [{ "name": "cost model", "entries": [{ "name": "switch", "value": 1000, "unit": "ns" }] }],
//!   "tables": [{
//!     "id": "tasks",
//!     "title": "…",
//!     "columns": [{ "name": "task", "unit": null }, { "name": "wait", "unit": "ns" }, { "name": "cfs", "unit": "mixed" }],
//!     "rows": [["hog", 1500000, { "value": 12.5, "unit": "percent" }]],
//!     "notes": []
//!   }],
//!   "notes": []
//! }
//! ```
//!
//! Values are raw: durations in ns, numbers unrounded, `null` for what was not measured. A cell is a bare value in the unit of
//! its column; in a column of unit `mixed`, and wherever a cell has another unit than its column, it is an object with a unit
//! of its own. New keys may appear within a version; any other change raises [`SCHEMA_VERSION`].

use crate::{Cell, Column, Document, Table};
use serde_json::{Map, Value, json};

/// The name of the format.
pub const SCHEMA: &str = "fairground-report";
/// The version of the format.
pub const SCHEMA_VERSION: u32 = 1;

impl Document {
    /// The document as one JSON object; ends with a line break.
    pub fn to_json(&self) -> String {
        let mut object = Map::new();
        object.insert("schema".into(), json!(SCHEMA));
        object.insert("schema_version".into(), json!(SCHEMA_VERSION));
        object.insert("title".into(), json!(self.title));
        let sections: Vec<Value> = self
            .sections
            .iter()
            .map(|section| {
                let entries: Vec<Value> = section
                    .entries
                    .iter()
                    .map(|entry| {
                        json!({
                            "name": entry.name,
                            "value": raw(&entry.value),
                            "unit": entry.value.raw_unit(),
                        })
                    })
                    .collect();
                json!({ "name": section.name, "entries": entries })
            })
            .collect();
        object.insert("sections".into(), json!(sections));
        object.insert("tables".into(), self.tables.iter().map(table).collect());
        object.insert("notes".into(), json!(self.notes));
        format!("{:#}\n", Value::Object(object))
    }
}

fn table(table: &Table) -> Value {
    let columns: Vec<Value> = table
        .columns
        .iter()
        .map(|column| json!({ "name": column.name, "unit": column.raw_unit() }))
        .collect();
    let rows: Vec<Vec<Value>> = table
        .rows
        .iter()
        .map(|row| {
            table.columns.iter().zip(row).map(|(column, cell)| value(column, cell)).collect()
        })
        .collect();
    json!({
        "id": table.id,
        "title": table.title,
        "columns": columns,
        "rows": rows,
        "notes": table.notes,
    })
}

fn value(column: &Column, cell: &Cell) -> Value {
    if column.explains(cell) {
        raw(cell)
    } else {
        json!({ "value": raw(cell), "unit": cell.raw_unit() })
    }
}

/// The bare value; `null` where there is none.
fn raw(cell: &Cell) -> Value {
    match cell {
        _ if cell.is_missing() => Value::Null,
        Cell::Text(text) => json!(text),
        Cell::Int(value) => json!(value),
        Cell::Float { value, .. } | Cell::Percent { value, .. } | Cell::Quantity { value, .. } => {
            json!(value)
        }
        Cell::Duration { ns } => whole(*ns).map_or_else(|| json!(ns), |ns| json!(ns)),
        Cell::NotMeasured => Value::Null,
    }
}

/// A float without fraction that an integer holds exactly.
pub(crate) fn whole(value: f64) -> Option<i64> {
    (value.fract() == 0.0 && value.abs() < 9e15).then_some(value as i64)
}
