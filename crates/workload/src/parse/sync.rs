//! Sockets, semaphores, conditions and barriers.

use std::ops::Range;

use toml::de::DeTable;

use super::fields::{Section, kind_of};
use super::{Parser, SOCKET_BUFFER_DEFAULT, Value};
use crate::limits::{AMOUNT_MAX, OBJECTS_MAX, SOCKET_BUFFER_MIN, TASKS_MAX};
use crate::model::{Barrier, Carrier, Condition, Op, Pipe, Queue};
use crate::spans::Spans;

/// The tables of one kind, with their locations.
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

    /// The tables `[sockets.NAME]`, each a pair of connected sockets: two directed buffers, `NAME/a` for the writes of
    /// end a and `NAME/b` for those of end b.
    pub(super) fn sockets(
        &mut self,
        value: Option<Value<'_, '_>>,
        pipes: &mut Vec<Pipe>,
        spans: &mut Spans,
    ) {
        let Some(value) = value else { return };
        let Some(table) = value.get_ref().as_table() else {
            let message = format!("`sockets` is {}, not a table", kind_of(value.get_ref()));
            return self.problem(value.span(), message, "write `[sockets.chat]`");
        };
        if table.len() > OBJECTS_MAX {
            let message = format!("{} sockets, more than OBJECTS_MAX, {OBJECTS_MAX}", table.len());
            return self.problem(value.span(), message, "share them between tasks");
        }
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        for (key, value) in entries {
            let name = key.get_ref().as_ref();
            let mut capacity = SOCKET_BUFFER_DEFAULT;
            match value.get_ref().as_table() {
                Some(table) => {
                    let mut section =
                        Section::new(self, table, value.span(), "[sockets]", &["buffer"]);
                    let buffer = section.amount("buffer", SOCKET_BUFFER_MIN..=AMOUNT_MAX);
                    capacity = buffer.unwrap_or(capacity);
                }
                None => {
                    let message = format!("the socket `{name}` is {}", kind_of(value.get_ref()));
                    self.problem(value.span(), message, format!("write `[sockets.{name}]`"));
                }
            }
            for end in ["a", "b"] {
                let name = format!("{name}/{end}");
                spans.pipes.push(key.span());
                self.names.pipes.entry(name.clone()).or_insert(pipes.len());
                pipes.push(Pipe { name, capacity, carrier: Carrier::Socket });
            }
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

    /// `{ timer = "tick" }`, or with a period of this wait's own: `{ timer = { name = "tick", period = "20ms" } }`.
    pub(super) fn timer_wait(&mut self, value: Value<'_, '_>) -> Option<Op> {
        const EXAMPLE: &str = "write { timer = { name = \"tick\", period = \"20ms\" } }";
        let Some(table) = value.get_ref().as_table() else {
            let timer = self.reference("timer", value)?;
            return Some(Op::TimerWait(timer, self.periods.get(timer).copied()?));
        };
        let keys = ["name", "period"];
        let mut section = Section::new(self, table, value.span(), "`timer`", &keys);
        for key in keys {
            if section.value(key).is_none() {
                section.missing(key, EXAMPLE);
            }
        }
        let period = section.time("period");
        if let Some((0, span)) = &period {
            let message = "a timer cannot have the period 0".to_owned();
            section.parser.problem(span.clone(), message, EXAMPLE);
        }
        let named = section.value("name");
        let timer = named.and_then(|named| self.reference("timer", named));
        Some(Op::TimerWait(timer?, period?.0))
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
