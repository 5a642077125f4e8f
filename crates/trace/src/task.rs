//! The tasks of a trace.

use crate::{CgroupId, Policy, RtPrio};

/// A task's index in [`crate::Trace::tasks`]. Unlike a pid it is never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u32);

impl TaskId {
    /// The idle task (pid 0 on every CPU).
    pub const IDLE: TaskId = TaskId(0);

    /// Whether this is the idle task.
    pub fn is_idle(self) -> bool {
        self == Self::IDLE
    }

    /// As an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The attributes of a task, as far as they are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskInfo {
    /// The kernel's pid (a thread's own number).
    pub pid: u32,
    /// The last name seen.
    pub comm: String,
    /// The nice value (−20…19) at its first appearance; `None` when it is unknown or the task is not of
    /// the normal class. Later changes are [`crate::EventKind::Nice`] events.
    pub nice: Option<i8>,
    /// The priority at its first appearance in a class above the normal one; `None` when it is unknown or the task is
    /// of the normal class. Later changes are [`crate::EventKind::RtPrio`] events.
    pub rt_prio: Option<RtPrio>,
    /// The policy at its first appearance; `None` when it is unknown: events do not say it.
    pub policy: Option<Policy>,
    /// The length of its own slice at its first appearance, ns; `None` when it is unknown, or the scheduler's.
    pub slice_ns: Option<u64>,
    /// How far its virtual runtime is ahead of `min_vruntime` of its queue, on its [last CPU](TaskInfo::last_cpu), when
    /// the recording begins, ns; negative: behind it. `None` when it is unknown.
    pub vruntime_ahead_ns: Option<i64>,
    /// The CPU on which it ran last when the recording begins; `None` when it is unknown.
    pub last_cpu: Option<u32>,
    /// The CPUs on which it may run, as sorted inclusive ranges; `None` means any, or unknown.
    pub allowed_cpus: Option<Vec<(u32, u32)>>,
    /// The cgroup at its first appearance; `None` when it is unknown, or there are no cgroups. Later changes are
    /// [`crate::EventKind::CgroupMove`] events.
    pub cgroup: Option<CgroupId>,
}

impl TaskInfo {
    /// A task of the normal class that may run anywhere.
    pub fn new(pid: u32, comm: &str) -> Self {
        Self {
            pid,
            comm: comm.to_owned(),
            nice: None,
            rt_prio: None,
            policy: None,
            slice_ns: None,
            vruntime_ahead_ns: None,
            last_cpu: None,
            allowed_cpus: None,
            cgroup: None,
        }
    }
}
