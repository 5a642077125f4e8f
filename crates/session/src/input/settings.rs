//! `--set` and `--at`.

use fairground_machine::Setting;

use super::parse_time;
use crate::failure::Failure;

/// One combination of the values of `--set`: its name in tables, and the settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Variant {
    /// Name and value of those settings that have several values; empty when there is one combination only.
    pub varied: Vec<(String, String)>,
    /// The settings.
    pub settings: Vec<Setting>,
}

/// More columns than this cannot be compared by eye, and each is a run.
const VARIANTS_MAX: usize = 64;

/// Every combination of `--set name=a,b`.
pub fn variants(set: &[String]) -> Result<Vec<Variant>, Failure> {
    let mut all = vec![Variant::default()];
    for text in set {
        let (name, values) = text.split_once('=').ok_or_else(|| not_a_setting("--set", text))?;
        let values: Vec<&str> = values.split(',').collect();
        if name.is_empty() || values.iter().any(|v| v.is_empty()) {
            return Err(not_a_setting("--set", text));
        }
        let mut next = Vec::new();
        for variant in &all {
            for value in &values {
                next.push(with(variant, name, value, values.len() > 1));
            }
        }
        if next.len() > VARIANTS_MAX {
            return Err(Failure::new(format_args!(
                "--set asks for more than {VARIANTS_MAX} combinations"
            ))
            .help("give fewer values, or compare in several calls"));
        }
        all = next;
    }
    Ok(all)
}

fn with(variant: &Variant, name: &str, value: &str, shown: bool) -> Variant {
    let mut variant = variant.clone();
    variant.settings.push(Setting::initial(name, value));
    if shown {
        variant.varied.push((name.to_owned(), value.to_owned()));
    }
    variant
}

impl Variant {
    /// The part of the combination that has an effect somewhere: what `takes` says of each name.
    pub fn only(&self, takes: impl Fn(&str) -> bool) -> Variant {
        let varied = self.varied.iter().filter(|(name, _)| takes(name));
        let settings = self.settings.iter().filter(|setting| takes(&setting.name));
        Variant { varied: varied.cloned().collect(), settings: settings.cloned().collect() }
    }

    /// `name=value` of what varies, for the names of columns.
    pub fn label(&self) -> String {
        let varied: Vec<_> = self.varied.iter().map(|(n, v)| format!("{n}={v}")).collect();
        varied.join(" ")
    }
}

/// The only combination, for commands that run once.
pub fn one_variant(set: &[String]) -> Result<Variant, Failure> {
    let mut all = variants(set)?;
    match (all.pop(), all.is_empty()) {
        (Some(variant), true) => Ok(variant),
        _ => Err(Failure::new("--set has several values, and this command runs once")
            .help("`fairground compare` runs every combination")),
    }
}

/// `--at 5s:name=value`.
pub fn at_settings(at: &[String]) -> Result<Vec<Setting>, Failure> {
    at.iter()
        .map(|text| {
            let (time, setting) =
                text.split_once(':').ok_or_else(|| not_a_setting("--at", text))?;
            let (name, value) =
                setting.split_once('=').ok_or_else(|| not_a_setting("--at", text))?;
            Ok(Setting::at(parse_time("--at", time)?, name, value))
        })
        .collect()
}

fn not_a_setting(flag: &str, text: &str) -> Failure {
    let form = if flag == "--at" {
        "TIME:NAME=VALUE, as in 5s:NEW_FAIR_SLEEPERS=off"
    } else {
        "NAME=VALUE"
    };
    Failure::new(format_args!("{flag}: `{text}` is not a setting"))
        .help(format_args!("write {form}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_multiply_and_only_varied_names_are_shown() {
        let set = ["a=1".to_owned(), "b=on,off".to_owned(), "c=2,3".to_owned()];
        let labels: Vec<_> = variants(&set).expect("settings").iter().map(Variant::label).collect();
        assert_eq!(labels, ["b=on c=2", "b=on c=3", "b=off c=2", "b=off c=3"]);
        assert!(one_variant(&set).is_err());
        assert_eq!(one_variant(&set[..1]).expect("one").settings, [Setting::initial("a", "1")]);
    }

    #[test]
    fn what_is_no_setting_is_refused() {
        for text in ["a", "=1", "a=", "a=1,,2"] {
            assert!(variants(&[text.to_owned()]).is_err(), "{text}");
        }
        for text in ["a=1", "5s:a", "5:a=1"] {
            assert!(at_settings(&[text.to_owned()]).is_err(), "{text}");
        }
    }
}
