//! A spec from named values, as a file or a program gives them.

use std::fmt;

use fairground_suggest::did_you_mean;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::RunSpec;
use super::option::{Count, OptionGroup, OptionRow};

/// A name that no spec has, or a value that its name does not take.
#[derive(Clone, Debug, PartialEq)]
pub struct BadWord {
    /// The name.
    pub name: String,
    /// What is wrong with it.
    pub why: String,
    /// What to write instead, where the reason does not say it.
    pub help: Option<String>,
    /// Whether the value has the wrong type, and would mean nothing whatever its content.
    pub is_type: bool,
}

impl BadWord {
    /// A value that its name does not take, for a reason as `serde` has it.
    pub(super) fn value(name: &str, why: String) -> BadWord {
        let is_type = why.starts_with("invalid type");
        BadWord { name: name.to_owned(), why, help: None, is_type }
    }
}

impl fmt::Display for BadWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.why)
    }
}

impl RunSpec {
    /// Every name that a spec has.
    pub fn names() -> Vec<&'static str> {
        RunSpec::options().map(|row| row.name).collect()
    }

    /// Every name with its value.
    pub fn words(&self) -> Map<String, Value> {
        // A spec has plain fields with names, so that it always is an object.
        match serde_json::to_value(self) {
            Ok(Value::Object(words)) => words,
            _ => Map::new(),
        }
    }

    /// What differs from the defaults: enough to make the same run again with this version.
    pub fn stated(&self) -> Map<String, Value> {
        let defaults = RunSpec::default().words();
        let mut words = self.words();
        words.retain(|name, value| defaults.get(name) != Some(value));
        words
    }
}

/// Reads a structure from plain values.
pub(super) fn read<T: DeserializeOwned>(words: Map<String, Value>) -> Result<T, String> {
    T::deserialize(Value::Object(words)).map_err(|error| error.to_string())
}

/// A value in the form of its field: one word of a list as a list, a table of names and values as assignments.
pub(super) fn plain(
    name: &str,
    value: &Value,
    mut rows: impl Iterator<Item = &'static OptionRow> + Clone,
) -> Result<Value, BadWord> {
    let known = rows.clone();
    let Some(row) = rows.find(|row| row.name == name) else {
        return Err(unknown(name, &known.map(|row| row.name).collect::<Vec<_>>()));
    };
    let plain = match (row.count, value) {
        (Count::Many, Value::Object(words)) if row.assigns => assignments(words),
        (Count::Many, Value::Array(items)) => several(items),
        (Count::Many, Value::String(_)) => Ok(Value::Array(vec![value.clone()])),
        (Count::Many, other) => Err(wrong_type(other, "a text or a list of texts")),
        _ => Ok(value.clone()),
    };
    plain.map_err(|why| BadWord::value(name, why))
}

fn unknown(name: &str, names: &[&str]) -> BadWord {
    let all = names.iter().map(|known| format!("`{known}`")).collect::<Vec<_>>().join(", ");
    let near = did_you_mean(name, names.iter().copied());
    let near = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
    BadWord {
        name: name.to_owned(),
        why: "a run has no such option".to_owned(),
        help: Some(format!("{near}There are {all}")),
        is_type: false,
    }
}

/// A list of texts.
fn several(items: &[Value]) -> Result<Value, String> {
    match items.iter().find(|item| !item.is_string()) {
        Some(other) => Err(wrong_type(other, "a list of texts")),
        None => Ok(Value::Array(items.to_vec())),
    }
}

/// `NAME=VALUE` of each pair; `true` is `on`.
fn assignments(words: &Map<String, Value>) -> Result<Value, String> {
    let assignment = |(name, value): (&String, &Value)| match value {
        Value::String(text) => Ok(Value::String(format!("{name}={text}"))),
        Value::Bool(on) => Ok(Value::String(format!("{name}={}", if *on { "on" } else { "off" }))),
        Value::Number(number) => Ok(Value::String(format!("{name}={number}"))),
        other => Err(wrong_type(other, "a text, a number or a switch")),
    };
    words.iter().map(assignment).collect()
}

fn wrong_type(value: &Value, expected: &str) -> String {
    format!("invalid type: `{value}`, expected {expected}")
}
