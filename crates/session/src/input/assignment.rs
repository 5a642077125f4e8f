//! Values of a profile: numbers, switches, texts, and lists and tables of them.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Maximum nesting of lists and tables.
const DEPTH_MAX: usize = 32;

/// A value as TOML has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum ProfileValue {
    Switch(bool),
    Number(i64),
    Text(String),
    List(Vec<ProfileValue>),
    Members(BTreeMap<String, ProfileValue>),
}

/// One number, switch or text, with the path of what it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Assignment {
    pub(super) path: String,
    pub(super) value: String,
}

impl ProfileValue {
    /// A value that is no list and no table, as text.
    pub(super) fn text(&self) -> Option<String> {
        match self {
            ProfileValue::Switch(on) => Some(on.to_string()),
            ProfileValue::Number(number) => Some(number.to_string()),
            ProfileValue::Text(text) => Some(text.clone()),
            ProfileValue::List(_) | ProfileValue::Members(_) => None,
        }
    }

    /// The bytes of a list of bytes.
    pub(super) fn bytes(&self) -> Option<Vec<u8>> {
        let byte = |value: &ProfileValue| match value {
            ProfileValue::Number(number) => u8::try_from(*number).ok(),
            _ => None,
        };
        match self {
            ProfileValue::List(values) => values.iter().map(byte).collect(),
            _ => None,
        }
    }

    /// The assignments to `path` and to parts of it. Those of several elements come first (`[*]`, then ranges), so
    /// that the more exact path counts.
    ///
    /// # Errors
    /// Lists and tables nest too deeply.
    pub(super) fn assignments(&self, path: &str) -> Result<Vec<Assignment>, String> {
        let mut found = Vec::new();
        self.collect(path, DEPTH_MAX, &mut found)?;
        sort(&mut found);
        Ok(found)
    }

    fn collect(&self, path: &str, depth: usize, found: &mut Vec<Assignment>) -> Result<(), String> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(format!("lists and tables nest deeper than {DEPTH_MAX}"));
        };
        match self {
            ProfileValue::List(values) => {
                for (index, value) in values.iter().enumerate() {
                    value.collect(&format!("{path}[{index}]"), depth, found)?;
                }
            }
            ProfileValue::Members(members) => {
                for (member, value) in members {
                    let point = if member.starts_with('[') { "" } else { "." };
                    value.collect(&format!("{path}{point}{member}"), depth, found)?;
                }
            }
            single => {
                let value = single.text().unwrap_or_default();
                found.push(Assignment { path: path.to_owned(), value });
            }
        }
        Ok(())
    }
}

/// Puts what names several elements first.
pub(super) fn sort(assignments: &mut [Assignment]) {
    assignments.sort_by_key(|assignment| match &assignment.path {
        path if path.contains("[*]") => 0,
        path if path.contains("..") => 1,
        _ => 2,
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_tables_become_paths() {
        let text = r#"x = { "[*]" = 1, a = [true, { b = "cpus" }], "c[0..2].d" = 4 }"#;
        let values: BTreeMap<String, ProfileValue> = toml::from_str(text).expect("TOML");
        let found = values["x"].assignments("x").expect("it is flat");
        let found: Vec<_> = found.iter().map(|a| format!("{}={}", a.path, a.value)).collect();
        assert_eq!(found, ["x[*]=1", "x.c[0..2].d=4", "x.a[0]=true", "x.a[1].b=cpus"]);
    }

    #[test]
    fn a_list_of_bytes_is_one() {
        let values: BTreeMap<String, ProfileValue> =
            toml::from_str("a = [0, 255]\nb = [256]\nc = 1").expect("TOML");
        assert_eq!(values["a"].bytes(), Some(vec![0, 255]));
        assert_eq!((values["b"].bytes(), values["c"].bytes()), (None, None));
    }
}
