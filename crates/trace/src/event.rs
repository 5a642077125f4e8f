//! One event of the stream.

use crate::escape::escape;
use crate::packed::{Word, Words};
use crate::{Call, CgroupId, RtPrio, TaskId, TaskState, Trace};

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

// The one table of events. Packing, ranges, the names in tables, marks in texts and the columns of Parquet follow from
// a row; the order is that of the numbers in a trace's digest.
events! {
    /// The CPU stopped running `prev` and started to run `next` ([`TaskId::IDLE`] is the idle task of every CPU).
    Switch "switch" { prev: Task(T) @ a, prev_state: State(TaskState) @ op, next: Task(T) @ b }
    /// `waker`, running on the event's CPU, wakes `task` (`sched_waking`). `target_cpu` is the CPU on which
    /// `task` ran last, not the one it will run on. `waker` is [`TaskId::IDLE`] when the wake-up happened in an
    /// interrupt, on an idle CPU or on a busy one.
    Waking "waking" { task: Task(T) @ a, waker: Task(T) @ b, target_cpu: Cpu(u32) @ c }
    /// `task` is runnable, queued for `target_cpu` (`sched_wakeup`).
    Wakeup "wakeup" { task: Task(T) @ a, target_cpu: Cpu(u32) @ b }
    /// A new task is runnable for the first time (`sched_wakeup_new`).
    WakeupNew "wakeup_new" tracepoint "sched_wakeup_new" { task: Task(T) @ a, target_cpu: Cpu(u32) @ b }
    /// `task` was moved between the queues of two CPUs (`sched_migrate_task`).
    Migrate "migrate" tracepoint "sched_migrate_task" {
        task: Task(T) @ a,
        from_cpu: Cpu(u32) @ b = "orig_cpu",
        to_cpu: Cpu(u32) @ c = "dest_cpu",
    }
    /// `parent` created `child` (`sched_process_fork`).
    Fork "fork" tracepoint "sched_process_fork" { parent: Task(T) @ a, child: Task(T) @ b }
    /// `task` exited (`sched_process_exit`).
    Exit "exit" tracepoint "sched_process_exit" { task: Task(T) @ a }
    /// The nice value of `task` became `nice` (−20…19), or it came back to the normal class with it.
    Nice "nice" mark "nice" { task: Task(T) @ a, nice: Nice(i8) @ op }
    /// The timer tick of the event's CPU arrived while `task` was running.
    Tick "tick" { task: Task(T) @ a }
    /// A callback of the scheduler ran for `task` (or [`TaskId::IDLE`]). Present only when the recorder was asked for
    /// it.
    Callback "callback" mark "callback" { kind: Callback(CallbackKind) @ op, task: Task(T) @ a }
    /// A value that the workload reports: a worker's result, the end of a measurement.
    Mark "mark" { task: Task(T) @ a, label: Label(Label) @ op, value: Number(u64) @ bc }
    /// A tunable of the scheduler changed; the label reads `name=value`.
    Param "param" mark "param" { label: Label(Label) @ a }
    /// The recorder lost `count` events of the event's CPU between here and its next event.
    Lost "lost" { count: Number(u64) @ bc }
    /// The scheduler's program printed a line (`bpf_printk`, `bpf_trace_printk`) on the event's CPU.
    Print "print" { label: Label(Label) @ a }
    /// `task` moved from one cgroup to another (`cgroup_attach_task`).
    CgroupMove "cgroup_move" { task: Task(T) @ a, from: Cgroup(CgroupId) @ b, to: Cgroup(CgroupId) @ c }
    /// `cpu.weight` of `cgroup` became `weight` (1…10,000).
    CgroupWeight "cgroup_weight" mark "cgroup_weight" { cgroup: Cgroup(CgroupId) @ a, weight: Weight(u32) @ b }
    /// `task` begins to wait for a contended lock (`lock:contention_begin`). `holder` owns it;
    /// [`TaskId::IDLE`] when the owner is unknown, or there are several. A second one without an end between them means
    /// that the task still waits and the owner has changed.
    ContentionBegin "contention_begin" mark "contention_begin" {
        task: Task(T) @ a,
        holder: Task(T) @ c,
        flags: Flags(LockFlags) @ op,
        lock: Label(Label) @ b,
    }
    /// `task` acquired the lock that it waited for (`lock:contention_end`).
    ContentionEnd "contention_end" mark "contention_end" { task: Task(T) @ a, lock: Label(Label) @ b }
    /// The kernel stack of `task` at its switch or wait just before, on the event's CPU; the label reads
    /// `outer;…;inner`, a function each, the caller before the called (`stacktrace` triggers of ftrace). Android's
    /// `sched_blocked_reason` names only the function in which `task` waits uninterruptibly, right before its switch
    /// or, in older kernels, when another task wakes it.
    Stack "stack" { task: Task(T) @ a, label: Label(Label) @ b }
    /// `task` came into a class above the normal one, or has another priority there.
    RtPrio "rt_prio" mark "prio" { task: Task(T) @ a, prio: Prio(RtPrio) @ op }
    /// `task` enters a call in which it may wait, or may end another task's wait. The object is a descriptor or an
    /// address of the task's process, as [`Call`] says; of the simulated machine, its number with the kind in the upper
    /// half. Present only when the recorder was asked for it.
    CallEnter "call_enter" mark "call_enter" {
        task: Task(T) @ a,
        call: Call(Call) @ op,
        object: Number(u64) @ bc,
    }
    /// `task` leaves the call that it entered last (calls do not nest), with the call's result: bytes, a count, 0, or a
    /// negative error number. Without an entry before it, the call began before the recording or is of no [`Call`].
    CallExit "call_exit" mark "call_exit" { task: Task(T) @ a, result: Signed(i64) @ bc }
    /// The kernel charged `task` the time that it ran since the last charge (`sched_stat_runtime`).
    Charge "charge" tracepoint "sched_stat_runtime" {
        task: Task(T) @ a,
        runtime_ns: Number(u64) @ bc = "runtime",
    }
    /// `task` has slices of its own length now, ns; 0: those of the scheduler (`sched_setattr`).
    Slice "slice" mark "slice" { task: Task(T) @ a, slice_ns: Number(u64) @ bc }
    /// `task` may run on other CPUs than before; the label is their list (`0-3,8`).
    Affinity "affinity" mark "affinity" { task: Task(T) @ a, cpus: Label(Label) @ b }
    /// The wake-up of `task` that follows on the event's CPU is synchronous: the waker is about to sleep (`WF_SYNC`).
    /// Present where callbacks are, whose scheduler is told.
    WakeSync "wake_sync" mark "wake_sync" { task: Task(T) @ a }
}

/// Makes the roles of fields and their values.
macro_rules! roles {
    ($($role:ident($type:ty),)*) => {
        /// The role of a field of an event.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Role {
            $($role,)*
        }

        /// The value of a field of an event, by its [`Role`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum FieldValue<T = TaskId> {
            $($role($type),)*
        }

        impl<T> FieldValue<T> {
            /// Its role.
            pub(crate) fn role(&self) -> Role {
                match self {
                    $(Self::$role(_) => Role::$role,)*
                }
            }
        }
    };
}

roles! {
    Task(T),
    Cpu(u32),
    State(TaskState),
    Label(Label),
    Cgroup(CgroupId),
    Nice(i8),
    Prio(RtPrio),
    Call(Call),
    Callback(CallbackKind),
    Flags(LockFlags),
    Weight(u32),
    Number(u64),
    Signed(i64),
}

/// The key of a field in a mark (`fairground:nice pid=77 nice=-5`); `None` for one that stands alone.
pub(crate) fn mark_key(field: &'static str, role: Role) -> Option<&'static str> {
    match (field, role) {
        (_, Role::Callback) | ("label", _) => None,
        ("task", _) => Some("pid"),
        (field, _) => Some(field),
    }
}

impl EventKind {
    /// Whether all tasks, CPUs and cgroups that the event names have numbers below these.
    #[inline(always)]
    pub fn is_within(&self, tasks: usize, cpus: u32, cgroups: usize) -> bool {
        let mut is_within = true;
        self.each_field(|_, _, value| {
            is_within &= match value {
                FieldValue::Task(task) => task.index() < tasks,
                FieldValue::Cpu(cpu) => cpu < cpus,
                FieldValue::Cgroup(cgroup) => cgroup.index() < cgroups,
                _ => true,
            };
        });
        is_within
    }
}

/// Whether an event is about the task in a field, rather than one that has to do with it.
pub(crate) fn is_subject(field: &str) -> bool {
    matches!(field, "task" | "prev" | "parent")
}

impl EventKind {
    /// The task that the event is about, if it names one: the one that acts, or that runs first.
    pub fn subject(&self) -> Option<TaskId> {
        let mut subject = None;
        self.each_field(|field, _, value| {
            if let FieldValue::Task(task) = value
                && is_subject(field)
            {
                subject = Some(task);
            }
        });
        subject
    }

    /// The event in words without its [subject](EventKind::subject): `nice -5`.
    pub fn caption(&self, trace: &Trace) -> String {
        let path = |cgroup: CgroupId| {
            trace.cgroups().get(cgroup.index()).map_or("/", |cgroup| cgroup.path.as_str())
        };
        match *self {
            Self::Nice { nice, .. } => format!("nice {nice}"),
            Self::RtPrio { prio, .. } => format!("priority {}", prio.prio()),
            Self::Slice { slice_ns, .. } => format!("slice {slice_ns} ns"),
            Self::Affinity { cpus, .. } => format!("may run on {}", trace.label(cpus)),
            Self::CallEnter { call, object, .. } => format!("{} {object:#x}", call.name()),
            Self::CallExit { result, .. } => format!("returns {result}"),
            Self::CgroupMove { to, .. } => format!("to cgroup {}", path(to)),
            Self::CgroupWeight { cgroup, weight } => {
                format!("{} cpu.weight={weight}", path(cgroup))
            }
            Self::Callback { kind, .. } => kind.name().to_owned(),
            Self::Param { label } | Self::Print { label } | Self::Stack { label, .. } => {
                trace.label(label).to_owned()
            }
            _ => {
                let mut text = self.name().to_owned();
                self.each_field(|field, _, value| {
                    let pid =
                        |task: TaskId| trace.tasks().get(task.index()).map_or(0, |info| info.pid);
                    if field != "task" {
                        text += &format!(" {field}={}", value.text(trace, pid));
                    }
                });
                text
            }
        }
    }
}

impl FieldValue {
    /// As marks and captions have it; `pid` gives that of a task.
    pub(crate) fn text(self, trace: &Trace, pid: impl Fn(TaskId) -> u32) -> String {
        match self {
            Self::Task(task) => pid(task).to_string(),
            Self::Cpu(number) | Self::Weight(number) => number.to_string(),
            Self::State(state) => state.text().to_owned(),
            Self::Label(label) => escape(trace.label(label)).into_owned(),
            Self::Cgroup(cgroup) => cgroup.0.to_string(),
            Self::Nice(nice) => nice.to_string(),
            Self::Prio(prio) => prio.prio().to_string(),
            Self::Call(call) => call.name().to_owned(),
            Self::Callback(kind) => kind.name().to_owned(),
            Self::Flags(flags) => flags.text(),
            Self::Number(number) => number.to_string(),
            Self::Signed(number) => number.to_string(),
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
    /// The kind of the event, with its fields.
    pub kind: EventKind,
}
