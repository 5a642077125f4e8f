//! Programs: lists of operations.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::fields::{Parser, Section, Value, kind_of};
use super::policy::PRIORITIES;
use crate::diagnostic::suggestion;
use crate::limits::{AMOUNT_MAX, CGROUP_WEIGHT_MAX, LOOP_DEPTH_MAX, OPERATIONS_MAX};
use crate::model::{Op, Program, Role};
use crate::spans::OpSpan;
use crate::units::{parse_cpus, parse_duration, parse_time};

/// Operations that are a table, `{ word = … }`, each with an example of its value.
const TABLE_OPERATIONS: [(&str, &str); 31] = [
    ("io", "\"1ms\""),
    ("run", "\"1ms\""),
    ("touch", "65536"),
    ("sleep", "\"1ms\""),
    ("timer", "\"tick\""),
    ("timer_start", "\"tick\""),
    ("busy", "\"1ms\""),
    ("write", "{ pipe = \"data\", bytes = 64 }"),
    ("read", "{ pipe = \"data\", bytes = 64 }"),
    ("send", "\"answers\""),
    ("receive", "{ queue = \"answers\", count = 16 }"),
    ("signal", "\"worker\""),
    ("fork", "\"worker\""),
    ("nice", "5"),
    ("policy", "{ name = \"fifo\", priority = 50 }"),
    ("slice", "\"100us\""),
    ("cpus", "\"0-3\""),
    ("cgroup", "\"web/front\""),
    ("weight", "{ cgroup = \"web\", weight = 300 }"),
    ("mark", "\"begin\""),
    ("lock", "\"table\""),
    ("unlock", "\"table\""),
    ("loop", "[ … ]"),
    ("read_lock", "\"table\""),
    ("write_lock", "\"table\""),
    ("wait", "{ cond = \"filled\", lock = \"table\" }"),
    ("notify", "\"filled\""),
    ("notify_all", "\"filled\""),
    ("barrier", "\"start\""),
    ("sem_wait", "\"slots\""),
    ("sem_post", "\"slots\""),
];
/// Operations that are a bare string.
const BARE_WORDS: [&str; 3] = ["wait", "yield", "exit"];

fn table_words() -> impl Iterator<Item = &'static str> + Clone {
    TABLE_OPERATIONS.iter().map(|(word, _)| *word)
}

/// How an operation is written, for a message.
fn example(word: &str) -> String {
    let known = TABLE_OPERATIONS.iter().find(|(known, _)| *known == word);
    format!("write {{ {word} = {} }}", known.map_or("…", |(_, example)| example))
}

impl<'s> Parser<'s> {
    /// A list of operations. Invalid ones are reported and skipped, so that the rest is read too.
    pub(super) fn program(&mut self, value: Value<'_, '_>, depth: usize) -> (Program, Vec<OpSpan>) {
        let Some(list) = value.get_ref().as_array() else {
            let message = format!("a program is a list of operations, not {}", kind_of(value));
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
            _ => {
                let message = format!("an operation cannot be {}", kind_of(value));
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
                let help = if table_words().any(|known| known == word) {
                    format!("`{word}` needs a value: {}", example(word))
                } else {
                    suggestion(word, BARE_WORDS.into_iter().chain(table_words()), "operations")
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
            if let Some(known) = table_words().find(|known| *known == name) {
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
                _ => suggestion(name, table_words().chain(BARE_WORDS), "operations"),
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
            Some(times) => Some(self.amount("times", times, 1..=AMOUNT_MAX)?),
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
            "run" => Op::Run(self.converted(word, value, parse_duration)?),
            "touch" => Op::Touch(self.amount(word, value, 1..=AMOUNT_MAX)?),
            "sleep" => Op::Sleep(self.converted(word, value, parse_duration)?),
            "io" => Op::Io(self.converted(word, value, parse_duration)?),
            "timer" => self.timer_wait(value)?,
            "timer_start" => Op::TimerStart(self.reference("timer", value)?),
            "busy" => Op::Busy(self.converted(word, value, parse_duration)?),
            "write" | "read" => {
                let words = ("pipe", "bytes");
                let (pipe, bytes) = self.reference_and_amount(word, value, words, AMOUNT_MAX)?;
                if word == "read" { Op::PipeRead(pipe, bytes) } else { Op::PipeWrite(pipe, bytes) }
            }
            "send" => Op::Send(self.reference("queue", value)?),
            "receive" => {
                let (words, count_max) = (("queue", "count"), u64::from(u32::MAX));
                let (queue, count) = self.reference_and_amount(word, value, words, count_max)?;
                Op::Receive(queue, u32::try_from(count).ok()?)
            }
            "signal" => Op::Signal(self.role(value)?),
            "fork" => Op::Fork(self.reference("task", value)?),
            "nice" => Op::SetNice(self.integer(word, value, -20..=19)?),
            "policy" => self.policy_change(value)?,
            "cgroup" => Op::SetCgroup(self.reference("cgroup", value)?),
            "weight" => self.cgroup_weight(value)?,
            "slice" => Op::SetSlice(self.converted(word, value, parse_time)?),
            "cpus" => Op::SetAffinity(self.converted(word, value, parse_cpus)?),
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
            _ => Op::Mark(self.text(word, value)?.to_owned()),
        })
    }

    /// `"name"`, one unit of it; or `{ pipe = "name", bytes = 8 }`.
    fn reference_and_amount(
        &mut self,
        word: &'static str,
        value: Value<'_, '_>,
        (kind, amount): (&'static str, &'static str),
        amount_max: u64,
    ) -> Option<(usize, u64)> {
        if value.get_ref().is_str() {
            return Some((self.reference(kind, value)?, 1));
        }
        let bad = |found: &str| format!("`{word}` cannot be {found}");
        let table = self.table(value, bad, example(word))?;
        let mut section =
            Section::new(self, table, value.span(), format!("`{word}`"), &[kind, amount]);
        section.require(kind, &example(word));
        let number = match table.contains_key(amount) {
            true => section.amount(amount, 1..=amount_max),
            false => Some(1),
        };
        Some((section.read(kind, |parser, named| parser.reference(kind, named))?, number?))
    }

    /// The section of an operation whose value is a table with two required keys.
    fn pair<'p, 't, 'i>(
        &'p mut self,
        word: &str,
        value: Value<'t, 'i>,
        keys: [&'static str; 2],
        help: &str,
    ) -> Option<Section<'p, 's, 't, 'i>> {
        let table = self.table(value, |found| format!("`{word}` cannot be {found}"), help)?;
        let mut section = Section::new(self, table, value.span(), format!("`{word}`"), &keys);
        for key in keys {
            section.require(key, help);
        }
        Some(section)
    }

    /// `{ timer = "tick" }`, or with a period of this wait's own: `{ timer = { name = "tick", period = "20ms" } }`.
    fn timer_wait(&mut self, value: Value<'_, '_>) -> Option<Op> {
        const EXAMPLE: &str = "write { timer = { name = \"tick\", period = \"20ms\" } }";
        if !value.get_ref().is_table() {
            let timer = self.reference("timer", value)?;
            return Some(Op::TimerWait(timer, self.periods.get(timer).copied()?));
        }
        let mut section = self.pair("timer", value, ["name", "period"], EXAMPLE)?;
        let period_ns = section.positive("period", "a timer cannot have the period 0", EXAMPLE);
        let timer = section.read("name", |parser, named| parser.reference("timer", named));
        Some(Op::TimerWait(timer?, period_ns?))
    }

    /// `{ wait = { cond = "filled", lock = "table" } }`.
    fn condition_wait(&mut self, value: Value<'_, '_>) -> Option<Op> {
        const EXAMPLE: &str = "write { wait = { cond = \"filled\", lock = \"table\" } }; \
                               to wait for children, write \"wait\" alone";
        let mut section = self.pair("wait", value, ["cond", "lock"], EXAMPLE)?;
        let condition = section.read("cond", |parser, named| parser.reference("condition", named));
        let lock = section.read("lock", |parser, named| parser.reference("lock", named));
        Some(Op::ConditionWait(condition?, lock?))
    }

    /// `{ policy = { name = "fifo", priority = 50 } }`, or `{ policy = "other" }`.
    fn policy_change(&mut self, value: Value<'_, '_>) -> Option<Op> {
        if value.get_ref().is_str() {
            let name = self.text("policy", value)?;
            return self.policy(name, None, value.span()).map(Op::SetPolicy);
        }
        let mut section = self.pair("policy", value, ["name", "priority"], &example("policy"))?;
        let priority = section.integer("priority", PRIORITIES);
        let name = section.text("name");
        let (name, priority) = (name?, priority?);
        self.policy(name, Some(priority), value.span()).map(Op::SetPolicy)
    }

    /// `{ weight = { cgroup = "web", weight = 300 } }`.
    fn cgroup_weight(&mut self, value: Value<'_, '_>) -> Option<Op> {
        let keys = ["cgroup", "weight"];
        let mut section = self.pair("weight", value, keys, &example("weight"))?;
        let weight = section.integer("weight", 1..=i64::from(CGROUP_WEIGHT_MAX));
        let cgroup = section.read("cgroup", |parser, named| parser.reference("cgroup", named));
        Some(Op::SetCgroupWeight(cgroup?, weight?))
    }

    /// `"parent"`, `"worker"` or `"worker/3"`.
    fn role(&mut self, value: Value<'_, '_>) -> Option<Role> {
        let name = self.text("signal", value)?;
        if name == "parent" {
            return Some(Role::Parent);
        }
        let tasks = self.names.entry("task").or_default();
        if let Some((group, number)) = name.rsplit_once('/')
            && let Some(&task) = tasks.get(group)
            && let Ok(number) = number.parse()
        {
            return Some(Role::One(task, number));
        }
        if let Some(&task) = tasks.get(name) {
            return Some(Role::All(task));
        }
        let help = suggestion(name, tasks.keys().map(String::as_str).chain(["parent"]), "tasks");
        self.problem(value.span(), format!("there is no task `{name}` to signal"), help);
        None
    }
}
