//! Conditions and barriers: counters in the memory of the processes and a futex.
//!
//! A wait for a condition is two steps: this one, which counts the actor as waiting, releases the lock and waits for a
//! notification that is not consumed yet, and a plain `Step::Lock`. A notification is for those that wait at that time.
//! It wakes those that have waited longest, and each of them then competes for the lock as any other. A notification
//! without a waiter is lost. There are no spurious wake-ups.

use super::actor::{CallPart, Frame};
use super::code::Step;
use super::effect::{Effect, Need};
use super::error::ActorError;
use super::state::Actors;

/// The progress of an actor that waits for a condition: it releases the lock in a system call.
const RELEASES: u64 = 1;
/// It has released the lock, and waits for a notification.
const WAITS: u64 = 2;

/// Whether an actor that waits for a condition is about to release the lock.
pub(super) fn releases(frame: &Frame) -> bool {
    frame.progress == RELEASES
}

impl Actors {
    /// Begins to wait for a condition. Without the lock it is an error, which the call reports.
    pub(super) fn begin_condition_wait(
        &mut self,
        id: u32,
        step: Step,
        (condition, lock): (u32, u32),
        effects: &mut Vec<Effect>,
    ) -> Option<Need> {
        if !self.holds(id, lock) {
            return self.enter(id, step);
        }
        self.shared.conditions[condition as usize].waiting += 1;
        self.actors[id as usize].frame().progress = RELEASES;
        if !self.release_in_user_mode(id, lock, effects) {
            return self.enter(id, step);
        }
        self.await_notification(id, step, condition)
    }

    /// Consumes a notification in user mode, or calls the kernel to wait for one.
    fn await_notification(&mut self, id: u32, step: Step, condition: u32) -> Option<Need> {
        let frame = self.actors[id as usize].frame();
        (frame.progress, frame.part) = (WAITS, CallPart::Whole);
        if self.consume(condition) {
            return self.finish(id);
        }
        self.call_again(id);
        self.enter(id, step)
    }

    fn consume(&mut self, condition: u32) -> bool {
        let state = &mut self.shared.conditions[condition as usize];
        let any = state.notified > 0;
        state.notified -= u64::from(any);
        any
    }

    /// In a system call of an actor that waits for a condition.
    pub(super) fn condition_wait(
        &mut self,
        id: u32,
        step: Step,
        (condition, lock): (u32, u32),
        now_ns: u64,
        effects: &mut Vec<Effect>,
    ) -> Result<Option<Need>, Box<ActorError>> {
        let progress = self.actors[id as usize].frame().progress;
        match progress {
            0 => {
                let problem = format!("waits without the lock `{}`", self.lock_name(lock));
                Err(self.misuse(id, problem, now_ns))
            }
            RELEASES => {
                self.release_in_call(id, lock, effects);
                Ok(self.await_notification(id, step, condition))
            }
            _ if self.consume(condition) => Ok(self.finish(id)),
            _ => Ok(self.wait_again(id, step, self.shared.at_condition(condition))),
        }
    }

    /// Notifies the first of those that wait for a condition, or all of them; without any it is no system call.
    pub(super) fn begin_notify(
        &mut self,
        id: u32,
        step: Step,
        (condition, all): (u32, bool),
    ) -> Option<Need> {
        let state = &mut self.shared.conditions[condition as usize];
        let count = if all { state.waiting } else { state.waiting.min(1) };
        if count == 0 {
            return self.finish(id);
        }
        (state.waiting, state.notified) = (state.waiting - count, state.notified + count);
        self.actors[id as usize].frame().progress = count;
        self.enter(id, step)
    }

    /// In the system call that wakes those that are notified.
    pub(super) fn notify(
        &mut self,
        id: u32,
        condition: u32,
        effects: &mut Vec<Effect>,
    ) -> Option<Need> {
        self.wake_all(id, self.shared.at_condition(condition), effects)
    }

    /// Arrives at a barrier. The last to arrive opens it.
    pub(super) fn arrive(&mut self, id: u32, step: Step, barrier: u32, count: u64) -> Option<Need> {
        let state = &mut self.shared.barriers[barrier as usize];
        state.come += 1;
        if state.come >= count {
            (state.come, state.opened) = (0, state.opened + 1);
            return self.enter_to_wake(id, step);
        }
        self.actors[id as usize].frame().progress = state.opened;
        self.enter(id, step)
    }

    /// In the system call of an actor at a barrier. The last to arrive wakes the others, in the order of arrival.
    pub(super) fn meet(
        &mut self,
        id: u32,
        barrier: u32,
        effects: &mut Vec<Effect>,
    ) -> Option<Need> {
        let list = self.shared.at_barrier(barrier);
        let frame = *self.actors[id as usize].frame();
        if frame.part == CallPart::Wake {
            return self.wake_all(id, list, effects);
        }
        if self.shared.barriers[barrier as usize].opened != frame.progress {
            return self.finish(id);
        }
        self.block(id, list)
    }
}
