//! Scheduling policies: `policy` and `priority`.

use std::ops::{Range, RangeInclusive};

use super::fields::{Parser, Section};
use crate::diagnostic::suggestion;
use crate::policy::SchedPolicy;

/// Real-time priorities.
pub(super) const PRIORITIES: RangeInclusive<i64> = 1..=99;

impl Parser<'_> {
    /// The policy of a name; a real-time one needs a priority, and no other has one.
    pub(super) fn policy(
        &mut self,
        name: &str,
        priority: Option<u8>,
        span: Range<usize>,
    ) -> Option<SchedPolicy> {
        let Some(policy) = SchedPolicy::of_word(name, priority.unwrap_or(1)) else {
            let help = suggestion(name, SchedPolicy::WORDS, "policies");
            self.problem(span, format!("there is no policy `{name}`"), help);
            return None;
        };
        match (policy.priority(), priority) {
            (Some(_), None) => {
                let message = format!("the policy `{name}` has no `priority`");
                self.problem(span, message, "write one from 1 to 99, as in `priority = 50`");
                None
            }
            (None, Some(_)) => {
                let message = format!("the policy `{name}` has a `priority`");
                let help = "write `policy = \"fifo\"` or \"rr\"; what weighs other tasks is `nice`";
                self.problem(span, message, help);
                None
            }
            _ => Some(policy),
        }
    }
}

impl Section<'_, '_, '_, '_> {
    /// `policy` and `priority` of a task.
    pub(super) fn policy(&mut self) -> SchedPolicy {
        let priority = self.integer("priority", PRIORITIES);
        let Some(value) = self.table.get("policy") else {
            if let Some(value) = self.table.get("priority") {
                let message = "a `priority` without a real-time `policy`".to_owned();
                let help = "write `policy = \"fifo\"` or \"rr\"; what weighs other tasks is `nice`";
                self.parser.problem(value.span(), message, help);
            }
            return SchedPolicy::Other;
        };
        let named = self.text("policy");
        // A priority that is no number has been reported.
        let given = priority.or_else(|| self.table.contains_key("priority").then_some(1));
        let policy = named.and_then(|name| self.parser.policy(name, given, value.span()));
        policy.unwrap_or_default()
    }
}
