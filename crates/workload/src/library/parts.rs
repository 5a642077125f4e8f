//! Parts from which the workloads of the library are built.

use crate::limits::TASKS_MAX;
use crate::model::{
    Carrier, Lock, LockKind, Op, PIPE_CAPACITY_DEFAULT, Pipe, Program, SOCKET_BUFFER_DEFAULT,
    TaskSpec, Workload, independent,
};
use crate::units::Duration;

/// Limit of a count argument.
pub(super) const COUNT_MAX: u32 = TASKS_MAX as u32;

/// A workload of groups that share nothing, of so many seconds.
pub(super) fn seconds(
    seconds: u64,
    description: impl Into<String>,
    tasks: Vec<TaskSpec>,
) -> Workload {
    let duration_ns = seconds * 1_000_000_000;
    Workload { duration_ns, ..independent(description.into(), tasks) }
}

/// A group that starts at once, at nice 0, on any CPU.
pub(super) fn group(name: impl Into<String>, count: u32, program: Program) -> TaskSpec {
    TaskSpec::new(name, count, Some(0), program)
}

/// The same, repeating its operations for ever.
pub(super) fn looping(name: impl Into<String>, count: u32, body: Program) -> TaskSpec {
    group(name, count, vec![Op::Loop(None, body)])
}

/// A group that another one forks.
pub(super) fn forked(name: impl Into<String>, count: u32, program: Program) -> TaskSpec {
    TaskSpec::new(name, count, None, program)
}

/// A run of at least 1 ns.
pub(super) fn run(ns: u64) -> Op {
    Op::Run(Duration::Fixed(ns.max(1)))
}

pub(super) fn sleep(ns: u64) -> Op {
    Op::Sleep(Duration::Fixed(ns))
}

pub(super) fn mark(text: impl Into<String>) -> Op {
    Op::Mark(text.into())
}

/// An endless loop of a run and a sleep; a part of 0 is left out.
pub(super) fn run_and_sleep(run: Duration, sleep: Duration) -> Program {
    const NONE: Duration = Duration::Fixed(0);
    match (run, sleep) {
        (_, NONE) => vec![Op::RunForever],
        (NONE, _) => vec![Op::Loop(None, vec![Op::Sleep(sleep)])],
        _ => vec![Op::Loop(None, vec![Op::Run(run), Op::Sleep(sleep)])],
    }
}

/// A pipe of the usual capacity.
pub(super) fn pipe(name: impl Into<String>) -> Pipe {
    Pipe { name: name.into(), capacity: PIPE_CAPACITY_DEFAULT, carrier: Carrier::Pipe }
}

/// One direction of a pair of sockets of the usual buffer.
pub(super) fn socket(name: impl Into<String>) -> Pipe {
    Pipe { name: name.into(), capacity: SOCKET_BUFFER_DEFAULT, carrier: Carrier::Socket }
}

/// A lock that represents one of the kernel's, and the work under it.
#[derive(Clone, Copy)]
pub(super) struct Section {
    lock: Option<usize>,
    kind: LockKind,
    ns: u64,
}

impl Section {
    /// Without work there is no lock.
    pub(super) fn new(locks: &mut Vec<Lock>, name: &str, kind: LockKind, ns: u64) -> Section {
        let lock = (ns > 0).then_some(locks.len());
        locks.extend(lock.map(|_| Lock::new(name, kind)));
        Section { lock, kind, ns }
    }

    pub(super) fn ops(self) -> Vec<Op> {
        let take = if self.kind == LockKind::RwLock { Op::ReadLock } else { Op::Lock };
        let ops = |lock| vec![take(lock), run(self.ns), Op::Unlock(lock)];
        self.lock.map_or(Vec::new(), ops)
    }
}
