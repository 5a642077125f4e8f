//! A spec from named values, as a file or a program gives them.

use std::fmt;

use clap::ValueEnum;
use fairground_suggest::did_you_mean;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::RunSpec;

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

impl fmt::Display for BadWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.why)
    }
}

impl RunSpec {
    /// Every name that a spec has.
    pub fn names() -> Vec<String> {
        RunSpec::default().words().into_iter().map(|(name, _)| name).collect()
    }

    /// Checks each value for itself.
    ///
    /// # Errors
    /// The first name or value that is wrong.
    pub fn check_words(words: &Map<String, Value>) -> Result<(), BadWord> {
        let names = RunSpec::names();
        for (name, value) in words {
            if !names.contains(name) {
                return Err(unknown(name, &names));
            }
            let alone = Map::from_iter([(name.clone(), value.clone())]);
            RunSpec::deserialize(Value::Object(alone)).map_err(|error| {
                let why = error.to_string();
                let is_type = why.starts_with("invalid type");
                BadWord { name: name.clone(), why, help: None, is_type }
            })?;
        }
        Ok(())
    }

    /// Reads a spec; what is not named has its default.
    ///
    /// # Errors
    /// The first name or value that is wrong.
    pub fn from_words(words: &Map<String, Value>) -> Result<RunSpec, BadWord> {
        RunSpec::check_words(words)?;
        RunSpec::deserialize(Value::Object(words.clone())).map_err(|error| BadWord {
            name: "run".to_owned(),
            why: error.to_string(),
            help: None,
            is_type: false,
        })
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

    /// Whether an option differs from its default.
    pub(super) fn states(&self, name: &str) -> bool {
        self.stated().contains_key(name)
    }
}

fn unknown(name: &str, names: &[String]) -> BadWord {
    let all = names.iter().map(|known| format!("`{known}`")).collect::<Vec<_>>().join(", ");
    let near = did_you_mean(name, names.iter().map(String::as_str));
    let near = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
    BadWord {
        name: name.to_owned(),
        why: "a run has no such option".to_owned(),
        help: Some(format!("{near}There are {all}")),
        is_type: false,
    }
}

/// A word, or a list of words.
pub(super) fn several<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let items = match Value::deserialize(deserializer)? {
        Value::Array(items) => items,
        word @ Value::String(_) => vec![word],
        other => return Err(wrong_type(&other, "a text or a list of texts")),
    };
    let item = |item: Value| match item {
        Value::String(_) => T::deserialize(item).map_err(D::Error::custom),
        other => Err(wrong_type(&other, "a list of texts")),
    };
    items.into_iter().map(item).collect()
}

/// `NAME=VALUE`, from a list of them or from a table of names and values; `true` is `on`.
pub(super) fn assignments<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<String>, D::Error> {
    let words = match Value::deserialize(deserializer)? {
        Value::Object(words) => words,
        other => return several(other).map_err(D::Error::custom),
    };
    let assignment = |(name, value): (String, Value)| match value {
        Value::String(text) => Ok(format!("{name}={text}")),
        Value::Bool(on) => Ok(format!("{name}={}", if on { "on" } else { "off" })),
        Value::Number(number) => Ok(format!("{name}={number}")),
        other => Err(wrong_type(&other, "a text, a number or a switch")),
    };
    words.into_iter().map(assignment).collect()
}

fn wrong_type<E: serde::de::Error>(value: &Value, expected: &str) -> E {
    E::custom(format_args!("invalid type: `{value}`, expected {expected}"))
}

/// Lets choices be read and written as one of a few words: those of the command line.
macro_rules! as_words {
    ($($choice:ty),*) => {$(
        impl serde::Serialize for $choice {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serde::Serialize::serialize(&crate::spec::words::word(self), serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $choice {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let word = <String as serde::Deserialize>::deserialize(deserializer)?;
                crate::spec::words::read(&word).map_err(serde::de::Error::custom)
            }
        }
    )*};
}
pub(super) use as_words;

pub(super) fn word<T: ValueEnum>(choice: &T) -> Option<String> {
    choice.to_possible_value().map(|value| value.get_name().to_owned())
}

pub(super) fn read<T: ValueEnum>(text: &str) -> Result<T, String> {
    let all: Vec<String> = T::value_variants().iter().filter_map(word).collect();
    T::from_str(text, false).map_err(|_| {
        let near = did_you_mean(text, all.iter().map(String::as_str));
        let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        let all = all.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
        format!("there is no `{text}`{near}: {all}")
    })
}
