//! Where the parts of a workload stand in its text, so that a check of the model can point at a line.

use std::ops::Range;

use crate::diagnostic::{Diagnostic, Source};
use crate::model::Workload;

/// The place of an operation and of those in its body.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpSpan {
    pub(crate) span: Range<usize>,
    pub(crate) body: Vec<OpSpan>,
}

/// The places of a group of tasks.
#[derive(Clone, Debug, Default)]
pub(crate) struct TaskSpans {
    pub(crate) whole: Range<usize>,
    pub(crate) program: Vec<OpSpan>,
    pub(crate) on_signal: Vec<OpSpan>,
}

/// The places of a whole workload, index by index like the model.
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

/// An operation of the model: its group, whether it stands in the handler, and the index at each depth of loops.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct OpPath {
    pub(crate) task: usize,
    pub(crate) handler: bool,
    pub(crate) path: Vec<usize>,
}

/// What a problem is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
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

/// A problem of the model, before it has a line.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) place: Place,
    pub(crate) message: String,
    pub(crate) notes: Vec<(Place, String)>,
    pub(crate) help: String,
}

impl Finding {
    pub(crate) fn new(place: Place, message: String, help: impl Into<String>) -> Self {
        Self { place, message, notes: Vec::new(), help: help.into() }
    }
}

/// Turns findings into diagnostics: with the text when there is one, by the names of the parts otherwise.
pub(crate) struct Locator<'a> {
    pub(crate) workload: &'a Workload,
    pub(crate) text: Option<(&'a Source<'a>, &'a Spans)>,
}

impl Locator<'_> {
    pub(crate) fn diagnostic(&self, finding: Finding) -> Diagnostic {
        let mut diagnostic = match self.text {
            Some((source, spans)) => source.diagnostic(
                span(spans, &finding.place).unwrap_or(0..0),
                finding.message,
                finding.help,
            ),
            None => {
                let subject = self.words(&finding.place);
                Diagnostic::unplaced(&subject, finding.message, finding.help)
            }
        };
        for (place, note) in &finding.notes {
            diagnostic.notes.push(format!("{}: {note}", self.words(place)));
        }
        diagnostic
    }

    /// `file:line:column`, or the path in words.
    fn words(&self, place: &Place) -> String {
        if let Some((source, spans)) = self.text
            && let Some(span) = span(spans, place)
        {
            return source.place(span.start);
        }
        let workload = format!("workload `{}`", self.workload.name);
        let task = |index: usize| match self.workload.tasks.get(index) {
            Some(task) => format!("{workload}, task `{}`", task.name),
            None => format!("{workload}, task {index}"),
        };
        match place {
            Place::Workload => workload,
            Place::Task(index) => task(*index),
            Place::Pipe(index) => format!("{workload}, pipe {index}"),
            Place::Queue(index) => format!("{workload}, queue {index}"),
            Place::Lock(index) => format!("{workload}, lock {index}"),
            Place::Condition(index) => format!("{workload}, condition {index}"),
            Place::Barrier(index) => format!("{workload}, barrier {index}"),
            Place::Timer(index) => format!("{workload}, timer {index}"),
            Place::Cgroup(index) => format!("{workload}, cgroup {index}"),
            Place::Op(op) => {
                let path: Vec<String> = op.path.iter().map(|i| (i + 1).to_string()).collect();
                let part = if op.handler { "on_signal" } else { "program" };
                format!("{}, {part} operation {}", task(op.task), path.join("."))
            }
        }
    }
}

fn span(spans: &Spans, place: &Place) -> Option<Range<usize>> {
    match place {
        Place::Workload => Some(0..0),
        Place::Task(index) => spans.tasks.get(*index).map(|task| task.whole.clone()),
        Place::Pipe(index) => spans.pipes.get(*index).cloned(),
        Place::Queue(index) => spans.queues.get(*index).cloned(),
        Place::Lock(index) => spans.locks.get(*index).cloned(),
        Place::Condition(index) => spans.conditions.get(*index).cloned(),
        Place::Barrier(index) => spans.barriers.get(*index).cloned(),
        Place::Timer(index) => spans.timers.get(*index).cloned(),
        Place::Cgroup(index) => spans.cgroups.get(*index).cloned(),
        Place::Op(op) => {
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
