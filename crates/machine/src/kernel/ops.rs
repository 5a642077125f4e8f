//! The callbacks of a scheduler, and what each may do.

use super::Slot;
use fairground_trace::CallbackKind;

/// A callback, in the order of [`crate::layout::OPS_CALLBACKS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
// The table has every member of the kernel's structure; the machine has no core scheduling and no CPU hotplug.
#[allow(dead_code)]
pub(crate) enum Op {
    SelectCpu,
    Enqueue,
    Dequeue,
    Dispatch,
    Tick,
    Runnable,
    Running,
    Stopping,
    Quiescent,
    Yield,
    CoreSchedBefore,
    SetWeight,
    SetCpumask,
    UpdateIdle,
    CpuAcquire,
    CpuRelease,
    InitTask,
    ExitTask,
    Enable,
    Disable,
    Dump,
    DumpCpu,
    DumpTask,
    CgroupInit,
    CgroupExit,
    CgroupPrepMove,
    CgroupMove,
    CgroupCancelMove,
    CgroupSetWeight,
    CpuOnline,
    CpuOffline,
    Init,
    Exit,
}

impl Op {
    /// How many there are.
    pub(crate) const COUNT: usize = Op::Exit as usize + 1;

    /// Every callback, in the order of the kernel's table.
    pub(crate) const ALL: [Op; Op::COUNT] = [
        Op::SelectCpu,
        Op::Enqueue,
        Op::Dequeue,
        Op::Dispatch,
        Op::Tick,
        Op::Runnable,
        Op::Running,
        Op::Stopping,
        Op::Quiescent,
        Op::Yield,
        Op::CoreSchedBefore,
        Op::SetWeight,
        Op::SetCpumask,
        Op::UpdateIdle,
        Op::CpuAcquire,
        Op::CpuRelease,
        Op::InitTask,
        Op::ExitTask,
        Op::Enable,
        Op::Disable,
        Op::Dump,
        Op::DumpCpu,
        Op::DumpTask,
        Op::CgroupInit,
        Op::CgroupExit,
        Op::CgroupPrepMove,
        Op::CgroupMove,
        Op::CgroupCancelMove,
        Op::CgroupSetWeight,
        Op::CpuOnline,
        Op::CpuOffline,
        Op::Init,
        Op::Exit,
    ];

    /// The kind that the trace knows.
    pub(crate) fn kind(self) -> CallbackKind {
        match self {
            Op::SelectCpu => CallbackKind::SelectCpu,
            Op::Enqueue => CallbackKind::Enqueue,
            Op::Dequeue => CallbackKind::Dequeue,
            Op::Dispatch => CallbackKind::Dispatch,
            Op::Tick => CallbackKind::Tick,
            Op::Runnable => CallbackKind::Runnable,
            Op::Running => CallbackKind::Running,
            Op::Stopping => CallbackKind::Stopping,
            Op::Quiescent => CallbackKind::Quiescent,
            Op::Yield => CallbackKind::Yield,
            Op::UpdateIdle => CallbackKind::UpdateIdle,
            Op::SetWeight => CallbackKind::SetWeight,
            Op::SetCpumask => CallbackKind::SetCpumask,
            Op::InitTask => CallbackKind::InitTask,
            Op::ExitTask => CallbackKind::ExitTask,
            Op::Enable => CallbackKind::Enable,
            Op::Disable => CallbackKind::Disable,
            Op::Init => CallbackKind::Init,
            Op::Exit => CallbackKind::Exit,
            Op::CpuAcquire => CallbackKind::CpuAcquire,
            Op::CpuRelease => CallbackKind::CpuRelease,
            Op::CgroupInit => CallbackKind::CgroupInit,
            Op::CgroupExit => CallbackKind::CgroupExit,
            Op::CgroupPrepMove => CallbackKind::CgroupPrepMove,
            Op::CgroupMove => CallbackKind::CgroupMove,
            Op::CgroupCancelMove => CallbackKind::CgroupCancelMove,
            Op::CgroupSetWeight => CallbackKind::CgroupSetWeight,
            _ => CallbackKind::Other,
        }
    }

    /// Whether kfuncs may ask about the task that it is about (`SCX_CALL_OP_TASK`).
    pub(crate) fn is_about_its_task(self) -> bool {
        !matches!(
            self,
            Op::Dispatch
                | Op::UpdateIdle
                | Op::InitTask
                | Op::CgroupPrepMove
                | Op::CgroupCancelMove
        )
    }

    /// The kfuncs that it may call (`SCX_CALL_OP` in `kernel/sched/ext.c`).
    pub(crate) fn context(self) -> u32 {
        match self {
            Op::Dispatch => kf::DISPATCH,
            Op::Enqueue => kf::ENQUEUE,
            Op::SelectCpu => kf::ENQUEUE | kf::SELECT_CPU,
            Op::CpuRelease => kf::CPU_RELEASE,
            Op::InitTask | Op::Init | Op::Exit | Op::CpuOnline | Op::CpuOffline => kf::UNLOCKED,
            Op::CgroupInit | Op::CgroupExit | Op::CgroupSetWeight => kf::UNLOCKED,
            Op::CgroupPrepMove | Op::CgroupMove | Op::CgroupCancelMove => kf::UNLOCKED,
            Op::Dump | Op::DumpCpu | Op::DumpTask => kf::UNLOCKED,
            _ => kf::REST,
        }
    }
}

/// Groups of kfuncs (`enum scx_kf_mask`).
pub(crate) mod kf {
    /// Sleepable, no run queue locked.
    pub(crate) const UNLOCKED: u32 = 0;
    pub(crate) const CPU_RELEASE: u32 = 1;
    pub(crate) const DISPATCH: u32 = 2;
    pub(crate) const ENQUEUE: u32 = 4;
    pub(crate) const SELECT_CPU: u32 = 8;
    pub(crate) const REST: u32 = 16;
    /// Callbacks under a run queue's lock (`__SCX_KF_RQ_LOCKED`).
    pub(crate) const RQ_LOCKED: u32 = CPU_RELEASE | DISPATCH | ENQUEUE | SELECT_CPU | REST;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::OPS_CALLBACKS;

    #[test]
    fn numbers_follow_the_names() {
        assert_eq!(OPS_CALLBACKS.len(), Op::COUNT);
        assert_eq!(OPS_CALLBACKS[Op::Dispatch as usize], "dispatch");
        assert_eq!(OPS_CALLBACKS[Op::UpdateIdle as usize], "update_idle");
        assert_eq!(OPS_CALLBACKS[Op::CgroupSetWeight as usize], "cgroup_set_weight");
        assert_eq!(OPS_CALLBACKS[Op::Exit as usize], "exit");
        assert!(Op::ALL.iter().enumerate().all(|(number, op)| *op as usize == number));
    }
}

/// What the running callback may call, and about which task (`kf_mask` and `kf_tasks` of `struct sched_ext_entity`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Permission {
    mask: u32,
    task: Option<Slot>,
}

impl Permission {
    /// No callback runs.
    pub(crate) const NONE: Permission = Permission { mask: 0, task: None };
    /// Outside of the scheduler's callbacks: a timer's callback, or a program that the loader runs.
    pub(crate) const UNLOCKED: Permission = Permission { mask: kf::UNLOCKED, task: None };

    /// Of a callback that is about a task or none.
    #[inline]
    pub(crate) fn of(op: Op, task: Option<Slot>) -> Permission {
        Permission { mask: op.context(), task }
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

    /// Whether no lock of a run queue would be held.
    pub(crate) fn is_unlocked(self) -> bool {
        self.mask == kf::UNLOCKED
    }
}
