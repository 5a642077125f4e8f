//! Locks as the CPUs see them: tasks that spin, tasks that cannot be preempted, and what the trace says of both.

use fairground_trace::{EventKind, Label, LockFlags, TaskId, TaskState};
use fairground_workload::LockKind;

use super::Machine;
use crate::actors::{ActorId, Need};
use crate::kernel::{Slot, Stage};

impl Machine {
    /// `rtmutex_spin_on_owner`: the running task spins as long as the owner of the lock runs (`owner_on_cpu`); else it
    /// sleeps.
    pub(crate) fn spins_on(&mut self, slot: Slot, owner: ActorId) -> Stage {
        let owner = self.slot_of(owner).filter(|owner| {
            let cpu = self.kernel.task(*owner).cpu;
            self.kernel.cpus[cpu as usize].curr() == Some(*owner)
        });
        match owner {
            Some(owner) => {
                self.spinners.push((owner, slot));
                self.kernel.task_mut(owner).spun_on += 1;
                Stage::Compute(u64::MAX)
            }
            None => self.sleeps_for_lock(slot),
        }
    }

    fn sleeps_for_lock(&mut self, slot: Slot) -> Stage {
        let actor = self.kernel.task(slot).actor;
        match self.actors.stop_spinning(actor) {
            Some(Need::BlockHard) => Stage::Block(TaskState::Uninterruptible, None),
            Some(_) => Stage::Block(TaskState::Sleeping, None),
            None => Stage::Advance,
        }
    }

    /// Another task is to run where one spins on the owner of a lock: it goes to sleep instead. False: it does not
    /// spin.
    pub(crate) fn stops_spinning(&mut self, slot: Slot) -> bool {
        if !self.forget_spinner(slot) {
            return false;
        }
        let stage = self.sleeps_for_lock(slot);
        self.kernel.task_mut(slot).stage = stage;
        true
    }

    /// A task leaves its CPU: those that spin on it go to sleep.
    pub(crate) fn owner_leaves(&mut self, owner: Slot) {
        while self.kernel.task(owner).spun_on > 0 {
            let Some(at) = self.spinners.iter().position(|(known, _)| *known == owner) else {
                return;
            };
            let (_, spinner) = self.spinners[at];
            if self.stops_spinning(spinner) {
                self.look_again(spinner);
            }
        }
    }

    /// A task need not spin any more: it looks at the lock again.
    pub(crate) fn spin_over(&mut self, actor: ActorId) {
        let Some(slot) = self.slot_of(actor) else { return };
        self.forget_spinner(slot);
        self.kernel.task_mut(slot).stage = Stage::Advance;
        self.look_again(slot);
    }

    /// The CPU of a task that spun does something else now, once the kernel's work there is done.
    fn look_again(&mut self, slot: Slot) {
        let cpu = self.kernel.task(slot).cpu;
        let at = self.kernel.cpus[cpu as usize].busy_until_ns().max(self.kernel.clock.now_ns());
        self.kernel.arm_cpu(cpu, at);
    }

    fn forget_spinner(&mut self, slot: Slot) -> bool {
        let Some(at) = self.spinners.iter().position(|(_, spinner)| *spinner == slot) else {
            return false;
        };
        let (owner, _) = self.spinners.swap_remove(at);
        self.kernel.task_mut(owner).spun_on -= 1;
        true
    }

    pub(crate) fn contention_begins(
        &mut self,
        cpu: u32,
        slot: Slot,
        (lock, shared): (u32, bool),
        holder: Option<ActorId>,
    ) {
        let flags = match self.actors.lock_kind(lock) {
            LockKind::Spin => LockFlags::SPIN,
            LockKind::Mutex => LockFlags::MUTEX,
            LockKind::RwLock if shared => LockFlags::READ,
            LockKind::RwLock => LockFlags::WRITE,
            LockKind::RtMutex | LockKind::RtSpin => LockFlags::RT,
        };
        let holder = holder.and_then(|actor| self.slot_of(actor));
        let holder = holder.map_or(TaskId::IDLE, |slot| self.kernel.task(slot).id);
        let (task, lock) = (self.kernel.task(slot).id, self.lock_label(lock));
        self.kernel.emit(cpu, 0, EventKind::ContentionBegin { task, lock, flags, holder });
    }

    pub(crate) fn contention_ends(&mut self, cpu: u32, slot: Slot, lock: u32) {
        let (task, lock) = (self.kernel.task(slot).id, self.lock_label(lock));
        self.kernel.emit(cpu, 0, EventKind::ContentionEnd { task, lock });
    }

    /// The lock's name as a label of the trace, entered when it is waited for first.
    fn lock_label(&mut self, lock: u32) -> Label {
        let index = lock as usize;
        if self.lock_labels.len() <= index {
            self.lock_labels.resize(index + 1, None);
        }
        if let Some(label) = self.lock_labels[index] {
            return label;
        }
        let label = self.kernel.trace.intern(self.actors.lock_name(lock));
        self.lock_labels[index] = Some(label);
        label
    }
}
