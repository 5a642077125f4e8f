//! Conditions and barriers of real processes.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use super::futex;

/// A condition. A notification wakes one of the tasks that wait at that time; the kernel chooses which one. There are
/// no spurious wake-ups.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct ConditionWords {
    /// Waiting tasks that have not been notified.
    waiting: AtomicU32,
    /// Notifications that no waiter has consumed; waiters wait on it as a futex while it is 0.
    notified: AtomicU32,
}

/// A task that is counted as waiting for a condition and still holds its lock.
#[derive(Debug)]
pub(super) struct Waits<'c>(&'c ConditionWords);

impl ConditionWords {
    /// Counts the task as waiting. It holds its lock, so that it misses no notification.
    pub(super) fn begin(&self) -> Waits<'_> {
        self.waiting.fetch_add(1, SeqCst);
        Waits(self)
    }

    /// Wakes up to `count` waiters.
    pub(super) fn notify(&self, count: u32) {
        let take = |waiting: u32| Some(waiting - waiting.min(count));
        let before = self.waiting.fetch_update(SeqCst, SeqCst, take).unwrap_or(0);
        let woken = before.min(count);
        if woken > 0 {
            self.notified.fetch_add(woken, SeqCst);
            futex::wake(&self.notified, woken);
        }
    }
}

impl Waits<'_> {
    /// Waits for a notification, without the lock.
    pub(super) fn end(self) {
        let take = |notified: u32| notified.checked_sub(1);
        // Terminates: each further iteration is due to a faster waiter, a signal, or a spurious wake-up.
        while self.0.notified.fetch_update(SeqCst, SeqCst, take).is_err() {
            futex::wait(&self.0.notified, 0, None);
        }
    }
}

/// A barrier.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct BarrierWords {
    count: AtomicU32,
    come: AtomicU32,
    /// How often it has opened; arrived tasks wait on it as a futex.
    opened: AtomicU32,
}

impl BarrierWords {
    pub(super) fn set_up(&self, count: u32) {
        self.count.store(count, SeqCst);
    }

    pub(super) fn meet(&self) {
        let opened = self.opened.load(SeqCst);
        if self.come.fetch_add(1, SeqCst) + 1 == self.count.load(SeqCst) {
            self.come.store(0, SeqCst);
            self.opened.fetch_add(1, SeqCst);
            return futex::wake(&self.opened, u32::MAX);
        }
        // Terminates with the last arrival; each further iteration is due to a signal.
        while self.opened.load(SeqCst) == opened {
            futex::wait(&self.opened, opened, None);
        }
    }
}
