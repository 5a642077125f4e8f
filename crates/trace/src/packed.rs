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
    /// The kind in the low byte, a small field above it.
    tag: u32,
    a: u32,
    b: u32,
    c: u32,
}

const TAG_BITS: u32 = 8;

/// Labels of marks share a word with the tag.
pub(crate) const MARK_LABELS_MAX: u32 = 1 << (u32::BITS - TAG_BITS);

/// The kind of an event and its fields, each where the table of events places it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Words {
    pub(crate) tag: u32,
    /// A small field, below [`MARK_LABELS_MAX`].
    pub(crate) op: u32,
    pub(crate) a: u32,
    pub(crate) b: u32,
    pub(crate) c: u32,
}

/// The type of a field, as a word.
pub(crate) trait Word: Copy {
    fn word(self) -> u64;
    /// From a word that [`Word::word`] gave.
    fn of_word(word: u64) -> Self;
}

/// Implements [`Word`].
macro_rules! words {
    ($($type:ty: $value:ident => $word:expr, $back:ident => $of_word:expr;)*) => {
        $(impl Word for $type {
            #[inline(always)]
            fn word(self) -> u64 {
                let $value = self;
                $word
            }

            #[inline(always)]
            fn of_word($back: u64) -> Self {
                $of_word
            }
        })*
    };
}

words! {
    u32: value => u64::from(value), word => word as u32;
    u64: value => value, word => word;
    i64: value => value as u64, word => word as i64;
    i8: value => u64::from(value as u8), word => word as u8 as i8;
    TaskId: task => u64::from(task.0), word => TaskId(word as u32);
    Label: label => u64::from(label.0), word => Label(word as u32);
    CgroupId: cgroup => u64::from(cgroup.0), word => CgroupId(word as u32);
    TaskState: state => state as u64, word => TaskState::ALL[word as usize];
    CallbackKind: kind => kind as u64, word => CallbackKind::ALL[word as usize];
    Call: call => call as u64, word => Call::ALL[word as usize];
    LockFlags: flags => u64::from(flags.0), word => LockFlags(word as u8);
    RtPrio: prio => u64::from(prio.operand()), word => RtPrio::of_operand(word as u32);
}

/// What happened, as in [`Packed`]: two words that a function takes in registers. An [`EventKind`] goes through memory,
/// where reading it as a whole waits for the writing of its fields.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PackedKind(u64, u64);

impl PackedKind {
    #[inline]
    pub(crate) fn new<T: Word>(kind: EventKind<T>) -> Self {
        let Words { tag, op, a, b, c } = kind.words();
        debug_assert!(op < MARK_LABELS_MAX, "a small field is below {MARK_LABELS_MAX}");
        Self(pair(tag | op << TAG_BITS, a), pair(b, c))
    }

    /// A wake-up as a recording states it, with the task that caused it: see [`Packed::wakeup_waker`].
    #[inline]
    pub(crate) fn wakeup<T: Word>(task: T, target_cpu: u32, waker: T) -> Self {
        let Self(first, second) = Self::new(EventKind::Wakeup { task, target_cpu });
        Self(first, second | waker.word() << 32)
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
    pub(crate) fn wakeup_waker<T: Word>(&self) -> T {
        T::of_word(self.c.into())
    }

    #[inline]
    pub(crate) fn event(&self) -> Event {
        Event { time_ns: self.time_ns, cpu: self.cpu, insns: self.insns, kind: self.kind() }
    }

    /// Changes what happened.
    pub(crate) fn set_kind<T: Word>(&mut self, kind: EventKind<T>) {
        let insns = self.insns;
        *self = Self { insns, ..Self::of(self.time_ns, self.cpu, PackedKind::new(kind)) };
    }

    /// The record as four words, for the digest.
    pub(crate) fn words(&self) -> [u64; 4] {
        [self.time_ns, pair(self.cpu, self.insns), pair(self.tag, self.a), pair(self.b, self.c)]
    }

    #[inline]
    pub(crate) fn kind<T: Word>(&self) -> EventKind<T> {
        let (tag, op) = (self.tag & ((1 << TAG_BITS) - 1), self.tag >> TAG_BITS);
        EventKind::of_words(Words { tag, op, a: self.a, b: self.b, c: self.c })
    }
}
