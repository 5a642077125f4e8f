//! The CPU time that an actor pays for kernel work: system calls, the bytes that they copy, fork and exit.

use super::actor::{CallPart, ListId, Phase};
use super::code::Step;
use super::effect::Need;
use super::state::Actors;

impl Actors {
    /// The CPU time of a system call before its effect, ns, without its effects on others. Includes the copying of a
    /// write; that of a read is known with its effect only ([`Actors::owe_copy`]).
    pub(super) fn call_ns(&self, id: u32, step: Step) -> u64 {
        let atomic = |lock: u32| self.locks[lock as usize].kind.is_atomic();
        let more = match step {
            // Inside the kernel it is no system call.
            Step::Lock { lock, .. } | Step::Unlock { lock } if atomic(lock) => return 0,
            // The clock is read in user space.
            Step::Busy(_) | Step::TimerStart(_) => return 0,
            // What a pipe takes with its mutex comes when it has that.
            Step::PipeWrite { pipe, .. } | Step::PipeRead { pipe, .. }
                if self.locked_ns(pipe) > 0 =>
            {
                return self.cost.syscall_ns - self.locked_ns(pipe);
            }
            Step::PipeWrite { pipe, bytes } => self.write_ns(pipe, bytes),
            Step::Yield => return self.cost.yield_ns,
            Step::Fork { .. } => self.cost.fork_ns,
            Step::Exit if self.actors[id as usize].parent.is_some() => self.cost.exit_ns,
            _ => 0,
        };
        self.cost.syscall_ns.saturating_add(more)
    }

    /// Time of a write into a pipe or socket beyond its system call, ns.
    pub(super) fn write_ns(&self, pipe: u32, bytes: u64) -> u64 {
        let channel = &self.shared.channels[pipe as usize];
        self.copy_ns(bytes).saturating_add(channel.write_ns(bytes, &self.cost))
    }

    /// Begins a system call: it takes effect when its CPU time is paid for, at once if it costs nothing.
    pub(super) fn enter(&mut self, id: u32, step: Step) -> Option<Need> {
        let ns = self.call_ns(id, step);
        if ns == 0 {
            self.actors[id as usize].frame().phase = Phase::Ready;
            return None;
        }
        Some(self.charge(id, ns))
    }

    /// Begins the system call in which an operation wakes others.
    pub(super) fn enter_to_wake(&mut self, id: u32, step: Step) -> Option<Need> {
        self.actors[id as usize].frame().part = CallPart::Wake;
        self.call_again(id);
        self.enter(id, step)
    }

    /// Lets the actor wait in a list for a futex. One that was woken in vain calls the kernel again first.
    pub(super) fn wait_again(&mut self, id: u32, step: Step, list: ListId) -> Option<Need> {
        if std::mem::take(&mut self.actors[id as usize].frame().has_waited) {
            self.call_again(id);
            return self.enter(id, step);
        }
        self.block(id, list)
    }

    /// Charges a system call this much CPU time before its effect.
    pub(super) fn charge(&mut self, id: u32, ns: u64) -> Need {
        self.actors[id as usize].frame().phase = Phase::Charging;
        Need::Cpu { ns }
    }

    /// The actor pays before its next operation for copying this many bytes, and for freeing messages of a socket.
    pub(super) fn owe_copy(&mut self, id: u32, bytes: u64, messages: u64) {
        let free_ns = messages.saturating_mul(self.cost.socket_ns / 2);
        self.actors[id as usize].owed_ns += self.copy_ns(bytes).saturating_add(free_ns);
    }

    /// The actor pays before its next operation for a message that took no system call.
    pub(super) fn owe_message(&mut self, id: u32) {
        self.actors[id as usize].owed_ns += self.cost.queue_ns;
    }

    /// The time of copying this many bytes, ns.
    fn copy_ns(&self, bytes: u64) -> u64 {
        bytes.saturating_mul(self.cost.copy_byte_ps) / 1_000
    }
}
