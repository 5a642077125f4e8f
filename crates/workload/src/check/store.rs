//! The contents of a pipe, a socket or a queue on the ideal machine, and the tasks that wait for data or for room.

use std::collections::VecDeque;

use crate::model::{Carrier, Pipe, Queue};
use crate::pipe_ring::PipeRing;

/// Bytes in a pipe or a socket, or messages in a queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Store {
    pub(super) amount: u64,
    capacity: Option<u64>,
    /// A pipe's pages, which may be full with fewer bytes.
    ring: Option<PipeRing>,
    pub(super) takers: VecDeque<usize>,
    pub(super) givers: VecDeque<usize>,
}

impl Store {
    /// An empty pipe, or one direction of a pair of sockets.
    pub(super) fn of_pipe(pipe: &Pipe) -> Self {
        let ring = (pipe.carrier == Carrier::Pipe).then(|| PipeRing::new(pipe.capacity));
        Self { capacity: Some(pipe.capacity), ring, ..Self::default() }
    }

    /// A queue with its first messages.
    pub(super) fn of_queue(queue: &Queue) -> Self {
        Self { amount: queue.initial, capacity: queue.capacity, ..Self::default() }
    }

    /// Writes as much as there is room for, and returns the amount; `begins`: not after a wait.
    pub(super) fn put(&mut self, amount: u64, begins: bool) -> u64 {
        let put = match &mut self.ring {
            Some(ring) => ring.put(amount, begins),
            None => amount.min(self.room()),
        };
        self.amount = self.amount.saturating_add(put);
        put
    }

    /// For so many messages there is room, or a receiver that waits for one.
    fn room(&self) -> u64 {
        match self.capacity {
            None => u64::MAX,
            Some(0) => (self.takers.len() as u64).saturating_sub(self.amount),
            Some(capacity) => capacity - self.amount,
        }
    }

    /// Reads at most the requested amount. Returns the amount, and whether a task that waits for room may find some
    /// now.
    pub(super) fn take(&mut self, amount: u64) -> (u64, bool) {
        let taken = amount.min(self.amount);
        self.amount -= taken;
        let makes_room = match &mut self.ring {
            Some(ring) => ring.take(taken).wakes_writer,
            None => taken > 0,
        };
        (taken, makes_room)
    }

    /// Whether it holds nothing: a message goes to a receiver that waits for it.
    pub(super) fn is_rendezvous(&self) -> bool {
        self.capacity == Some(0)
    }

    pub(super) fn is_full(&self) -> bool {
        match &self.ring {
            Some(ring) => ring.is_full(),
            None => self.room() == 0,
        }
    }
}
