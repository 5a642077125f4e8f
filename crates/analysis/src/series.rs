//! The main figures over time, so that a change in the middle of a run can be seen.

use crate::states::TimeKind;
use crate::{MAX_INTERVALS, ParamChange, Samples};

/// The window in equal intervals.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The length of an interval, ns; the last one may be shorter. Longer than asked for where there would have
    /// been more than [`MAX_INTERVALS`].
    pub interval_ns: u64,
    /// The intervals in order.
    pub intervals: Vec<Interval>,
}

/// The figures of one interval. Times are cut at its borders; slices and latencies belong to the interval in which
/// they end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Interval {
    /// First instant, ns.
    pub start_ns: u64,
    /// The instant after the last, ns.
    pub end_ns: u64,
    /// CPU time of all tasks, ns.
    pub run_ns: u64,
    /// Wait time of all tasks, ns.
    pub wait_ns: u64,
    /// Idle time of all CPUs, ns.
    pub idle_ns: u64,
    /// CPU time that idled while a task waited elsewhere, ns.
    pub idle_while_waiting_ns: u64,
    /// Switches.
    pub switches: u64,
    /// Voluntary switches.
    pub voluntary_switches: u64,
    /// Involuntary switches.
    pub involuntary_switches: u64,
    /// Wake-ups; `None` as in [`Figures::wakeups`](crate::Figures::wakeups).
    pub wakeups: Option<u64>,
    /// `sched_migrate_task` events.
    pub migrations: u64,
    /// Uninterrupted stretches on a CPU.
    pub slices: Samples,
    /// Wake-up latency.
    pub wakeup_latency: Samples,
    /// The groups, in the order of [`crate::Analysis::groups`].
    pub groups: Vec<IntervalGroup>,
    /// Changes of tunables within the interval.
    pub params: Vec<ParamChange>,
}

/// A group of tasks in one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IntervalGroup {
    /// CPU time, ns.
    pub run_ns: u64,
    /// Wait time, ns.
    pub wait_ns: u64,
    /// Involuntary switches.
    pub involuntary_switches: u64,
}

impl IntervalGroup {
    /// CPU time per involuntary switch, ns; `None` without involuntary switches.
    pub fn true_mean_slice_ns(&self) -> Option<f64> {
        crate::figures::ratio(self.run_ns as f64, self.involuntary_switches as f64)
    }
}

impl Series {
    /// `None` when no series was asked for or the window is empty.
    pub(crate) fn new(
        window_ns: (u64, u64),
        interval_ns: Option<u64>,
        groups: usize,
    ) -> Option<Self> {
        let length_ns = window_ns.1.saturating_sub(window_ns.0);
        let mut interval_ns = interval_ns.filter(|ns| *ns > 0 && length_ns > 0)?;
        while length_ns.div_ceil(interval_ns) > MAX_INTERVALS {
            interval_ns = interval_ns.saturating_mul(2);
        }
        let interval = |n: u64| Interval {
            start_ns: window_ns.0 + n * interval_ns,
            end_ns: (window_ns.0 + n * interval_ns).saturating_add(interval_ns).min(window_ns.1),
            groups: vec![IntervalGroup::default(); groups],
            wakeups: Some(0),
            ..Interval::default()
        };
        let intervals = (0..length_ns.div_ceil(interval_ns)).map(interval).collect();
        Some(Self { interval_ns, intervals })
    }

    fn index(&self, time_ns: u64) -> usize {
        let start_ns = self.intervals.first().map_or(0, |first| first.start_ns);
        let n = time_ns.saturating_sub(start_ns) / self.interval_ns;
        (n as usize).min(self.intervals.len() - 1)
    }

    /// The interval of an instant; the window's last instant belongs to the last interval.
    pub(crate) fn at(&mut self, time_ns: u64) -> &mut Interval {
        let index = self.index(time_ns);
        &mut self.intervals[index]
    }

    /// The time of a task of a group.
    pub(crate) fn add_time(&mut self, group: usize, kind: TimeKind, (from_ns, to_ns): (u64, u64)) {
        match kind {
            TimeKind::Run => self.spread(from_ns, to_ns, |interval, ns| {
                interval.run_ns = interval.run_ns.saturating_add(ns);
                interval.groups[group].run_ns = interval.groups[group].run_ns.saturating_add(ns);
            }),
            TimeKind::Waking | TimeKind::Preempted | TimeKind::Queued => {
                self.spread(from_ns, to_ns, |interval, ns| {
                    let of_group = &mut interval.groups[group];
                    of_group.wait_ns = of_group.wait_ns.saturating_add(ns);
                    interval.wait_ns = interval.wait_ns.saturating_add(ns);
                });
            }
            TimeKind::Sleep | TimeKind::Absent | TimeKind::Unknown => {}
        }
    }

    /// Calls `add` with each interval that `from_ns..to_ns` touches and the time in it. Both ends lie in the window.
    pub(crate) fn spread(
        &mut self,
        from_ns: u64,
        to_ns: u64,
        mut add: impl FnMut(&mut Interval, u64),
    ) {
        if from_ns >= to_ns {
            return;
        }
        let first = self.index(from_ns);
        for interval in &mut self.intervals[first..] {
            if interval.start_ns >= to_ns {
                break;
            }
            let ns = to_ns.min(interval.end_ns).saturating_sub(from_ns.max(interval.start_ns));
            add(interval, ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_is_cut_at_the_borders() {
        let Some(mut series) = Series::new((100, 350), Some(100), 0) else { panic!("a series") };
        series.spread(150, 340, |interval, ns| interval.run_ns += ns);
        let cut: Vec<_> =
            series.intervals.iter().map(|i| (i.start_ns, i.end_ns, i.run_ns)).collect();
        assert_eq!(cut, [(100, 200, 50), (200, 300, 100), (300, 350, 40)]);
        assert_eq!(series.at(350).start_ns, 300);
    }

    #[test]
    fn too_many_intervals_become_longer_ones() {
        let Some(series) = Series::new((0, 1_000_000), Some(1), 0) else { panic!("a series") };
        assert_eq!(series.interval_ns, 128);
        assert!(Series::new((5, 5), Some(1), 0).is_none());
        let Some(widest) = Series::new((0, u64::MAX), Some(1), 0) else { panic!("a series") };
        assert!(widest.intervals.len() as u64 <= MAX_INTERVALS);
        assert_eq!(widest.intervals.last().map(|last| last.end_ns), Some(u64::MAX));
    }
}
