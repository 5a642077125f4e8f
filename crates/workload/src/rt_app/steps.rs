//! Threads, and the steps that are read from their events.

use std::collections::BTreeSet;
use std::ops::Range;

use super::json::Member;
use crate::model::{Op, Program};
use crate::spans::OpSpan;

/// A thread of the file.
pub(super) struct Thread<'v> {
    pub(super) member: &'v Member,
    /// Its index in the file.
    pub(super) number: usize,
    /// Number of threads at the start.
    pub(super) instances: u32,
    pub(super) forked: bool,
}

/// Operations with their locations.
#[derive(Clone, Debug, Default)]
pub(super) struct Steps {
    program: Program,
    spans: Vec<OpSpan>,
}

impl Steps {
    pub(super) fn push(&mut self, op: Op, span: Range<usize>) {
        self.program.push(op);
        self.spans.push(OpSpan { span, body: Vec::new() });
    }

    pub(super) fn append(&mut self, mut more: Steps) {
        self.program.append(&mut more.program);
        self.spans.append(&mut more.spans);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.program.is_empty()
    }

    pub(super) fn into_parts(self) -> (Program, Vec<OpSpan>) {
        (self.program, self.spans)
    }

    /// Number of iterations; `None`: unlimited.
    pub(super) fn repeated(self, times: Option<u64>, span: Range<usize>) -> Steps {
        if times == Some(1) || self.is_empty() {
            return self;
        }
        Steps {
            program: vec![Op::Loop(times, self.program)],
            spans: vec![OpSpan { span, body: self.spans }],
        }
    }

    /// The timers of waits, in the order of their first waits, each with the location.
    pub(super) fn timers(&self) -> Vec<(usize, Range<usize>)> {
        let mut found = (BTreeSet::new(), Vec::new());
        timers(&self.program, &self.spans, &mut found);
        found.1
    }
}

/// Timers, as a set and in order.
type Found = (BTreeSet<usize>, Vec<(usize, Range<usize>)>);

fn timers(program: &Program, spans: &[OpSpan], found: &mut Found) {
    for (op, span) in program.iter().zip(spans) {
        match op {
            Op::TimerWait(timer, _) if found.0.insert(*timer) => {
                found.1.push((*timer, span.span.clone()));
            }
            Op::Loop(_, body) => timers(body, &span.body, found),
            _ => {}
        }
    }
}
