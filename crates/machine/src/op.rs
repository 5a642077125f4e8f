//! The callbacks of a scheduler, and what each may do.

use fairground_trace::CallbackKind;

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

macro_rules! callbacks {
    ($($op:ident $name:literal $kind:ident $groups:expr;)*) => {
        /// A callback: a member of `struct sched_ext_ops`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        // The table has every member of the kernel's structure, also those that the machine never calls.
        #[allow(dead_code)]
        pub(crate) enum Op {
            $($op,)*
        }

        impl Op {
            /// Every callback, in the order of the kernel's structure.
            pub(crate) const ALL: &[Op] = &[$(Op::$op,)*];

            /// The member's name.
            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Op::$op => $name,)*
                }
            }

            /// Its kind in the trace.
            #[inline]
            pub(crate) fn kind(self) -> CallbackKind {
                const KINDS: [CallbackKind; Op::COUNT] = [$(CallbackKind::$kind,)*];
                KINDS[self as usize]
            }

            /// The kfuncs that it may call (`SCX_CALL_OP` in `kernel/sched/ext.c`).
            #[inline]
            pub(crate) fn context(self) -> u32 {
                const GROUPS: [u32; Op::COUNT] = [$($groups,)*];
                GROUPS[self as usize]
            }
        }
    };
}

// The callback, its member's name, its kind in the trace, the kfuncs that it may call; in the kernel's order (6.12),
// later ones at their places.
callbacks! {
    SelectCpu "select_cpu" SelectCpu kf::ENQUEUE | kf::SELECT_CPU;
    Enqueue "enqueue" Enqueue kf::ENQUEUE | kf::SELECT_CPU;
    Dequeue "dequeue" Dequeue kf::REST;
    Dispatch "dispatch" Dispatch kf::DISPATCH;
    Tick "tick" Tick kf::REST;
    Runnable "runnable" Runnable kf::REST;
    Running "running" Running kf::REST;
    Stopping "stopping" Stopping kf::REST;
    Quiescent "quiescent" Quiescent kf::REST;
    Yield "yield" Yield kf::REST;
    CoreSchedBefore "core_sched_before" Other kf::REST;
    SetWeight "set_weight" SetWeight kf::REST;
    SetCpumask "set_cpumask" SetCpumask kf::REST;
    UpdateIdle "update_idle" UpdateIdle kf::REST;
    CpuAcquire "cpu_acquire" CpuAcquire kf::REST;
    CpuRelease "cpu_release" CpuRelease kf::CPU_RELEASE;
    InitTask "init_task" InitTask kf::UNLOCKED;
    ExitTask "exit_task" ExitTask kf::REST;
    Enable "enable" Enable kf::REST;
    Disable "disable" Disable kf::REST;
    Dump "dump" Other kf::UNLOCKED;
    DumpCpu "dump_cpu" Other kf::UNLOCKED;
    DumpTask "dump_task" Other kf::UNLOCKED;
    CgroupInit "cgroup_init" CgroupInit kf::UNLOCKED;
    CgroupExit "cgroup_exit" CgroupExit kf::UNLOCKED;
    CgroupPrepMove "cgroup_prep_move" CgroupPrepMove kf::UNLOCKED;
    CgroupMove "cgroup_move" CgroupMove kf::UNLOCKED;
    CgroupCancelMove "cgroup_cancel_move" CgroupCancelMove kf::UNLOCKED;
    CgroupSetWeight "cgroup_set_weight" CgroupSetWeight kf::UNLOCKED;
    CgroupSetBandwidth "cgroup_set_bandwidth" Other kf::UNLOCKED;
    CgroupSetIdle "cgroup_set_idle" Other kf::UNLOCKED;
    SubAttach "sub_attach" Other kf::UNLOCKED;
    SubDetach "sub_detach" Other kf::UNLOCKED;
    CpuOnline "cpu_online" Other kf::UNLOCKED;
    CpuOffline "cpu_offline" Other kf::UNLOCKED;
    Init "init" Init kf::UNLOCKED;
    Exit "exit" Exit kf::UNLOCKED;
}

impl Op {
    /// How many there are.
    pub(crate) const COUNT: usize = Op::ALL.len();

    /// The names of all, in their order.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        Op::ALL.iter().map(|op| op.name())
    }

    /// Its name in a table of the cid form (`struct sched_ext_ops_cid`, 7.2), which uses topological CPU numbers.
    pub(crate) fn cid_form_name(self) -> &'static str {
        match self {
            Op::SelectCpu => "select_cid",
            Op::SetCpumask => "set_cmask",
            Op::DumpCpu => "dump_cid",
            Op::CpuOnline => "cid_online",
            Op::CpuOffline => "cid_offline",
            same => same.name(),
        }
    }

    /// Whether kfuncs may ask about the task that it is about (`SCX_CALL_OP_TASK`).
    #[inline]
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
}
