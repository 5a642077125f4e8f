//! Timers: whose each is, and what follows an overrun.

use std::ops::Range;

use super::json::{Kind, Value};
use super::names::Names;
use crate::model::Timer;

/// What the name of a thread's own timer begins with.
pub(super) const UNIQUE: &str = "unique";

impl Names {
    /// Notes that a timer is absolute: one event that says so is enough, wherever it stands.
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

    /// The number of a timer. Threads whose timers of one name differ in their mode have two.
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
        // Ends: each turn makes the name longer, and there are finitely many.
        while !self.timer_names.insert(unused.clone()) {
            unused += if relative { "-relative" } else { "-absolute" };
        }
        let timer = Timer { name: unused, period_ns, relative, shared: !name.starts_with(UNIQUE) };
        self.timers.push((timer, span.clone()));
        self.timer_indices.insert(key, self.timers.len() - 1);
        self.timers.len() - 1
    }
}

/// Whose timer it is: one thread's, or everybody's.
fn scope(thread: usize, name: &str) -> Option<usize> {
    name.starts_with(UNIQUE).then_some(thread)
}
