//! Source locations of the parts of a workload, so that a check of the model can name a line.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::diagnostic::{Diagnostic, Source, WorkloadError};
use crate::model::Workload;
use crate::objects::ObjectKind;
use crate::walk::OpPath;

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

/// The byte ranges of a whole workload, indexed like the model. Those of tasks are in `tasks` alone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spans {
    pub(crate) tasks: Vec<TaskSpans>,
    pub(crate) objects: BTreeMap<ObjectKind, Vec<Range<usize>>>,
}

impl Spans {
    /// The byte range of the next object of a kind.
    pub(crate) fn push(&mut self, kind: ObjectKind, span: Range<usize>) {
        self.objects.entry(kind).or_default().push(span);
    }

    fn find(&self, subject: &Subject) -> Option<Range<usize>> {
        match subject {
            Subject::Workload => Some(0..0),
            Subject::Object(ObjectKind::Task, index) => {
                self.tasks.get(*index).map(|task| task.whole.clone())
            }
            Subject::Object(kind, index) => self.objects.get(kind)?.get(*index).cloned(),
            Subject::Op(op) => {
                let task = self.tasks.get(op.task)?;
                let mut list = if op.handler { &task.on_signal } else { &task.program };
                let (last, outer) = op.path.split_last()?;
                for &index in outer {
                    list = &list.get(index)?.body;
                }
                list.get(*last).map(|op| op.span.clone())
            }
        }
    }
}

/// The subject of a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Workload,
    Object(ObjectKind, usize),
    Op(OpPath),
}

/// A problem of the model, without a line yet.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) subject: Subject,
    pub(crate) message: String,
    pub(crate) notes: Vec<(Subject, String)>,
    pub(crate) help: String,
    /// Whether some tasks wait for ever because of it, and nothing else is wrong.
    pub(crate) hangs: bool,
}

impl Finding {
    pub(crate) fn new(subject: Subject, message: String, help: impl Into<String>) -> Self {
        Self { subject, message, notes: Vec::new(), help: help.into(), hangs: false }
    }

    /// Some tasks wait for ever because of it; the others go on.
    pub(crate) fn hanging(self) -> Self {
        Self { hangs: true, ..self }
    }
}

/// Makes diagnostics of findings: with the source text when there is one, otherwise with the names of the parts.
pub(crate) struct Locator<'a> {
    pub(crate) workload: &'a Workload,
    pub(crate) text: Option<(&'a Source<'a>, &'a Spans)>,
}

impl Locator<'_> {
    pub(crate) fn error(&self, findings: Vec<Finding>) -> WorkloadError {
        WorkloadError::new(findings.into_iter().map(|finding| self.diagnostic(finding)).collect())
    }

    /// `PLACE: MESSAGE` of each.
    pub(crate) fn lines(&self, findings: &[Finding]) -> Vec<String> {
        let line = |finding: &Finding| {
            let place = self.words(&finding.subject);
            format!("{place}: {}", finding.message)
        };
        findings.iter().map(line).collect()
    }

    fn diagnostic(&self, finding: Finding) -> Diagnostic {
        let mut diagnostic = match self.text {
            Some((source, spans)) => source.diagnostic(
                spans.find(&finding.subject).unwrap_or(0..0),
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
            && let Some(span) = spans.find(subject)
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
            Subject::Object(ObjectKind::Task, index) => task(*index),
            Subject::Object(kind, index) => format!("{workload}, {} {index}", kind.word()),
            Subject::Op(op) => {
                let path: Vec<String> = op.path.iter().map(|i| (i + 1).to_string()).collect();
                let part = if op.handler { "on_signal" } else { "program" };
                format!("{}, {part} operation {}", task(op.task), path.join("."))
            }
        }
    }
}
