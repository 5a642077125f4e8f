//! The error of a recording's times, and the differences that it explains.
//!
//! A simulated recording with callbacks shows when each decision was made, and one with the kernel's charges shows the
//! clock by which it was made. In any other, a CPU has decided before the stamp of its switch, by up to the recording's
//! reaction time. From that error follow three bounds:
//!
//! * An event within the error of a decision may lie on either side of it.
//! * Each switch of a CPU charges a task for up to the error too much or too little, so the virtual run times of the
//!   tasks in its queue are off by the sum of the errors since the recording began. Wake-ups place tasks by the times
//!   of others, so the bound is one of the queue; a task that comes from another queue brings the bound of that one.
//! * A choice by another rule (a threshold, a load, a flag) may differ for the least error.
//!
//! So a pick of another task counts as a difference only if the scheduler orders tasks by numbers that are visible, and
//! if its candidate is ahead of the recorded one in each of them by more than the error. Two orders are recognised by
//! observation: a virtual run time, which grows by a task's run time over its weight while it runs, together with a
//! deadline, if the scheduler keeps one; and, where it keeps no number, the time for which tasks wait. Two more bounds
//! are observed: a deadline leaps, so it is off by the widest leap, too; and the scheduler's own picks show how strictly
//! it follows the order: twice the widest gap by which it passed over a task is added.

use fairground_analysis::{NICE_0_WEIGHT, weight_of_nice};
use fairground_trace::{TaskId, Trace};

use super::tally::Difference;

/// A number is a virtual run time if it grows by the run time over the weight, to one part in so many, in so many of
/// the intervals on a CPU for each in which it does not.
const CONFIRMED_MIN: u64 = 8;

/// The numbers by which a scheduler may order a task, in virtual ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct OrderKeys {
    /// Its virtual run time, or its key of a dispatch queue.
    pub(super) run_time_ns: i64,
    /// Its deadline, if the scheduler keeps one.
    pub(super) deadline_ns: Option<i64>,
}

/// By how much one waiting task is ahead of another one, ns, of keys virtual ns. Negative: behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Gap {
    pub(super) wait_ns: i64,
    pub(super) run_time_ns: i64,
    /// `None`: there are no deadlines.
    pub(super) deadline_ns: Option<i64>,
}

/// A difference that counts if the whole recording confirms the order of its candidates.
#[derive(Debug)]
struct OpenDifference {
    difference: Difference,
    /// By how much more than the error the scheduler's candidate is ahead; `None`: it counts in any case.
    gap: Option<Gap>,
}

/// A task that runs.
#[derive(Clone, Copy, Debug)]
struct OnCpu {
    since_ns: u64,
    keys: OrderKeys,
}

/// The error while a recording is followed.
#[derive(Debug)]
pub(super) struct Resolution {
    /// A decision was made at most so long before its stamp, ns; 0: the recording shows when.
    pub(super) error_ns: u64,
    /// By CPU: how far the virtual run times of its queue may be off, ns of run time.
    queues_ns: Vec<u64>,
    /// By task: since when it waits, ns.
    since_ns: Vec<u64>,
    /// By task, while it runs.
    on_cpu: Vec<Option<OnCpu>>,
    /// By task.
    weights: Vec<u64>,
    /// Whether all tasks are known to be in one control group: numbers of different groups are not comparable.
    is_flat: bool,
    /// Whether the scheduler keeps numbers by which it may order tasks.
    has_keys: bool,
    /// Intervals on a CPU in which the run time grew as one, and others.
    confirmed: u64,
    refuted: u64,
    /// The widest leap of a deadline, virtual ns.
    leap_ns: i64,
    /// The widest gap by which the scheduler passed over a waiting task.
    passed_over: Gap,
    open: Vec<OpenDifference>,
}

impl Resolution {
    pub(super) fn new(trace: &Trace, error_ns: u64) -> Resolution {
        let tasks = trace.tasks();
        let weight = |nice: Option<i8>| u64::from(weight_of_nice(nice.unwrap_or(0)));
        Resolution {
            error_ns,
            queues_ns: vec![0; trace.cpus as usize],
            since_ns: vec![trace.start_ns; tasks.len()],
            on_cpu: vec![None; tasks.len()],
            weights: tasks.iter().map(|task| weight(task.nice)).collect(),
            is_flat: match trace.cgroups().len() {
                // A simulated recording with its origin has its groups, too.
                0 => trace.origin.is_simulated(),
                groups => groups == 1,
            },
            has_keys: false,
            confirmed: 0,
            refuted: 0,
            leap_ns: 0,
            passed_over: Gap::default(),
            open: Vec::new(),
        }
    }

    /// Whether the recording shows when each decision was made.
    pub(super) fn is_exact(&self) -> bool {
        self.error_ns == 0
    }

    /// A task waits from now on.
    pub(super) fn waits(&mut self, task: TaskId, now_ns: u64) {
        self.since_ns[task.index()] = now_ns;
    }

    /// Whether a task has waited for longer than the error.
    pub(super) fn waits_surely(&self, task: TaskId, now_ns: u64) -> bool {
        self.since_ns[task.index()] + self.error_ns < now_ns
    }

    /// A task goes from one CPU's queue to that of another one.
    pub(super) fn moves(&mut self, from: u32, to: u32) {
        let ns = self.queues_ns[from as usize].max(self.queues_ns[to as usize]);
        self.queues_ns[to as usize] = ns + self.error_ns;
    }

    /// A task comes onto a CPU, with its numbers.
    pub(super) fn comes(&mut self, cpu: u32, task: TaskId, keys: Option<OrderKeys>, now_ns: u64) {
        self.queues_ns[cpu as usize] += self.error_ns;
        self.on_cpu[task.index()] = keys.map(|keys| OnCpu { since_ns: now_ns, keys });
    }

    /// A task leaves its CPU, runnable.
    pub(super) fn leaves(&mut self, task: TaskId, keys: Option<OrderKeys>, now_ns: u64) {
        self.waits(task, now_ns);
        let Some((came, keys)) = self.on_cpu[task.index()].take().zip(keys) else { return };
        self.sees(Some(keys));
        let grows_ns = self.virtual_ns(task, now_ns - came.since_ns);
        let off_ns = |now: i64, before: i64| now.wrapping_sub(before).abs_diff(grows_ns);
        let off_by = off_ns(keys.run_time_ns, came.keys.run_time_ns);
        let part = CONFIRMED_MIN as i64;
        if grows_ns > self.virtual_ns(task, self.error_ns).saturating_mul(part) {
            match off_by <= (grows_ns / part) as u64 {
                true => self.confirmed += 1,
                false => self.refuted += 1,
            }
        }
        if let Some((now, before)) = keys.deadline_ns.zip(came.keys.deadline_ns) {
            let leap_ns = i64::try_from(off_ns(now, before)).unwrap_or(i64::MAX);
            self.leap_ns = self.leap_ns.max(leap_ns);
        }
    }

    /// The virtual time of a task that runs for a time, ns.
    fn virtual_ns(&self, task: TaskId, ns: u64) -> i64 {
        let ns = u128::from(ns) * u128::from(NICE_0_WEIGHT);
        i64::try_from(ns / u128::from(self.weights[task.index()])).unwrap_or(i64::MAX)
    }

    /// By how much the first of two waiting tasks is ahead of the other one.
    pub(super) fn gap(
        &self,
        one: (TaskId, Option<OrderKeys>),
        other: (TaskId, Option<OrderKeys>),
    ) -> Gap {
        let since_ns = |task: TaskId| self.since_ns[task.index()] as i64;
        let [one_keys, other_keys] = [one.1, other.1].map(Option::unwrap_or_default);
        let deadlines = one_keys.deadline_ns.zip(other_keys.deadline_ns);
        Gap {
            wait_ns: since_ns(other.0) - since_ns(one.0),
            run_time_ns: other_keys.run_time_ns.wrapping_sub(one_keys.run_time_ns),
            deadline_ns: deadlines.map(|(one, other)| other.wrapping_sub(one)),
        }
    }

    /// The scheduler picks a task though another one is ahead of it by a gap.
    pub(super) fn passes_over(&mut self, gap: Gap) {
        let widest = &mut self.passed_over;
        widest.wait_ns = widest.wait_ns.max(gap.wait_ns);
        widest.run_time_ns = widest.run_time_ns.max(gap.run_time_ns);
        widest.deadline_ns = widest.deadline_ns.max(gap.deadline_ns);
    }

    /// The numbers of a waiting task.
    pub(super) fn sees(&mut self, keys: Option<OrderKeys>) {
        self.has_keys |= keys.is_some_and(|keys| keys != OrderKeys::default());
    }

    /// A difference that the error does not explain.
    pub(super) fn counts(&mut self, difference: Difference) {
        self.open.push(OpenDifference { difference, gap: None });
    }

    /// A pick of a task that is ahead of the recorded one by a gap. False: the error explains it.
    pub(super) fn may_count(
        &mut self,
        difference: Difference,
        ahead: Gap,
        candidates: [TaskId; 2],
    ) -> bool {
        let queue_ns = self.queues_ns[difference.cpu as usize] + self.error_ns;
        let [one_ns, other_ns] = candidates.map(|task| self.virtual_ns(task, queue_ns));
        let off_ns = one_ns.saturating_add(other_ns);
        let gap = Gap {
            wait_ns: ahead.wait_ns - 2 * self.error_ns as i64,
            run_time_ns: ahead.run_time_ns.saturating_sub(off_ns),
            deadline_ns: ahead.deadline_ns.map(|ahead_ns| ahead_ns.saturating_sub(off_ns)),
        };
        let may_count = self.is_ordered(gap);
        if may_count {
            self.open.push(OpenDifference { difference, gap: Some(gap) });
        }
        may_count
    }

    /// Whether the scheduler is known to take the task first that is ahead by a gap beyond the error.
    fn is_ordered(&self, gap: Gap) -> bool {
        let Gap { wait_ns, run_time_ns, deadline_ns } = self.passed_over;
        let is_beyond = |ahead_ns: i64, slack_ns: i64| ahead_ns > slack_ns.max(0).saturating_mul(2);
        if !self.has_keys {
            return is_beyond(gap.wait_ns, wait_ns);
        }
        let deadline_ns = deadline_ns.unwrap_or_default().max(0).saturating_add(self.leap_ns);
        self.is_flat
            && self.confirmed > CONFIRMED_MIN * self.refuted
            && is_beyond(gap.run_time_ns, run_time_ns)
            && gap.deadline_ns.is_none_or(|ahead_ns| is_beyond(ahead_ns, deadline_ns))
    }

    /// The differences in their order, each with whether it counts after all.
    pub(super) fn finish(&mut self) -> Vec<(Difference, bool)> {
        let open = std::mem::take(&mut self.open);
        let judged = open.into_iter().map(|open| {
            let counts = open.gap.is_none_or(|gap| self.is_ordered(gap));
            (open.difference, counts)
        });
        judged.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tally::{Choice, Decision, Kind};
    use super::*;
    use fairground_trace::{CgroupInfo, TaskInfo};

    const ONE: TaskId = TaskId(1);
    const OTHER: TaskId = TaskId(2);
    const ERROR_NS: u64 = 1_000;
    const MS: i64 = 1_000_000;

    fn resolution() -> Resolution {
        let mut trace = Trace::new(1);
        trace.add_cgroup(CgroupInfo { path: "/".to_owned(), parent: None, weight: None });
        trace.add_task(TaskInfo::new(10, "one"));
        trace.add_task(TaskInfo::new(11, "other"));
        Resolution::new(&trace, ERROR_NS)
    }

    fn keys(run_time_ns: i64, deadline_ns: Option<i64>) -> Option<OrderKeys> {
        Some(OrderKeys { run_time_ns, deadline_ns })
    }

    fn gap(wait_ns: i64, run_time_ns: i64, deadline_ns: Option<i64>) -> Gap {
        Gap { wait_ns, run_time_ns, deadline_ns }
    }

    /// Whether it counts that `ONE` is picked, which is ahead by so much, and `OTHER` recorded.
    fn counts(of: &mut Resolution, ahead: Gap) -> bool {
        let difference = Difference {
            time_ns: 0,
            cpu: 0,
            decision: Decision::Pick,
            kind: Kind::OtherTask,
            task: ONE,
            recorded: Choice::Task(OTHER),
            scheduler: Choice::Task(ONE),
            candidates: Vec::new(),
        };
        let may = of.may_count(difference, ahead, [OTHER, ONE]);
        may && of.finish().into_iter().all(|(_, counts)| counts)
    }

    #[test]
    fn where_no_number_is_kept_the_longest_wait_decides() {
        let mut of = resolution();
        assert!(!counts(&mut of, gap(2_000, 0, None)), "within the error of both");
        assert!(counts(&mut of, gap(2_001, 0, None)));
        of.passes_over(gap(500, 0, None));
        assert!(!counts(&mut of, gap(3_000, 0, None)), "it passes over tasks by as much itself");
        assert!(counts(&mut of, gap(3_001, 0, None)));
    }

    #[test]
    fn a_number_decides_if_it_grows_by_the_run_time() {
        let mut of = resolution();
        of.comes(0, ONE, keys(5 * MS, None), 0);
        of.leaves(ONE, keys(8 * MS, None), 3_000_000);
        // One switch and this decision: 2 µs for each of the two.
        assert!(!counts(&mut of, gap(9 * MS, 4_000, None)));
        assert!(counts(&mut of, gap(-9 * MS, 4_001, None)));
        // The error grows with each switch.
        of.comes(0, ONE, keys(8 * MS, None), 3_000_000);
        assert!(!counts(&mut of, gap(0, 6_000, None)));
        assert!(counts(&mut of, gap(0, 6_001, None)));
        // An interval of the size of the error says nothing; a leap refutes.
        of.leaves(ONE, keys(8 * MS, None), 3_004_000);
        assert!(counts(&mut of, gap(0, 6_001, None)));
        of.comes(0, ONE, keys(8 * MS, None), 4_000_000);
        of.leaves(ONE, keys(1, None), 7_000_000);
        assert!(!counts(&mut of, gap(0, 1_000 * MS, None)));
    }

    #[test]
    fn a_deadline_decides_beyond_its_leaps() {
        let mut of = resolution();
        of.comes(0, ONE, keys(5 * MS, Some(8 * MS)), 0);
        // The next deadline, three later.
        of.leaves(ONE, keys(6 * MS, Some(11 * MS)), 1_000_000);
        assert!(!counts(&mut of, gap(0, 9 * MS, Some(4 * MS + 4_000))));
        assert!(counts(&mut of, gap(0, 9 * MS, Some(4 * MS + 4_001))));
        assert!(!counts(&mut of, gap(0, -MS, Some(9 * MS))), "behind by its run time");
    }
}
