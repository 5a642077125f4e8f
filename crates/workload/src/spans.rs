//! Source locations of the parts of a workload, so that a check of the model can name a line.

use std::ops::Range;

use crate::diagnostic::{Diagnostic, Source};
use crate::model::Workload;

/// The byte ranges of an operation and of those in its body.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpSpan {
    pub(crate) span: Range<usize>,
    pub(crate) body: Vec<OpSpan>,
}

/// The byte ranges of a group of tasks.
#[derive(Clone, Debug, Default)]
pub(crate) struct TaskSpans {
    pub(crate) whole: Range<usize>,
    pub(crate) program: Vec<OpSpan>,
    pub(crate) on_signal: Vec<OpSpan>,
}

/// The byte ranges of a whole workload, indexed like the model.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spans {
    pub(crate) tasks: Vec<TaskSpans>,
    pub(crate) pipes: Vec<Range<usize>>,
    pub(crate) queues: Vec<Range<usize>>,
    pub(crate) locks: Vec<Range<usize>>,
    pub(crate) conditions: Vec<Range<usize>>,
    pub(crate) barriers: Vec<Range<usize>>,
    pub(crate) timers: Vec<Range<usize>>,
    pub(crate) cgroups: Vec<Range<usize>>,
}

/// An operation of the model: its group, whether it is in the handler, and the index at each depth of loops.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct OpPath {
    pub(crate) task: usize,
    pub(crate) handler: bool,
    pub(crate) path: Vec<usize>,
}

/// What a problem is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Workload,
    Task(usize),
    Op(OpPath),
    Pipe(usize),
    Queue(usize),
    Lock(usize),
    Condition(usize),
    Barrier(usize),
    Timer(usize),
    Cgroup(usize),
}

/// A problem of the model, without a line yet.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) subject: Subject,
    pub(crate) message: String,
    pub(crate) notes: Vec<(Subject, String)>,
    pub(crate) help: String,
}

impl Finding {
    pub(crate) fn new(subject: Subject, message: String, help: impl Into<String>) -> Self {
        Self { subject, message, notes: Vec::new(), help: help.into() }
    }
}

/// Makes diagnostics of findings: with the source text when there is one, otherwise with the names of the parts.
pub(crate) struct Locator<'a> {
    pub(crate) workload: &'a Workload,
    pub(crate) text: Option<(&'a Source<'a>, &'a Spans)>,
}

impl Locator<'_> {
    pub(crate) fn diagnostic(&self, finding: Finding) -> Diagnostic {
        let mut diagnostic = match self.text {
            Some((source, spans)) => source.diagnostic(
                span(spans, &finding.subject).unwrap_or(0..0),
                finding.message,
                finding.help,
            ),
            None => {
                let subject = self.words(&finding.subject);
                Diagnostic::unplaced(&subject, finding.message, finding.help)
            }
        };
        for (subject, note) in &finding.notes {
            diagnostic.notes.push(format!("{}: {note}", self.words(subject)));
        }
        diagnostic
    }

    /// `file:line:column`, or the path in words.
    fn words(&self, subject: &Subject) -> String {
        if let Some((source, spans)) = self.text
            && let Some(span) = span(spans, subject)
        {
            return source.location(span.start);
        }
        let workload = format!("workload `{}`", self.workload.name);
        let task = |index: usize| match self.workload.tasks.get(index) {
            Some(task) => format!("{workload}, task `{}`", task.name),
            None => format!("{workload}, task {index}"),
        };
        match subject {
            Subject::Workload => workload,
            Subject::Task(index) => task(*index),
            Subject::Pipe(index) => format!("{workload}, pipe {index}"),
            Subject::Queue(index) => format!("{workload}, queue {index}"),
            Subject::Lock(index) => format!("{workload}, lock {index}"),
            Subject::Condition(index) => format!("{workload}, condition {index}"),
            Subject::Barrier(index) => format!("{workload}, barrier {index}"),
            Subject::Timer(index) => format!("{workload}, timer {index}"),
            Subject::Cgroup(index) => format!("{workload}, cgroup {index}"),
            Subject::Op(op) => {
                let path: Vec<String> = op.path.iter().map(|i| (i + 1).to_string()).collect();
                let part = if op.handler { "on_signal" } else { "program" };
                format!("{}, {part} operation {}", task(op.task), path.join("."))
            }
        }
    }
}

fn span(spans: &Spans, subject: &Subject) -> Option<Range<usize>> {
    match subject {
        Subject::Workload => Some(0..0),
        Subject::Task(index) => spans.tasks.get(*index).map(|task| task.whole.clone()),
        Subject::Pipe(index) => spans.pipes.get(*index).cloned(),
        Subject::Queue(index) => spans.queues.get(*index).cloned(),
        Subject::Lock(index) => spans.locks.get(*index).cloned(),
        Subject::Condition(index) => spans.conditions.get(*index).cloned(),
        Subject::Barrier(index) => spans.barriers.get(*index).cloned(),
        Subject::Timer(index) => spans.timers.get(*index).cloned(),
        Subject::Cgroup(index) => spans.cgroups.get(*index).cloned(),
        Subject::Op(op) => {
            let task = spans.tasks.get(op.task)?;
            let mut list = if op.handler { &task.on_signal } else { &task.program };
            let (last, outer) = op.path.split_last()?;
            for &index in outer {
                list = &list.get(index)?.body;
            }
            list.get(*last).map(|op| op.span.clone())
        }
    }
}
