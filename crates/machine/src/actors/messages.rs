//! Message queues: counters in the memory of the processes and a futex for each end, as in a POSIX semaphore.
//!
//! A message is put into the queue, and taken out of it, in user mode. A system call wakes one waiter of the other end,
//! if any waits or is about to. Nothing is handed over: the woken one tries again, and a task that comes first gets the
//! message or the room. One that finds none waits again, behind the others.
//!
//! A queue that holds nothing is a rendezvous: a message goes from a sender to a receiver that waits, or the other way
//! round.

use super::actor::CallPart;
use super::code::Step;
use super::effect::{ActorId, Effect, Need};
use super::state::Actors;

impl Actors {
    pub(super) fn is_rendezvous(&self, queue: u32) -> bool {
        self.shared.queues[queue as usize].capacity == 0
    }

    /// Puts a message into a queue, in user mode; false: there is no room.
    fn put(&mut self, queue: u32) -> bool {
        let state = &mut self.shared.queues[queue as usize];
        let has_room = state.messages < state.capacity;
        state.messages += u64::from(has_room);
        has_room
    }

    /// Takes a message out of a queue, in user mode; false: there is none.
    fn take(&mut self, queue: u32) -> bool {
        let state = &mut self.shared.queues[queue as usize];
        let has_one = state.messages > 0;
        state.messages -= u64::from(has_one);
        has_one
    }

    /// Begins to send: in user mode, with a system call if it has to wait or to wake.
    pub(super) fn begin_send(&mut self, id: u32, step: Step, queue: u32) -> Option<Need> {
        if self.put(queue) {
            return self.sent(id, step, queue);
        }
        let state = &mut self.shared.queues[queue as usize];
        state.senders += u32::from(state.capacity > 0);
        self.enter(id, step)
    }

    /// The message is in the queue.
    fn sent(&mut self, id: u32, step: Step, queue: u32) -> Option<Need> {
        if self.shared.queues[queue as usize].receivers == 0 {
            self.owe_message(id);
            return self.finish(id);
        }
        self.enter_to_wake(id, step)
    }

    /// In the system call of a sender.
    pub(super) fn send(
        &mut self,
        id: u32,
        step: Step,
        queue: u32,
        effects: &mut Vec<Effect>,
    ) -> Option<Need> {
        let sync = self.shared.queues[queue as usize].sync;
        if self.is_rendezvous(queue) {
            let list = self.shared.receivers(queue);
            let Some(receiver) = self.shared.take_first(&mut self.actors, list) else {
                return self.block(id, self.shared.senders(queue));
            };
            self.received(receiver);
            effects.push(Effect::Wake { actor: ActorId(receiver), sync });
            return self.finish(id);
        }
        if self.actors[id as usize].frame().part == CallPart::Wake {
            self.wake_first(self.shared.receivers(queue), sync, effects);
            return self.finish(id);
        }
        if self.put(queue) {
            self.shared.queues[queue as usize].senders -= 1;
            return self.sent(id, step, queue);
        }
        self.wait_again(id, step, self.shared.senders(queue))
    }

    /// Begins to receive: in user mode, with a system call if it has to wait or to wake.
    pub(super) fn begin_receive(&mut self, id: u32, step: Step, queue: u32) -> Option<Need> {
        if self.take(queue) {
            return self.taken(id, step, queue);
        }
        let state = &mut self.shared.queues[queue as usize];
        state.receivers += u32::from(state.capacity > 0);
        self.enter(id, step)
    }

    /// The message is out of the queue.
    fn taken(&mut self, id: u32, step: Step, queue: u32) -> Option<Need> {
        if self.shared.queues[queue as usize].senders == 0 {
            self.owe_message(id);
            return self.received(id);
        }
        self.enter_to_wake(id, step)
    }

    /// In the system call of a receiver.
    pub(super) fn receive(
        &mut self,
        id: u32,
        step: Step,
        queue: u32,
        effects: &mut Vec<Effect>,
    ) -> Option<Need> {
        let sync = self.shared.queues[queue as usize].sync;
        if self.is_rendezvous(queue) {
            let list = self.shared.senders(queue);
            let Some(sender) = self.shared.take_first(&mut self.actors, list) else {
                return self.block(id, self.shared.receivers(queue));
            };
            self.finish(sender);
            effects.push(Effect::Wake { actor: ActorId(sender), sync });
            return self.received(id);
        }
        if self.actors[id as usize].frame().part == CallPart::Wake {
            self.wake_first(self.shared.senders(queue), sync, effects);
            return self.received(id);
        }
        if self.take(queue) {
            self.shared.queues[queue as usize].receivers -= 1;
            return self.taken(id, step, queue);
        }
        self.wait_again(id, step, self.shared.receivers(queue))
    }

    /// One message of a [`Step::Receive`] has arrived.
    fn received(&mut self, id: u32) -> Option<Need> {
        let frame = *self.actors[id as usize].frame();
        let progress = frame.progress + 1;
        let more = matches!(self.code.steps[frame.pc as usize], Step::Receive { count, .. } if progress < count);
        self.finish_part(id, progress, more)
    }
}
