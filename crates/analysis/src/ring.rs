//! The figures of lmbench's `lat_ctx` (L. McVoy, C. Staelin), from the marks of a ring of processes that pass a
//! token round.
//!
//! The parent marks each pass of the token. Passes that it made alone through all pipes are the overhead; a round
//! of all members costs that much and as many switches as there are members. As lmbench does, the middle of many
//! passes counts, so that a tick in one of them does not.

use crate::metric::value::{Metric, MetricValue, Unit, metric};
use fairground_trace::{EventKind, Trace};

/// The start of the label of a pass without switches; the number of members follows, or `8p/16K` in a matrix.
pub const OVERHEAD: &str = "lat_ctx overhead/";
/// The start of the label of a round; the number of members follows, or `8p/16K` in a matrix.
pub const ROUND: &str = "lat_ctx round/";

/// The figures that a ring measured.
#[derive(Clone, Debug, PartialEq)]
pub struct RingReport {
    /// Processes in the ring.
    pub members: u64,
    /// The middle time of a pass through all pipes by one process, ns.
    pub overhead_ns: u64,
    /// The middle time of a round, ns.
    pub round_ns: u64,
    /// Rounds that were measured.
    pub rounds: u64,
    /// Switches between the first and the last mark of a round, on all CPUs; `None`: the trace holds none at all,
    /// as it is of a run whose tasks left marks and that was not recorded.
    pub switches: Option<u64>,
    /// Wake-ups in that time (`sched_wakeup`, or `sched_waking` in a trace without any `sched_wakeup`); `None` as
    /// above, and where tasks blocked and the trace holds no such event.
    pub wakeups: Option<u64>,
}

/// The metrics of a ring.
pub const RING_PROGRAM: &[Metric<RingReport>] = &[
    metric("ring_switch", "", Unit::Us, |r| Some(MetricValue::Float(r.switch_us()))),
    metric("ring_hop", "", Unit::Us, |r| Some(MetricValue::Float(r.hop_us()))),
    metric("ring_round", "", Unit::Us, |r| Some(MetricValue::Float(r.round_ns as f64 / 1e3))),
    metric("ring_overhead", "", Unit::Us, |r| Some(MetricValue::Float(r.overhead_ns as f64 / 1e3))),
    metric("ring_switches", "", Unit::Count, |r| {
        Some(MetricValue::Float(r.switches? as f64 / r.rounds as f64))
    }),
    metric("ring_wakeups", "", Unit::Count, |r| {
        Some(MetricValue::Float(r.wakeups? as f64 / r.rounds as f64))
    }),
];

impl RingReport {
    /// lmbench's result: the time of a switch, µs. Not positive when a round took no longer than the pass alone.
    pub fn switch_us(&self) -> f64 {
        (self.round_ns as f64 - self.overhead_ns as f64) / self.members as f64 / 1e3
    }

    /// The time of the token from one process to the next, the read and the write included, µs.
    pub fn hop_us(&self) -> f64 {
        self.round_ns as f64 / self.members as f64 / 1e3
    }

    /// Finds a ring in a trace; `None` when there is none, or it has not gone round twice. Of several rings the
    /// first counts.
    pub fn of(trace: &Trace) -> Option<RingReport> {
        let members_of = |label: &String, start| label.strip_prefix(start)?.parse::<u64>().ok();
        let members = trace.labels().iter().find_map(|label| members_of(label, ROUND))?;
        Self::labelled(trace, members, &members.to_string())
    }

    /// Finds the ring of so many members with so many KiB each, of several in a trace (`lat_ctx:matrix`); `None` as
    /// above.
    pub fn of_matrix(trace: &Trace, members: u64, size_kb: u64) -> Option<RingReport> {
        Self::labelled(trace, members, &format!("{members}p/{size_kb}K"))
    }

    fn labelled(trace: &Trace, members: u64, label: &str) -> Option<RingReport> {
        let (overhead_label, round_label) =
            (format!("{OVERHEAD}{label}"), format!("{ROUND}{label}"));
        let (mut alone, mut rounds) = (Passes::default(), Passes::default());
        let (mut seen, mut at_first, mut at_last) = (Counts::default(), None, Counts::default());
        for event in trace.events() {
            seen.count(event.kind);
            match event.kind {
                EventKind::Mark { label, .. } if trace.label(label) == overhead_label => {
                    alone.mark(event.time_ns);
                }
                EventKind::Mark { label, .. } if trace.label(label) == round_label => {
                    rounds.mark(event.time_ns);
                    at_last = seen;
                    at_first.get_or_insert(seen);
                }
                _ => {}
            }
        }
        let at_first = at_first.unwrap_or_default();
        Some(RingReport {
            members,
            overhead_ns: alone.middle()?,
            round_ns: rounds.middle()?,
            rounds: rounds.times_ns.len() as u64,
            switches: (seen.switches > 0).then_some(at_last.switches - at_first.switches),
            wakeups: seen.wakeups().map(|wakeups| wakeups(&at_last) - wakeups(&at_first)),
        })
        .filter(|report| report.members > 0)
    }
}

/// Events since the begin of the trace.
#[derive(Clone, Copy, Default)]
struct Counts {
    switches: u64,
    /// Switches away from a task that blocked.
    blocks: u64,
    wakings: u64,
    wakeups: u64,
}

impl Counts {
    fn count(&mut self, kind: EventKind) {
        match kind {
            EventKind::Switch { prev, prev_state, .. } => {
                let blocks = !prev_state.is_runnable() && !prev_state.is_dead();
                self.switches += 1;
                self.blocks += u64::from(blocks && !prev.is_idle());
            }
            EventKind::Waking { .. } => self.wakings += 1,
            EventKind::Wakeup { .. } => self.wakeups += 1,
            _ => {}
        }
    }

    /// The count of wake-ups in a trace that has these events; `None` where it does not record them.
    fn wakeups(&self) -> Option<fn(&Counts) -> u64> {
        match self {
            Counts { wakeups: 1.., .. } => Some(|counts| counts.wakeups),
            Counts { wakings: 1.., .. } => Some(|counts| counts.wakings),
            Counts { switches: 1.., blocks: 0, .. } => Some(|_| 0),
            _ => None,
        }
    }
}

/// Times between marks.
#[derive(Default)]
struct Passes {
    last_ns: Option<u64>,
    times_ns: Vec<u64>,
}

impl Passes {
    fn mark(&mut self, time_ns: u64) {
        if let Some(last_ns) = self.last_ns.replace(time_ns) {
            self.times_ns.push(time_ns.saturating_sub(last_ns));
        }
    }

    /// The median; the lower one of two.
    fn middle(&mut self) -> Option<u64> {
        self.times_ns.sort_unstable();
        let middle = self.times_ns.len().checked_sub(1)? / 2;
        self.times_ns.get(middle).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairground_trace::{Event, TaskId, TaskInfo, TaskState};

    #[test]
    fn a_switch_is_what_a_round_takes_beyond_the_pass_alone() {
        let mut trace = Trace::new(1);
        let (parent, child) =
            (trace.add_task(TaskInfo::new(1, "p")), trace.add_task(TaskInfo::new(2, "c")));
        let (overhead, round) =
            (trace.intern("lat_ctx overhead/2"), trace.intern("lat_ctx round/2"));
        let mut now = 0;
        let mut push = |trace: &mut Trace, after_ns, kind| {
            now += after_ns;
            trace.push(Event { time_ns: now, cpu: 0, insns: 0, kind });
        };
        let mark = |label, value| EventKind::Mark { task: parent, label, value };
        let switch = |prev, next| EventKind::Switch { prev, prev_state: TaskState::Sleeping, next };
        push(&mut trace, 0, switch(TaskId::IDLE, parent));
        for (value, ns) in [5, 400, 9_000, 400, 400].into_iter().enumerate() {
            push(&mut trace, ns, mark(overhead, value as u64));
        }
        for (value, ns) in [50, 1_700, 1_600, 7_000, 1_600, 1_600].into_iter().enumerate() {
            push(&mut trace, ns / 2, switch(parent, child));
            push(&mut trace, ns / 2, switch(child, parent));
            push(&mut trace, 0, EventKind::Wakeup { task: child, target_cpu: 0 });
            push(&mut trace, 0, mark(round, value as u64));
        }
        let report = RingReport::of(&trace).expect("a ring");
        assert_eq!((report.members, report.overhead_ns, report.round_ns), (2, 400, 1_600));
        assert_eq!((report.rounds, report.switches, report.wakeups), (5, Some(10), Some(5)));
        assert!((report.switch_us() - 0.6).abs() < 1e-9);
        assert!((report.hop_us() - 0.8).abs() < 1e-9);
        assert_eq!(RingReport::of(&Trace::new(1)), None);
        assert_eq!(RingReport::of_matrix(&trace, 2, 0), None, "it is no ring of a matrix");
    }

    /// A child blocks twice in each of two rounds of 1 us, and `wake` is what wakes it.
    fn wakeups_of_a_ring(wake: impl Fn(TaskId) -> Option<EventKind>) -> Option<u64> {
        let mut trace = Trace::new(1);
        let (parent, child) =
            (trace.add_task(TaskInfo::new(1, "p")), trace.add_task(TaskInfo::new(2, "c")));
        let (overhead, round) =
            (trace.intern("lat_ctx overhead/2"), trace.intern("lat_ctx round/2"));
        let mark = |label| EventKind::Mark { task: parent, label, value: 0 };
        let switch = |prev, next| EventKind::Switch { prev, prev_state: TaskState::Sleeping, next };
        let mut push = |time_ns, kind| trace.push(Event { time_ns, cpu: 0, insns: 0, kind });
        (0..2).for_each(|n| push(n * 100, mark(overhead)));
        for time_ns in [1_000, 2_000, 3_000] {
            push(time_ns, mark(round));
            for _ in 0..2 {
                wake(child).into_iter().for_each(|kind| push(time_ns, kind));
                push(time_ns, switch(parent, child));
                push(time_ns, switch(child, parent));
            }
        }
        RingReport::of(&trace).expect("a ring").wakeups
    }

    #[test]
    fn wake_ups_are_counted_by_the_event_that_the_trace_has() {
        let wakeup = |task| EventKind::Wakeup { task, target_cpu: 0 };
        let waking = |task| EventKind::Waking { task, waker: TaskId::IDLE, target_cpu: 0 };
        assert_eq!(wakeups_of_a_ring(|child| Some(wakeup(child))), Some(4));
        assert_eq!(wakeups_of_a_ring(|child| Some(waking(child))), Some(4));
        assert_eq!(wakeups_of_a_ring(|_| None), None, "not recorded");
    }

    #[test]
    fn marks_alone_tell_the_times_and_nothing_of_switches() {
        let mut trace = Trace::new(1);
        let parent = trace.add_task(TaskInfo::new(1, "p"));
        for (label, times) in [(OVERHEAD, [0, 300, 600]), (ROUND, [1_000, 3_000, 5_000])] {
            let label = trace.intern(&format!("{label}4"));
            for time_ns in times {
                let kind = EventKind::Mark { task: parent, label, value: 1 };
                trace.push(Event { time_ns, cpu: 0, insns: 0, kind });
            }
        }
        let report = RingReport::of(&trace).expect("a ring");
        assert_eq!((report.overhead_ns, report.round_ns), (300, 2_000));
        assert_eq!((report.switches, report.wakeups), (None, None));
        let counts = RING_PROGRAM.iter().filter(|metric| metric.unit == Unit::Count);
        assert!(counts.clone().all(|metric| (metric.read)(&report).is_none()));
        assert_eq!(counts.count(), 2);
    }
}
