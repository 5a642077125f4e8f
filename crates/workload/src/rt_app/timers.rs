//! Timers: their owners, and their mode after an overrun.

use std::ops::Range;

use super::json::{Kind, Value};
use super::names::Names;
use crate::model::Timer;

/// Prefix of the name of a thread's own timer.
pub(super) const UNIQUE: &str = "unique";

impl Names {
    /// Records that a timer is absolute: one event that says so suffices, in any position.
    pub(super) fn timer_mode(&mut self, thread: usize, timer: &Value) {
        let Kind::Object(members) = &timer.kind else { return };
        let text = |key: &str| {
            members.iter().find(|member| member.key == key).and_then(|m| match &m.value.kind {
                Kind::Text(text) => Some(text.as_str()),
                _ => None,
            })
        };
        if let (Some(name), Some("absolute")) = (text("ref"), text("mode")) {
            self.absolute.insert((scope(thread, name), name.to_owned()));
        }
    }

    /// The index of a timer. Threads whose timers of one name differ in mode have two.
    pub(super) fn timer(
        &mut self,
        thread: usize,
        name: &str,
        period_ns: u64,
        span: &Range<usize>,
    ) -> usize {
        let relative = !self.absolute.contains(&(scope(thread, name), name.to_owned()));
        let key = (name.to_owned(), relative);
        if let Some(&index) = self.timer_indices.get(&key) {
            return index;
        }
        let mut unused = name.to_owned();
        // Terminates: each iteration makes the name longer, and there are finitely many.
        while !self.timer_names.insert(unused.clone()) {
            unused += if relative { "-relative" } else { "-absolute" };
        }
        let timer = Timer { name: unused, period_ns, relative, shared: !name.starts_with(UNIQUE) };
        self.timers.push((timer, span.clone()));
        self.timer_indices.insert(key, self.timers.len() - 1);
        self.timers.len() - 1
    }
}

/// The owner of a timer: one thread, or all.
fn scope(thread: usize, name: &str) -> Option<usize> {
    name.starts_with(UNIQUE).then_some(thread)
}
