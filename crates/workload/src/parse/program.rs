//! Programs: lists of operations.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::fields::{Section, kind_of};
use super::{Parser, Value};
use crate::diagnostic::suggestion;
use crate::limits::{AMOUNT_MAX, LOOP_DEPTH_MAX, OPERATIONS_MAX};
use crate::model::{Op, Program, Role};
use crate::spans::OpSpan;
use crate::units::{parse_cpus, parse_duration, parse_time};

/// Operations that are a table, `{ word = … }`.
const TABLE_WORDS: [&str; 30] = [
    "io",
    "run",
    "touch",
    "sleep",
    "timer",
    "timer_start",
    "busy",
    "write",
    "read",
    "send",
    "receive",
    "signal",
    "fork",
    "nice",
    "slice",
    "cpus",
    "cgroup",
    "weight",
    "mark",
    "lock",
    "unlock",
    "loop",
    "read_lock",
    "write_lock",
    "wait",
    "notify",
    "notify_all",
    "barrier",
    "sem_wait",
    "sem_post",
];
/// Operations that are a bare string.
const BARE_WORDS: [&str; 3] = ["wait", "yield", "exit"];

impl Parser<'_> {
    /// A list of operations. Invalid ones are reported and skipped, so that the rest is read too.
    pub(super) fn program(&mut self, value: Value<'_, '_>, depth: usize) -> (Program, Vec<OpSpan>) {
        let Some(list) = value.get_ref().as_array() else {
            let message =
                format!("a program is a list of operations, not {}", kind_of(value.get_ref()));
            let help =
                "write it in [ ], as in `program = [{ run = \"1ms\" }, { sleep = \"1ms\" }]`";
            self.problem(value.span(), message, help);
            return Default::default();
        };
        if depth > LOOP_DEPTH_MAX {
            let message = format!("more than LOOP_DEPTH_MAX, {LOOP_DEPTH_MAX}, loops inside loops");
            self.problem(value.span(), message, "write fewer loops with more `times`");
            return Default::default();
        }
        self.operations = self.operations.saturating_add(list.len());
        if self.operations > OPERATIONS_MAX {
            let message = format!("more than OPERATIONS_MAX, {OPERATIONS_MAX}, operations");
            self.problem(value.span(), message, "write loops instead of repeated operations");
            return Default::default();
        }
        let mut program = Program::with_capacity(list.len());
        let mut spans = Vec::with_capacity(list.len());
        for item in list {
            if let Some((op, body)) = self.operation(item, depth) {
                program.push(op);
                spans.push(OpSpan { span: item.span(), body });
            }
        }
        (program, spans)
    }

    fn operation(&mut self, value: Value<'_, '_>, depth: usize) -> Option<(Op, Vec<OpSpan>)> {
        match value.get_ref() {
            DeValue::String(word) => self.bare_operation(word, value.span()),
            DeValue::Table(table) => self.table_operation(table, value.span(), depth),
            other => {
                let message = format!("an operation cannot be {}", kind_of(other));
                let help =
                    "write a table, as in { run = \"1ms\" }, or \"wait\", \"yield\", \"exit\"";
                self.problem(value.span(), message, help);
                None
            }
        }
    }

    fn bare_operation(&mut self, word: &str, span: Range<usize>) -> Option<(Op, Vec<OpSpan>)> {
        let op = match word {
            "wait" => Op::WaitChildren,
            "yield" => Op::Yield,
            "exit" => Op::Exit,
            _ => {
                let help = if TABLE_WORDS.contains(&word) {
                    format!("`{word}` needs a value: write {{ {word} = {} }}", example(word))
                } else {
                    suggestion(word, BARE_WORDS.into_iter().chain(TABLE_WORDS), "operations")
                };
                self.problem(span, format!("`{word}` alone is not an operation"), help);
                return None;
            }
        };
        Some((op, Vec::new()))
    }

    fn table_operation(
        &mut self,
        table: &DeTable<'_>,
        span: Range<usize>,
        depth: usize,
    ) -> Option<(Op, Vec<OpSpan>)> {
        let mut word = None;
        let mut sound = true;
        for key in table.keys() {
            let name = key.get_ref().as_ref();
            if name == "times" && table.contains_key("loop") {
                continue;
            }
            if let Some(&known) = TABLE_WORDS.iter().find(|&&known| known == name) {
                if let Some(first) = word.replace(known) {
                    let message = format!("one operation cannot be both `{first}` and `{known}`");
                    let help = format!(
                        "write two operations: {{ {first} = … }}, {{ {known} = … }}, in the order meant"
                    );
                    self.problem(span.clone(), message, help);
                    return None;
                }
                continue;
            }
            sound = false;
            let help = match name {
                "times" => "`times` belongs to a loop: { loop = [ … ], times = 10 }".to_owned(),
                "yield" | "exit" => format!("write \"{name}\" alone, without {{ }}"),
                _ => suggestion(name, TABLE_WORDS.into_iter().chain(BARE_WORDS), "operations"),
            };
            self.problem(key.span(), format!("`{name}` is not an operation"), help);
        }
        let Some(word) = word else {
            if sound {
                let help = "write one, as in { run = \"1ms\" }";
                self.problem(span, "{ } holds no operation".to_owned(), help);
            }
            return None;
        };
        let value = table.get(word)?;
        if word == "loop" {
            return self.loop_operation(table, value, depth);
        }
        self.leaf(word, value).map(|op| (op, Vec::new()))
    }

    fn loop_operation(
        &mut self,
        table: &DeTable<'_>,
        body: Value<'_, '_>,
        depth: usize,
    ) -> Option<(Op, Vec<OpSpan>)> {
        let times = match table.get("times") {
            Some(times) => Some(self.amount_of("times", times, 1..=AMOUNT_MAX)?),
            None => None,
        };
        let problems = self.problems.len();
        let (program, spans) = self.program(body, depth + 1);
        if program.is_empty() {
            if self.problems.len() == problems {
                let help = "put operations into it, or remove it";
                self.problem(body.span(), "the loop is empty".to_owned(), help);
            }
            return None;
        }
        Some((Op::Loop(times, program), spans))
    }

    /// An operation without a body.
    fn leaf(&mut self, word: &'static str, value: Value<'_, '_>) -> Option<Op> {
        Some(match word {
            "run" if value.get_ref().as_str() == Some("forever") => Op::RunForever,
            "run" => Op::Run(self.converted_of(word, value, parse_duration)?),
            "touch" => Op::Touch(self.amount_of(word, value, 1..=AMOUNT_MAX)?),
            "sleep" => Op::Sleep(self.converted_of(word, value, parse_duration)?),
            "io" => Op::Io(self.converted_of(word, value, parse_duration)?),
            "timer" => self.timer_wait(value)?,
            "timer_start" => Op::TimerStart(self.reference("timer", value)?),
            "busy" => Op::Busy(self.converted_of(word, value, parse_duration)?),
            "write" => {
                let (pipe, bytes) = self.reference_and_amount(word, value, "pipe", "bytes")?;
                Op::PipeWrite(pipe, bytes)
            }
            "read" => {
                let (pipe, bytes) = self.reference_and_amount(word, value, "pipe", "bytes")?;
                Op::PipeRead(pipe, bytes)
            }
            "send" => Op::Send(self.reference("queue", value)?),
            "receive" => {
                let (queue, count) = self.reference_and_amount(word, value, "queue", "count")?;
                Op::Receive(queue, u32::try_from(count).ok()?)
            }
            "signal" => Op::Signal(self.role(value)?),
            "fork" => Op::Fork(self.reference("task", value)?),
            "nice" => {
                let nice = self.integer_of(word, value, -20..=19)?;
                Op::SetNice(i8::try_from(nice).ok()?)
            }
            "cgroup" => Op::SetCgroup(self.reference("cgroup", value)?),
            "weight" => self.cgroup_weight(value)?,
            "slice" => Op::SetSlice(self.converted_of(word, value, parse_time)?),
            "cpus" => Op::SetAffinity(self.converted_of(word, value, parse_cpus)?),
            "read_lock" => Op::ReadLock(self.reference("lock", value)?),
            "write_lock" => Op::WriteLock(self.reference("lock", value)?),
            "wait" => self.condition_wait(value)?,
            "notify" => Op::Notify(self.reference("condition", value)?),
            "notify_all" => Op::NotifyAll(self.reference("condition", value)?),
            "barrier" => Op::Barrier(self.reference("barrier", value)?),
            "sem_wait" => Op::Receive(self.reference("semaphore", value)?, 1),
            "sem_post" => Op::Send(self.reference("semaphore", value)?),
            "lock" => Op::Lock(self.reference("lock", value)?),
            "unlock" => Op::Unlock(self.reference("lock", value)?),
            _ => Op::Mark(self.text_of(word, value)?.to_owned()),
        })
    }

    /// `"name"`, one unit of it; or `{ pipe = "name", bytes = 8 }`.
    fn reference_and_amount(
        &mut self,
        word: &'static str,
        value: Value<'_, '_>,
        kind: &'static str,
        amount: &'static str,
    ) -> Option<(usize, u64)> {
        let Some(table) = value.get_ref().as_table() else {
            if value.get_ref().is_str() {
                return Some((self.reference(kind, value)?, 1));
            }
            let message = format!("`{word}` cannot be {}", kind_of(value.get_ref()));
            self.problem(value.span(), message, format!("write {{ {word} = {} }}", example(word)));
            return None;
        };
        let what = match word {
            "write" => "`write`",
            "read" => "`read`",
            _ => "`receive`",
        };
        let mut section = Section::new(self, table, value.span(), what, &[kind, amount]);
        let amount_max = if amount == "count" { u64::from(u32::MAX) } else { AMOUNT_MAX };
        let named = section.value(kind);
        if named.is_none() {
            section.missing(kind, &format!("write {{ {word} = {} }}", example(word)));
        }
        let number = match section.value(amount) {
            Some(_) => section.amount(amount, 1..=amount_max),
            None => Some(1),
        };
        let index = named.and_then(|named| self.reference(kind, named));
        Some((index?, number?))
    }

    /// The index of a named pipe, queue, timer, cgroup or task.
    pub(super) fn reference(&mut self, kind: &'static str, value: Value<'_, '_>) -> Option<usize> {
        let name = self.text_of(kind, value)?;
        let names = match kind {
            "pipe" => &self.names.pipes,
            "queue" => &self.names.queues,
            "lock" => &self.names.locks,
            "semaphore" => &self.names.semaphores,
            "condition" => &self.names.conditions,
            "barrier" => &self.names.barriers,
            "timer" => &self.names.timers,
            "cgroup" => return self.cgroup_reference(name, value.span()),
            _ => &self.names.tasks,
        };
        if let Some(&index) = names.get(name) {
            return Some(index);
        }
        let help = if names.is_empty() {
            match kind {
                "lock" => format!("declare it: [locks.{name}] with `kind = \"mutex\"`"),
                _ => format!("declare it: [[{kind}]] with `name = \"{name}\"`"),
            }
        } else {
            suggestion(name, names.keys().map(String::as_str), &format!("{kind}s"))
        };
        self.problem(value.span(), format!("there is no {kind} `{name}`"), help);
        None
    }

    /// `"parent"`, `"worker"` or `"worker/3"`.
    fn role(&mut self, value: Value<'_, '_>) -> Option<Role> {
        let name = self.text_of("signal", value)?;
        if name == "parent" {
            return Some(Role::Parent);
        }
        if let Some((group, number)) = name.rsplit_once('/')
            && let Some(&task) = self.names.tasks.get(group)
            && let Ok(number) = number.parse()
        {
            return Some(Role::One(task, number));
        }
        if let Some(&task) = self.names.tasks.get(name) {
            return Some(Role::All(task));
        }
        let groups = self.names.tasks.keys().map(String::as_str);
        let help = suggestion(name, groups.chain(["parent"]), "tasks");
        self.problem(value.span(), format!("there is no task `{name}` to signal"), help);
        None
    }
}

/// An example value of an operation, for a message.
fn example(word: &str) -> &'static str {
    match word {
        "run" | "sleep" | "io" | "busy" => "\"1ms\"",
        "touch" => "65536",
        "timer" | "timer_start" => "\"tick\"",
        "write" | "read" => "{ pipe = \"data\", bytes = 64 }",
        "send" => "\"answers\"",
        "receive" => "{ queue = \"answers\", count = 16 }",
        "signal" | "fork" => "\"worker\"",
        "nice" => "5",
        "slice" => "\"100us\"",
        "cpus" => "\"0-3\"",
        "cgroup" => "\"web/front\"",
        "weight" => "{ cgroup = \"web\", weight = 300 }",
        "mark" => "\"begin\"",
        "lock" | "unlock" | "read_lock" | "write_lock" => "\"table\"",
        "wait" => "{ cond = \"filled\", lock = \"table\" }",
        "notify" | "notify_all" => "\"filled\"",
        "barrier" => "\"start\"",
        "sem_wait" | "sem_post" => "\"slots\"",
        _ => "[ … ]",
    }
}
