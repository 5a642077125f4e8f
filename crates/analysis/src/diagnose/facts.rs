//! The facts that rules judge by: sums and extremes, no samples.

use super::PAIRS_MAX;
use std::collections::BTreeMap;

/// Times that tasks of one group cut the slices of tasks of another short by waking up.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cuts {
    pub(super) count: u64,
    /// The sum of the cut slices, ns.
    pub(super) slices_ns: u64,
    /// From the cut until the CPU went to a task that had not just woken up, ns.
    pub(super) taken_ns: u64,
    /// Afterwards the CPU went back to the task that had been cut.
    pub(super) resumed: u64,
    /// Afterwards the CPU went to another task.
    pub(super) passed_on: u64,
}

/// Slices that ended while the task was runnable.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SliceSum {
    pub(super) count: u64,
    pub(super) sum_ns: u64,
}

impl SliceSum {
    pub(super) fn add(&mut self, ns: u64) {
        self.count += 1;
        self.sum_ns = self.sum_ns.saturating_add(ns);
    }

    pub(super) fn mean_ns(self) -> Option<u64> {
        self.sum_ns.checked_div(self.count)
    }
}

/// A part of the trace in which no tunable changed.
#[derive(Clone, Debug, Default)]
pub(super) struct Phase {
    pub(super) from_ns: u64,
    /// The change that began it; empty for the first.
    pub(super) change: String,
    /// By group: slices that ended involuntarily.
    pub(super) slices: Vec<SliceSum>,
}

/// One wait.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wait {
    pub(super) from_ns: u64,
    pub(super) wait_ns: u64,
    /// The task's share meanwhile of the CPUs in whose queues it stood, ns.
    pub(super) due_ns: u64,
    pub(super) cpu: u32,
}

/// Of one task.
#[derive(Clone, Debug, Default)]
pub(super) struct TaskFacts {
    /// The worst of its starving waits, by what was due.
    pub(super) starved_worst: Wait,
    pub(super) starved_count: u64,
    /// Due in all of them, ns.
    pub(super) starved_due_ns: u64,
    /// Slices in which others waited for too long behind it.
    pub(super) held_count: u64,
    /// The time in them in which others waited, ns.
    pub(super) held_ns: u64,
    pub(super) held_max_ns: u64,
    pub(super) held_cpu: u32,
    pub(super) switch_ins: u64,
    /// Returns to a CPU soon after it had left it for another.
    pub(super) bounces: u64,
    /// Run time soon after a change of CPU, ns.
    pub(super) cold_ns: u64,
    /// The longest time on one CPU, ns, and the CPU.
    pub(super) residence_ns: u64,
    pub(super) residence_cpu: u32,
}

/// Everything.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    /// By task, the idle task included.
    pub(super) tasks: Vec<TaskFacts>,
    /// By group: slices that ended involuntarily without a wake-up's cut.
    pub(super) whole: Vec<SliceSum>,
    /// By group: wake-ups after which the task came on a CPU.
    pub(super) wakeups: Vec<u64>,
    /// By group that cuts and group that is cut.
    pub(super) cuts: BTreeMap<(usize, usize), Cuts>,
    /// By group that waits and group that runs: slow wake-ups.
    pub(super) slow: BTreeMap<(usize, usize), u64>,
    /// By group: what was due to its tasks in the waits of slow wake-ups, ns.
    pub(super) slow_due_ns: Vec<u64>,
    /// Events that did not fit into the two maps.
    pub(super) dropped_pairs: u64,
    pub(super) phases: Vec<Phase>,
    /// By CPU: the mean number of tasks in its queue, the running one included, in thousandths.
    pub(super) load_milli: Vec<u64>,
    /// There are events of wake-ups.
    pub(super) has_wakeups: bool,
    /// The trace has waits for locks.
    pub(super) has_lock_waits: bool,
}

impl Facts {
    /// The entry of a pair, unless there are too many.
    pub(super) fn pair<'m, T: Default>(
        map: &'m mut BTreeMap<(usize, usize), T>,
        key: (usize, usize),
        dropped: &mut u64,
    ) -> Option<&'m mut T> {
        if map.len() >= PAIRS_MAX && !map.contains_key(&key) {
            *dropped += 1;
            return None;
        }
        Some(map.entry(key).or_default())
    }
}
