//! Permissions of the running callback.

use super::Slot;
use crate::op::{Op, kf};

/// Permissions of the running callback, and the task that it is about (`kf_mask` and `kf_tasks` of
/// `struct sched_ext_entity`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Permission {
    mask: u32,
    task: Option<Slot>,
    /// The lock of a run queue is held.
    locked: bool,
}

impl Permission {
    /// Outside of the scheduler's callbacks: a timer's callback, or a program that the loader runs.
    pub(crate) const UNLOCKED: Permission =
        Permission { mask: kf::UNLOCKED, task: None, locked: false };

    /// Of a program that is called at an event: what every program may call (`scx_kfunc_ids_any`).
    pub(crate) const TRACING: Permission = Permission { mask: kf::REST, task: None, locked: false };

    /// Of a callback that is about a task or none.
    #[inline]
    pub(crate) fn of(op: Op, task: Option<Slot>) -> Permission {
        let mask = op.context();
        Permission { mask, task, locked: mask != kf::UNLOCKED && op != Op::SelectCpu }
    }

    /// The task that the callback is about.
    #[inline]
    pub(crate) fn task(self) -> Option<Slot> {
        self.task
    }

    /// The groups of kfuncs that may be called.
    #[inline]
    pub(crate) fn mask(self) -> u32 {
        self.mask
    }

    /// Whether the callback is about this task.
    #[inline]
    pub(crate) fn is_about(self, task: Slot) -> bool {
        self.task == Some(task)
    }

    /// Whether the lock of a run queue is held: `ops.select_cpu()` may call what others may, and holds none.
    pub(crate) fn is_locked(self) -> bool {
        self.locked
    }

    /// Whether no lock of a run queue would be held.
    pub(crate) fn is_unlocked(self) -> bool {
        self.mask == kf::UNLOCKED
    }
}
