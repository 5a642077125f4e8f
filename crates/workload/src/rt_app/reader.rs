//! The state of the reader, and members of objects: known keys, and the types of their values.

use std::collections::BTreeSet;
use std::ops::{Range, RangeInclusive};

use super::constants::{RT_APP_DURATION_NS, RT_APP_MEM_BUFFER};
use super::json::{Kind, Member, Value};
use super::names::Names;
use crate::diagnostic::{Diagnostic, Source, suggestion};
use crate::policy::SchedPolicy;
use crate::spans::Spans;

/// rt-app keeps numbers as a C `int`.
const NUMBER_MAX: i64 = i32::MAX as i64;
/// ns in the unit of rt-app's times.
const NS_PER_US: u64 = 1_000;

/// The state of the reader: problems and notes so far.
pub(super) struct Reader<'s> {
    pub(super) source: &'s Source<'s>,
    pub(super) problems: Vec<Diagnostic>,
    pub(super) notes: Vec<String>,
    pub(super) names: Names,
    /// Objects that some event resumes.
    pub(super) resumed: BTreeSet<String>,
    pub(super) global: Global,
    pub(super) spans: Spans,
}

/// Settings of all threads.
#[derive(Debug)]
pub(super) struct Global {
    pub(super) duration_ns: u64,
    /// Mutexes have priority inheritance.
    pub(super) pi_enabled: bool,
    /// Whether writes of `iorun` take time.
    pub(super) has_device: bool,
    pub(super) mem_buffer: u64,
    /// The policy of threads that name none.
    pub(super) policy: SchedPolicy,
    /// The default policy is SCHED_IDLE.
    pub(super) is_idle: bool,
}

impl Default for Global {
    fn default() -> Self {
        Self {
            duration_ns: RT_APP_DURATION_NS,
            pi_enabled: false,
            has_device: false,
            mem_buffer: RT_APP_MEM_BUFFER,
            policy: SchedPolicy::Other,
            is_idle: false,
        }
    }
}

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

    /// The value of a required key of an event's object.
    pub(super) fn required<'v>(
        &mut self,
        event: &Member,
        members: &'v [Member],
        key: &str,
        example: &str,
    ) -> Option<&'v Value> {
        let value = self.find(members, key);
        if value.is_none() {
            let message = format!("`{}` has no `{key}`", event.key);
            self.problem(event.span.clone(), message, format!("write {example}"));
        }
        value
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

    pub(super) fn unknown<'w>(
        &mut self,
        member: &Member,
        what: &str,
        near: Option<&str>,
        known: impl Iterator<Item = &'w str> + Clone,
    ) {
        let key = member.key.as_str();
        let help = match (near, key) {
            (_, "period" | "deadline") => {
                "it belongs to SCHED_DEADLINE, which is not here; `timer` has a `period`".to_owned()
            }
            (Some(event), _) => {
                let like = suggestion(key, known, "keys");
                let like = if like.starts_with("did") { format!("{like} ") } else { String::new() };
                format!(
                    "{like}rt-app takes every key that begins with `{event}` for that event: write \
                     `{event}`, `{event}0` or `{event}_…`"
                )
            }
            _ => suggestion(key, known, "keys"),
        };
        self.problem(member.span.clone(), format!("unknown key `{key}` in {what}"), help);
    }

    /// A number of iterations; `None`: unlimited.
    pub(super) fn iterations(&mut self, value: &Value) -> Option<u64> {
        let iterations: Option<i64> = self.integer("loop", value, -1..=i64::from(i32::MAX));
        if iterations == Some(0) {
            let help = "write -1 for a loop without end, or a number from 1";
            self.problem(value.span.clone(), "a `loop` of 0 does nothing", help);
        }
        iterations.and_then(|iterations| u64::try_from(iterations).ok())
    }

    fn mismatch(&mut self, key: &str, value: &Value, what: &str, example: &str) {
        let message = format!("`{key}` must be {what}, not {}", value.words());
        self.problem(value.span.clone(), message, format!("write {example}"));
    }

    pub(super) fn integer<T: TryFrom<i64>>(
        &mut self,
        key: &str,
        value: &Value,
        range: RangeInclusive<i64>,
    ) -> Option<T> {
        let (low, high) = (*range.start(), *range.end());
        let Kind::Integer(number) = value.kind else {
            self.mismatch(key, value, "an integer", &format!("\"{key}\" : {}", low.max(1)));
            return None;
        };
        let fits = T::try_from(number).ok().filter(|_| range.contains(&number));
        if fits.is_none() {
            let message = format!("`{key}` : {number} is out of range");
            let help = format!("write a number from {low} to {high}");
            self.problem(value.span.clone(), message, help);
        }
        fits
    }

    /// A number of bytes or the like.
    pub(super) fn amount(&mut self, key: &str, value: &Value, low: i64) -> Option<u64> {
        self.integer(key, value, low..=NUMBER_MAX)
    }

    /// A time in µs, as ns.
    pub(super) fn time(&mut self, key: &str, value: &Value, low_us: i64) -> Option<u64> {
        self.amount(key, value, low_us).map(|us| us * NS_PER_US)
    }

    pub(super) fn text<'v>(&mut self, key: &str, value: &'v Value) -> Option<&'v str> {
        if value.text().is_none() {
            self.mismatch(key, value, "a string", &format!("\"{key}\" : \"…\""));
        }
        value.text()
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
