//! What tasks meet at: semaphores, conditions, barriers.

use std::ops::Range;

use toml::de::DeTable;

use super::fields::{Section, kind_of};
use super::{Parser, Value};
use crate::limits::{AMOUNT_MAX, TASKS_MAX};
use crate::model::{Barrier, Condition, Op, Queue};
use crate::spans::Spans;

/// The tables of one kind, with their places.
type Tables<'t, 'i> = Vec<(&'t DeTable<'i>, Range<usize>)>;

impl Parser<'_> {
    /// A semaphore is a queue without a limit, its value the number of messages.
    pub(super) fn semaphores(
        &mut self,
        tables: Tables<'_, '_>,
        queues: &mut Vec<Queue>,
        spans: &mut Spans,
    ) {
        for (table, span) in tables {
            spans.queues.push(span.clone());
            let keys = ["name", "initial"];
            let mut section = Section::new(self, table, span, "[[semaphore]]", &keys);
            let name = section.name().unwrap_or_default();
            let initial = section.amount("initial", 0..=AMOUNT_MAX).unwrap_or(0);
            self.names.semaphores.entry(name.clone()).or_insert(queues.len());
            queues.push(Queue { name, capacity: None, initial });
        }
    }

    pub(super) fn meetings(
        &mut self,
        conditions: Tables<'_, '_>,
        barriers: Tables<'_, '_>,
        spans: &mut Spans,
    ) -> (Vec<Condition>, Vec<Barrier>) {
        let mut all = (Vec::new(), Vec::new());
        for (table, span) in conditions {
            spans.conditions.push(span.clone());
            let mut section = Section::new(self, table, span, "[[condition]]", &["name"]);
            let name = section.name().unwrap_or_default();
            self.names.conditions.entry(name.clone()).or_insert(all.0.len());
            all.0.push(Condition { name });
        }
        for (table, span) in barriers {
            spans.barriers.push(span.clone());
            let keys = ["name", "count"];
            let mut section = Section::new(self, table, span, "[[barrier]]", &keys);
            let name = section.name().unwrap_or_default();
            if section.value("count").is_none() {
                section.missing("count", "say how many tasks meet there, as in `count = 4`");
            }
            let count = section.amount("count", 1..=TASKS_MAX).unwrap_or(1);
            self.names.barriers.entry(name.clone()).or_insert(all.1.len());
            all.1.push(Barrier { name, count: u32::try_from(count).unwrap_or(u32::MAX) });
        }
        all
    }

    /// `{ wait = { cond = "filled", lock = "table" } }`.
    pub(super) fn condition_wait(&mut self, value: Value<'_, '_>) -> Option<Op> {
        const EXAMPLE: &str = "write { wait = { cond = \"filled\", lock = \"table\" } }; \
                               to wait for children, write \"wait\" alone";
        let Some(table) = value.get_ref().as_table() else {
            let message = format!("`wait` cannot be {}", kind_of(value.get_ref()));
            self.problem(value.span(), message, EXAMPLE);
            return None;
        };
        let keys = ["cond", "lock"];
        let mut section = Section::new(self, table, value.span(), "`wait`", &keys);
        for key in keys {
            if section.value(key).is_none() {
                section.missing(key, EXAMPLE);
            }
        }
        let (condition, lock) = (section.value("cond"), section.value("lock"));
        let condition = condition.and_then(|named| self.reference("condition", named));
        let lock = lock.and_then(|named| self.reference("lock", named));
        Some(Op::ConditionWait(condition?, lock?))
    }
}
