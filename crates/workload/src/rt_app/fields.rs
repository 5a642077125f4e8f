//! Members of objects: known keys, and the types of their values.

use std::ops::{Range, RangeInclusive};

use super::Reader;
use super::json::{Kind, Member, Value};
use crate::diagnostic::suggestion;

/// rt-app keeps numbers as a C `int`.
const NUMBER_MAX: i64 = i32::MAX as i64;
/// ns in the unit of rt-app's times.
pub(super) const NS_PER_US: u64 = 1_000;

impl Reader<'_> {
    pub(super) fn problem(
        &mut self,
        span: Range<usize>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.problems.push(self.source.diagnostic(span, message.into(), help.into()));
    }

    /// A note on a member that has another meaning here than in rt-app, or none.
    pub(super) fn note(&mut self, span: &Range<usize>, text: impl AsRef<str>) {
        self.notes.push(format!("{}: {}", self.source.location(span.start), text.as_ref()));
    }

    /// The value of a key that may not be repeated.
    pub(super) fn find<'v>(&mut self, members: &'v [Member], key: &str) -> Option<&'v Value> {
        let mut all = members.iter().filter(|member| member.key == key);
        let first = all.next()?;
        if let Some(second) = all.next() {
            let message = format!("`{key}` is here a second time");
            let help = "only events and phases may be repeated: remove one of the two";
            self.problem(second.span.clone(), message, help);
        }
        Some(&first.value)
    }

    /// Reports unknown keys.
    pub(super) fn only(&mut self, members: &[Member], what: &str, known: &[&str]) {
        for member in members {
            if !known.contains(&member.key.as_str()) {
                let message = format!("unknown key `{}` in {what}", member.key);
                let help = suggestion(&member.key, known.iter().copied(), "keys");
                self.problem(member.span.clone(), message, help);
            }
        }
    }

    fn mismatch(&mut self, key: &str, value: &Value, what: &str, example: &str) {
        let message = format!("`{key}` must be {what}, not {}", value.words());
        self.problem(value.span.clone(), message, format!("write {example}"));
    }

    pub(super) fn integer(
        &mut self,
        key: &str,
        value: &Value,
        range: RangeInclusive<i64>,
    ) -> Option<i64> {
        let (low, high) = (*range.start(), *range.end());
        let Kind::Integer(number) = value.kind else {
            self.mismatch(key, value, "an integer", &format!("\"{key}\" : {}", low.max(1)));
            return None;
        };
        if range.contains(&number) {
            return Some(number);
        }
        let message = format!("`{key}` : {number} is out of range");
        self.problem(value.span.clone(), message, format!("write a number from {low} to {high}"));
        None
    }

    /// A number of bytes or the like.
    pub(super) fn amount(&mut self, key: &str, value: &Value, low: i64) -> Option<u64> {
        let number = self.integer(key, value, low..=NUMBER_MAX)?;
        u64::try_from(number).ok()
    }

    /// A time in µs, as ns.
    pub(super) fn time(&mut self, key: &str, value: &Value, low_us: i64) -> Option<u64> {
        self.amount(key, value, low_us).map(|us| us * NS_PER_US)
    }

    pub(super) fn text<'v>(&mut self, key: &str, value: &'v Value) -> Option<&'v str> {
        let Kind::Text(text) = &value.kind else {
            self.mismatch(key, value, "a string", &format!("\"{key}\" : \"…\""));
            return None;
        };
        Some(text)
    }

    /// A name: a string that is not empty.
    pub(super) fn name<'v>(&mut self, key: &str, value: &'v Value) -> Option<&'v str> {
        let text = self.text(key, value)?;
        if text.is_empty() {
            self.problem(value.span.clone(), format!("`{key}` is empty"), "write a name");
            return None;
        }
        Some(text)
    }

    pub(super) fn truth(&mut self, key: &str, value: &Value) -> Option<bool> {
        let Kind::Truth(truth) = value.kind else {
            self.mismatch(key, value, "a boolean", "true or false");
            return None;
        };
        Some(truth)
    }

    pub(super) fn object<'v>(&mut self, key: &str, value: &'v Value) -> Option<&'v [Member]> {
        let Kind::Object(members) = &value.kind else {
            self.mismatch(key, value, "an object", &format!("\"{key}\" : {{ … }}"));
            return None;
        };
        Some(members)
    }

    pub(super) fn list<'v>(&mut self, key: &str, value: &'v Value) -> Option<&'v [Value]> {
        let Kind::List(list) = &value.kind else {
            self.mismatch(key, value, "a list", &format!("\"{key}\" : [ 0, 1 ]"));
            return None;
        };
        Some(list)
    }
}
