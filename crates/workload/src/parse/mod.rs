//! The reader of workload files: strict TOML. Every key is known or an error, every problem has a location, and all
//! problems of a file are reported together.

mod fields;
mod objects;
mod operands;
mod policy;
mod program;

use std::ops::Range;

use toml::de::DeTable;

use crate::check;
use crate::diagnostic::{Source, WorkloadError};
use crate::limits::{FILE_BYTES_MAX, GROUPS_MAX, TASKS_MAX};
use crate::model::{Program, TaskSpec, Workload, independent};
use crate::spans::{Spans, TaskSpans};
use crate::units::{parse_cpus, parse_time};
use crate::walk::forked;
use fields::{Names, Parser, Section};

/// The version of the format that the reader and the writer support.
pub const FORMAT: i64 = 1;

const TOP_KEYS: [&str; 16] = [
    "sockets",
    "format",
    "name",
    "description",
    "duration",
    "recorded",
    "hangs",
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
const TASK_KEYS: [&str; 10] = [
    "name",
    "count",
    "policy",
    "priority",
    "nice",
    "cpus",
    "cgroup",
    "start",
    "program",
    "on_signal",
];

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

impl Parser<'_> {
    fn workload(&mut self, table: &DeTable<'_>) -> (Workload, Spans) {
        let mut top = Section::new(self, table, 0..0, "the file".into(), &TOP_KEYS);
        top.require("format", &format!("write `format = {FORMAT}` in the first line"));
        top.read("format", |parser, value| {
            let format: i64 = parser.integer("format", value, 1..=i64::MAX)?;
            if format != FORMAT {
                let help = format!("this version reads format = {FORMAT}");
                parser.problem(value.span(), format!("format {format} is not known"), help);
            }
            Some(())
        });
        let name = top.name();
        let description = top.text("description").unwrap_or_default().to_owned();
        top.require("duration", "say how long the workload runs, as in `duration = \"10s\"`");
        let help = "write a time above 0, as in `duration = \"10s\"`";
        let duration_ns = top.positive("duration", "a `duration` of 0 is no run", help);
        let recorded = top.truth("recorded").unwrap_or(false);
        let hangs = top.truth("hangs").unwrap_or(false);
        top.require("task", "add a [[task]] with a `name` and a `program`");
        let mut workload = Workload {
            name,
            duration_ns: duration_ns.unwrap_or(0),
            recorded,
            hangs,
            ..independent(description, Vec::new())
        };
        let mut spans = Spans::default();
        self.objects(table, &mut workload, &mut spans);
        let tasks = self.tables(table, "task", GROUPS_MAX);
        let started: Vec<bool> = tasks.iter().map(|(task, _)| task.contains_key("start")).collect();
        workload.tasks = self.tasks(tasks, &mut spans);
        // A group without a `start` starts at once, unless a task forks it.
        let forked = forked(&workload);
        for ((task, forked), started) in workload.tasks.iter_mut().zip(forked).zip(started) {
            if !forked && !started {
                task.start_ns = Some(0);
            }
        }
        (workload, spans)
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
            let names = self.names.entry("task").or_default();
            names.entry(task.name.clone()).or_insert(tasks.len());
            tasks.push(task);
        }
        for ((table, span), task) in tables.into_iter().zip(&mut tasks) {
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
        tasks
    }

    fn task_head(&mut self, table: &DeTable<'_>, span: Range<usize>) -> TaskSpec {
        let mut section = Section::new(self, table, span, "[[task]]".into(), &TASK_KEYS);
        let name = section.name();
        let count = section.integer("count", 1..=TASKS_MAX as i64).unwrap_or(1);
        TaskSpec {
            policy: section.policy(),
            nice: section.integer("nice", -20..=19).unwrap_or(0),
            cpus: section.converted("cpus", parse_cpus),
            cgroup: section.read("cgroup", |parser, value| parser.reference("cgroup", value)),
            start_ns: section.converted("start", parse_time),
            ..TaskSpec::new(name, count, None, Program::new())
        }
    }
}
