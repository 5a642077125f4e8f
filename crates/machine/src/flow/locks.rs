//! The effects of locks on CPUs: tasks that spin, tasks that cannot be preempted, and their events in the trace.

use fairground_trace::{EventKind, Label, LockFlags, TaskId, TaskState};
use fairground_workload::LockKind;

use super::Machine;
use crate::actors::{ActorId, Need};
use crate::kernel::{Slot, Stage};

impl Machine {
    /// `rtmutex_spin_on_owner`: the running task spins as long as the owner of the lock runs (`owner_on_cpu`); else it
    /// sleeps.
    pub(crate) fn spins_on(&mut self, slot: Slot, owner: ActorId) -> Stage {
        let kernel = &mut self.kernel;
        match kernel.tasks.of_actor(owner).filter(|owner| kernel.runs(*owner)) {
            Some(owner) => {
                kernel.spinners.add(owner, slot);
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
        if !self.kernel.spinners.remove(slot) {
            return false;
        }
        let stage = self.sleeps_for_lock(slot);
        self.kernel.task_mut(slot).stage = stage;
        true
    }

    /// A task leaves its CPU: those that spin on it go to sleep.
    #[inline]
    pub(crate) fn owner_leaves(&mut self, owner: Slot) {
        while let Some(spinner) = self.kernel.spinners.on(owner) {
            self.stops_spinning(spinner);
            self.kernel.look_again(spinner);
        }
    }

    /// A task need not spin any more: it tries the lock again.
    pub(crate) fn spin_over(&mut self, actor: ActorId) {
        let Some(slot) = self.kernel.tasks.of_actor(actor) else { return };
        self.kernel.spinners.remove(slot);
        self.kernel.task_mut(slot).stage = Stage::Advance;
        self.kernel.look_again(slot);
    }

    /// The running task begins to wait for a lock, or finds that it has a new owner. `shared`: it waits as a reader.
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
        let holder = holder.and_then(|actor| self.kernel.tasks.of_actor(actor));
        let holder = holder.map_or(TaskId::IDLE, |slot| self.kernel.task(slot).id);
        let (task, lock) = (self.kernel.task(slot).id, self.lock_label(lock));
        self.kernel.emit(cpu, 0, EventKind::ContentionBegin { task, lock, flags, holder });
    }

    /// The lock's name as a label of the trace, entered when it is waited for first.
    pub(crate) fn lock_label(&mut self, lock: u32) -> Label {
        let index = lock as usize;
        if self.lock_labels.len() <= index {
            self.lock_labels.resize(index + 1, None);
        }
        *self.lock_labels[index]
            .get_or_insert_with(|| self.kernel.trace.intern(self.actors.lock_name(lock)))
    }
}
