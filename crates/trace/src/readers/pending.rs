//! Events before their tasks are known: compact, with tasks as identities, waiting to be put in order of time.

use super::interner::{Class, IdentityId, Interner, NameId};
use super::parsed::{Named, ParsedEvent};
use crate::{CallbackKind, Label, LockFlags, TaskState};

/// One event, 32 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingEvent {
    pub(super) time_ns: u64,
    pub(super) cpu: u32,
    pub(super) kind: PendingKind,
}

/// Stated in `docs/reference/recordings.md`.
const EVENT_BYTES_MAX: usize = 32;
const _: () = assert!(size_of::<PendingEvent>() <= EVENT_BYTES_MAX);

/// See [`ParsedEvent`].
#[derive(Clone, Copy, Debug)]
pub(super) enum PendingKind {
    Switch {
        prev: IdentityId,
        prev_state: TaskState,
        next: IdentityId,
    },
    Waking {
        task: IdentityId,
        waker: Option<IdentityId>,
        target_cpu: u32,
    },
    Wakeup {
        task: IdentityId,
        target_cpu: u32,
    },
    WakeupNew {
        task: IdentityId,
        target_cpu: u32,
    },
    Migrate {
        task: IdentityId,
        from_cpu: u32,
        to_cpu: u32,
    },
    Fork {
        parent: IdentityId,
        child: IdentityId,
    },
    Exit {
        task: IdentityId,
    },
    Nice {
        pid: u32,
        nice: i8,
    },
    Tick {
        running: Option<IdentityId>,
    },
    Callback {
        kind: CallbackKind,
        pid: u32,
    },
    Mark {
        pid: u32,
        label: Label,
        value: Halves,
    },
    Param {
        label: Label,
    },
    CgroupMove {
        pid: u32,
        path: NameId,
    },
    CgroupWeight {
        cgroup: u32,
        weight: u32,
    },
    ContentionBegin {
        pid: u32,
        holder: u32,
        flags: LockFlags,
        lock: Label,
    },
    ContentionEnd {
        pid: u32,
        lock: Label,
    },
    Print {
        label: Label,
    },
    Stack {
        pid: u32,
        label: Label,
    },
    Lost {
        count: Halves,
    },
    /// Becomes no event of the trace; what it was is counted elsewhere.
    Dropped,
}

/// A number of 64 bits in two halves, the lower one first: aligned to four bytes, so that an event takes 32.
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

/// An event of which the text, if it has one, is not in a table yet: the label in `kind` means nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unlabelled<'a> {
    pub(super) kind: PendingKind,
    pub(super) text: Option<&'a str>,
}

/// The event that a line or record makes, if it makes one. `running` is the task that the CPU was running, with its
/// name.
#[inline]
pub(super) fn pending<'a>(
    parsed: ParsedEvent<'a>,
    running: Option<(u32, &str)>,
    interner: &mut Interner,
) -> Option<Unlabelled<'a>> {
    let mut id = |named: Named<'_>| interner.identity(named.pid, named.comm, Class::of(named.prio));
    let kind = match parsed {
        ParsedEvent::Switch { prev, prev_state, next } => {
            PendingKind::Switch { prev: id(prev), prev_state, next: id(next) }
        }
        ParsedEvent::Waking { task, target_cpu } => {
            let task = id(task);
            let waker = running.map(|(pid, comm)| interner.identity(pid, comm, Class::Unknown));
            PendingKind::Waking { task, waker, target_cpu }
        }
        ParsedEvent::Wakeup { task, target_cpu } => {
            PendingKind::Wakeup { task: id(task), target_cpu }
        }
        ParsedEvent::WakeupNew { task, target_cpu } => {
            PendingKind::WakeupNew { task: id(task), target_cpu }
        }
        ParsedEvent::Migrate { task, from_cpu, to_cpu } => {
            PendingKind::Migrate { task: id(task), from_cpu, to_cpu }
        }
        ParsedEvent::Fork { parent, child } => {
            PendingKind::Fork { parent: id(parent), child: id(child) }
        }
        ParsedEvent::Exit { task } => PendingKind::Exit { task: id(task) },
        ParsedEvent::Tick => {
            let running = running.map(|(pid, comm)| interner.identity(pid, comm, Class::Unknown));
            PendingKind::Tick { running }
        }
        ParsedEvent::Nice { pid, nice } => PendingKind::Nice { pid, nice },
        ParsedEvent::Callback { kind, pid } => PendingKind::Callback { kind, pid },
        ParsedEvent::CgroupWeight { cgroup, weight } => {
            PendingKind::CgroupWeight { cgroup, weight }
        }
        ParsedEvent::Lost { count } => PendingKind::Lost { count: Halves::of(count) },
        ParsedEvent::LostHere | ParsedEvent::Other => return None,
        with_text => return unlabelled(with_text, running.map(|(pid, _)| pid), interner),
    };
    Some(Unlabelled { kind, text: None })
}

/// The same for events that have a text.
fn unlabelled<'a>(
    parsed: ParsedEvent<'a>,
    running_pid: Option<u32>,
    interner: &mut Interner,
) -> Option<Unlabelled<'a>> {
    let label = Label(0);
    let (kind, text) = match parsed {
        ParsedEvent::Mark { pid, label: text, value } => {
            (PendingKind::Mark { pid, label, value: Halves::of(value) }, text)
        }
        ParsedEvent::Param { label: text } => (PendingKind::Param { label }, text),
        ParsedEvent::CgroupMove { pid, path } => {
            (PendingKind::CgroupMove { pid, path: interner.name("") }, path)
        }
        ParsedEvent::ContentionBegin { pid, holder, flags, lock } => {
            let pid = pid.or(running_pid)?;
            (PendingKind::ContentionBegin { pid, holder, flags, lock: label }, lock)
        }
        ParsedEvent::ContentionEnd { pid, lock } => {
            (PendingKind::ContentionEnd { pid: pid.or(running_pid)?, lock: label }, lock)
        }
        ParsedEvent::Print { label: text } => (PendingKind::Print { label }, text),
        ParsedEvent::Stack { folded } => {
            (PendingKind::Stack { pid: running_pid.unwrap_or(0), label }, folded)
        }
        _ => return None,
    };
    Some(Unlabelled { kind, text: Some(text) })
}

impl PendingKind {
    /// The highest CPU number in the operands.
    #[inline]
    pub(super) fn cpu_max(&self) -> u32 {
        match *self {
            Self::Waking { target_cpu, .. }
            | Self::Wakeup { target_cpu, .. }
            | Self::WakeupNew { target_cpu, .. } => target_cpu,
            Self::Migrate { from_cpu, to_cpu, .. } => from_cpu.max(to_cpu),
            _ => 0,
        }
    }

    /// Replaces each identity.
    #[inline]
    pub(super) fn map_identities(&mut self, map: impl Fn(IdentityId) -> IdentityId) {
        match self {
            Self::Switch { prev: a, next: b, .. } | Self::Fork { parent: a, child: b } => {
                (*a, *b) = (map(*a), map(*b));
            }
            Self::Waking { task, waker, .. } => {
                (*task, *waker) = (map(*task), waker.map(map));
            }
            Self::Wakeup { task, .. }
            | Self::WakeupNew { task, .. }
            | Self::Migrate { task, .. }
            | Self::Exit { task } => *task = map(*task),
            Self::Tick { running } => *running = running.map(map),
            _ => {}
        }
    }
}

/// Which kinds of events there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct EventKinds {
    pub(super) wakeups: bool,
    pub(super) cgroups: bool,
    /// Events that refer to the label table.
    pub(super) labels: bool,
}

impl EventKinds {
    #[inline]
    pub(super) fn note(&mut self, kind: &PendingKind) {
        match kind {
            PendingKind::Wakeup { .. } => self.wakeups = true,
            PendingKind::CgroupMove { .. } | PendingKind::CgroupWeight { .. } => {
                self.cgroups = true;
            }
            PendingKind::Mark { .. }
            | PendingKind::Param { .. }
            | PendingKind::Print { .. }
            | PendingKind::Stack { .. }
            | PendingKind::ContentionBegin { .. }
            | PendingKind::ContentionEnd { .. } => self.labels = true,
            _ => {}
        }
    }

    /// These kinds and the others.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            wakeups: self.wakeups || other.wakeups,
            cgroups: self.cgroups || other.cgroups,
            labels: self.labels || other.labels,
        }
    }

    /// Whether `other` has no kind that is not among these.
    pub(super) fn include(self, other: Self) -> bool {
        self.wakeups >= other.wakeups
            && self.cgroups >= other.cgroups
            && self.labels >= other.labels
    }
}
