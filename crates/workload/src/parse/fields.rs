//! One table of the file: its known keys, and the types of their values.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::diagnostic::{Diagnostic, Source, suggestion};
use crate::units::{TextError, parse_time};

/// The names that programs refer to, by kind: the words of object kinds, and `semaphore`, whose indices are those of
/// queues. Cgroups have paths; the root is one when any cgroup is declared.
pub(super) type Names = BTreeMap<&'static str, BTreeMap<String, usize>>;

/// The state of a parse, with the problems so far.
pub(super) struct Parser<'s> {
    pub(super) source: &'s Source<'s>,
    pub(super) problems: Vec<Diagnostic>,
    pub(super) names: Names,
    /// Operations read so far.
    pub(super) operations: usize,
    /// The period of each timer, ns.
    pub(super) periods: Vec<u64>,
}

/// A value with its location.
pub(super) type Value<'v, 'i> = &'v Spanned<DeValue<'i>>;

/// A table that is being read. Unknown keys are reported when it is opened.
pub(super) struct Section<'p, 's, 't, 'i> {
    pub(super) parser: &'p mut Parser<'s>,
    pub(super) table: &'t DeTable<'i>,
    span: Range<usize>,
    /// How messages call it.
    what: String,
}

impl<'p, 's, 't, 'i> Section<'p, 's, 't, 'i> {
    pub(super) fn new(
        parser: &'p mut Parser<'s>,
        table: &'t DeTable<'i>,
        span: Range<usize>,
        what: String,
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

    /// Reports a required key that is missing.
    pub(super) fn require(&mut self, key: &str, help: &str) {
        if !self.table.contains_key(key) {
            let message = format!("{} has no `{key}`", self.what);
            self.parser.problem(self.span.clone(), message, help);
        }
    }

    /// The value of a key that may be missing.
    pub(super) fn read<T>(
        &mut self,
        key: &str,
        read: impl FnOnce(&mut Parser<'s>, Value<'t, 'i>) -> Option<T>,
    ) -> Option<T> {
        read(self.parser, self.table.get(key)?)
    }

    /// The required `name`. Valid names are checked with the model.
    pub(super) fn name(&mut self) -> String {
        self.require("name", "give it a name, as in `name = \"worker\"`");
        self.text("name").unwrap_or_default().to_owned()
    }

    pub(super) fn text(&mut self, key: &str) -> Option<&'t str> {
        self.read(key, |parser, value| parser.text(key, value))
    }

    /// A boolean; false when it is missing.
    pub(super) fn truth(&mut self, key: &str) -> Option<bool> {
        let value = self.table.get(key)?;
        if let DeValue::Boolean(truth) = value.get_ref() {
            return Some(*truth);
        }
        let message = format!("`{key}` must be a boolean, not {}", kind_of(value));
        self.parser.problem(value.span(), message, "write true or false");
        None
    }

    pub(super) fn integer<T: TryFrom<i64>>(
        &mut self,
        key: &str,
        range: RangeInclusive<i64>,
    ) -> Option<T> {
        self.read(key, |parser, value| parser.integer(key, value, range))
    }

    pub(super) fn amount(&mut self, key: &str, range: RangeInclusive<u64>) -> Option<u64> {
        self.read(key, |parser, value| parser.amount(key, value, range))
    }

    /// A string with a syntax of its own.
    pub(super) fn converted<T>(
        &mut self,
        key: &str,
        convert: fn(&str) -> Result<T, TextError>,
    ) -> Option<T> {
        self.read(key, |parser, value| parser.converted(key, value, convert))
    }

    /// A required duration above 0, ns.
    pub(super) fn positive(&mut self, key: &str, zero: &str, help: &str) -> Option<u64> {
        self.read(key, |parser, value| {
            let ns = parser.converted(key, value, parse_time)?;
            if ns == 0 {
                parser.problem(value.span(), zero.to_owned(), help);
            }
            Some(ns)
        })
    }
}

impl Parser<'_> {
    pub(super) fn problem(&mut self, span: Range<usize>, message: String, help: impl Into<String>) {
        self.problems.push(self.source.diagnostic(span, message, help.into()));
    }

    /// The tables of `[[key]]`, each with its location.
    pub(super) fn tables<'t, 'i>(
        &mut self,
        top: &'t DeTable<'i>,
        key: &str,
        count_max: usize,
    ) -> Vec<(&'t DeTable<'i>, Range<usize>)> {
        let Some(value) = top.get(key) else { return Vec::new() };
        let help = format!("write `[[{key}]]`");
        let Some(list) = value.get_ref().as_array() else {
            let message = format!("`{key}` is {}, not a list of tables", kind_of(value));
            self.problem(value.span(), message, help);
            return Vec::new();
        };
        if list.len() > count_max {
            let message =
                format!("{} × [[{key}]] is more than the limit of {count_max}", list.len());
            self.problem(value.span(), message, "use `count`, or split the workload");
            return Vec::new();
        }
        let mut tables = Vec::with_capacity(list.len());
        for item in list {
            let bad = |kind: &str| format!("`{key}` is a list with {kind} in it");
            tables.extend(self.table(item, bad, help.as_str()).map(|table| (table, item.span())));
        }
        tables
    }

    /// A value that must be a table; `message` says of which other type it is.
    pub(super) fn table<'v, 'i>(
        &mut self,
        value: Value<'v, 'i>,
        message: impl FnOnce(&str) -> String,
        help: impl Into<String>,
    ) -> Option<&'v DeTable<'i>> {
        let table = value.get_ref().as_table();
        if table.is_none() {
            self.problem(value.span(), message(kind_of(value)), help);
        }
        table
    }

    pub(super) fn text<'v>(&mut self, key: &str, value: Value<'v, '_>) -> Option<&'v str> {
        let text = value.get_ref().as_str();
        if text.is_none() {
            let message = format!("`{key}` must be a string, not {}", kind_of(value));
            self.problem(value.span(), message, "write it in double quotes");
        }
        text
    }

    pub(super) fn integer<T: TryFrom<i64>>(
        &mut self,
        key: &str,
        value: Value<'_, '_>,
        range: RangeInclusive<i64>,
    ) -> Option<T> {
        let (low, high) = (*range.start(), *range.end());
        let help = if high == i64::MAX {
            format!("write an integer from {low}")
        } else {
            format!("write an integer from {low} to {high}")
        };
        let DeValue::Integer(number) = value.get_ref() else {
            let message = format!("`{key}` must be an integer, not {}", kind_of(value));
            self.problem(value.span(), message, help);
            return None;
        };
        let parsed = i64::from_str_radix(number.as_str(), number.radix()).ok();
        let parsed = parsed.filter(|number| range.contains(number));
        let parsed = parsed.and_then(|number| T::try_from(number).ok());
        if parsed.is_none() {
            let message = format!("`{key} = {number}` is out of range");
            self.problem(value.span(), message, help);
        }
        parsed
    }

    pub(super) fn amount(
        &mut self,
        key: &str,
        value: Value<'_, '_>,
        range: RangeInclusive<u64>,
    ) -> Option<u64> {
        let bound = |amount: u64| i64::try_from(amount).unwrap_or(i64::MAX);
        self.integer(key, value, bound(*range.start())..=bound(*range.end()))
    }

    pub(super) fn converted<T>(
        &mut self,
        key: &str,
        value: Value<'_, '_>,
        convert: fn(&str) -> Result<T, TextError>,
    ) -> Option<T> {
        let Some(text) = value.get_ref().as_str() else {
            let message = format!("`{key}` must be a string, not {}", kind_of(value));
            let example = if key == "cpus" { "0-3,8" } else { "1ms" };
            let help = format!("write it in double quotes: \"{example}\"");
            self.problem(value.span(), message, help);
            return None;
        };
        let converted = convert(text);
        if let Err(error) = &converted {
            let message = format!("in `{key}`: {}", error.message);
            self.problem(value.span(), message, error.help.as_str());
        }
        converted.ok()
    }

    /// The index of a named object; a cgroup's name is its path.
    pub(super) fn reference(&mut self, kind: &'static str, value: Value<'_, '_>) -> Option<usize> {
        let name = self.text(kind, value)?;
        let plain = match kind {
            "cgroup" => name.strip_prefix('/').filter(|rest| !rest.is_empty()).unwrap_or(name),
            _ => name,
        };
        let names = self.names.entry(kind).or_default();
        if let Some(&index) = names.get(plain) {
            return Some(index);
        }
        let help = match (names.is_empty(), kind) {
            (true, "lock") => format!("declare it: [locks.{name}] with `kind = \"mutex\"`"),
            (true, "cgroup") => format!("declare it: [cgroups.\"{plain}\"] with `weight = 100`"),
            (true, _) => format!("declare it: [[{kind}]] with `name = \"{name}\"`"),
            (false, _) => suggestion(plain, names.keys().map(String::as_str), &format!("{kind}s")),
        };
        self.problem(value.span(), format!("there is no {kind} `{name}`"), help);
        None
    }
}

/// The type of a value, in words.
pub(super) fn kind_of(value: Value<'_, '_>) -> &'static str {
    match value.get_ref() {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a float",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
