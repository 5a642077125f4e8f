//! Memory that the runner and all tasks see: who lives, how far each is, queues, marks.

use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};

use super::error::TaskError;

/// Tasks of one run, those that have ended included: what each did is kept until the end. Memory is used only by
/// those that exist.
pub(super) const SLOTS_MAX: usize = 1 << 18;
/// Marks of one run that are kept when there is no recording to write them into.
pub(super) const MARKS_MAX: usize = 1 << 20;

/// Data that processes share: any bytes are a value, zero is "nothing yet", and it is only touched atomically.
///
/// # Safety
/// The type consists of atomic integers alone.
pub(super) unsafe trait Sharable {}

/// An array that this process and all that it forks see.
#[derive(Debug)]
pub(super) struct Shared<T: Sharable> {
    start: NonNull<T>,
    len: usize,
}

impl<T: Sharable> Shared<T> {
    /// `len` elements of zero bytes. Pages are taken when they are first written.
    pub(super) fn new(len: usize) -> Result<Self, TaskError> {
        let bytes = (len.max(1)) * size_of::<T>();
        // SAFETY: a new anonymous mapping touches no memory that is in use.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        match NonNull::new(start.cast::<T>()) {
            Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => Ok(Self { start, len }),
            _ => Err(TaskError::last("map memory for the tasks", None)),
        }
    }
}

impl<T: Sharable> Deref for Shared<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the mapping holds `len` elements, lives as long as `self`, and zero bytes are a `T`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T: Sharable> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: this is the mapping of `new`, and nothing borrows from it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len.max(1) * size_of::<T>()) };
    }
}

/// What concerns all.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Head {
    /// 1 once the workload runs: tasks wait for it as a futex.
    pub(super) go: AtomicU32,
    /// Tasks that are ready to start; the runner waits for it as a futex.
    pub(super) ready: AtomicU32,
    /// When the workload started, ns of the monotonic clock.
    pub(super) start_ns: AtomicU64,
    /// Slots in use.
    pub(super) slots: AtomicU32,
    /// Marks left, those that found no room included.
    pub(super) marks: AtomicU32,
    /// What failed: how often, and the last error number. By [`Trouble`].
    pub(super) troubles: [(AtomicU32, AtomicI32); TROUBLES],
}

/// System calls of tasks that may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum Trouble {
    Nice,
    Slice,
    Affinity,
    Cgroup,
    CgroupWeight,
    Fork,
    Slots,
    Pipe,
    Lock,
    Marker,
    Memory,
}

/// Kinds of [`Trouble`].
pub(super) const TROUBLES: usize = 11;

/// A group of tasks.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Group {
    /// How many it ever had.
    pub(super) born: AtomicU32,
    /// No living task of the group has a slot before this one.
    pub(super) first: AtomicU32,
    /// One more than the last slot of the group.
    pub(super) end: AtomicU32,
}

/// The slot's task has not started yet, or does not exist.
pub(super) const ABSENT: u32 = 0;
/// It lives, and may be signalled.
pub(super) const LIVING: u32 = 1;
/// It has ended.
pub(super) const ENDED: u32 = 2;

/// A task. A line of cache each: no task disturbs another by counting.
#[derive(Debug)]
#[repr(C, align(128))]
pub(super) struct Slot {
    /// [`ABSENT`], [`LIVING`] or [`ENDED`].
    pub(super) state: AtomicU32,
    pub(super) tid: AtomicU32,
    /// Index of its group.
    pub(super) group: AtomicU32,
    /// Which of the group, from 0.
    pub(super) nth: AtomicU32,
    /// The slot of the task that forked it, plus 1; 0: the runner did.
    pub(super) parent: AtomicU32,
    /// 1 when its usage is that of its whole life: its parent has waited for it.
    pub(super) told: AtomicU32,
    /// Operations that it finished.
    pub(super) ops: AtomicU64,
    /// What it has used before the start, then at the end: user and system time in µs, both kinds of switches.
    pub(super) usage: [AtomicU64; 4],
}

// SAFETY: each consists of atomic integers alone.
unsafe impl Sharable for Head {}
// SAFETY: as above.
unsafe impl Sharable for Group {}
// SAFETY: as above.
unsafe impl Sharable for Slot {}
// SAFETY: as above.
unsafe impl Sharable for MarkSlot {}

/// A timer that tasks have together.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct TimerWord {
    /// Its last expiry, ns of the monotonic clock; 0 before it begins.
    pub(super) last_ns: AtomicU64,
}

// SAFETY: an atomic integer alone.
unsafe impl Sharable for TimerWord {}

/// A mark.
#[derive(Debug)]
#[repr(C)]
pub(super) struct MarkSlot {
    /// When; written last, so that 0 says that the task was killed while it wrote.
    pub(super) time_ns: AtomicU64,
    pub(super) value: AtomicU64,
    pub(super) tid: AtomicU32,
    /// Index of the label.
    pub(super) label: AtomicU32,
}
