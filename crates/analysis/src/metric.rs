//! The public metrics by name: one list each for the machine, for a task or group, and for the reports of the
//! `slice` program.
//!
//! A name is that of the definition page, `docs/reference/metrics/NAME.md`. A metric that has several figures has
//! several entries with one page: `wakeup_latency` has `p50`, `p99` …

use crate::{Analysis, Figures, Samples};

pub use crate::ring::RING_PROGRAM;
pub use crate::slice_report::SLICE_PROGRAM;

/// In what a value is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A number of things.
    Count,
    /// Things per second of the window.
    PerSecond,
    /// Nanoseconds.
    Ns,
    /// Microseconds, where the metric is defined in them.
    Us,
    /// Milliseconds, where the metric is defined in them.
    Ms,
    /// Percent.
    Percent,
    /// A ratio without unit.
    Ratio,
    /// Instructions of the scheduler's program per event.
    InsnsPerEvent,
}

impl Unit {
    /// As it stands in a table: `ns`, `%`, `1/s`, `insns`; empty for counts and ratios.
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::Count | Unit::Ratio => "",
            Unit::PerSecond => "1/s",
            Unit::Ns => "ns",
            Unit::Us => "µs",
            Unit::Ms => "ms",
            Unit::Percent => "%",
            Unit::InsnsPerEvent => "insns",
        }
    }
}

/// A measured value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// Exact.
    Int(i64),
    /// A quotient.
    Float(f64),
}

impl Value {
    /// As a float; integers above 2^53 lose their last bits.
    pub fn as_f64(self) -> f64 {
        match self {
            Value::Int(value) => value as f64,
            Value::Float(value) => value,
        }
    }
}

/// A metric of `T`.
#[derive(Clone, Copy, Debug)]
pub struct Metric<T: 'static> {
    /// The name, which is also the name of the definition page.
    pub name: &'static str,
    /// Which figure of it: `p50`, `count` …; empty when it has one.
    pub figure: &'static str,
    /// The unit of the value.
    pub unit: Unit,
    /// Reads the value; `None` is "not measured".
    pub read: fn(&T) -> Option<Value>,
}

impl<T> Metric<T> {
    /// `name` or `name.figure`: unique in its list.
    pub fn key(&self) -> String {
        if self.figure.is_empty() {
            self.name.to_owned()
        } else {
            format!("{}.{}", self.name, self.figure)
        }
    }
}

const fn metric<T>(
    name: &'static str,
    figure: &'static str,
    unit: Unit,
    read: fn(&T) -> Option<Value>,
) -> Metric<T> {
    Metric { name, figure, unit, read }
}

fn int(value: u64) -> Option<Value> {
    Some(Value::Int(i64::try_from(value).unwrap_or(i64::MAX)))
}

fn known(value: Option<u64>) -> Option<Value> {
    value.and_then(int)
}

fn float(value: Option<f64>) -> Option<Value> {
    value.map(Value::Float)
}

fn count(samples: &Samples) -> Option<Value> {
    int(samples.count())
}

/// The metrics of the whole machine, in the order of a table.
pub const MACHINE: &[Metric<Analysis>] = &[
    metric("switches", "", Unit::Count, |a| int(a.machine.switches)),
    metric("switches", "rate", Unit::PerSecond, |a| float(a.machine.switches_per_s())),
    metric("voluntary_switches", "", Unit::Count, |a| int(a.machine.voluntary_switches)),
    metric("involuntary_switches", "", Unit::Count, |a| int(a.machine.involuntary_switches)),
    metric("wakeups", "", Unit::Count, |a| int(a.machine.wakeups)),
    metric("wakeups", "rate", Unit::PerSecond, |a| float(a.machine.wakeups_per_s())),
    metric("migrations", "", Unit::Count, |a| known(a.machine.migrations)),
    metric("migrations", "rate", Unit::PerSecond, |a| float(a.machine.migrations_per_s())),
    metric("cpu_changes", "", Unit::Count, |a| int(a.machine.cpu_changes)),
    metric("marks", "", Unit::Count, |a| int(a.marks())),
    metric("marks", "rate", Unit::PerSecond, |a| float(a.marks_per_s())),
    metric("run_time", "", Unit::Ns, |a| int(a.machine.run_ns)),
    metric("idle_time", "", Unit::Ns, |a| int(a.machine.idle_ns)),
    metric("idle_time", "share", Unit::Percent, |a| {
        float(a.machine.cpu_time_percent(a.machine.idle_ns))
    }),
    metric("unknown_time", "", Unit::Ns, |a| int(a.machine.unknown_ns)),
    metric("idle_while_waiting", "", Unit::Ns, |a| int(a.machine.idle_while_waiting_ns)),
    metric("idle_while_waiting", "share", Unit::Percent, |a| {
        float(a.machine.cpu_time_percent(a.machine.idle_while_waiting_ns))
    }),
    metric("idle_while_waiting", "longest", Unit::Ns, |a| {
        int(a.machine.idle_while_waiting_longest_ns)
    }),
    metric("jain_index", "", Unit::Ratio, |a| float(a.machine.jain_index)),
    metric("slice", "count", Unit::Count, |a| count(&a.machine.slices)),
    metric("slice", "mean", Unit::Ns, |a| float(a.machine.slices.mean_ns())),
    metric("slice", "p50", Unit::Ns, |a| known(a.machine.slices.p50_ns())),
    metric("slice", "p99", Unit::Ns, |a| known(a.machine.slices.p99_ns())),
    metric("slice", "max", Unit::Ns, |a| known(a.machine.slices.max_ns())),
    metric("wakeup_latency", "count", Unit::Count, |a| count(&a.machine.wakeup_latency)),
    metric("wakeup_latency", "censored", Unit::Count, |a| int(a.machine.wakeup_latency.censored)),
    metric("wakeup_latency", "p50", Unit::Ns, |a| known(a.machine.wakeup_latency.p50_ns())),
    metric("wakeup_latency", "p90", Unit::Ns, |a| known(a.machine.wakeup_latency.p90_ns())),
    metric("wakeup_latency", "p99", Unit::Ns, |a| known(a.machine.wakeup_latency.p99_ns())),
    metric("wakeup_latency", "p99.9", Unit::Ns, |a| known(a.machine.wakeup_latency.p999_ns())),
    metric("wakeup_latency", "max", Unit::Ns, |a| known(a.machine.wakeup_latency.max_ns())),
    metric("policy_instructions", "switch", Unit::InsnsPerEvent, |a| {
        float(a.machine.policy.and_then(|cost| cost.switch.mean()))
    }),
    metric("policy_instructions", "wakeup", Unit::InsnsPerEvent, |a| {
        float(a.machine.policy.and_then(|cost| cost.wakeup.mean()))
    }),
    metric("policy_instructions", "tick", Unit::InsnsPerEvent, |a| {
        float(a.machine.policy.and_then(|cost| cost.tick.mean()))
    }),
];

/// The metrics of a task, of a group or of any selection of tasks.
pub const GROUP: &[Metric<Figures>] = &[
    metric("run_time", "", Unit::Ns, |f| int(f.run_ns)),
    metric("wait_time", "", Unit::Ns, |f| int(f.wait_ns)),
    metric("wait_time", "max", Unit::Ns, |f| known(f.waits.max_ns())),
    metric("sleep_time", "", Unit::Ns, |f| int(f.sleep_ns)),
    metric("unknown_time", "", Unit::Ns, |f| int(f.unknown_ns)),
    metric("cpu_share", "", Unit::Percent, |f| float(f.cpu_share_percent())),
    metric("cpu_share", "machine", Unit::Percent, |f| float(f.machine_share_percent())),
    metric("fluid_share", "", Unit::Percent, |f| float(f.fluid_share_percent())),
    metric("fluid_share", "time", Unit::Ns, |f| int(f.fluid_ns)),
    metric("fairness_error", "", Unit::Percent, |f| float(f.fairness_error_percent())),
    metric("fairness_error", "time", Unit::Ns, |f| Some(Value::Int(f.fairness_error_ns()))),
    metric("fairness_error", "on_cpu", Unit::Percent, |f| float(f.fairness_error_on_cpu_percent())),
    metric("top_share", "4", Unit::Percent, |f| float(f.top_share_percent(4))),
    metric("top_share", "8", Unit::Percent, |f| float(f.top_share_percent(8))),
    metric("variation", "run_time", Unit::Percent, |f| float(f.variation_percent(|m| m.run_ns))),
    metric("variation", "marks", Unit::Percent, |f| float(f.variation_percent(|m| m.marks))),
    metric("marks", "", Unit::Count, |f| int(f.marks)),
    metric("marks", "rate", Unit::PerSecond, |f| float(f.marks_per_s())),
    metric("lag", "max", Unit::Ns, |f| int(f.lag_max_ns)),
    metric("lag", "lead_max", Unit::Ns, |f| int(f.lead_max_ns)),
    metric("voluntary_switches", "", Unit::Count, |f| int(f.voluntary_switches)),
    metric("involuntary_switches", "", Unit::Count, |f| int(f.involuntary_switches)),
    metric("migrations", "", Unit::Count, |f| known(f.migrations)),
    metric("cpu_changes", "", Unit::Count, |f| int(f.cpu_changes)),
    metric("wakeups", "", Unit::Count, |f| int(f.wakeups)),
    metric("true_mean_slice", "", Unit::Ns, |f| float(f.true_mean_slice_ns())),
    metric("slice", "count", Unit::Count, |f| count(&f.slices)),
    metric("slice", "mean", Unit::Ns, |f| float(f.slices.mean_ns())),
    metric("slice", "p50", Unit::Ns, |f| known(f.slices.p50_ns())),
    metric("slice", "p99", Unit::Ns, |f| known(f.slices.p99_ns())),
    metric("slice", "max", Unit::Ns, |f| known(f.slices.max_ns())),
    metric("wakeup_latency", "count", Unit::Count, |f| count(&f.wakeup_latency)),
    metric("wakeup_latency", "censored", Unit::Count, |f| int(f.wakeup_latency.censored)),
    metric("wakeup_latency", "p50", Unit::Ns, |f| known(f.wakeup_latency.p50_ns())),
    metric("wakeup_latency", "p90", Unit::Ns, |f| known(f.wakeup_latency.p90_ns())),
    metric("wakeup_latency", "p99", Unit::Ns, |f| known(f.wakeup_latency.p99_ns())),
    metric("wakeup_latency", "p99.9", Unit::Ns, |f| known(f.wakeup_latency.p999_ns())),
    metric("wakeup_latency", "max", Unit::Ns, |f| known(f.wakeup_latency.max_ns())),
];

/// The metric of a machine with this key.
pub fn machine(key: &str) -> Option<&'static Metric<Analysis>> {
    MACHINE.iter().find(|metric| metric.key() == key)
}

/// The metric of a task or group with this key.
pub fn group(key: &str) -> Option<&'static Metric<Figures>> {
    GROUP.iter().find(|metric| metric.key() == key)
}
