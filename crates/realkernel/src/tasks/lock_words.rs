//! The state of locks in shared memory.

use std::sync::atomic::AtomicU32;

use fairground_workload::{LockKind, Workload};

use super::shared::Sharable;

/// The shared words of a lock. Each kind of lock uses some of them.
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
}

// SAFETY: atomic integers alone.
unsafe impl Sharable for LockWords {}

/// Adds a note for each lock that a real kernel does not provide as the workload describes it.
pub(super) fn notes(workload: &Workload, notes: &mut Vec<String>) {
    for lock in &workload.locks {
        if lock.kind.inherits() && !lock.adaptive {
            notes.push(format!(
                "waiters for the lock `{}` spin while its owner runs: a real kernel has no \
                 rt_mutex without adaptive spinning",
                lock.name
            ));
        }
        if lock.kind == LockKind::Spin {
            notes.push(format!(
                "the spin lock `{}` is implemented in user space: its owner can be preempted, and \
                 a waiter that spins for long yields its CPU",
                lock.name
            ));
        }
    }
}
