//! One event in 32 bytes.

use crate::{
    Call, CallbackKind, CgroupId, Event, EventKind, Label, LockFlags, RtPrio, TaskId, TaskState,
};

/// An event as the trace keeps it: half a cache line, so that appending one touches one cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Packed {
    pub(crate) time_ns: u64,
    pub(crate) cpu: u32,
    insns: u32,
    /// The variant in the low byte, a small operand (state, nice, callback or label) above it.
    tag: u32,
    a: u32,
    b: u32,
    c: u32,
}

const TAG_BITS: u32 = 8;

/// Labels of marks share a word with the tag.
pub(crate) const MARK_LABELS_MAX: u32 = 1 << (u32::BITS - TAG_BITS);

const SWITCH: u32 = 0;
const WAKING: u32 = 1;
const WAKEUP: u32 = 2;
const WAKEUP_NEW: u32 = 3;
const MIGRATE: u32 = 4;
const FORK: u32 = 5;
const EXIT: u32 = 6;
const NICE: u32 = 7;
const TICK: u32 = 8;
const CALLBACK: u32 = 9;
const MARK: u32 = 10;
const PARAM: u32 = 11;
const LOST: u32 = 12;
const PRINT: u32 = 13;
const CGROUP_MOVE: u32 = 14;
const CGROUP_WEIGHT: u32 = 15;
const CONTENTION_BEGIN: u32 = 16;
const CONTENTION_END: u32 = 17;
const STACK: u32 = 18;
const RT_PRIO: u32 = 19;
const CALL_ENTER: u32 = 20;
const CALL_EXIT: u32 = 21;
const CHARGE: u32 = 22;
const SLICE: u32 = 23;
const AFFINITY: u32 = 24;

/// What happened, as in [`Packed`]: two words that a function takes in registers. An [`EventKind`] goes through memory,
/// where reading it as a whole waits for the writing of its fields.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PackedKind(u64, u64);

impl PackedKind {
    #[inline]
    pub(crate) fn new(kind: EventKind) -> Self {
        let (tag, operand, a, b, c) = encode(kind);
        Self(pair(tag | operand << TAG_BITS, a), pair(b, c))
    }
}

impl PackedKind {
    /// A wake-up as a recording states it, with the task that caused it: see [`Packed::wakeup_waker`].
    #[inline]
    pub(crate) fn wakeup(task: TaskId, target_cpu: u32, waker: TaskId) -> Self {
        let Self(first, second) = Self::new(EventKind::Wakeup { task, target_cpu });
        Self(first, second | u64::from(waker.0) << 32)
    }
}

#[inline]
fn pair(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

impl Packed {
    #[inline]
    pub(crate) fn new(event: Event) -> Self {
        let Event { time_ns, cpu, insns, kind } = event;
        Self { insns, ..Self::of(time_ns, cpu, PackedKind::new(kind)) }
    }

    /// An event of a recording, which has no instructions.
    #[inline]
    pub(crate) fn of(time_ns: u64, cpu: u32, PackedKind(first, second): PackedKind) -> Self {
        let (tag, a) = (first as u32, (first >> 32) as u32);
        let (b, c) = (second as u32, (second >> 32) as u32);
        Self { time_ns, cpu, insns: 0, tag, a, b, c }
    }

    /// Changes the two tasks of a switch or of the beginning of a wake-up.
    #[inline]
    pub(crate) fn set_tasks(&mut self, a: TaskId, b: TaskId) {
        (self.a, self.b) = (a.0, b.0);
    }

    /// The task that caused the wake-up of [`PackedKind::wakeup`]. The trace does not keep it.
    #[inline]
    pub(crate) fn wakeup_waker(&self) -> TaskId {
        TaskId(self.c)
    }

    #[inline]
    pub(crate) fn event(&self) -> Event {
        Event { time_ns: self.time_ns, cpu: self.cpu, insns: self.insns, kind: self.kind() }
    }

    /// Changes what happened.
    pub(crate) fn set_kind(&mut self, kind: EventKind) {
        *self = Self::new(Event { kind, ..self.event() });
    }

    /// The record as four words, for the digest.
    pub(crate) fn words(&self) -> [u64; 4] {
        [self.time_ns, pair(self.cpu, self.insns), pair(self.tag, self.a), pair(self.b, self.c)]
    }

    #[inline]
    pub(crate) fn kind(&self) -> EventKind {
        let task = TaskId(self.a);
        let operand = self.tag >> TAG_BITS;
        let value = u64::from(self.b) | u64::from(self.c) << 32;
        match self.tag & ((1 << TAG_BITS) - 1) {
            SWITCH => EventKind::Switch {
                prev: task,
                prev_state: TaskState::ALL[operand as usize],
                next: TaskId(self.b),
            },
            WAKING => EventKind::Waking { task, waker: TaskId(self.b), target_cpu: self.c },
            WAKEUP => EventKind::Wakeup { task, target_cpu: self.b },
            WAKEUP_NEW => EventKind::WakeupNew { task, target_cpu: self.b },
            MIGRATE => EventKind::Migrate { task, from_cpu: self.b, to_cpu: self.c },
            FORK => EventKind::Fork { parent: task, child: TaskId(self.b) },
            EXIT => EventKind::Exit { task },
            NICE => EventKind::Nice { task, nice: operand as u8 as i8 },
            RT_PRIO => EventKind::RtPrio { task, prio: RtPrio::of_operand(operand) },
            SLICE => EventKind::Slice { task, slice_ns: value },
            AFFINITY => EventKind::Affinity { task, cpus: Label(self.b) },
            TICK => EventKind::Tick { task },
            CHARGE => EventKind::Charge { task, runtime_ns: value },
            CALLBACK => EventKind::Callback { kind: CallbackKind::ALL[operand as usize], task },
            MARK => EventKind::Mark { task, label: Label(operand), value },
            CGROUP_MOVE => {
                EventKind::CgroupMove { task, from: CgroupId(self.b), to: CgroupId(self.c) }
            }
            CGROUP_WEIGHT => EventKind::CgroupWeight { cgroup: CgroupId(self.a), weight: self.b },
            CONTENTION_BEGIN => EventKind::ContentionBegin {
                task,
                lock: Label(self.b),
                flags: LockFlags(operand as u8),
                holder: TaskId(self.c),
            },
            CONTENTION_END => EventKind::ContentionEnd { task, lock: Label(self.b) },
            CALL_ENTER => {
                EventKind::CallEnter { task, call: Call::ALL[operand as usize], object: value }
            }
            CALL_EXIT => EventKind::CallExit { task, result: value as i64 },
            STACK => EventKind::Stack { task, label: Label(self.b) },
            PARAM => EventKind::Param { label: Label(self.a) },
            PRINT => EventKind::Print { label: Label(self.a) },
            _ => EventKind::Lost { count: value },
        }
    }
}

#[inline]
fn encode(kind: EventKind) -> (u32, u32, u32, u32, u32) {
    match kind {
        EventKind::Switch { prev, prev_state, next } => {
            (SWITCH, prev_state as u32, prev.0, next.0, 0)
        }
        EventKind::Waking { task, waker, target_cpu } => (WAKING, 0, task.0, waker.0, target_cpu),
        EventKind::Wakeup { task, target_cpu } => (WAKEUP, 0, task.0, target_cpu, 0),
        EventKind::WakeupNew { task, target_cpu } => (WAKEUP_NEW, 0, task.0, target_cpu, 0),
        EventKind::Migrate { task, from_cpu, to_cpu } => (MIGRATE, 0, task.0, from_cpu, to_cpu),
        EventKind::Fork { parent, child } => (FORK, 0, parent.0, child.0, 0),
        EventKind::Exit { task } => (EXIT, 0, task.0, 0, 0),
        EventKind::Nice { task, nice } => (NICE, u32::from(nice as u8), task.0, 0, 0),
        EventKind::RtPrio { task, prio } => (RT_PRIO, prio.operand(), task.0, 0, 0),
        EventKind::Slice { task, slice_ns } => {
            (SLICE, 0, task.0, slice_ns as u32, (slice_ns >> 32) as u32)
        }
        EventKind::Affinity { task, cpus } => (AFFINITY, 0, task.0, cpus.0, 0),
        EventKind::Tick { task } => (TICK, 0, task.0, 0, 0),
        EventKind::Charge { task, runtime_ns } => {
            (CHARGE, 0, task.0, runtime_ns as u32, (runtime_ns >> 32) as u32)
        }
        EventKind::Callback { kind, task } => (CALLBACK, kind as u32, task.0, 0, 0),
        EventKind::Mark { task, label, value } => {
            debug_assert!(label.0 < MARK_LABELS_MAX, "a mark's label is below {MARK_LABELS_MAX}");
            (MARK, label.0, task.0, value as u32, (value >> 32) as u32)
        }
        EventKind::CgroupMove { task, from, to } => (CGROUP_MOVE, 0, task.0, from.0, to.0),
        EventKind::CgroupWeight { cgroup, weight } => (CGROUP_WEIGHT, 0, cgroup.0, weight, 0),
        EventKind::ContentionBegin { task, lock, flags, holder } => {
            (CONTENTION_BEGIN, u32::from(flags.0), task.0, lock.0, holder.0)
        }
        EventKind::ContentionEnd { task, lock } => (CONTENTION_END, 0, task.0, lock.0, 0),
        EventKind::CallEnter { task, call, object } => {
            (CALL_ENTER, call as u32, task.0, object as u32, (object >> 32) as u32)
        }
        EventKind::CallExit { task, result } => {
            (CALL_EXIT, 0, task.0, result as u32, (result >> 32) as u32)
        }
        EventKind::Stack { task, label } => (STACK, 0, task.0, label.0, 0),
        EventKind::Param { label } => (PARAM, 0, label.0, 0, 0),
        EventKind::Print { label } => (PRINT, 0, label.0, 0, 0),
        EventKind::Lost { count } => (LOST, 0, 0, count as u32, (count >> 32) as u32),
    }
}
