//! The checked model: fully defaulted, every name resolved to an index.

/// A length of time that an operation takes, ns: fixed, or drawn uniformly (inclusive) from the run's seeded generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duration {
    /// Always the same.
    Fixed(u64),
    /// Uniform in `low..=high`.
    Uniform {
        /// Smallest, ns.
        low: u64,
        /// Largest, ns.
        high: u64,
    },
}

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

/// Inclusive ranges of CPU numbers, sorted, not overlapping.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct CpuList(pub Vec<(u32, u32)>);

/// Who is meant by a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Every living task of the group.
    All(TaskSpecId),
    /// The `n`-th task of the group, counted from 0; nobody once it has ended.
    One(TaskSpecId, u32),
    /// The task's parent.
    Parent,
}

/// One operation of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Compute for this long (CPU time at the speed of an undisturbed CPU).
    Run(Duration),
    /// Read so many bytes of the task's own memory, once through. What that takes depends on how much of them the CPU's cache
    /// still holds.
    Touch(u64),
    /// Compute for ever: only a signal or the end of the run interrupts it.
    RunForever,
    /// Compute until so much time has passed since the operation began, whoever had the CPU meanwhile. The task looks at the
    /// clock after each [`BUSY_LOOK_NS`] of its own CPU time.
    Busy(Duration),
    /// Sleep for this long, counted from the operation. The machine adds its timer slack.
    Sleep(Duration),
    /// Ask the machine's block device for something that takes it this long, and wait for it in uninterruptible sleep. It serves
    /// one request after the other.
    Io(Duration),
    /// Wait for the next expiry of a periodic timer, so many ns (not 0) after the previous one, so that being preempted does
    /// not stretch the period. The first period begins with the first wait, or with [`Op::TimerStart`].
    TimerWait(TimerId, u64),
    /// Let the first period of a timer begin here; without effect on a timer that has begun.
    TimerStart(TimerId),
    /// Write bytes into a pipe; waits while the pipe is full, wakes a reader.
    PipeWrite(PipeId, u64),
    /// Read up to that many bytes from a pipe; waits while it is empty, wakes a writer. Returns as soon as there is a byte.
    PipeRead(PipeId, u64),
    /// Put a message into a queue; wakes one receiver. Waits while the queue is full.
    Send(QueueId),
    /// Take that many messages out of a queue, one after the other; waits while it is empty.
    Receive(QueueId, u32),
    /// Send a signal. The receiver runs its handler ([`TaskSpec::on_signal`]) the next time that it runs; a sleeping receiver
    /// is woken.
    Signal(Role),
    /// Start the tasks of a group (as many as its count), as children of this one.
    Fork(TaskSpecId),
    /// Wait until all children have ended.
    WaitChildren,
    /// Give the CPU away once (`sched_yield`).
    Yield,
    /// Set the task's own nice value.
    SetNice(i8),
    /// Ask for slices of this length, ns (`sched_setattr` with `sched_runtime` for a fair policy, Linux 6.12): kept within 0.1 to
    /// 100 ms; 0 asks for the scheduler's own length again. What it means is the scheduler's affair.
    SetSlice(u64),
    /// Set the task's own affinity.
    SetAffinity(CpuList),
    /// Move the task itself into a cgroup.
    SetCgroup(CgroupId),
    /// Set the weight of a cgroup (`cpu.weight`, 1…10,000); the root has none.
    SetCgroupWeight(CgroupId, u32),
    /// Leave a mark in the trace, with the number of times that the task has left this one before as its value.
    Mark(String),
    /// Take a lock; waits while another task has it.
    Lock(LockId),
    /// Take an rwlock together with other readers; waits while a writer has it or waits.
    ReadLock(LockId),
    /// Take an rwlock alone; waits while anybody has it.
    WriteLock(LockId),
    /// Give a lock back that the task has.
    Unlock(LockId),
    /// Give the lock back, wait until the condition is notified, and take the lock again.
    ConditionWait(ConditionId, LockId),
    /// Wake the task that has waited longest for the condition, if any does.
    Notify(ConditionId),
    /// Wake all tasks that wait for the condition.
    NotifyAll(ConditionId),
    /// Wait until as many tasks have come to the barrier as it is for; then all go on.
    Barrier(BarrierId),
    /// Repeat the body: so many times, or for ever.
    Loop(Option<u64>, Program),
    /// End the task.
    Exit,
}

/// CPU time after which a task that executes [`Op::Busy`] looks at the clock, ns: as rt-app does for its `runtime`.
pub const BUSY_LOOK_NS: u64 = 32_000;

/// Operations in order. A task that reaches the end of its program exits.
pub type Program = Vec<Op>;

/// A group of equal tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskSpec {
    /// The name of the group; its tasks are called `name`, or `name/0`, `name/1` … when there are several.
    pub name: String,
    /// How many.
    pub count: u32,
    /// Nice value, −20…19.
    pub nice: i8,
    /// The CPUs on which the tasks may run; `None`: any.
    pub cpus: Option<CpuList>,
    /// The cgroup in which they start. `None`: that of the task that forks them, or the root.
    pub cgroup: Option<CgroupId>,
    /// When they start, ns. `None`: when another task forks them.
    pub start_ns: Option<u64>,
    /// What they do.
    pub program: Program,
    /// What they do on a signal, before they go on. Empty: the signal only interrupts a sleep.
    pub on_signal: Program,
}

/// What carries the bytes of a [`Pipe`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// A pipe.
    Pipe,
    /// One direction of a pair of connected stream sockets (`AF_UNIX`).
    Socket,
}

/// A pipe, or one direction of a pair of connected stream sockets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pipe {
    /// Its name.
    pub name: String,
    /// Bytes that it holds at most (Linux: 65,536). Of a socket, what its messages may occupy of the kernel's memory (`sk_sndbuf`;
    /// Linux: 212,992), which is more than the bytes in them.
    pub capacity: u64,
    /// What it is.
    pub carrier: Carrier,
}

/// A message queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// Messages that it holds at most; `None`: no limit.
    pub capacity: Option<u64>,
    /// Messages that lie in it at the start (a semaphore's first value).
    pub initial: u64,
}

/// What a lock does with those that find it taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    /// They sleep, first come first served; one is woken when the lock is given back, and competes for it with whoever comes at
    /// that moment (`kernel/locking/mutex.c`; a futex).
    Mutex,
    /// They spin, first come first served, and the one that has it cannot be preempted (`spinlock_t`).
    Spin,
    /// They sleep in the order of their priorities, and the one that has it inherits the highest of these
    /// (`kernel/locking/rtmutex.c`; a futex with priority inheritance). Whoever comes does not overtake those that wait.
    RtMutex,
    /// Taken by many readers or by one writer (`kernel/locking/rwsem.c`). They sleep, first come first served: no reader overtakes
    /// a writer that waits, and when it is the readers' turn, all that wait come in together.
    RwLock,
    /// What `spinlock_t` is with `CONFIG_PREEMPT_RT`: as [`LockKind::RtMutex`], inside the kernel, so that taking it is no system
    /// call; and a task of the normal class that comes just when it is free takes it before those that wait.
    RtSpin,
}

impl LockKind {
    /// Every kind with the word for it.
    pub const ALL: [(LockKind, &'static str); 5] = [
        (LockKind::Mutex, "mutex"),
        (LockKind::Spin, "spin"),
        (LockKind::RtMutex, "rt_mutex"),
        (LockKind::RtSpin, "rt_spin"),
        (LockKind::RwLock, "rwlock"),
    ];

    /// The word for it.
    pub fn word(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or("mutex", |(_, word)| word)
    }

    /// Whether it is one with priority inheritance.
    pub fn inherits(self) -> bool {
        matches!(self, LockKind::RtMutex | LockKind::RtSpin)
    }

    /// Whether a task that has it is inside the kernel, where it may not go to sleep.
    pub fn is_atomic(self) -> bool {
        matches!(self, LockKind::Spin | LockKind::RtSpin)
    }
}

/// A lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    /// Its name.
    pub name: String,
    /// What it does with those that wait.
    pub kind: LockKind,
    /// Of a lock with priority inheritance: the first that waits spins as long as the one that has it is running
    /// (`rtmutex_spin_on_owner`; so does every SMP kernel since the -rt kernels of 2008). Of a spin lock: of what
    /// [`LockModel::Rt`] makes of it. Without meaning in the others.
    pub adaptive: bool,
    /// Of an `rt_spin`, and of a spin lock that [`LockModel::Rt`] makes one of: a task that comes when it is free takes it before the
    /// one that was woken for it (the lateral steal, since the -rt kernels of 2008). Without meaning in the others.
    pub steal: bool,
}

/// Something to wait for with a lock. A notification that nobody waits for is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Its name.
    pub name: String,
}

/// A place where tasks wait for each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Barrier {
    /// Its name.
    pub name: String,
    /// How many tasks have to come, not 0.
    pub count: u32,
}

/// What spin locks are (`--locks`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockModel {
    /// Spinning, as without `CONFIG_PREEMPT_RT`.
    Spin,
    /// Sleeping, as with it.
    Rt,
    /// Sleeping as the -rt kernels of 2006 had it (2.6.19-rt): nobody spins for one that is taken, nobody overtakes the one that was woken
    /// for it, and an rwlock has one reader at a time (`rt_down_read` took the rt_mutex).
    Rt2006,
}

impl LockModel {
    /// Every model.
    pub const ALL: [LockModel; 3] = [LockModel::Spin, LockModel::Rt, LockModel::Rt2006];

    /// As it is written.
    pub fn word(self) -> &'static str {
        match self {
            LockModel::Spin => "spin",
            LockModel::Rt => "rt",
            LockModel::Rt2006 => "rt-2006",
        }
    }
}

impl Workload {
    /// Makes the spin locks of the workload what a kernel with or without `CONFIG_PREEMPT_RT` makes of them.
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

/// Readers of what is no rwlock any more take it alone.
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
    /// The period of those waits that do not say another, ns; not 0.
    pub period_ns: u64,
    /// A wait that begins after its expiry does not wait. True: the next period counts from that moment (the mode `relative`),
    /// so that what was missed is forgotten. False: it counts from the expiry (`absolute`), so that it is made up for.
    pub relative: bool,
    /// All tasks that wait for it have one together, and each wait takes the next expiry. False: each task has its own.
    pub shared: bool,
}

impl Timer {
    /// One of the usual kind: absolute, and each task's own.
    pub fn new(name: impl Into<String>, period_ns: u64) -> Self {
        Self { name: name.into(), period_ns, relative: false, shared: false }
    }
}

/// A control group: its tasks and the groups below it share what it gets of the CPU (cgroup v2, `cpu.weight`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cgroup {
    /// Its path from the root, `"web/front"`; the root's is `"/"`.
    pub path: String,
    /// The group above it, which stands before it in the list; the root has none.
    pub parent: Option<CgroupId>,
    /// `cpu.weight`, 1…10,000 (100 is as much as a task at nice 0). Without meaning in the root.
    pub weight: u32,
}

/// A whole workload, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// How long it runs when nobody says otherwise, ns.
    pub duration_ns: u64,
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
    /// The control groups, each behind the one above it, siblings by name. Empty when there are none; else the first is the
    /// root.
    pub cgroups: Vec<Cgroup>,
}

/// A workload of groups that share nothing, without a name, for 10 s.
pub(crate) fn independent(description: String, tasks: Vec<TaskSpec>) -> Workload {
    Workload {
        name: String::new(),
        description,
        duration_ns: 10_000_000_000,
        tasks,
        pipes: Vec::new(),
        queues: Vec::new(),
        locks: Vec::new(),
        conditions: Vec::new(),
        barriers: Vec::new(),
        timers: Vec::new(),
        cgroups: Vec::new(),
    }
}
