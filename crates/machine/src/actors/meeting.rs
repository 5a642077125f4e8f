//! Conditions and barriers.
//!
//! A wait for a condition is two steps: this one, which releases the lock and sleeps, and a plain `Step::Lock`. A
//! notification wakes those that have waited longest, and each of them then competes for the lock as any other. A
//! notification without a waiter is lost. There are no spurious wake-ups.

use super::actor::ListId;
use super::effect::{ActorId, Effect, Need};
use super::error::ActorError;
use super::state::Actors;

impl Actors {
    /// Wakes the first actor of a list, whose wait is over; false: it is empty.
    fn let_go(&mut self, list: ListId, effects: &mut Vec<Effect>) -> bool {
        let Some(waiter) = self.shared.take_first(&mut self.actors, list) else { return false };
        self.actors[waiter as usize].frame().finish();
        effects.push(Effect::Wake { actor: ActorId(waiter), sync: false });
        true
    }

    pub(super) fn condition_wait(
        &mut self,
        id: u32,
        (condition, lock): (u32, u32),
        now_ns: u64,
        effects: &mut Vec<Effect>,
    ) -> Result<Option<Need>, Box<ActorError>> {
        if self.actors[id as usize].frame().progress == 0 {
            if !self.holds(id, lock) {
                let problem = format!("waits without the lock `{}`", self.lock_name(lock));
                return Err(self.misuse(id, problem, now_ns));
            }
            self.release_lock(id, lock, effects);
            self.actors[id as usize].frame().progress = 1;
        }
        Ok(self.block(id, self.shared.at_condition(condition)))
    }

    pub(super) fn notify(
        &mut self,
        id: u32,
        condition: u32,
        all: bool,
        effects: &mut Vec<Effect>,
    ) -> Option<Need> {
        let list = self.shared.at_condition(condition);
        while self.let_go(list, effects) && all {}
        self.finish(id)
    }

    /// The last to arrive wakes the others, in the order of arrival.
    pub(super) fn meet(
        &mut self,
        id: u32,
        barrier: u32,
        count: u64,
        effects: &mut Vec<Effect>,
    ) -> Option<Need> {
        let list = self.shared.at_barrier(barrier);
        let came_at = self.actors[id as usize].frame().progress;
        let state = &mut self.shared.barriers[barrier as usize];
        if came_at != 0 && came_at != state.opened + 1 {
            // It opened while the task handled a signal.
            return self.finish(id);
        }
        if came_at == 0 {
            state.come += 1;
            if state.come >= count {
                state.come = 0;
                state.opened += 1;
                while self.let_go(list, effects) {}
                return self.finish(id);
            }
            self.actors[id as usize].frame().progress = state.opened + 1;
        }
        self.block(id, list)
    }
}
