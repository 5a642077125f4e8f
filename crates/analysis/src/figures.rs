//! The figures of a task, or of a group of tasks.

use crate::Samples;
use crate::metric::value::{
    Metric, MetricValue, Unit, compared, count, float, int, known, metric, usual,
};

/// The figures of one task, or of a group of tasks together, in the window. Times are ns.
///
/// For a task, `run + wait + sleep + absent + unknown = window`; for a group the same with the window times the
/// number of tasks. Durations in [`Samples`] belong to the window in which they end, with their whole length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// The length of the window, ns.
    pub window_ns: u64,
    /// The number of tasks: 1 for a task.
    pub tasks: u64,
    /// The CPUs of the machine.
    pub cpus: u32,
    /// The recording has no `sched_switch` at all: what follows from switches is 0 and was not measured.
    pub lacks_switches: bool,
    /// On a CPU: from switch-in to switch-out.
    pub run_ns: u64,
    /// Runnable and not running: from waking (or wakeup where there is no waking, or a switch-out in state R) to
    /// switch-in.
    pub wait_ns: u64,
    /// The part of `wait_ns` between waking and wakeup: the task was asked to wake and stood in no queue yet.
    pub waking_ns: u64,
    /// The part of `wait_ns` that began with a switch-out in state R.
    pub preempted_wait_ns: u64,
    /// Off the CPU and not runnable: from a switch-out in another state than R to waking.
    pub sleep_ns: u64,
    /// Not alive: before its creation and after its end.
    pub absent_ns: u64,
    /// Not known from the trace.
    pub unknown_ns: u64,
    /// Service in the fluid schedule of the whole machine, ns.
    pub fluid_ns: u64,
    /// Service in the fluid schedules of the CPUs on which the task was queued, ns.
    pub fluid_on_cpu_ns: u64,
    /// The most that the task was behind the fluid schedule of the machine since the window's begin, ns; for a
    /// group, of its worst task.
    pub lag_max_ns: u64,
    /// The most that the task was ahead of the fluid schedule, ns; for a group, of its best task.
    pub lead_max_ns: u64,
    /// Times that the task was given a CPU.
    pub switch_ins: u64,
    /// Switches away in another state than R: the task blocked or ended.
    pub voluntary_switches: u64,
    /// Switches away in state R: the task was preempted or yielded (the kernel's `nivcsw`).
    pub involuntary_switches: u64,
    /// Moves between the queues of two CPUs (`sched_migrate_task`). `None`: the trace has switch-ins on changing
    /// CPUs and no such event.
    pub migrations: Option<u64>,
    /// Switch-ins on another CPU than the last one's.
    pub cpu_changes: u64,
    /// Wake-ups (`sched_wakeup`, or `sched_waking` in a trace without any `sched_wakeup`), without the first one of a
    /// new task. `None`: the trace has switch-ins of blocked tasks and no such event.
    pub wakeups: Option<u64>,
    /// Ticks that arrived while the task was running.
    pub ticks: u64,
    /// Marks that the task left.
    pub marks: u64,
    /// Of a group: what each of its tasks got, in no order. Empty for a task.
    pub members: Vec<Member>,
    /// Uninterrupted stretches on a CPU, from switch-in to switch-out.
    pub slices: Samples,
    /// Waits, whatever began them, to switch-in.
    pub waits: Samples,
    /// From waking (or wakeup where there is no waking) to switch-in.
    pub wakeup_latency: Samples,
}

/// One task of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    /// [`Figures::run_ns`].
    pub run_ns: u64,
    /// [`Figures::marks`].
    pub marks: u64,
}

impl Figures {
    /// A figure that follows from switches; `None` where the recording has none.
    pub fn of_switches<T>(&self, figure: T) -> Option<T> {
        (!self.lacks_switches).then_some(figure)
    }

    /// CPU time of the `most` tasks of a group that got most, in % of the group's. `None` for a single task, for a
    /// group with at most `most` tasks, and for a group that did not run.
    pub fn top_share_percent(&self, most: usize) -> Option<f64> {
        if self.members.len() <= most {
            return None;
        }
        let mut runs: Vec<u64> = self.members.iter().map(|member| member.run_ns).collect();
        runs.sort_unstable_by(|a, b| b.cmp(a));
        let top: f64 = runs.iter().take(most).map(|ns| *ns as f64).sum();
        percent(top, runs.iter().map(|ns| *ns as f64).sum())
    }

    /// Coefficient of variation over the tasks of a group: standard deviation / mean, %. `None` for fewer than two
    /// tasks, and when all of them have 0.
    pub fn variation_percent(&self, of: fn(&Member) -> u64) -> Option<f64> {
        if self.members.len() < 2 {
            return None;
        }
        let count = self.members.len() as f64;
        let mean = self.members.iter().map(|member| of(member) as f64).sum::<f64>() / count;
        let square = |member: &Member| (of(member) as f64 - mean).powi(2);
        let variance = self.members.iter().map(square).sum::<f64>() / count;
        percent(variance.sqrt(), mean)
    }

    /// CPU time in % of one CPU over the window. `None` for an empty window.
    pub fn cpu_share_percent(&self) -> Option<f64> {
        percent(self.of_switches(self.run_ns)? as f64, self.window_ns as f64)
    }

    /// Marks per second of the window. `None` for an empty window.
    pub fn marks_per_s(&self) -> Option<f64> {
        ratio(self.marks as f64 * 1e9, self.window_ns as f64)
    }

    /// CPU time in % of all CPUs over the window.
    pub fn machine_share_percent(&self) -> Option<f64> {
        let run_ns = self.of_switches(self.run_ns)?;
        percent(run_ns as f64, self.window_ns as f64 * f64::from(self.cpus))
    }

    /// The fluid schedule's share in % of one CPU over the window.
    pub fn fluid_share_percent(&self) -> Option<f64> {
        percent(self.of_switches(self.fluid_ns)? as f64, self.window_ns as f64)
    }

    /// Service minus service in the fluid schedule of the whole machine, ns. Negative: got less than its share.
    pub fn fairness_error_ns(&self) -> i64 {
        difference(self.run_ns, self.fluid_ns)
    }

    /// [`Figures::fairness_error_ns`] in % of the fluid service. `None` without fluid service.
    pub fn fairness_error_percent(&self) -> Option<f64> {
        percent(self.of_switches(self.fairness_error_ns())? as f64, self.fluid_ns as f64)
    }

    /// Service minus service in the fluid schedules of its CPUs, ns.
    pub fn fairness_error_on_cpu_ns(&self) -> i64 {
        difference(self.run_ns, self.fluid_on_cpu_ns)
    }

    /// [`Figures::fairness_error_on_cpu_ns`] in % of that fluid service.
    pub fn fairness_error_on_cpu_percent(&self) -> Option<f64> {
        let error_ns = self.of_switches(self.fairness_error_on_cpu_ns())?;
        percent(error_ns as f64, self.fluid_on_cpu_ns as f64)
    }

    /// CPU time per involuntary switch, ns: what the `slice` program of 2009 wanted to print. `None` without
    /// involuntary switches.
    pub fn true_mean_slice_ns(&self) -> Option<f64> {
        ratio(self.run_ns as f64, self.involuntary_switches as f64)
    }

    /// Voluntary and involuntary switches away.
    pub fn switches_away(&self) -> u64 {
        self.voluntary_switches + self.involuntary_switches
    }

    /// Takes in the figures of another task of the same analysis. Times stop at `u64::MAX`.
    pub fn merge(&mut self, other: &Figures) {
        self.absorb(other);
        self.members.sort_unstable();
    }

    /// Every set of samples.
    pub(crate) fn samples_mut(&mut self) -> [&mut Samples; 3] {
        [&mut self.slices, &mut self.waits, &mut self.wakeup_latency]
    }

    /// [`Figures::merge`], before the members of many tasks are sorted once.
    pub(crate) fn absorb(&mut self, other: &Figures) {
        let first = self.tasks == 0;
        self.absorb_members(other);
        // Each field by its name: the compiler asks what becomes of a new one.
        let Figures {
            window_ns,
            tasks,
            cpus,
            lacks_switches,
            run_ns,
            wait_ns,
            waking_ns,
            preempted_wait_ns,
            sleep_ns,
            absent_ns,
            unknown_ns,
            fluid_ns,
            fluid_on_cpu_ns,
            lag_max_ns,
            lead_max_ns,
            switch_ins,
            voluntary_switches,
            involuntary_switches,
            migrations,
            cpu_changes,
            wakeups,
            ticks,
            marks,
            members: _,
            slices,
            waits,
            wakeup_latency,
        } = other;
        self.window_ns = self.window_ns.max(*window_ns);
        self.cpus = self.cpus.max(*cpus);
        self.lacks_switches |= lacks_switches;
        for (sum, ns) in [
            (&mut self.run_ns, run_ns),
            (&mut self.wait_ns, wait_ns),
            (&mut self.waking_ns, waking_ns),
            (&mut self.preempted_wait_ns, preempted_wait_ns),
            (&mut self.sleep_ns, sleep_ns),
            (&mut self.absent_ns, absent_ns),
            (&mut self.unknown_ns, unknown_ns),
            (&mut self.fluid_ns, fluid_ns),
            (&mut self.fluid_on_cpu_ns, fluid_on_cpu_ns),
        ] {
            *sum = sum.saturating_add(*ns);
        }
        self.tasks += tasks;
        self.lag_max_ns = self.lag_max_ns.max(*lag_max_ns);
        self.lead_max_ns = self.lead_max_ns.max(*lead_max_ns);
        self.switch_ins += switch_ins;
        self.voluntary_switches += voluntary_switches;
        self.involuntary_switches += involuntary_switches;
        for (sum, count) in [(&mut self.migrations, migrations), (&mut self.wakeups, wakeups)] {
            let before = if first { Some(0) } else { *sum };
            *sum = before.zip(*count).map(|(a, b)| a + b);
        }
        self.cpu_changes += cpu_changes;
        self.ticks += ticks;
        self.marks += marks;
        self.slices.merge(slices);
        self.waits.merge(waits);
        self.wakeup_latency.merge(wakeup_latency);
    }

    /// Takes in what the same task got in the window that comes next: sums only, neither samples nor extremes of lag.
    pub(crate) fn follow(&mut self, next: &Figures) {
        let window_ns = self.window_ns.saturating_add(next.window_ns);
        let (slices, waits, wakeup_latency) = <(Samples, Samples, Samples)>::default();
        let members = Vec::new();
        self.absorb(&Figures { slices, waits, wakeup_latency, members, ..*next });
        self.members.clear();
        (self.tasks, self.window_ns) = (1, window_ns);
        (self.lag_max_ns, self.lead_max_ns) = (0, 0);
    }

    /// Before the sums: a group of one task has no members yet.
    fn absorb_members(&mut self, other: &Figures) {
        let own = |figures: &Figures| Member { run_ns: figures.run_ns, marks: figures.marks };
        if self.tasks == 1 && self.members.is_empty() {
            self.members.push(own(self));
        }
        if other.members.is_empty() {
            self.members.push(own(other));
        } else {
            self.members.extend(&other.members);
        }
    }
}

/// The metrics of a task, of a group or of any selection of tasks.
pub const GROUP: &[Metric<Figures>] = &[
    usual("cpu_share", "", Unit::Percent, |f| float(f.cpu_share_percent())),
    metric("cpu_share", "machine", Unit::Percent, |f| float(f.machine_share_percent())),
    usual("fluid_share", "", Unit::Percent, |f| float(f.fluid_share_percent())),
    metric("fluid_share", "time", Unit::Ns, |f| known(f.of_switches(f.fluid_ns))),
    usual("fairness_error", "", Unit::Percent, |f| float(f.fairness_error_percent())),
    metric("fairness_error", "time", Unit::Ns, |f| {
        f.of_switches(MetricValue::Int(f.fairness_error_ns()))
    }),
    metric("fairness_error", "on_cpu", Unit::Percent, |f| float(f.fairness_error_on_cpu_percent())),
    metric("run_time", "", Unit::Ns, |f| known(f.of_switches(f.run_ns))),
    metric("wait_time", "", Unit::Ns, |f| known(f.of_switches(f.wait_ns))),
    usual("wait_time", "max", Unit::Ns, |f| known(f.waits.max_ns())),
    metric("sleep_time", "", Unit::Ns, |f| known(f.of_switches(f.sleep_ns))),
    metric("unknown_time", "", Unit::Ns, |f| known(f.of_switches(f.unknown_ns))),
    metric("top_share", "4", Unit::Percent, |f| float(f.top_share_percent(4))),
    metric("top_share", "8", Unit::Percent, |f| float(f.top_share_percent(8))),
    compared("variation", "run_time", Unit::Percent, |f| float(f.variation_percent(|m| m.run_ns))),
    metric("variation", "marks", Unit::Percent, |f| float(f.variation_percent(|m| m.marks))),
    metric("marks", "", Unit::Count, |f| int(f.marks)),
    metric("marks", "rate", Unit::PerSecond, |f| float(f.marks_per_s())),
    compared("lag", "max", Unit::Ns, |f| known(f.of_switches(f.lag_max_ns))),
    metric("lag", "lead_max", Unit::Ns, |f| known(f.of_switches(f.lead_max_ns))),
    metric("voluntary_switches", "", Unit::Count, |f| known(f.of_switches(f.voluntary_switches))),
    usual("involuntary_switches", "", Unit::Count, |f| {
        known(f.of_switches(f.involuntary_switches))
    }),
    usual("migrations", "", Unit::Count, |f| known(f.migrations)),
    metric("cpu_changes", "", Unit::Count, |f| known(f.of_switches(f.cpu_changes))),
    metric("wakeups", "", Unit::Count, |f| known(f.wakeups)),
    usual("true_mean_slice", "", Unit::Ns, |f| float(f.true_mean_slice_ns())),
    metric("slice", "count", Unit::Count, |f| count(f.of_switches(&f.slices)?)),
    metric("slice", "mean", Unit::Ns, |f| float(f.slices.mean_ns())),
    metric("slice", "p50", Unit::Ns, |f| known(f.slices.p50_ns())),
    metric("slice", "p99", Unit::Ns, |f| known(f.slices.p99_ns())),
    metric("slice", "max", Unit::Ns, |f| known(f.slices.max_ns())),
    metric("wakeup_latency", "count", Unit::Count, |f| count(f.of_switches(&f.wakeup_latency)?)),
    metric("wakeup_latency", "censored", Unit::Count, |f| {
        known(f.of_switches(f.wakeup_latency.censored))
    }),
    usual("wakeup_latency", "p50", Unit::Ns, |f| known(f.wakeup_latency.p50_ns())),
    metric("wakeup_latency", "p90", Unit::Ns, |f| known(f.wakeup_latency.p90_ns())),
    usual("wakeup_latency", "p99", Unit::Ns, |f| known(f.wakeup_latency.p99_ns())),
    metric("wakeup_latency", "p99.9", Unit::Ns, |f| known(f.wakeup_latency.p999_ns())),
    metric("wakeup_latency", "max", Unit::Ns, |f| known(f.wakeup_latency.max_ns())),
];

/// Jain's index (Jain, Chiu & Hawe 1984) of run time / fluid service: (Σx)² / (n·Σx²). `None` when no task was due
/// anything.
pub(crate) fn jain_index<'a>(tasks: impl Iterator<Item = &'a Figures>) -> Option<f64> {
    let (mut n, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for figures in tasks {
        if let Some(share) = percent(figures.run_ns as f64, figures.fluid_ns as f64) {
            n += 1.0;
            sum += share;
            squares += share * share;
        }
    }
    (squares > 0.0).then(|| sum * sum / (n * squares))
}

/// A part in percent of a whole; `None` for an empty whole.
pub(crate) fn percent(part: f64, whole: f64) -> Option<f64> {
    ratio(100.0 * part, whole)
}

/// A quotient; `None` when the divisor is zero.
pub(crate) fn ratio(dividend: f64, divisor: f64) -> Option<f64> {
    (divisor != 0.0).then(|| dividend / divisor)
}

fn difference(a: u64, b: u64) -> i64 {
    (i128::from(a) - i128::from(b)).clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(run_ns: u64, marks: u64) -> Figures {
        Figures { tasks: 1, run_ns, marks, ..Figures::default() }
    }

    fn group(runs: &[u64]) -> Figures {
        let mut group = Figures::default();
        runs.iter().for_each(|run_ns| group.absorb(&task(*run_ns, run_ns / 10)));
        group
    }

    #[test]
    fn the_top_of_a_group_is_those_that_got_most() {
        let figures = group(&[10, 500, 10, 300, 100, 10, 60, 10]);
        assert_eq!(figures.top_share_percent(4), Some(96.0));
        assert_eq!(figures.top_share_percent(8), None, "all of them");
        assert_eq!(group(&[0, 0, 0, 0, 0]).top_share_percent(4), None, "of nothing");
        assert_eq!(task(10, 1).top_share_percent(4), None);
    }

    #[test]
    fn variation_is_the_deviation_over_the_mean() {
        assert_eq!(group(&[70, 70, 70]).variation_percent(|m| m.run_ns), Some(0.0));
        // Mean 100, deviations 100 and -100.
        assert_eq!(group(&[200, 0]).variation_percent(|m| m.run_ns), Some(100.0));
        assert_eq!(group(&[200, 0]).variation_percent(|m| m.marks), Some(100.0));
        // One of five has all: the root of 4.
        assert_eq!(group(&[0, 0, 50, 0, 0]).variation_percent(|m| m.run_ns), Some(200.0));
        assert_eq!(group(&[50]).variation_percent(|m| m.run_ns), None);
        assert_eq!(group(&[0, 0]).variation_percent(|m| m.run_ns), None);
    }

    #[test]
    fn merged_groups_have_the_members_of_both() {
        let mut tasks = task(40, 4);
        tasks.merge(&task(10, 1));
        tasks.merge(&group(&[20, 30]));
        let runs: Vec<u64> = tasks.members.iter().map(|member| member.run_ns).collect();
        assert_eq!((tasks.tasks, tasks.marks, runs), (4, 10, vec![10, 20, 30, 40]));
    }
}
