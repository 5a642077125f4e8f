//! One event of the stream.

use crate::{Call, CgroupId, RtPrio, TaskId, TaskState};

/// An index into a trace's label table ([`crate::Trace::label`]): the text of a mark, of a parameter change
/// or of a printed line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(pub u32);

/// Defines [`CallbackKind`]: each kind with its name.
macro_rules! callback_kinds {
    ($($kind:ident = $name:literal,)*) => {
        /// Which callback of the scheduler ran (`struct sched_ext_ops`), for [`EventKind::Callback`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        #[allow(missing_docs)]
        pub enum CallbackKind {
            $($kind,)*
        }

        impl CallbackKind {
            /// Every kind, in numerical order.
            pub const ALL: [CallbackKind; [$($name),*].len()] = [$(CallbackKind::$kind),*];

            /// The member of `struct sched_ext_ops`, where there is one.
            pub fn name(self) -> &'static str {
                match self {
                    $(CallbackKind::$kind => $name,)*
                }
            }
        }
    };
}

callback_kinds! {
    SelectCpu = "select_cpu",
    Enqueue = "enqueue",
    Dequeue = "dequeue",
    Dispatch = "dispatch",
    Tick = "tick",
    Runnable = "runnable",
    Running = "running",
    Stopping = "stopping",
    Quiescent = "quiescent",
    Yield = "yield",
    UpdateIdle = "update_idle",
    SetWeight = "set_weight",
    SetCpumask = "set_cpumask",
    InitTask = "init_task",
    ExitTask = "exit_task",
    Enable = "enable",
    Disable = "disable",
    Init = "init",
    Exit = "exit",
    Timer = "timer",
    CpuAcquire = "cpu_acquire",
    CpuRelease = "cpu_release",
    CgroupInit = "cgroup_init",
    CgroupExit = "cgroup_exit",
    CgroupPrepMove = "cgroup_prep_move",
    CgroupMove = "cgroup_move",
    CgroupCancelMove = "cgroup_cancel_move",
    CgroupSetWeight = "cgroup_set_weight",
    Other = "other",
}

/// The kind of lock that a task waits for: the flags of the kernel's `lock:contention_begin` (`LCB_F_*` of
/// `include/trace/events/lock.h`, Linux 5.19 and later).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LockFlags(pub u8);

impl LockFlags {
    /// The waiter spins.
    pub const SPIN: LockFlags = LockFlags(1);
    /// The waiter wants to read.
    pub const READ: LockFlags = LockFlags(2);
    /// The waiter wants to write.
    pub const WRITE: LockFlags = LockFlags(4);
    /// A lock with priority inheritance.
    pub const RT: LockFlags = LockFlags(8);
    /// A per-CPU reader/writer semaphore.
    pub const PERCPU: LockFlags = LockFlags(16);
    /// A mutex.
    pub const MUTEX: LockFlags = LockFlags(32);

    /// Every flag with its name, in the order of their bits.
    pub const NAMES: [(LockFlags, &'static str); 6] = [
        (Self::SPIN, "SPIN"),
        (Self::READ, "READ"),
        (Self::WRITE, "WRITE"),
        (Self::RT, "RT"),
        (Self::PERCPU, "PERCPU"),
        (Self::MUTEX, "MUTEX"),
    ];

    /// Whether all of `other` are set.
    pub fn has(self, other: LockFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// The flags of both.
    #[must_use]
    pub const fn with(self, other: LockFlags) -> LockFlags {
        LockFlags(self.0 | other.0)
    }

    /// The names of the flags with `|` between them; `0` when none is set.
    pub fn text(self) -> String {
        let names = Self::NAMES.iter().filter(|(flag, _)| self.has(*flag)).map(|(_, name)| *name);
        let text = names.collect::<Vec<_>>().join("|");
        if text.is_empty() { "0".to_owned() } else { text }
    }

    /// Parses the text that [`LockFlags::text`] gives; `None` when a name is unknown.
    pub fn parse(text: &str) -> Option<LockFlags> {
        if text == "0" {
            return Some(LockFlags::default());
        }
        text.split('|').try_fold(LockFlags::default(), |flags, word| {
            let found = Self::NAMES.iter().find(|(_, name)| *name == word)?;
            Some(flags.with(found.0))
        })
    }
}

/// What happened. Task and CPU numbers are those of the trace.
#[allow(missing_docs)] // The fields are named by the variant's own sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The CPU stopped running `prev` and started to run `next` ([`TaskId::IDLE`] is the idle task of every CPU).
    Switch { prev: TaskId, prev_state: TaskState, next: TaskId },
    /// `waker`, running on the event's CPU, wakes `task` (`sched_waking`). `target_cpu` is the CPU on which
    /// `task` ran last, not the one it will run on. `waker` is [`TaskId::IDLE`] when the wake-up happened in an
    /// interrupt, on an idle CPU or on a busy one.
    Waking { task: TaskId, waker: TaskId, target_cpu: u32 },
    /// `task` is runnable, queued for `target_cpu` (`sched_wakeup`).
    Wakeup { task: TaskId, target_cpu: u32 },
    /// A new task is runnable for the first time (`sched_wakeup_new`).
    WakeupNew { task: TaskId, target_cpu: u32 },
    /// `task` was moved between the queues of two CPUs (`sched_migrate_task`).
    Migrate { task: TaskId, from_cpu: u32, to_cpu: u32 },
    /// `parent` created `child` (`sched_process_fork`).
    Fork { parent: TaskId, child: TaskId },
    /// `task` exited (`sched_process_exit`).
    Exit { task: TaskId },
    /// The nice value of `task` became `nice` (−20…19), or it came back to the normal class with it.
    Nice { task: TaskId, nice: i8 },
    /// `task` came into a class above the normal one, or has another priority there.
    RtPrio { task: TaskId, prio: RtPrio },
    /// `task` has slices of its own length now, ns; 0: those of the scheduler (`sched_setattr`).
    Slice { task: TaskId, slice_ns: u64 },
    /// `task` may run on other CPUs than before; the label is their list (`0-3,8`).
    Affinity { task: TaskId, cpus: Label },
    /// `task` moved from one cgroup to another (`cgroup_attach_task`).
    CgroupMove { task: TaskId, from: CgroupId, to: CgroupId },
    /// `cpu.weight` of `cgroup` became `weight` (1…10,000).
    CgroupWeight { cgroup: CgroupId, weight: u32 },
    /// The timer tick of the event's CPU arrived while `task` was running.
    Tick { task: TaskId },
    /// The kernel charged `task` the time that it ran since the last charge (`sched_stat_runtime`).
    Charge { task: TaskId, runtime_ns: u64 },
    /// A callback of the scheduler ran for `task` (or [`TaskId::IDLE`]). Present only when the recorder was asked for
    /// it.
    Callback { kind: CallbackKind, task: TaskId },
    /// A value that the workload reports: a worker's result, the end of a measurement.
    Mark { task: TaskId, label: Label, value: u64 },
    /// `task` begins to wait for a contended lock (`lock:contention_begin`). `holder` owns it;
    /// [`TaskId::IDLE`] when the owner is unknown, or there are several. A second one without an end between them means
    /// that the task still waits and the owner has changed.
    ContentionBegin { task: TaskId, lock: Label, flags: LockFlags, holder: TaskId },
    /// `task` acquired the lock that it waited for (`lock:contention_end`).
    ContentionEnd { task: TaskId, lock: Label },
    /// `task` enters a call in which it may wait, or may end another task's wait. The object is a descriptor or an
    /// address of the task's process, as [`Call`] says; of the simulated machine, its number with the kind in the upper
    /// half. Present only when the recorder was asked for it.
    CallEnter { task: TaskId, call: Call, object: u64 },
    /// `task` leaves the call that it entered last (calls do not nest), with the call's result: bytes, a count, 0, or a
    /// negative error number. Without an entry before it, the call began before the recording or is of no [`Call`].
    CallExit { task: TaskId, result: i64 },
    /// A tunable of the scheduler changed; the label reads `name=value`.
    Param { label: Label },
    /// The scheduler's program printed a line (`bpf_printk`, `bpf_trace_printk`) on the event's CPU.
    Print { label: Label },
    /// The kernel stack of `task` at its switch or wait just before, on the event's CPU; the label reads
    /// `outer;…;inner`, a function each, the caller before the called (`stacktrace` triggers of ftrace). Android's
    /// `sched_blocked_reason` names only the function in which `task` waits uninterruptibly, right before its switch
    /// or, in older kernels, when another task wakes it.
    Stack { task: TaskId, label: Label },
    /// The recorder lost `count` events of the event's CPU between here and its next event.
    Lost { count: u64 },
}

impl EventKind {
    /// The tasks that the event names; of two the one that acts, or that runs first, comes first.
    #[inline]
    pub(crate) fn tasks_mut(&mut self) -> [Option<&mut TaskId>; 2] {
        match self {
            Self::Switch { prev: first, next: second, .. }
            | Self::Waking { waker: first, task: second, .. }
            | Self::Fork { parent: first, child: second }
            | Self::ContentionBegin { task: first, holder: second, .. } => {
                [Some(first), Some(second)]
            }
            Self::Wakeup { task, .. }
            | Self::WakeupNew { task, .. }
            | Self::Migrate { task, .. }
            | Self::Exit { task }
            | Self::Nice { task, .. }
            | Self::RtPrio { task, .. }
            | Self::Slice { task, .. }
            | Self::Affinity { task, .. }
            | Self::CgroupMove { task, .. }
            | Self::Tick { task }
            | Self::Charge { task, .. }
            | Self::Callback { task, .. }
            | Self::Mark { task, .. }
            | Self::ContentionEnd { task, .. }
            | Self::CallEnter { task, .. }
            | Self::CallExit { task, .. }
            | Self::Stack { task, .. } => [Some(task), None],
            Self::CgroupWeight { .. }
            | Self::Param { .. }
            | Self::Print { .. }
            | Self::Lost { .. } => [None, None],
        }
    }

    /// The text that the event refers to, if it does.
    #[inline]
    pub(crate) fn label_mut(&mut self) -> Option<&mut Label> {
        match self {
            Self::ContentionBegin { lock: label, .. }
            | Self::ContentionEnd { lock: label, .. }
            | Self::Mark { label, .. }
            | Self::Affinity { cpus: label, .. }
            | Self::Param { label }
            | Self::Print { label }
            | Self::Stack { label, .. } => Some(label),
            _ => None,
        }
    }
}

/// An event with its time and CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Nanoseconds since the trace's clock started.
    pub time_ns: u64,
    /// The CPU on which it happened.
    pub cpu: u32,
    /// Instructions of the scheduler's program executed for this step: on `Switch`, everything that the policy executed
    /// on this CPU to leave `prev` and choose `next`; on `Wakeup` and `WakeupNew`, choosing the CPU and enqueueing; on
    /// `Tick`, the tick. 0 where [`crate::Trace::counts_insns`] is false: there it means "not measured".
    pub insns: u32,
    /// What happened.
    pub kind: EventKind,
}
