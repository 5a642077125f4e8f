//! One table of the file: its known keys, and the types of their values.

use std::ops::{Range, RangeInclusive};

use toml::de::{DeTable, DeValue};

use super::{Parser, Value};
use crate::diagnostic::suggestion;
use crate::units::{TextError, parse_time};

/// A table that is being read. Unknown keys are reported when it is opened.
pub(super) struct Section<'p, 's, 't, 'i> {
    pub(super) parser: &'p mut Parser<'s>,
    table: &'t DeTable<'i>,
    span: Range<usize>,
    what: &'static str,
}

impl<'p, 's, 't, 'i> Section<'p, 's, 't, 'i> {
    pub(super) fn new(
        parser: &'p mut Parser<'s>,
        table: &'t DeTable<'i>,
        span: Range<usize>,
        what: &'static str,
        keys: &[&'static str],
    ) -> Self {
        for key in table.keys() {
            if !keys.contains(&key.get_ref().as_ref()) {
                let message = format!("unknown key `{}` in {what}", key.get_ref());
                let help = suggestion(key.get_ref(), keys.iter().copied(), "keys");
                parser.problem(key.span(), message, help);
            }
        }
        Self { parser, table, span, what }
    }

    pub(super) fn value(&self, key: &str) -> Option<Value<'t, 'i>> {
        self.table.get(key)
    }

    pub(super) fn missing(&mut self, key: &str, help: &str) {
        let message = format!("{} has no `{key}`", self.what);
        self.parser.problem(self.span.clone(), message, help);
    }

    pub(super) fn text(&mut self, key: &str) -> Option<(&'t str, Range<usize>)> {
        let value = self.value(key)?;
        let text = self.parser.text_of(key, value)?;
        Some((text, value.span()))
    }

    /// The required `name`. Valid names are checked with the model.
    pub(super) fn name(&mut self) -> Option<String> {
        if self.value("name").is_none() {
            self.missing("name", "give it a name, as in `name = \"worker\"`");
        }
        self.text("name").map(|(text, _)| text.to_owned())
    }

    pub(super) fn integer(
        &mut self,
        key: &str,
        range: RangeInclusive<i64>,
    ) -> Option<(i64, Range<usize>)> {
        let value = self.value(key)?;
        let number = self.parser.integer_of(key, value, range)?;
        Some((number, value.span()))
    }

    /// A boolean.
    pub(super) fn truth(&mut self, key: &str) -> Option<bool> {
        let value = self.value(key)?;
        if let DeValue::Boolean(truth) = value.get_ref() {
            return Some(*truth);
        }
        let message = format!("`{key}` must be a boolean, not {}", kind_of(value.get_ref()));
        self.parser.problem(value.span(), message, "write true or false");
        None
    }

    pub(super) fn amount(&mut self, key: &str, range: RangeInclusive<u64>) -> Option<u64> {
        let value = self.value(key)?;
        self.parser.amount_of(key, value, range)
    }

    /// A duration.
    pub(super) fn time(&mut self, key: &str) -> Option<(u64, Range<usize>)> {
        self.converted(key, parse_time)
    }

    /// A string with a syntax of its own.
    pub(super) fn converted<T>(
        &mut self,
        key: &str,
        convert: fn(&str) -> Result<T, TextError>,
    ) -> Option<(T, Range<usize>)> {
        let value = self.value(key)?;
        let converted = self.parser.converted_of(key, value, convert)?;
        Some((converted, value.span()))
    }

    /// The tables of `[[key]]`, each with its location.
    pub(super) fn tables(
        &mut self,
        key: &str,
        count_max: usize,
    ) -> Vec<(&'t DeTable<'i>, Range<usize>)> {
        let Some(value) = self.value(key) else { return Vec::new() };
        let Some(list) = value.get_ref().as_array() else {
            let message = format!("`{key}` is {}, not a list of tables", kind_of(value.get_ref()));
            self.parser.problem(value.span(), message, format!("write `[[{key}]]`"));
            return Vec::new();
        };
        if list.len() > count_max {
            let message =
                format!("{} × [[{key}]] is more than the limit of {count_max}", list.len());
            self.parser.problem(value.span(), message, "use `count`, or split the workload");
            return Vec::new();
        }
        let mut tables = Vec::with_capacity(list.len());
        for item in list {
            match item.get_ref().as_table() {
                Some(table) => tables.push((table, item.span())),
                None => {
                    let message =
                        format!("`{key}` is a list with {} in it", kind_of(item.get_ref()));
                    self.parser.problem(item.span(), message, format!("write `[[{key}]]`"));
                }
            }
        }
        tables
    }
}

impl Parser<'_> {
    pub(super) fn text_of<'v>(&mut self, key: &str, value: Value<'v, '_>) -> Option<&'v str> {
        let text = value.get_ref().as_str();
        if text.is_none() {
            let message = format!("`{key}` must be a string, not {}", kind_of(value.get_ref()));
            self.problem(value.span(), message, "write it in double quotes");
        }
        text
    }

    pub(super) fn integer_of(
        &mut self,
        key: &str,
        value: Value<'_, '_>,
        range: RangeInclusive<i64>,
    ) -> Option<i64> {
        let (low, high) = (*range.start(), *range.end());
        let help = if high == i64::MAX {
            format!("write an integer from {low}")
        } else {
            format!("write an integer from {low} to {high}")
        };
        let DeValue::Integer(number) = value.get_ref() else {
            let message = format!("`{key}` must be an integer, not {}", kind_of(value.get_ref()));
            self.problem(value.span(), message, help);
            return None;
        };
        let parsed = i64::from_str_radix(number.as_str(), number.radix()).ok();
        let parsed = parsed.filter(|number| range.contains(number));
        if parsed.is_none() {
            let message = format!("`{key} = {number}` is out of range");
            self.problem(value.span(), message, help);
        }
        parsed
    }

    pub(super) fn amount_of(
        &mut self,
        key: &str,
        value: Value<'_, '_>,
        range: RangeInclusive<u64>,
    ) -> Option<u64> {
        let bound = |amount: u64| i64::try_from(amount).unwrap_or(i64::MAX);
        let number = self.integer_of(key, value, bound(*range.start())..=bound(*range.end()))?;
        u64::try_from(number).ok()
    }

    pub(super) fn converted_of<T>(
        &mut self,
        key: &str,
        value: Value<'_, '_>,
        convert: fn(&str) -> Result<T, TextError>,
    ) -> Option<T> {
        let Some(text) = value.get_ref().as_str() else {
            let message = format!("`{key}` must be a string, not {}", kind_of(value.get_ref()));
            let example = if key == "cpus" { "0-3,8" } else { "1ms" };
            self.problem(
                value.span(),
                message,
                format!("write it in double quotes: \"{example}\""),
            );
            return None;
        };
        match convert(text) {
            Ok(converted) => Some(converted),
            Err(error) => {
                self.problem(value.span(), format!("in `{key}`: {}", error.message), error.help);
                None
            }
        }
    }
}

/// The type of a value, in words.
pub(super) fn kind_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a float",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
