//! The reader of workload files: strict TOML. Every key is known or an error, every problem has a location, and all
//! problems of a file are reported together.

mod cgroups;
mod fields;
mod locks;
mod program;
mod sync;

use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::check;
use crate::diagnostic::{Diagnostic, Source, WorkloadError};
use crate::limits::{AMOUNT_MAX, FILE_BYTES_MAX, GROUPS_MAX, OBJECTS_MAX, TASKS_MAX};
use crate::model::{Carrier, Op, Pipe, Program, Queue, TaskSpec, Timer, Workload};
use crate::spans::{Spans, TaskSpans};
use crate::units::{parse_cpus, parse_time};
use fields::Section;

/// The version of the format that the reader and the writer support.
pub const FORMAT: i64 = 1;
/// Default capacity of a pipe, bytes (Linux: 16 pages).
pub const PIPE_CAPACITY_DEFAULT: u64 = 65_536;
/// Default memory for a socket's messages, bytes (Linux: `net.core.wmem_default`).
pub const SOCKET_BUFFER_DEFAULT: u64 = 212_992;

const TOP_KEYS: [&str; 14] = [
    "sockets",
    "format",
    "name",
    "description",
    "duration",
    "task",
    "pipe",
    "queue",
    "semaphore",
    "locks",
    "condition",
    "barrier",
    "timer",
    "cgroups",
];
const TASK_KEYS: [&str; 8] =
    ["name", "count", "nice", "cpus", "cgroup", "start", "program", "on_signal"];

/// All problems: of TOML itself; then unknown keys, wrong types and values, unknown names; then those of the checks of
/// [`crate::check`]. A later stage runs only when the earlier ones found nothing.
pub fn parse(file: &str, text: &str) -> Result<Workload, WorkloadError> {
    let source = Source::new(file, text);
    if text.len() > FILE_BYTES_MAX {
        let message = format!(
            "the file has {} bytes, more than FILE_BYTES_MAX, {FILE_BYTES_MAX}",
            text.len()
        );
        let help = "split the workload, or write loops instead of repeated operations".to_owned();
        return Err(WorkloadError::new(vec![source.diagnostic(0..0, message, help)]));
    }
    let (table, syntax) = DeTable::parse_recoverable(text);
    if !syntax.is_empty() {
        let problems = syntax.iter().map(|error| {
            source.diagnostic(
                error.span().unwrap_or(0..0),
                format!("this is not TOML: {}", error.message()),
                "strings are written in double quotes, lists in [ ], operations in { }; see https://toml.io"
                    .to_owned(),
            )
        });
        return Err(WorkloadError::new(problems.collect()));
    }
    let mut parser = Parser {
        source: &source,
        problems: Vec::new(),
        names: Names::default(),
        operations: 0,
        periods: Vec::new(),
    };
    let (workload, spans) = parser.workload(table.get_ref());
    if !parser.problems.is_empty() {
        return Err(WorkloadError::new(parser.problems));
    }
    check::with_text(&workload, &source, &spans)?;
    Ok(workload)
}

/// The names that programs refer to, by kind.
#[derive(Debug, Default)]
struct Names {
    tasks: BTreeMap<String, usize>,
    pipes: BTreeMap<String, usize>,
    queues: BTreeMap<String, usize>,
    /// Indices of queues: a semaphore is one.
    semaphores: BTreeMap<String, usize>,
    locks: BTreeMap<String, usize>,
    conditions: BTreeMap<String, usize>,
    barriers: BTreeMap<String, usize>,
    timers: BTreeMap<String, usize>,
    /// Paths; the root is one when any cgroup is declared.
    cgroups: BTreeMap<String, usize>,
}

/// The state of a parse, with the problems so far.
struct Parser<'s> {
    source: &'s Source<'s>,
    problems: Vec<Diagnostic>,
    names: Names,
    /// Operations read so far.
    operations: usize,
    /// The period of each timer, ns.
    periods: Vec<u64>,
}

/// A value with its location.
type Value<'v, 'i> = &'v Spanned<DeValue<'i>>;

impl Parser<'_> {
    fn problem(&mut self, span: Range<usize>, message: String, help: impl Into<String>) {
        self.problems.push(self.source.diagnostic(span, message, help.into()));
    }

    fn workload(&mut self, table: &DeTable<'_>) -> (Workload, Spans) {
        let mut top = Section::new(self, table, 0..0, "the file", &TOP_KEYS);
        let format = top.integer("format", 1..=i64::MAX);
        if let Some((format, span)) = format
            && format != FORMAT
        {
            let help = format!("this version reads format = {FORMAT}");
            top.parser.problem(span, format!("format {format} is not known"), help);
        }
        if top.value("format").is_none() {
            top.missing("format", &format!("write `format = {FORMAT}` in the first line"));
        }
        let name = top.name().unwrap_or_default();
        let description = top.text("description").map(|(text, _)| text.to_owned());
        let duration_ns = top.time("duration");
        if let Some((0, span)) = &duration_ns {
            let help = "write a time above 0, as in `duration = \"10s\"`";
            top.parser.problem(span.clone(), "a `duration` of 0 is no run".into(), help);
        }
        if top.value("duration").is_none() {
            top.missing("duration", "say how long the workload runs, as in `duration = \"10s\"`");
        }
        let mut spans = Spans::default();
        let pipes = top.tables("pipe", OBJECTS_MAX);
        let queues = top.tables("queue", OBJECTS_MAX);
        let timers = top.tables("timer", OBJECTS_MAX);
        let semaphores = top.tables("semaphore", OBJECTS_MAX);
        let conditions = top.tables("condition", OBJECTS_MAX);
        let barriers = top.tables("barrier", OBJECTS_MAX);
        let tasks = top.tables("task", GROUPS_MAX);
        if tasks.is_empty() && top.value("task").is_none() {
            top.missing("task", "add a [[task]] with a `name` and a `program`");
        }
        let pipes = pipes.into_iter().map(|(table, span)| {
            spans.pipes.push(span.clone());
            self.pipe(table, span)
        });
        let mut pipes: Vec<Pipe> = pipes.collect();
        self.sockets(table.get("sockets"), &mut pipes, &mut spans);
        let queues = queues.into_iter().map(|(table, span)| {
            spans.queues.push(span.clone());
            self.queue(table, span)
        });
        let mut queues: Vec<Queue> = queues.collect();
        let timers = timers.into_iter().map(|(table, span)| {
            spans.timers.push(span.clone());
            self.timer(table, span)
        });
        let timers = timers.collect();
        self.semaphores(semaphores, &mut queues, &mut spans);
        let (conditions, barriers) = self.meetings(conditions, barriers, &mut spans);
        let locks = self.locks(table.get("locks"), &mut spans);
        let cgroups = self.cgroups(table.get("cgroups"), &mut spans);
        let tasks = self.tasks(tasks, &mut spans);
        let workload = Workload {
            name,
            description: description.unwrap_or_default(),
            duration_ns: duration_ns.map_or(0, |(ns, _)| ns),
            tasks,
            pipes,
            queues,
            locks,
            conditions,
            barriers,
            timers,
            cgroups,
        };
        (workload, spans)
    }

    fn pipe(&mut self, table: &DeTable<'_>, span: Range<usize>) -> Pipe {
        let index = self.names.pipes.len();
        let keys = ["name", "capacity", "socket"];
        let mut section = Section::new(self, table, span, "[[pipe]]", &keys);
        let name = section.name().unwrap_or_default();
        let (carrier, usual) = match section.truth("socket") {
            Some(true) => (Carrier::Socket, SOCKET_BUFFER_DEFAULT),
            _ => (Carrier::Pipe, PIPE_CAPACITY_DEFAULT),
        };
        let capacity = section.amount("capacity", 1..=AMOUNT_MAX);
        self.names.pipes.entry(name.clone()).or_insert(index);
        Pipe { name, capacity: capacity.unwrap_or(usual), carrier }
    }

    fn queue(&mut self, table: &DeTable<'_>, span: Range<usize>) -> Queue {
        let index = self.names.queues.len();
        let keys = ["name", "capacity", "initial"];
        let mut section = Section::new(self, table, span, "[[queue]]", &keys);
        let name = section.name().unwrap_or_default();
        let capacity = section.amount("capacity", 1..=AMOUNT_MAX);
        let initial = section.amount("initial", 0..=AMOUNT_MAX).unwrap_or(0);
        self.names.queues.entry(name.clone()).or_insert(index);
        Queue { name, capacity, initial }
    }

    fn timer(&mut self, table: &DeTable<'_>, span: Range<usize>) -> Timer {
        let index = self.names.timers.len();
        let keys = ["name", "period", "mode", "shared"];
        let mut section = Section::new(self, table, span, "[[timer]]", &keys);
        let name = section.name().unwrap_or_default();
        let relative = section.text("mode").is_some_and(|(mode, span)| {
            if mode != "relative" && mode != "absolute" {
                let message = format!("`{mode}` is not a timer mode");
                section.parser.problem(span, message, "write \"relative\" or \"absolute\"");
            }
            mode == "relative"
        });
        let shared = section.truth("shared").unwrap_or(false);
        if section.value("period").is_none() {
            section.missing("period", "say how often it expires, as in `period = \"1ms\"`");
        }
        let period = section.time("period");
        if let Some((0, span)) = &period {
            let help = "write a period above 0, as in `period = \"1ms\"`";
            section.parser.problem(span.clone(), "a timer cannot have the period 0".into(), help);
        }
        self.names.timers.entry(name.clone()).or_insert(index);
        let period_ns = period.map_or(1, |(ns, _)| ns);
        self.periods.push(period_ns);
        Timer { name, period_ns, relative, shared }
    }

    /// Reads all heads first, since a program may name a group that is declared after it.
    fn tasks(
        &mut self,
        tables: Vec<(&DeTable<'_>, Range<usize>)>,
        spans: &mut Spans,
    ) -> Vec<TaskSpec> {
        let mut tasks = Vec::with_capacity(tables.len());
        for (table, span) in &tables {
            let task = self.task_head(table, span.clone());
            self.names.tasks.entry(task.name.clone()).or_insert(tasks.len());
            tasks.push(task);
        }
        let mut started = Vec::with_capacity(tables.len());
        for ((table, span), task) in tables.into_iter().zip(&mut tasks) {
            started.push(table.get("start").is_some());
            let mut task_spans = TaskSpans { whole: span.clone(), ..TaskSpans::default() };
            match table.get("program") {
                Some(value) => (task.program, task_spans.program) = self.program(value, 0),
                None => self.problem(
                    span,
                    format!("task `{}` has no `program`", task.name),
                    "say what it does, as in `program = [{ run = \"forever\" }]`",
                ),
            }
            if let Some(value) = table.get("on_signal") {
                (task.on_signal, task_spans.on_signal) = self.program(value, 0);
            }
            spans.tasks.push(task_spans);
        }
        start_groups_without_a_parent(&mut tasks, &started);
        tasks
    }

    fn task_head(&mut self, table: &DeTable<'_>, span: Range<usize>) -> TaskSpec {
        let mut section = Section::new(self, table, span, "[[task]]", &TASK_KEYS);
        let name = section.name().unwrap_or_default();
        let count = section.amount("count", 1..=TASKS_MAX).unwrap_or(1);
        let nice = section.integer("nice", -20..=19).map_or(0, |(nice, _)| nice);
        let cpus = section.converted("cpus", parse_cpus).map(|(cpus, _)| cpus);
        let cgroup = section.value("cgroup");
        let cgroup = cgroup.and_then(|value| section.parser.reference("cgroup", value));
        let start_ns = section.converted("start", parse_time).map(|(ns, _)| ns);
        TaskSpec {
            name,
            count: u32::try_from(count).unwrap_or(u32::MAX),
            nice: i8::try_from(nice).unwrap_or(0),
            cpus,
            cgroup,
            start_ns,
            program: Program::new(),
            on_signal: Program::new(),
        }
    }
}

/// A group without a `start` starts at once, unless a task forks it.
fn start_groups_without_a_parent(tasks: &mut [TaskSpec], started: &[bool]) {
    let mut forked = vec![false; tasks.len()];
    for task in tasks.iter() {
        for program in [&task.program, &task.on_signal] {
            mark_forked(program, &mut forked);
        }
    }
    for ((task, forked), started) in tasks.iter_mut().zip(forked).zip(started) {
        if !forked && !started {
            task.start_ns = Some(0);
        }
    }
}

/// Records the groups that a program forks.
pub(crate) fn mark_forked(program: &[Op], forked: &mut [bool]) {
    for op in program {
        match op {
            Op::Fork(group) => {
                if let Some(forked) = forked.get_mut(*group) {
                    *forked = true;
                }
            }
            Op::Loop(_, body) => mark_forked(body, forked),
            _ => {}
        }
    }
}
