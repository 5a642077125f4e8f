//! The state of the writer: what it writes about, and what it cannot write.

use super::constants::RT_APP_MEM_BUFFER;
use super::write_text::Pair;
use crate::model::{Op, Workload};
use crate::objects::ObjectKind;
use crate::spans::{Finding, Subject};
use crate::units::{Duration, quoted};
use crate::walk::{OpPath, each_op};

/// The memory of `mem`, and whether there is input and output.
#[derive(Debug)]
pub(super) struct Buffer {
    bytes: u64,
    /// Loops that touch the whole memory are one `mem`.
    whole: bool,
    pub(super) has_io: bool,
}

impl Buffer {
    pub(super) fn of(workload: &Workload) -> Self {
        let (mut largest, mut in_loops, mut has_io) = (0, Vec::new(), false);
        each_op(workload, |_, op| match op {
            Op::Touch(bytes) => largest = largest.max(*bytes),
            Op::Loop(Some(_), body) => {
                if let [Op::Touch(bytes)] = body[..] {
                    in_loops.push(bytes);
                }
            }
            Op::Io(_) => has_io = true,
            _ => {}
        });
        in_loops.sort_unstable();
        in_loops.dedup();
        match in_loops[..] {
            [bytes] if bytes == largest => Self { bytes, whole: true, has_io },
            _ => Self { bytes: largest.max(RT_APP_MEM_BUFFER), whole: false, has_io },
        }
    }

    /// Its size, if it differs from rt-app's default.
    pub(super) fn unusual(&self) -> Option<u64> {
        (self.bytes != RT_APP_MEM_BUFFER).then_some(self.bytes)
    }

    /// The event that reads this much memory this many times: `mem` where it is the whole.
    pub(super) fn again(&self, iterations: u64, bytes: u64) -> Option<Pair> {
        let all = bytes.checked_mul(iterations).and_then(|all| i32::try_from(all).ok())?;
        if self.whole && bytes == self.bytes {
            return Some(("mem".to_owned(), all.to_string()));
        }
        let value = format!("{{ \"type\" : \"read\", \"size\" : {bytes}, \"count\" : {all} }}");
        Some(("memrun".to_owned(), value))
    }

    /// Whether an operation is one event: all except loops, and loops that only read memory.
    pub(super) fn is_event(&self, op: &Op) -> bool {
        match op {
            Op::Loop(Some(iterations), body) => {
                matches!(body[..], [Op::Touch(bytes)] if self.again(*iterations, bytes).is_some())
            }
            Op::Loop(None, _) => false,
            _ => true,
        }
    }
}

/// An operation with its location; loops with their bodies.
#[derive(Debug)]
pub(super) struct Item<'w> {
    pub(super) path: Vec<usize>,
    pub(super) what: What<'w>,
}

/// The kind of an item.
#[derive(Debug)]
pub(super) enum What<'w> {
    /// An operation that is an event.
    Op(&'w Op),
    /// A setting of a phase.
    Set(&'w Op),
    /// A run, ns.
    Run(u64),
    Loop(Option<u64>, Vec<Item<'w>>),
}

pub(super) struct Writer<'w> {
    pub(super) workload: &'w Workload,
    pub(super) findings: Vec<Finding>,
    pub(super) notes: Vec<String>,
    pub(super) buffer: Buffer,
    /// The operation of the next problem.
    pub(super) at: OpPath,
}

impl<'w> Writer<'w> {
    /// A problem of the present operation.
    pub(super) fn problem(&mut self, message: impl Into<String>, help: &str) {
        let subject = Subject::Op(self.at.clone());
        self.findings.push(Finding::new(subject, message.into(), help));
    }

    pub(super) fn at(&mut self, item: &Item<'_>) {
        self.at.path.clone_from(&item.path);
    }

    pub(super) fn of_task(&mut self, message: impl Into<String>, help: &str) {
        let subject = Subject::Object(ObjectKind::Task, self.at.task);
        self.findings.push(Finding::new(subject, message.into(), help));
    }

    /// ns as a number of µs.
    pub(super) fn us(&mut self, ns: u64) -> Option<String> {
        if !ns.is_multiple_of(1_000) {
            let help = "rt-app counts in microseconds: round it";
            self.problem(format!("{ns} ns are not a whole number of microseconds"), help);
            return None;
        }
        let us = i32::try_from(ns / 1_000).ok();
        if us.is_none() {
            self.problem(
                "the time is above 2147 s, rt-app's longest",
                "write a loop of shorter ones",
            );
        }
        us.map(|us| us.to_string())
    }

    /// The path of a cgroup, as a JSON string.
    pub(super) fn path(&self, cgroup: usize) -> String {
        let path = self.workload.name_of(ObjectKind::Cgroup, cgroup);
        quoted(&format!("/{}", path.trim_start_matches('/')))
    }

    /// A constant duration, ns.
    pub(super) fn fixed(&mut self, duration: Duration) -> Option<u64> {
        match duration {
            Duration::Fixed(ns) => Some(ns),
            Duration::Uniform { .. } => {
                self.problem("the time is drawn at random", "rt-app has fixed times: write one");
                None
            }
        }
    }
}
