//! Conditions and barriers of real processes.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use super::futex;
use super::shared::Sharable;

/// A condition. A notification wakes a task that waits when it is given, and none for nothing; which one, when
/// several wait, is the kernel's choice and that of the moment.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct ConditionWords {
    /// Tasks that wait and have not been notified.
    waiting: AtomicU32,
    /// Notifications that no waiter has taken yet; waiters wait for it as a futex while it is 0.
    notified: AtomicU32,
}

// SAFETY: atomic integers alone.
unsafe impl Sharable for ConditionWords {}

/// A task that waits for a condition: it counts as one, and has still to give its lock back.
#[derive(Debug)]
pub(super) struct Waits<'c>(&'c ConditionWords);

impl ConditionWords {
    /// The task waits from here on: with its lock, so that no notification comes between.
    pub(super) fn begin(&self) -> Waits<'_> {
        self.waiting.fetch_add(1, SeqCst);
        Waits(self)
    }

    /// Wakes so many of those that wait.
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
        // Ends: each further turn is another waiter that was faster, a signal, or a wake-up for no reason.
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
    /// How often it has opened; those that came wait for it as a futex.
    opened: AtomicU32,
}

// SAFETY: atomic integers alone.
unsafe impl Sharable for BarrierWords {}

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
        // Ends with the last one that comes; each further turn is a signal.
        while self.opened.load(SeqCst) == opened {
            futex::wait(&self.opened, opened, None);
        }
    }
}
