//! What the lines said, compact, before it is put in order: names interned, tasks still as pids.

use super::fields::{Named, Said};
use super::names::{Class, Name, Roster, Who};
use crate::escape::unescape;
use crate::{CallbackKind, Label, LockFlags, TaskState};

/// One event before its tasks are known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    pub(super) time_ns: u64,
    pub(super) cpu: u32,
    pub(super) what: What,
}

/// Stated in `docs/formats.md`.
const RECORD_BYTES_MAX: usize = 32;
const _: () = assert!(size_of::<Record>() <= RECORD_BYTES_MAX);

/// Where the record of an event goes, and what is noted of all records there.
#[derive(Debug)]
pub(super) struct Sink<'r> {
    pub(super) time_ns: u64,
    pub(super) cpu: u32,
    pub(super) records: &'r mut Vec<Record>,
    /// One more than the highest number of a CPU.
    pub(super) cpus: &'r mut u32,
    pub(super) has_wakeups: &'r mut bool,
}

impl Sink<'_> {
    /// Inlined, so that no kind of record is put together only to be copied: in words that do not match those just written, which stalls
    /// a processor. For the same reason room is made before.
    #[inline(always)]
    pub(super) fn take(&mut self, what: What) {
        self.records.reserve(1);
        let cpu = self.cpu;
        *self.cpus = (*self.cpus).max(cpu.max(what.cpu_max()) + 1);
        *self.has_wakeups |= matches!(what, What::Wakeup { .. });
        self.records.push(Record { time_ns: self.time_ns, cpu, what });
    }
}

/// See [`Said`].
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    Switch { prev: Who, prev_state: TaskState, next: Who },
    Waking { task: Who, waker: Option<Who>, target_cpu: u32 },
    Wakeup { task: Who, target_cpu: u32 },
    WakeupNew { task: Who, target_cpu: u32 },
    Migrate { task: Who, from_cpu: u32, to_cpu: u32 },
    Fork { parent: Who, child: Who },
    Exit { task: Who },
    Nice { pid: u32, nice: i8 },
    Tick { running: Option<Who> },
    Callback { kind: CallbackKind, pid: u32 },
    Mark { pid: u32, label: Label, value: Halves },
    Param { label: Label },
    CgroupMove { pid: u32, path: Name },
    CgroupWeight { cgroup: u32, weight: u32 },
    ContentionBegin { pid: u32, holder: u32, flags: LockFlags, lock: Label },
    ContentionEnd { pid: u32, lock: Label },
    Print { label: Label },
    Stack { pid: u32, label: Label },
    Lost { count: Halves },
}

/// A number of 64 bits in two halves, the lower one first: the record stays small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Halves([u32; 2]);

impl Halves {
    pub(super) fn of(value: u64) -> Self {
        Self([value as u32, (value >> 32) as u32])
    }

    pub(super) fn value(self) -> u64 {
        u64::from(self.0[0]) | u64::from(self.0[1]) << 32
    }
}

/// Turns what a line said into a record. `running` is the task of the line's first columns; `label` interns a label.
/// `None` for what makes no event.
pub(super) fn record(
    said: Said<'_>,
    running: Option<(u32, &str)>,
    roster: &mut Roster,
    mut label: impl FnMut(&str) -> Label,
) -> Option<What> {
    let mut who = |named: Named<'_>| roster.who(named.pid, named.comm, Class::of(named.prio));
    Some(match said {
        Said::Switch { prev, prev_state, next } => {
            What::Switch { prev: who(prev), prev_state, next: who(next) }
        }
        Said::Waking { task, target_cpu } => {
            let task = who(task);
            let waker = running.map(|(pid, comm)| roster.who(pid, comm, Class::Unsaid));
            What::Waking { task, waker, target_cpu }
        }
        Said::Wakeup { task, target_cpu } => What::Wakeup { task: who(task), target_cpu },
        Said::WakeupNew { task, target_cpu } => What::WakeupNew { task: who(task), target_cpu },
        Said::Migrate { task, from_cpu, to_cpu } => {
            What::Migrate { task: who(task), from_cpu, to_cpu }
        }
        Said::Fork { parent, child } => What::Fork { parent: who(parent), child: who(child) },
        Said::Exit { task } => What::Exit { task: who(task) },
        Said::Nice { pid, nice } => What::Nice { pid, nice },
        Said::Tick => {
            let running = running.map(|(pid, comm)| roster.who(pid, comm, Class::Unsaid));
            What::Tick { running }
        }
        Said::Callback { kind, pid } => What::Callback { kind, pid },
        Said::Mark { pid, label: text, value } => {
            What::Mark { pid, label: label(text), value: Halves::of(value) }
        }
        Said::Param { label: text } => What::Param { label: label(text) },
        Said::CgroupMove { pid, path } => {
            What::CgroupMove { pid, path: roster.names.intern(&unescape(path)) }
        }
        Said::CgroupWeight { cgroup, weight } => What::CgroupWeight { cgroup, weight },
        Said::ContentionBegin { pid, holder, flags, lock } => {
            let pid = pid.or(running.map(|(pid, _)| pid))?;
            What::ContentionBegin { pid, holder, flags, lock: label(lock) }
        }
        Said::ContentionEnd { pid, lock } => {
            let pid = pid.or(running.map(|(pid, _)| pid))?;
            What::ContentionEnd { pid, lock: label(lock) }
        }
        Said::Lost { count } => What::Lost { count: Halves::of(count) },
        // A printed line and a stack may find no room: the reader enters them itself.
        Said::Print { .. } | Said::Stack { .. } | Said::LostHere | Said::Other => return None,
    })
}

impl What {
    /// The highest CPU number in the operands.
    #[inline(always)]
    pub(super) fn cpu_max(&self) -> u32 {
        match *self {
            Self::Waking { target_cpu, .. }
            | Self::Wakeup { target_cpu, .. }
            | Self::WakeupNew { target_cpu, .. } => target_cpu,
            Self::Migrate { from_cpu, to_cpu, .. } => from_cpu.max(to_cpu),
            _ => 0,
        }
    }
}
