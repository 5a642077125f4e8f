//! A spec from named values, as a file or a program gives them.

use std::fmt;

use clap::ValueEnum;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::RunSpec;
use crate::failure::did_you_mean;

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

/// One of a few words: those of the command line.
pub(super) mod choice {
    use super::*;

    pub(in crate::spec) fn serialize<T: ValueEnum, S: Serializer>(
        choice: &T,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        word(choice).serialize(serializer)
    }

    pub(in crate::spec) fn deserialize<'de, T: ValueEnum, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        read(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// One of a few words, or none.
pub(super) mod choice_if {
    use super::*;

    pub(in crate::spec) fn serialize<T: ValueEnum, S: Serializer>(
        choice: &Option<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        choice.as_ref().map(word).serialize(serializer)
    }

    pub(in crate::spec) fn deserialize<'de, T: ValueEnum, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<T>, D::Error> {
        let word: Option<String> = Option::deserialize(deserializer)?;
        word.map(|word| read(&word).map_err(D::Error::custom)).transpose()
    }
}

fn word<T: ValueEnum>(choice: &T) -> Option<String> {
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

#[cfg(test)]
mod tests {
    use clap::{FromArgMatches, Parser};
    use serde_json::json;

    use super::*;

    #[derive(Parser)]
    struct CommandLine {
        #[command(flatten)]
        spec: RunSpec,
    }

    fn words(value: Value) -> Map<String, Value> {
        value.as_object().expect("an object").clone()
    }

    #[test]
    fn the_command_line_and_named_values_say_the_same() {
        let plain = CommandLine::try_parse_from(["run", "hogs:2"]).expect("a command line").spec;
        let named = RunSpec::from_words(&words(json!({ "workload": "hogs:2" }))).expect("words");
        assert_eq!(plain, named, "every option has one default");
        let line = "run hogs:2 --on vm:6.1,sim --sched cfs --set a=on --cost tick_ns=3 --cpus 3 --locks rt-2006 \
                    --timers jiffies --no-recording --lead-in 3ms --at 1s:a=off --engine interpreter --hold 2ms";
        let typed = CommandLine::try_parse_from(line.split_whitespace()).expect("a line").spec;
        let named = json!({
            "workload": "hogs:2", "on": ["vm:6.1", "sim"], "sched": "cfs", "set": { "a": true },
            "cost": { "tick_ns": 3 }, "cpus": 3, "locks": "rt-2006", "timers": "jiffies",
            "record": false, "lead_in": "3ms", "at": ["1s:a=off"], "engine": "interpreter", "hold": "2ms",
        });
        let named = RunSpec::from_words(&words(named)).expect("words");
        assert_eq!(typed, named);
        assert_eq!(RunSpec::from_words(&typed.stated()).expect("its own words"), typed);
    }

    #[test]
    fn each_name_is_an_option() {
        let command = <CommandLine as clap::CommandFactory>::command();
        let options: Vec<_> = command.get_arguments().map(|arg| arg.get_id().to_string()).collect();
        assert_eq!(RunSpec::names(), options);
        let matches = command.get_matches_from(["run", "hogs:2"]);
        assert!(RunSpec::from_arg_matches(&matches).expect("a spec").stated().len() == 1);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let wrong = |value: Value| RunSpec::from_words(&words(value)).expect_err("a wrong word");
        let unknown = wrong(json!({ "lead-in": "3ms" }));
        assert_eq!(unknown.name, "lead-in");
        assert!(unknown.help.expect("a remedy").starts_with("did you mean `lead_in`?"));
        let choice = wrong(json!({ "workload": "hogs:2", "locks": "rt2006" }));
        assert!(
            choice.to_string().starts_with("locks: there is no `rt2006`; did you mean `rt-2006`?")
        );
        assert!(!choice.is_type);
        for value in [json!({ "cpus": "two" }), json!({ "sched": 5 }), json!({ "duration": 5 })] {
            let wrong = wrong(value);
            assert!(wrong.is_type, "{wrong}");
        }
        assert!(wrong(json!({ "seed": -1 })).to_string().starts_with("seed: invalid value"));
    }
}
