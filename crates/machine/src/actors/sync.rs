//! Message queues, other state that actors share, and the lists of waiting actors.

use fairground_workload::Workload;

use super::actor::{Actor, ListId, NONE, WaitLink};
use super::channel::Channel;

/// Actors that wait for the same thing, first come first served. The links are in the actors: each waits for one thing.
#[derive(Clone, Copy, Debug)]
struct WaitList {
    head: u32,
    tail: u32,
}

/// A queue's messages, and how many it holds at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueState {
    pub(super) messages: u64,
    pub(super) capacity: u64,
    /// Actors that wait for a message or are about to, until they run again.
    pub(super) receivers: u32,
    /// Actors that wait for room or are about to, until they run again.
    pub(super) senders: u32,
    /// Its wake-ups are synchronous ones.
    pub(super) sync: bool,
}

/// A condition.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ConditionState {
    /// Waiting actors that have not been notified.
    pub(super) waiting: u64,
    /// Notifications that no waiter has consumed.
    pub(super) notified: u64,
}

/// A barrier's current round.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Meeting {
    pub(super) come: u64,
    /// How often it has opened.
    pub(super) opened: u64,
}

/// All that actors share.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    pub(super) channels: Vec<Channel>,
    /// The owner of the mutex of each.
    pub(super) pipe_owners: Vec<Option<u32>>,
    pub(super) queues: Vec<QueueState>,
    pub(super) conditions: Vec<ConditionState>,
    pub(super) barriers: Vec<Meeting>,
    locks: u32,
    lists: Vec<WaitList>,
}

impl Shared {
    pub(super) fn new(workload: &Workload) -> Shared {
        let queues = workload.queues.iter().map(|queue| QueueState {
            messages: queue.initial,
            capacity: queue.capacity.unwrap_or(u64::MAX),
            receivers: 0,
            senders: 0,
            sync: queue.sync,
        });
        let lists = 2 * (workload.pipes.len() + workload.queues.len())
            + workload.pipes.len()
            + workload.locks.len()
            + workload.conditions.len()
            + workload.barriers.len();
        Shared {
            channels: workload.pipes.iter().map(Channel::new).collect(),
            pipe_owners: vec![None; workload.pipes.len()],
            queues: queues.collect(),
            conditions: vec![ConditionState::default(); workload.conditions.len()],
            barriers: vec![Meeting::default(); workload.barriers.len()],
            locks: workload.locks.len() as u32,
            lists: vec![WaitList { head: NONE, tail: NONE }; lists],
        }
    }

    pub(super) fn readers(&self, pipe: u32) -> ListId {
        ListId(2 * pipe)
    }

    pub(super) fn writers(&self, pipe: u32) -> ListId {
        ListId(2 * pipe + 1)
    }

    pub(super) fn receivers(&self, queue: u32) -> ListId {
        ListId(2 * (self.channels.len() as u32 + queue))
    }

    pub(super) fn senders(&self, queue: u32) -> ListId {
        ListId(2 * (self.channels.len() as u32 + queue) + 1)
    }

    pub(super) fn lockers(&self, lock: u32) -> ListId {
        ListId(2 * (self.channels.len() + self.queues.len()) as u32 + lock)
    }

    pub(super) fn at_condition(&self, condition: u32) -> ListId {
        ListId(self.lockers(self.locks).0 + condition)
    }

    pub(super) fn at_barrier(&self, barrier: u32) -> ListId {
        ListId(self.lockers(self.locks).0 + self.conditions.len() as u32 + barrier)
    }

    /// Those that wait for the mutex of a pipe.
    pub(super) fn at_pipe(&self, pipe: u32) -> ListId {
        ListId(self.at_barrier(self.barriers.len() as u32).0 + pipe)
    }

    /// How many actors are in a list.
    pub(super) fn count(&self, actors: &[Actor], list: ListId) -> u64 {
        let next = |at: &u32| Some(actors[*at as usize].wait.next).filter(|next| *next != NONE);
        std::iter::successors(self.first(list), next).count() as u64
    }

    /// The first actor of a list.
    pub(super) fn first(&self, list: ListId) -> Option<u32> {
        let head = self.lists[list.0 as usize].head;
        (head != NONE).then_some(head)
    }

    /// Appends an actor to a list.
    pub(super) fn wait(&mut self, actors: &mut [Actor], list: ListId, actor: u32) {
        let ends = &mut self.lists[list.0 as usize];
        actors[actor as usize].wait = WaitLink { list: list.0, prev: ends.tail, next: NONE };
        match ends.tail {
            NONE => ends.head = actor,
            tail => actors[tail as usize].wait.next = actor,
        }
        ends.tail = actor;
    }

    /// Removes an actor from the list that it waits in, if any.
    pub(super) fn leave(&mut self, actors: &mut [Actor], actor: u32) {
        let WaitLink { list, prev, next } =
            std::mem::replace(&mut actors[actor as usize].wait, WaitLink::FREE);
        if list == NONE {
            return;
        }
        let ends = &mut self.lists[list as usize];
        match prev {
            NONE => ends.head = next,
            prev => actors[prev as usize].wait.next = next,
        }
        match next {
            NONE => ends.tail = prev,
            next => actors[next as usize].wait.prev = prev,
        }
    }

    /// Removes the first actor of a list.
    pub(super) fn take_first(&mut self, actors: &mut [Actor], list: ListId) -> Option<u32> {
        let head = self.lists[list.0 as usize].head;
        if head == NONE {
            return None;
        }
        self.leave(actors, head);
        Some(head)
    }
}
