//! The checked model: fully defaulted, every name resolved to an index.

use crate::cgroups::Cgroup;
use crate::operations::table::operations;
use crate::policy::SchedPolicy;
use crate::units::{CpuList, Duration};

/// An index into [`Workload::tasks`].
pub type TaskSpecId = usize;
/// An index into [`Workload::pipes`].
pub type PipeId = usize;
/// An index into [`Workload::queues`].
pub type QueueId = usize;
/// An index into [`Workload::locks`].
pub type LockId = usize;
/// An index into [`Workload::conditions`].
pub type ConditionId = usize;
/// An index into [`Workload::barriers`].
pub type BarrierId = usize;
/// An index into [`Workload::timers`].
pub type TimerId = usize;

/// An index into [`Workload::cgroups`]; 0 is the root.
pub type CgroupId = usize;

/// The receiver of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Every living task of the group.
    All(TaskSpecId),
    /// The `n`-th task of the group, counted from 0; no effect once it has exited.
    One(TaskSpecId, u32),
    /// The task's parent.
    Parent,
}

macro_rules! op {
    (($workload:ident) $(
        $(#[$doc:meta])*
        $variant:ident $(($($key:ident: $type:ty as $operand:ident),+))? { $($column:tt)* }
    )*) => {
        /// One operation of a task.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Op {
            $($(#[$doc])* $variant $(($($type),+))?,)*
            /// Repeat the body: this many times, or forever.
            Loop(Option<u64>, Program),
        }
    };
}
operations!(op);

/// CPU time after which a task in [`Op::Busy`] reads the clock, ns: as rt-app does for its `runtime`.
pub const BUSY_LOOK_NS: u64 = 32_000;

/// Operations in order. A task that reaches the end of its program exits.
pub type Program = Vec<Op>;

/// A group of equal tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskSpec {
    /// The name of the group; its tasks are called `name`, or `name/0`, `name/1` … when there are several.
    pub name: String,
    /// Number of tasks.
    pub count: u32,
    /// Scheduling policy.
    pub policy: SchedPolicy,
    /// Nice value, −20…19. Without effect under a real-time policy.
    pub nice: i8,
    /// The CPUs on which the tasks may run; `None`: any.
    pub cpus: Option<CpuList>,
    /// The cgroup in which they start. `None`: that of the task that forks them, or the root.
    pub cgroup: Option<CgroupId>,
    /// Start time, ns. `None`: when another task forks them.
    pub start_ns: Option<u64>,
    /// Their program.
    pub program: Program,
    /// Their signal handler; afterwards the program continues. Empty: a signal only interrupts a sleep.
    pub on_signal: Program,
}

impl TaskSpec {
    /// Of the normal policy at nice 0, on any CPU, without a handler.
    pub fn new(
        name: impl Into<String>,
        count: u32,
        start_ns: Option<u64>,
        program: Program,
    ) -> Self {
        Self {
            name: name.into(),
            count,
            policy: SchedPolicy::Other,
            nice: 0,
            cpus: None,
            cgroup: None,
            start_ns,
            program,
            on_signal: Program::new(),
        }
    }
}

/// The kind of a [`Pipe`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// A pipe.
    Pipe,
    /// One direction of a pair of connected stream sockets (`AF_UNIX`).
    Socket,
}

/// Default capacity of a pipe, bytes (Linux: 16 pages).
pub const PIPE_CAPACITY_DEFAULT: u64 = 65_536;
/// Default memory for a socket's messages, bytes (Linux: `net.core.wmem_default`).
pub const SOCKET_BUFFER_DEFAULT: u64 = 212_992;

/// A pipe, or one direction of a pair of connected stream sockets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pipe {
    /// Its name.
    pub name: String,
    /// Capacity, bytes (Linux: 65,536). For a socket, the kernel memory that its messages may occupy (`sk_sndbuf`;
    /// Linux: 212,992), which is more than the bytes in them.
    pub capacity: u64,
    /// Its kind.
    pub carrier: Carrier,
}

/// A message queue: a counter of messages. A message is for the task that comes first, be it one that waits or another;
/// each message wakes one that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// Capacity, messages; `None`: unlimited. With 0 it is a rendezvous: a sender waits until a receiver is there.
    pub capacity: Option<u64>,
    /// Messages in it at the start (a semaphore's initial value).
    pub initial: u64,
    /// Its wake-ups are synchronous ones (`WF_SYNC`), as those of pipes: the waker is about to wait itself.
    pub sync: bool,
}

impl Queue {
    /// Without a limit, and empty.
    pub fn unlimited(name: impl Into<String>) -> Self {
        Self { name: name.into(), capacity: None, initial: 0, sync: false }
    }
}

/// The kind of a lock: how tasks wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    /// Waiters sleep, first come first served; one is woken on release, and competes for the lock with tasks that
    /// arrive at that moment. One that loses waits again, behind the others (a futex with the values free, taken,
    /// contended, as of the C libraries' `pthread_mutex_t`).
    Mutex,
    /// Waiters spin, first come first served, and the owner cannot be preempted (`spinlock_t`).
    Spin,
    /// Waiters sleep in the order of their priorities, and the owner inherits the highest of them
    /// (`kernel/locking/rtmutex.c`; a futex with priority inheritance). A task that arrives does not overtake waiters.
    RtMutex,
    /// Held by several readers or by one writer. Waiters sleep, no reader overtakes a waiting writer, and the release
    /// that frees it wakes all waiters, which compete (a futex, as musl's `pthread_rwlock_t`, with writers first).
    RwLock,
    /// `spinlock_t` with `CONFIG_PREEMPT_RT`: as [`LockKind::RtMutex`], inside the kernel, so that acquiring it is no
    /// system call; a task of the normal class that arrives just when it is free acquires it before the waiters.
    RtSpin,
}

impl LockKind {
    /// Every kind with its name in files.
    pub const ALL: [(LockKind, &'static str); 5] = [
        (LockKind::Mutex, "mutex"),
        (LockKind::Spin, "spin"),
        (LockKind::RtMutex, "rt_mutex"),
        (LockKind::RtSpin, "rt_spin"),
        (LockKind::RwLock, "rwlock"),
    ];

    /// Its name in files.
    pub fn word(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or("mutex", |(_, word)| word)
    }

    /// Whether it has priority inheritance.
    pub fn inherits(self) -> bool {
        matches!(self, LockKind::RtMutex | LockKind::RtSpin)
    }

    /// Whether its owner is inside the kernel, where it may not sleep.
    pub fn is_atomic(self) -> bool {
        matches!(self, LockKind::Spin | LockKind::RtSpin)
    }
}

/// A lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: LockKind,
    /// For a lock with priority inheritance: the first waiter spins as long as the owner is running
    /// (`rtmutex_spin_on_owner`; every SMP kernel since the -rt kernels of 2008). For a spin lock: applies when
    /// [`LockModel::Rt`] makes it sleep. Ignored by the others.
    pub adaptive: bool,
    /// For an `rt_spin`, and a spin lock that [`LockModel::Rt`] makes one: a task that arrives when it is free
    /// acquires it before the one that was woken for it (lateral steal, since the -rt kernels of 2008). Ignored by the
    /// others.
    pub steal: bool,
}

impl Lock {
    /// With the defaults of today's kernels.
    pub(crate) fn new(name: impl Into<String>, kind: LockKind) -> Self {
        Self { name: name.into(), kind, adaptive: true, steal: true }
    }
}

/// A condition variable. A notification without a waiter is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Its name.
    pub name: String,
}

/// A barrier, at which tasks wait for each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Barrier {
    /// Its name.
    pub name: String,
    /// Number of tasks that open it, not 0.
    pub count: u32,
}

/// The model of kernel spin locks (`--locks`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockModel {
    /// Spinning, as without `CONFIG_PREEMPT_RT`.
    Spin,
    /// Sleeping, as with it.
    Rt,
    /// Sleeping as in the -rt kernels of 2006 (2.6.19-rt): no task spins for a lock, no task overtakes the one that
    /// was woken for it, and an rwlock has one reader at a time (`rt_down_read` took the rt_mutex).
    Rt2006,
}

impl LockModel {
    /// Every model.
    pub const ALL: [LockModel; 3] = [LockModel::Spin, LockModel::Rt, LockModel::Rt2006];

    /// Its name on the command line.
    pub fn word(self) -> &'static str {
        match self {
            LockModel::Spin => "spin",
            LockModel::Rt => "rt",
            LockModel::Rt2006 => "rt-2006",
        }
    }
}

impl Workload {
    /// The CPUs that a machine must have so that each that the tasks' affinities name exists: one more than the highest
    /// number, 0 where none is named.
    pub fn cpus_named(&self) -> u32 {
        fn end(cpus: &CpuList) -> u32 {
            cpus.0.iter().map(|(_, last)| last.saturating_add(1)).max().unwrap_or(0)
        }
        fn highest(program: &Program) -> u32 {
            let ends = program.iter().map(|op| match op {
                Op::SetAffinity(cpus) => end(cpus),
                Op::Loop(_, body) => highest(body),
                _ => 0,
            });
            ends.max().unwrap_or(0)
        }
        let of_task = |task: &TaskSpec| {
            let start = task.cpus.as_ref().map_or(0, end);
            start.max(highest(&task.program)).max(highest(&task.on_signal))
        };
        self.tasks.iter().map(of_task).max().unwrap_or(0)
    }

    /// Whether any task leaves a mark in the trace.
    pub fn leaves_marks(&self) -> bool {
        fn any(program: &Program) -> bool {
            program.iter().any(|op| match op {
                Op::Mark(_) => true,
                Op::Loop(_, body) => any(body),
                _ => false,
            })
        }
        self.tasks.iter().any(|task| any(&task.program) || any(&task.on_signal))
    }

    /// Whether any task is of a real-time policy, from the start or later.
    pub fn uses_real_time(&self) -> bool {
        fn any(program: &Program) -> bool {
            program.iter().any(|op| match op {
                Op::SetPolicy(policy) => policy.priority().is_some(),
                Op::Loop(_, body) => any(body),
                _ => false,
            })
        }
        let uses = |task: &TaskSpec| {
            task.policy.priority().is_some() || any(&task.program) || any(&task.on_signal)
        };
        self.tasks.iter().any(uses)
    }

    /// Converts the spin locks of the workload to those of a kernel with or without `CONFIG_PREEMPT_RT`.
    pub fn set_lock_model(&mut self, model: LockModel) {
        for lock in &mut self.locks {
            match (model, lock.kind) {
                (LockModel::Rt | LockModel::Rt2006, LockKind::Spin) => lock.kind = LockKind::RtSpin,
                (LockModel::Rt2006, LockKind::RwLock) => lock.kind = LockKind::RtMutex,
                _ => {}
            }
            if model == LockModel::Rt2006 {
                (lock.adaptive, lock.steal) = (false, false);
            }
        }
        let kinds: Vec<LockKind> = self.locks.iter().map(|lock| lock.kind).collect();
        let programs = self.tasks.iter_mut().flat_map(|t| [&mut t.program, &mut t.on_signal]);
        programs.for_each(|program| exclude_readers(program, &kinds));
    }
}

/// Readers of a lock that is no rwlock any more acquire it exclusively.
fn exclude_readers(program: &mut Program, kinds: &[LockKind]) {
    for op in program {
        match *op {
            Op::ReadLock(lock) | Op::WriteLock(lock) if kinds[lock] != LockKind::RwLock => {
                *op = Op::Lock(lock);
            }
            Op::Loop(_, ref mut body) => exclude_readers(body, kinds),
            _ => {}
        }
    }
}

/// A periodic timer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timer {
    /// Its name.
    pub name: String,
    /// The period of waits without a period of their own, ns; not 0.
    pub period_ns: u64,
    /// The mode after an overrun; a wait that begins after its expiry returns at once. True (`relative`): the next
    /// period counts from that moment, so that missed expiries are dropped. False (`absolute`): it counts from the
    /// expiry, so that they are made up for.
    pub relative: bool,
    /// Whether all tasks share one timer, and each wait takes the next expiry. False: each task has its own.
    pub shared: bool,
}

impl Timer {
    /// The default kind: absolute, one per task.
    pub fn new(name: impl Into<String>, period_ns: u64) -> Self {
        Self { name: name.into(), period_ns, relative: false, shared: false }
    }
}

/// A whole workload, checked. The default one is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workload {
    /// Its name.
    pub name: String,
    /// Its purpose.
    pub description: String,
    /// Default duration of a run, ns.
    pub duration_ns: u64,
    /// The lengths of its runs are recorded CPU times, and those of its sleeps recorded times: they contain the
    /// kernel's work for system calls, blocking, fork and exit, and the slack of timers. A simulated machine charges
    /// none of these again.
    pub recorded: bool,
    /// Some of its tasks wait for what no task does, and that is intended: the check refuses such a wait only without
    /// this.
    pub hangs: bool,
    /// The groups of tasks.
    pub tasks: Vec<TaskSpec>,
    /// The pipes.
    pub pipes: Vec<Pipe>,
    /// The message queues.
    pub queues: Vec<Queue>,
    /// The locks.
    pub locks: Vec<Lock>,
    /// The conditions.
    pub conditions: Vec<Condition>,
    /// The barriers.
    pub barriers: Vec<Barrier>,
    /// The timers.
    pub timers: Vec<Timer>,
    /// The control groups, each after its parent, siblings by name. Empty when there are none; otherwise the first is
    /// the root.
    pub cgroups: Vec<Cgroup>,
}

/// A workload of groups that share nothing, without a name, of 10 s.
pub(crate) fn independent(description: String, tasks: Vec<TaskSpec>) -> Workload {
    Workload { description, duration_ns: 10_000_000_000, tasks, ..Workload::default() }
}
