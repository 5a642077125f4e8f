//! Shared memory of the runner and all tasks: task states, progress, marks.

use std::io;
use std::num::NonZeroUsize;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering::SeqCst};

use nix::errno::Errno;
use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous};

use super::conditions::{BarrierWords, ConditionWords};
use super::error::TaskError;
use super::queue::Queue;

/// Maximum number of tasks of a run, including ended ones, whose accounting is kept. Unused slots take no memory.
pub(super) const SLOTS_MAX: usize = 1 << 18;
/// Maximum number of marks of a run without a recording.
pub(super) const MARKS_MAX: usize = 1 << 20;

/// Maps `bytes` bytes of new memory, all zero. Allocates nothing else.
pub(super) fn map(bytes: usize, flags: MapFlags) -> nix::Result<NonNull<u8>> {
    let bytes = NonZeroUsize::new(bytes).ok_or(Errno::EINVAL)?;
    let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
    // SAFETY: a new anonymous mapping touches no memory that is in use.
    unsafe { mmap_anonymous(None, bytes, access, flags) }.map(NonNull::cast)
}

/// Shared data: any bytes are a valid value, zero means unset, and all accesses are atomic.
///
/// # Safety
/// The type consists of atomic integers only.
pub(super) unsafe trait Sharable {}

/// An array that this process shares with all processes that it forks.
#[derive(Debug)]
pub(super) struct Shared<T: Sharable> {
    start: NonNull<T>,
    len: usize,
}

impl<T: Sharable> Shared<T> {
    /// `len` elements of zero bytes. Pages are allocated at the first write.
    pub(super) fn new(len: usize) -> Result<Self, TaskError> {
        let flags = MapFlags::MAP_SHARED | MapFlags::MAP_NORESERVE;
        let start = map(len.max(1) * size_of::<T>(), flags);
        let start = start.map_err(|_| TaskError::last("map memory for the tasks", None))?;
        Ok(Self { start: start.cast(), len })
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

/// The state of the whole run.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Head {
    /// 1 once the workload runs; tasks wait on it as a futex.
    pub(super) go: AtomicU32,
    /// Number of tasks ready to start; the runner waits on it as a futex.
    pub(super) ready: AtomicU32,
    /// Start time of the workload, ns of the monotonic clock.
    pub(super) start_ns: AtomicU64,
    /// Number of slots in use.
    pub(super) slots: AtomicU32,
    /// Number of marks, including dropped ones.
    pub(super) marks: AtomicU32,
    /// By [`FailedOperation`]: the number of failures and the last error number.
    pub(super) failures: [(AtomicU32, AtomicI32); TROUBLES],
}

impl Head {
    /// How often an operation failed, and its last error; `None`: it never failed.
    pub(super) fn failure(&self, kind: FailedOperation) -> Option<(u32, io::Error)> {
        let (times, error) = &self.failures[kind as usize];
        let (times, error) = (times.load(SeqCst), error.load(SeqCst));
        (times > 0).then(|| (times, io::Error::from_raw_os_error(error)))
    }
}

/// Operations of tasks that may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum FailedOperation {
    Nice,
    Policy,
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

/// Kinds of [`FailedOperation`].
pub(super) const TROUBLES: usize = 12;

/// A group of tasks.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Group {
    /// Number of tasks so far.
    pub(super) born: AtomicU32,
    /// All slots of living tasks of the group are at or after this one.
    pub(super) first: AtomicU32,
    /// One more than the last slot of the group.
    pub(super) end: AtomicU32,
}

/// The slot's task has not started yet, or does not exist.
pub(super) const ABSENT: u32 = 0;
/// The task is alive and can receive signals.
pub(super) const LIVING: u32 = 1;
/// The task has ended.
pub(super) const ENDED: u32 = 2;

/// The state of a task. Each has its own cache line.
#[derive(Debug)]
#[repr(C, align(128))]
pub(super) struct TaskSlot {
    /// [`ABSENT`], [`LIVING`] or [`ENDED`].
    pub(super) state: AtomicU32,
    pub(super) tid: AtomicU32,
    /// Index of its group.
    pub(super) group: AtomicU32,
    /// Its index in the group.
    pub(super) nth: AtomicU32,
    /// The slot of the task that forked it, plus 1; 0: the runner did.
    pub(super) parent: AtomicU32,
    /// 1 if its usage is final: its parent has reaped it.
    pub(super) final_usage: AtomicU32,
    /// Completed operations.
    pub(super) ops: AtomicU64,
    /// Usage before the start, later at the end: user and system time in µs, voluntary and involuntary switches.
    pub(super) usage: [AtomicU64; 4],
}

/// Implements [`Sharable`] for types of atomic integers.
macro_rules! sharable {
    ($($name:ty)*) => {$(
        // SAFETY: it consists of atomic integers alone.
        unsafe impl Sharable for $name {}
    )*};
}

sharable! { AtomicU64 Head Group TaskSlot MarkSlot LockWords ConditionWords BarrierWords Queue }

/// The words of a lock. Each kind of lock uses some of them.
#[derive(Debug)]
#[repr(C, align(128))]
pub(super) struct LockWords {
    /// Mutex: 0 free, 1 taken, 2 taken and possibly contended. With priority inheritance: the kernel's value, 0 or
    /// the owner's thread number and flags. Reader-writer lock: the number of readers, or the writer bit.
    pub(super) futex: AtomicU32,
    /// The process that holds the lock, for the recording; 0 if it is free.
    pub(super) holder: AtomicU32,
    /// Spin lock: the next ticket. Reader-writer lock: the number of waiting writers.
    pub(super) next: AtomicU32,
    /// Spin lock: the ticket that holds the lock. Reader-writer lock: how often it became free.
    pub(super) serving: AtomicU32,
    /// Reader-writer lock: the number of tasks that wait for it or are about to, until they hold it.
    pub(super) waiting: AtomicU32,
}

/// A mark.
#[derive(Debug)]
#[repr(C)]
pub(super) struct MarkSlot {
    /// Time, ns; written last: 0 if the task was killed while writing.
    pub(super) time_ns: AtomicU64,
    pub(super) value: AtomicU64,
    pub(super) tid: AtomicU32,
    /// Index of the label.
    pub(super) label: AtomicU32,
}
