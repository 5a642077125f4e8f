//! The reports of the historical `slice` program (A. Gruenbacher, posted with the mail of 2009-05-28), recomputed
//! from a trace: its own figure as it would have printed it, and the true ones.
//!
//! The program: a parent signals every worker about once a second; each worker, as soon as it is scheduled, answers
//! with the user time and the involuntary switches since its last answer; the parent prints when all have answered.
//! In a trace each worker's answer is a mark [`ANSWER`] and each line of the parent is a mark [`REPORT`].
//!
//! The program prints other figures than it means to print:
//!
//! * `long avg_slice` takes `avg_slice += slice` with a `double` slice: C converts the sum to double, adds, and
//!   truncates, so each worker's slice loses its fraction. The printed figure is the mean of whole milliseconds:
//!   0.31 says that 5 of 16 workers had at least 1 ms, and nothing about the rest.
//! * `utime` is that of an interval which ends when the last worker has been scheduled. With long slices that is
//!   later. [`SliceReport::utime_us_per_s`] divides by the interval.
//! * The first report covers the start-up ([`SliceReport::start_up`]).

use crate::figures::ratio;
use crate::metric::value::{Metric, MetricValue, Unit, metric};
use fairground_trace::{EventKind, TaskId, Trace};

/// The label of a worker's answer.
pub const ANSWER: &str = "answer";
/// The label of the parent's line.
pub const REPORT: &str = "report";

/// How the kernel counts the user time that `getrusage` returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UserTime {
    /// To the nanosecond, from the scheduler's clock (Linux since 2.6.32 scales what the tick samples to that sum).
    #[default]
    Exact,
    /// By sampling (2.6.27 and before): each tick that finds the task running adds the whole tick. What always runs
    /// between two ticks is never seen.
    Ticks {
        /// The period of the tick, ns.
        tick_ns: u64,
    },
}

/// All reports of a trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SliceReports {
    /// The reports in order.
    pub reports: Vec<SliceReport>,
    /// Answers after the last report.
    pub unreported_answers: u64,
}

/// One line of the program.
#[derive(Clone, Debug, PartialEq)]
pub struct SliceReport {
    /// When the parent printed it, ns.
    pub end_ns: u64,
    /// Wall time since the previous report, ns; for the first one, since the parent was first heard of.
    pub period_ns: u64,
    /// The first report: it covers the start-up.
    pub start_up: bool,
    /// The changes of tunables since the previous report, `name=value`. Such a report mixes two settings.
    pub params: Vec<String>,
    /// The answers in the order in which they were given.
    pub answers: Vec<Answer>,
}

/// The answer of one worker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer {
    /// The worker.
    pub task: TaskId,
    /// User time since its previous answer as the program learns it ([`UserTime`]), µs: a difference of two times
    /// that are rounded down to µs, as getrusage gives them. The trace does not tell user from system time; both
    /// count.
    pub utime_us: u64,
    /// CPU time since its previous answer from the switches, µs.
    pub run_us: u64,
    /// Involuntary switches since its previous answer.
    pub nivcsw: u64,
}

impl Answer {
    /// CPU time per involuntary switch as the program computes it, ms: no switch counts as one.
    pub fn slice_ms(&self) -> f64 {
        0.001 * self.utime_us as f64 / self.nivcsw.max(1) as f64
    }
}

impl SliceReport {
    /// The program's `avg slice`, ms: the mean of truncated slices.
    pub fn program_slice_ms(&self) -> Option<f64> {
        // `long += double`: the sum is converted, added to and truncated at each answer.
        let sum =
            self.answers.iter().fold(0_i64, |sum, answer| (sum as f64 + answer.slice_ms()) as i64);
        ratio(sum as f64, self.answers.len() as f64)
    }

    /// The program's `utime`, µs: the mean over the workers.
    pub fn program_utime_us(&self) -> Option<f64> {
        ratio(self.utime_us() as f64, self.answers.len() as f64)
    }

    /// User time of all workers as the program learns it, µs.
    pub fn utime_us(&self) -> u64 {
        self.answers.iter().map(|answer| answer.utime_us).sum()
    }

    /// CPU time of all workers, µs.
    pub fn run_us(&self) -> u64 {
        self.answers.iter().map(|answer| answer.run_us).sum()
    }

    /// Involuntary switches of all workers.
    pub fn nivcsw(&self) -> u64 {
        self.answers.iter().map(|answer| answer.nivcsw).sum()
    }

    /// The true mean slice, ms: CPU time of all workers per involuntary switch. `None` without switches.
    pub fn true_slice_ms(&self) -> Option<f64> {
        ratio(0.001 * self.run_us() as f64, self.nivcsw() as f64)
    }

    /// The figure that the program means to print, ms: the mean over the workers of their slices, without truncation.
    pub fn worker_mean_slice_ms(&self) -> Option<f64> {
        let slice_ms = |a: &Answer| 0.001 * a.run_us as f64 / a.nivcsw.max(1) as f64;
        ratio(self.answers.iter().map(slice_ms).sum(), self.answers.len() as f64)
    }

    /// CPU time of a worker per second of wall time, µs: the program's `utime` without the stretched interval.
    pub fn utime_us_per_s(&self) -> Option<f64> {
        ratio(self.program_utime_us()? * 1e9, self.period_ns as f64)
    }

    /// The line as the program prints it, without the values of the workers.
    pub fn line(&self) -> Option<String> {
        let (slice_ms, utime_us) = (self.program_slice_ms()?, self.program_utime_us()?);
        Some(format!("avg slice: {slice_ms:5.2} utime: {utime_us:.6}"))
    }
}

/// The metrics of a report.
pub const SLICE_PROGRAM: &[Metric<SliceReport>] = &[
    metric("program_slice", "", Unit::Ms, |r| r.program_slice_ms().map(MetricValue::Float)),
    metric("worker_mean_slice", "", Unit::Ms, |r| r.worker_mean_slice_ms().map(MetricValue::Float)),
    metric("true_mean_slice", "", Unit::Ms, |r| r.true_slice_ms().map(MetricValue::Float)),
    metric("program_utime", "", Unit::Us, |r| r.program_utime_us().map(MetricValue::Float)),
    metric("report_period", "", Unit::Ms, |r| Some(MetricValue::Float(r.period_ns as f64 / 1e6))),
    metric("utime_per_second", "", Unit::Us, |r| r.utime_us_per_s().map(MetricValue::Float)),
];

impl SliceReports {
    /// Finds the reports in a trace; there are none when nothing is marked.
    ///
    /// All marks are taken as those of one program. CPU time counts from the trace's begin or the worker's first
    /// switch-in, whichever is later; a worker that is switched away from a CPU of which nothing was known counts
    /// from then on.
    pub fn of(trace: &Trace, user_time: UserTime) -> Self {
        let mut pass = Pass {
            user_time,
            meters: vec![Meter::default(); trace.tasks().len()],
            found: Self::default(),
            answers: Vec::new(),
            params: Vec::new(),
            previous_ns: None,
            first_heard_ns: vec![None; trace.tasks().len()],
        };
        for event in trace.events() {
            pass.step(trace, event.time_ns, event.kind);
        }
        pass.found.unreported_answers = pass.answers.len() as u64;
        pass.found
    }
}

/// getrusage of a task.
#[derive(Clone, Copy, Debug, Default)]
struct Meter {
    run_ns: u64,
    nivcsw: u64,
    running_since_ns: Option<u64>,
    sampled_ns: u64,
    told_utime_us: u64,
    told_run_us: u64,
    told_nivcsw: u64,
}

struct Pass {
    user_time: UserTime,
    meters: Vec<Meter>,
    found: SliceReports,
    answers: Vec<Answer>,
    params: Vec<String>,
    previous_ns: Option<u64>,
    first_heard_ns: Vec<Option<u64>>,
}

impl Pass {
    fn step(&mut self, trace: &Trace, time_ns: u64, kind: EventKind) {
        match kind {
            EventKind::Switch { prev, prev_state, next } => {
                self.switch_out(time_ns, prev, prev_state.is_runnable());
                self.heard(time_ns, prev);
                self.heard(time_ns, next);
                if let Some(meter) = self.meters.get_mut(next.index()) {
                    meter.running_since_ns = Some(time_ns);
                }
            }
            EventKind::WakeupNew { task, .. } => self.heard(time_ns, task),
            EventKind::Tick { task } => self.tick(task),
            EventKind::Param { label } => self.params.push(trace.label(label).to_owned()),
            EventKind::Mark { task, label, .. } => match trace.label(label) {
                ANSWER => self.answer(time_ns, task),
                REPORT => self.report(trace, time_ns, task),
                _ => {}
            },
            _ => {}
        }
    }

    fn heard(&mut self, time_ns: u64, task: TaskId) {
        if let Some(slot) = self.first_heard_ns.get_mut(task.index()) {
            slot.get_or_insert(time_ns);
        }
    }

    fn switch_out(&mut self, time_ns: u64, task: TaskId, involuntary: bool) {
        let Some(meter) = self.meters.get_mut(task.index()) else { return };
        if let Some(since_ns) = meter.running_since_ns.take() {
            meter.run_ns = meter.run_ns.saturating_add(time_ns.saturating_sub(since_ns));
        }
        meter.nivcsw += u64::from(involuntary);
    }

    fn answer(&mut self, time_ns: u64, task: TaskId) {
        let Some(meter) = self.meters.get_mut(task.index()) else { return };
        let present_ns = meter.running_since_ns.map_or(0, |since| time_ns.saturating_sub(since));
        let run_us = meter.run_ns.saturating_add(present_ns) / 1000;
        let utime_us = match self.user_time {
            UserTime::Exact => run_us,
            UserTime::Ticks { .. } => meter.sampled_ns / 1000,
        };
        self.answers.push(Answer {
            task,
            utime_us: utime_us.saturating_sub(meter.told_utime_us),
            run_us: run_us.saturating_sub(meter.told_run_us),
            nivcsw: meter.nivcsw - meter.told_nivcsw,
        });
        meter.told_utime_us = utime_us;
        meter.told_run_us = run_us;
        meter.told_nivcsw = meter.nivcsw;
    }

    fn tick(&mut self, task: TaskId) {
        if let (UserTime::Ticks { tick_ns }, Some(meter)) =
            (self.user_time, self.meters.get_mut(task.index()))
        {
            meter.sampled_ns = meter.sampled_ns.saturating_add(tick_ns);
        }
    }

    fn report(&mut self, trace: &Trace, end_ns: u64, parent: TaskId) {
        let heard_ns = self.first_heard_ns.get(parent.index()).copied().flatten();
        let from_ns = self.previous_ns.or(heard_ns).unwrap_or(trace.start_ns);
        self.found.reports.push(SliceReport {
            end_ns,
            period_ns: end_ns.saturating_sub(from_ns),
            start_up: self.previous_ns.is_none(),
            params: std::mem::take(&mut self.params),
            answers: std::mem::take(&mut self.answers),
        });
        self.previous_ns = Some(end_ns);
    }
}
