//! What the kernel's work for an actor costs it: system calls, becoming a process and ending as one.

use super::compile::Step;
use super::engine::{Actors, Phase};
use super::{ActorId, Need};

/// Whose work the CPU time is that an actor needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Its own computation.
    Own,
    /// The kernel's, in a system call.
    Call,
    /// The kernel's, between two operations.
    Owed,
}

impl Actors {
    /// Whose work it is that the actor needs CPU time for, when it does.
    pub(crate) fn work(&self, actor: ActorId) -> Work {
        let actor = &self.actors[actor.0 as usize];
        match actor.frames[actor.level].phase {
            Phase::Computing => Work::Own,
            Phase::Start | Phase::Owing | Phase::Returning => Work::Owed,
            _ => Work::Call,
        }
    }

    /// The kernel takes so much of the actor's CPU time before its next operation.
    pub(crate) fn owe(&mut self, actor: ActorId, ns: u64) {
        let actor = &mut self.actors[actor.0 as usize];
        actor.owed_ns += ns;
        actor.frame().phase = Phase::Start;
    }

    /// The CPU time that a system call costs, ns, but for what sleeping in it takes and what it makes others do.
    pub(super) fn call_ns(&self, id: u32, step: Step) -> u64 {
        let atomic = |lock: u32| self.locks[lock as usize].kind.is_atomic();
        let more = match step {
            // Inside the kernel it is no system call.
            Step::Lock { lock, .. } | Step::Unlock { lock } if atomic(lock) => return 0,
            // The clock is read in user space.
            Step::Busy(_) | Step::TimerStart(_) => return 0,
            Step::Fork { .. } => self.cost.fork_ns,
            Step::Exit if self.actors[id as usize].parent.is_some() => self.cost.exit_ns,
            _ => 0,
        };
        self.cost.syscall_ns + more
    }

    /// The way into the kernel, if that costs anything. What the way out costs comes after the call's effect, and after a sleep in it.
    pub(super) fn enter(&mut self, id: u32, step: Step) -> Option<Need> {
        let all_ns = self.call_ns(id, step);
        let returns = all_ns > 0 && !matches!(step, Step::Exit);
        let ns = all_ns - if returns { self.way_out_ns() } else { self.moves_out_ns(id) };
        let actor = &mut self.actors[id as usize];
        actor.is_in_call = returns;
        if ns == 0 {
            actor.frame().phase = Phase::Ready;
            return None;
        }
        Some(self.charge(id, step, ns))
    }

    /// The part of a system call that follows its effect, ns.
    pub(super) fn way_out_ns(&self) -> u64 {
        self.cost.syscall_return_ns.min(self.cost.syscall_ns)
    }

    /// The part of the end of a process that follows its move out of the autogroup, ns; 0: it asks for no scheduling pass.
    fn moves_out_ns(&self, id: u32) -> u64 {
        let has_parent = self.actors[id as usize].parent.is_some();
        if has_parent { self.cost.exit_move_ns.min(self.cost.exit_ns) } else { 0 }
    }

    /// What a process that ends needs before its parent hears of it, once all the rest has been given back: a scheduling pass, and some time.
    pub(super) fn move_out(&mut self, id: u32) -> Option<Need> {
        let ns = self.moves_out_ns(id);
        let frame = self.actors[id as usize].frame();
        match (ns, frame.progress) {
            (0, _) | (_, 2..) => None,
            (_, 0) => {
                frame.progress = 1;
                Some(Need::MoveOut)
            }
            (_, 1) => {
                (frame.progress, frame.phase, frame.left_ns) = (2, Phase::Charging, 0);
                Some(Need::Kernel { ns })
            }
        }
    }

    /// The way out of a system call, on which the kernel makes no room for others: who was woken by the call waits for its end.
    pub(super) fn way_out(&mut self, id: u32) -> Option<Need> {
        let ns = self.way_out_ns();
        let actor = &mut self.actors[id as usize];
        if !std::mem::take(&mut actor.is_in_call) || ns == 0 {
            return None;
        }
        actor.frame().phase = Phase::Returning;
        Some(Need::Kernel { ns })
    }

    /// Lets a system call cost so much CPU time; making and ending a process may go on in stretches.
    pub(super) fn charge(&mut self, id: u32, step: Step, ns: u64) -> Need {
        let stretch_ns = self.cost.fork_stretch_ns;
        let frame = self.actors[id as usize].frame();
        (frame.phase, frame.left_ns) = (Phase::Charging, 0);
        if stretch_ns == 0 || !matches!(step, Step::Fork { .. } | Step::Exit) {
            return Need::Cpu { ns };
        }
        frame.left_ns = ns - ns.min(stretch_ns);
        Need::Kernel { ns: ns.min(stretch_ns) }
    }
}
