//! Where tasks wait and for which others: locks and scheduling points of a trace.
//!
//! Ingo Molnar's mail on PREEMPT_RT of December 2006 counts the call chains that end in `__schedule()`: each is a
//! point where a task gave up its CPU, and under PREEMPT_RT a contended lock is one. [`Contention::of`] makes that
//! histogram ([`Contention::points`]) of a recording with stacks, and beside it what the histogram does not show:
//! how long the tasks waited, and what the one that let them go on was doing meanwhile ([`Contention::sites`]).
//!
//! A wait is
//!
//! * *for a lock*: from `lock:contention_begin` to `lock:contention_end` of a task, asleep or spinning; or
//! * *asleep*: from the switch by which a task left its CPU, not runnable, to the wake-up (`sched_waking`, or
//!   `sched_wakeup` where the trace has no wakings). Only those outside of a wait for a lock. A task that is woken
//!   before it has left its CPU does not sleep.
//!
//! A wait is *ended by* the holder that the event names (simulated locks name it), or else by the task whose
//! wake-up ended it. A wake-up by an interrupt names no task. Waits that the trace cuts off are counted and not
//! measured.
//!
//! Memory: 40 bytes for each change of state of a task (running, runnable, asleep), 8 for each wait, and what the
//! different sites take.

mod collector;
mod history;
mod site;
mod stacks;

use fairground_trace::{LockFlags, TaskState, Trace};

pub use site::{Blocking, HolderTime, Site};
pub use stacks::Chain;

/// Pairs of groups (blocker and waiter) that are kept for each site.
pub const BLOCKERS_MAX: usize = 1024;

/// Functions of a call chain that are shown: as in the mail.
pub const DEPTH: usize = 4;

/// How a task waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitKind {
    /// For a lock; the flags are those of [`LockFlags`].
    Lock(u8),
    /// In interruptible sleep (`S`).
    Sleep,
    /// In uninterruptible sleep (`D`).
    Uninterruptible,
    /// Stopped, parked, or in another state that is no sleep.
    Other,
}

impl WaitKind {
    /// The name, which does not change.
    pub fn name(self) -> String {
        match self {
            WaitKind::Lock(0) => "lock".to_owned(),
            WaitKind::Lock(flags) => format!("lock {}", LockFlags(flags).text().to_lowercase()),
            WaitKind::Sleep => "sleep".to_owned(),
            WaitKind::Uninterruptible => "uninterruptible".to_owned(),
            WaitKind::Other => "other".to_owned(),
        }
    }

    /// Whether it is plain sleep. Much of that is no contention: tasks without work sleep, too.
    pub fn is_sleep(self) -> bool {
        matches!(self, WaitKind::Sleep)
    }

    fn of(state: TaskState) -> Option<Self> {
        match state {
            _ if state.is_runnable() || state.is_dead() => None,
            TaskState::Sleeping | TaskState::Idle => Some(WaitKind::Sleep),
            TaskState::Uninterruptible => Some(WaitKind::Uninterruptible),
            _ => Some(WaitKind::Other),
        }
    }
}

/// A call chain that ended in a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// The called function first, [`DEPTH`] of them or as many as asked for.
    pub chain: Chain,
    /// Switches with it.
    pub count: u64,
}

/// Waits by their whole call chain, for a flame graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folded {
    /// `group;outer;…;inner`.
    pub stack: String,
    /// Waits.
    pub count: u64,
    /// How long in all, ns; 0 when all of them are cut off.
    pub wait_ns: u64,
}

/// The waits of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contention {
    /// Switches away from a task.
    pub switches: u64,
    /// Of these, those with a stack.
    pub with_stack: u64,
    /// Waits for locks.
    pub lock_waits: u64,
    /// The histogram of scheduling points, the rarest first, as in the mail.
    pub points: Vec<Point>,
    /// Where tasks wait, by the time that they wait, the longest first; plain sleep after all others.
    pub sites: Vec<Site>,
    /// Whole stacks of the waits, in the order of their texts.
    pub folded: Vec<Folded>,
    /// Waits of which a site keeps no pair of groups: it has [`BLOCKERS_MAX`] of them.
    pub pairs_not_kept: u64,
}

impl Contention {
    /// Analyses a whole trace. `depth` is the number of functions in a point, at least 1.
    pub fn of(trace: &Trace, depth: usize) -> Self {
        collector::collect(trace, depth.max(1), None)
    }

    /// The same of some tasks: their switches and their waits, whichever tasks held them up. `asked` tells by task
    /// whether it is one of them.
    pub fn of_tasks(trace: &Trace, depth: usize, asked: &[bool]) -> Self {
        collector::collect(trace, depth.max(1), Some(asked))
    }

    /// All the time that tasks waited for locks, asleep or spinning, of waits that the trace has from begin to end, ns.
    pub fn lock_wait_ns(&self) -> u64 {
        let locks = self.sites.iter().filter(|site| matches!(site.kind, WaitKind::Lock(_)));
        locks.map(|site| site.waits.sum_ns()).sum()
    }
}
