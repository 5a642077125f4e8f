//! The JSON Schema of a run's words.

use serde_json::{Map, Value, json};

use super::RunSpec;
use super::option::{Count, Kind, OptionGroup, OptionRow};

/// The version of a run's words: a new option does not change it.
pub const RUN_FORMAT: i64 = 1;

impl RunSpec {
    /// The JSON Schema of named values as [`OptionGroup::from_words`] takes them: a property for each option, with its
    /// default, and under `targets` where it has an effect (`sim`, `vm`, `host`).
    pub fn json_schema() -> Value {
        let properties: Map<String, Value> =
            RunSpec::options().map(|row| (row.name.to_owned(), property(row))).collect();
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "run",
            "description": "A run of fairground in words.",
            "type": "object",
            "properties": properties,
            "additionalProperties": false,
        })
    }
}

fn property(row: &OptionRow) -> Value {
    let one = match row.kind {
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::U32 => json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX }),
        Kind::U64 => json!({ "type": "integer", "minimum": 0, "maximum": u64::MAX }),
        Kind::Size => json!({ "type": "integer", "minimum": 0, "maximum": usize::MAX }),
        Kind::Table => json!({ "type": ["string", "object"] }),
        Kind::Text | Kind::File => json!({ "type": "string" }),
        Kind::Choice(words) => {
            let words =
                words.iter().map(|word| json!({ "const": word.word, "description": word.doc }));
            json!({ "oneOf": words.collect::<Vec<_>>() })
        }
    };
    let mut property = match row.count {
        Count::One => one,
        Count::AtMostOne => json!({ "anyOf": [one, { "type": "null" }] }),
        Count::Many => {
            let mut forms = vec![json!({ "type": "array", "items": one }), one];
            let values = json!({ "type": ["string", "number", "boolean"] });
            let table = json!({ "type": "object", "additionalProperties": values });
            forms.extend(row.assigns.then_some(table));
            json!({ "anyOf": forms })
        }
    };
    property["description"] = json!(row.value_doc());
    property["default"] = (row.default)();
    property["targets"] = json!(row.targets.words());
    property
}
