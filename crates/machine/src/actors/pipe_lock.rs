//! The mutex of a pipe, which the kernel holds while it writes or reads there (`pipe->mutex`, `fs/pipe.c`).
//!
//! A task that is preempted with it stops all others at that pipe: they sleep in a state that no signal ends until it
//! runs again. Under sched_ext the end of a slice preempts inside the kernel, so this is frequent in a workload of many
//! short writes; the kernel's own scheduler waits for the way out of the call (lazy preemption).
//!
//! Rules (`kernel/locking/mutex.c`): the first that waits spins as long as the owner runs, and the others sleep; a
//! release wakes the first, and a task that comes meanwhile may take the mutex before it. With `pipe_lock_ns` 0 no time
//! passes inside, and no task waits.

use super::actor::Phase;
use super::channel::Channel;
use super::code::Step;
use super::effect::{ActorId, Effect, Need};
use super::state::Actors;

impl Actors {
    /// How much of a call on a pipe is spent with its mutex, ns: at most the whole call.
    pub(super) fn locked_ns(&self, pipe: u32) -> u64 {
        match self.shared.channels[pipe as usize] {
            Channel::Pipe(_) => self.cost.pipe_lock_ns.min(self.cost.syscall_ns),
            Channel::Socket(_) => 0,
        }
    }

    /// Takes the mutex of a pipe for a call of so many ns more inside, or waits for it. `None`: the actor has it, and
    /// that time has passed.
    pub(super) fn lock_pipe(&mut self, id: u32, pipe: u32, inside_ns: u64) -> Option<Need> {
        let ns = self.locked_ns(pipe);
        let owner = self.shared.pipe_owners[pipe as usize];
        if ns == 0 || owner == Some(id) {
            return None;
        }
        let list = self.shared.at_pipe(pipe);
        let waits = self.waits_for_pipe(id, pipe);
        let Some(owner) = owner else {
            self.shared.pipe_owners[pipe as usize] = Some(id);
            match waits {
                true => self.shared.leave(&mut self.actors, id),
                false => self.actors[id as usize].in_kernel += 1,
            }
            // One that has waited for room or bytes has paid for its call.
            let has_waited = self.actors[id as usize].frame().has_waited;
            return (!has_waited).then(|| self.charge(id, ns.saturating_add(inside_ns)));
        };
        if !waits {
            self.shared.wait(&mut self.actors, list, id);
            self.actors[id as usize].in_kernel += 1;
        }
        let is_first = self.shared.first(list) == Some(id);
        self.actors[id as usize].frame().phase =
            if is_first { Phase::Spinning } else { Phase::Waiting };
        Some(if is_first { Need::SpinOn { owner: owner.into() } } else { Need::BlockHard })
    }

    /// Releases the mutex of a pipe, if the actor has it, and wakes the first that waits.
    pub(super) fn unlock_pipe(&mut self, id: u32, pipe: u32, effects: &mut Vec<Effect>) {
        if self.shared.pipe_owners[pipe as usize] != Some(id) {
            return;
        }
        self.shared.pipe_owners[pipe as usize] = None;
        self.actors[id as usize].in_kernel -= 1;
        let Some(first) = self.shared.first(self.shared.at_pipe(pipe)) else { return };
        let (actor, frame) = (ActorId(first), self.actors[first as usize].frame());
        match frame.phase {
            Phase::Waiting => effects.push(Effect::Wake { actor, sync: false }),
            Phase::Spinning => effects.push(Effect::SpinOver { actor }),
            // It was woken before and has not run yet.
            _ => return,
        }
        frame.phase = Phase::Ready;
    }

    /// Whether a step waits for the mutex of a pipe.
    pub(super) fn spins_for_pipe(&self, id: u32, step: Step) -> bool {
        match step {
            Step::PipeWrite { pipe, .. } | Step::PipeRead { pipe, .. } => {
                self.waits_for_pipe(id, pipe)
            }
            _ => false,
        }
    }

    fn waits_for_pipe(&self, id: u32, pipe: u32) -> bool {
        self.actors[id as usize].wait.list == self.shared.at_pipe(pipe).0
    }
}
