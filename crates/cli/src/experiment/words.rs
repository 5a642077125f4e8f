//! The words of a run in an experiment file: with those of `[defaults]`, and where they stand.

use serde_json::{Map, Value};
use toml::de::{DeTable, DeValue};

/// Keys whose tables are joined with those of the defaults, name by name.
const JOINED: [&str; 2] = ["set", "cost"];
/// The two ways to describe the CPUs: stating one replaces the other.
const CPUS: [&str; 2] = ["cpus", "topology"];

/// A run's own words over those of the defaults.
pub(super) fn merged(defaults: &toml::Table, own: &toml::Table) -> Map<String, Value> {
    let mut words = of_table(defaults);
    if CPUS.iter().any(|key| own.contains_key(*key)) {
        CPUS.iter().for_each(|key| drop(words.shift_remove(*key)));
    }
    for (key, value) in of_table(own) {
        match (words.get_mut(&key), value) {
            (Some(Value::Object(all)), Value::Object(own)) if JOINED.contains(&key.as_str()) => {
                all.extend(own);
                all.sort_keys();
            }
            (_, value) => drop(words.insert(key, value)),
        }
    }
    words
}

/// A table as named values.
pub(super) fn of_table(table: &toml::Table) -> Map<String, Value> {
    // Every TOML value has a form in JSON, so that a table is an object.
    match serde_json::to_value(table) {
        Ok(Value::Object(words)) => words,
        _ => Map::new(),
    }
}

/// The line on which a key stands: in `[section]`, or in the `index`-th `[[section]]`. `None` where it stands in
/// neither.
pub(super) fn line(text: &str, section: &str, index: usize, key: &str) -> Option<usize> {
    let file = DeTable::parse(text).ok()?;
    let section = file.get_ref().get(section)?.get_ref();
    let table = match section {
        DeValue::Array(entries) => entries.get(index)?.get_ref(),
        table => table,
    };
    let DeValue::Table(table) = table else { return None };
    let (found, _) = table.get_key_value(key)?;
    Some(1 + text[..found.span().start].matches('\n').count())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "[defaults]\ncpus = 2\nset = { a = 1, c = 2 }\n\n[[run]]\nname = \"x\"\n\n\
                        [[run]]\ntopology = \"2x1x1\"\nset = { b = true, a = 3 }\n";

    #[test]
    fn own_words_go_over_the_defaults() {
        let file: toml::Table = toml::from_str(TEXT).expect("a file");
        let defaults = file["defaults"].as_table().expect("a table");
        let own = file["run"][1].as_table().expect("a table");
        let words = Value::Object(merged(defaults, own));
        let expected = serde_json::json!({
            "topology": "2x1x1", "set": { "a": 3, "b": true, "c": 2 },
        });
        assert_eq!(words, expected);
    }

    #[test]
    fn a_key_has_a_line() {
        assert_eq!(line(TEXT, "defaults", 0, "cpus"), Some(2));
        assert_eq!(line(TEXT, "run", 1, "topology"), Some(9));
        assert_eq!(line(TEXT, "run", 0, "topology"), None);
    }
}
