//! Message queues as lock-free counters in shared memory, so that a signal handler can use the same queue as its task.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use super::futex;

/// A queue. Messages have no content, so it only counts them.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Queue {
    /// Messages in the queue; receivers wait on it as a futex while it is 0.
    messages: AtomicU32,
    /// Changes with each message that is received while a sender waits; senders wait on it as a futex.
    taken: AtomicU32,
    /// Receivers that wait or are about to.
    receivers: AtomicU32,
    /// Senders that wait or are about to.
    senders: AtomicU32,
    capacity: AtomicU32,
}

impl Queue {
    pub(super) fn set_up(&self, capacity: Option<u64>, initial: u64) {
        let clamp = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        self.capacity.store(capacity.map_or(u32::MAX, clamp), SeqCst);
        self.messages.store(clamp(initial), SeqCst);
    }

    /// Sends a message and wakes one receiver; blocks while the queue is full.
    pub(super) fn send(&self) {
        while !self.put() {
            let seen = self.taken.load(SeqCst);
            self.senders.fetch_add(1, SeqCst);
            // A receiver that takes a message after this load sees the sender and changes `taken`.
            if self.messages.load(SeqCst) >= self.capacity.load(SeqCst) {
                futex::wait(&self.taken, seen, None);
            }
            self.senders.fetch_sub(1, SeqCst);
        }
        if self.receivers.load(SeqCst) > 0 {
            futex::wake(&self.messages, 1);
        }
    }

    /// Receives a message; blocks while there is none.
    pub(super) fn receive(&self) {
        while !self.take() {
            self.receivers.fetch_add(1, SeqCst);
            futex::wait(&self.messages, 0, None);
            self.receivers.fetch_sub(1, SeqCst);
        }
        if self.senders.load(SeqCst) > 0 {
            self.taken.fetch_add(1, SeqCst);
            futex::wake(&self.taken, 1);
        }
    }

    fn put(&self) -> bool {
        let capacity = self.capacity.load(SeqCst);
        let more = |messages: u32| (messages < capacity).then(|| messages + 1);
        self.messages.fetch_update(SeqCst, SeqCst, more).is_ok()
    }

    fn take(&self) -> bool {
        self.messages.fetch_update(SeqCst, SeqCst, |messages| messages.checked_sub(1)).is_ok()
    }
}
