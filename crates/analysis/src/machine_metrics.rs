//! The figures of a CPU and of the machine.

use crate::Samples;
use crate::metric::value::{Metric, Unit, count, float, int, known, metric, usual};
use fairground_trace::CallbackKind;

/// The times of one CPU in the window: `run + idle + unknown = window`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuMetrics {
    /// The CPU's number.
    pub cpu: u32,
    /// Running a task, ns.
    pub run_ns: u64,
    /// Running the idle task, ns.
    pub idle_ns: u64,
    /// Not known: before the first switch, around contradictions and after lost events; or offline, ns.
    pub unknown_ns: u64,
    /// Switches, those from and to the idle task included.
    pub switches: u64,
}

impl CpuMetrics {
    /// Time in which it ran a task, in % of the window. `None` for an empty window.
    pub fn run_percent(&self) -> Option<f64> {
        let window_ns = self.run_ns as f64 + self.idle_ns as f64 + self.unknown_ns as f64;
        crate::figures::percent(self.run_ns as f64, window_ns)
    }
}

/// The figures of the whole machine in the window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachineMetrics {
    /// The length of the window, ns.
    pub window_ns: u64,
    /// The number of CPUs.
    pub cpus: u32,
    /// [`crate::Figures::lacks_switches`].
    pub lacks_switches: bool,
    /// CPU time of all tasks, ns.
    pub run_ns: u64,
    /// Idle time of all CPUs, ns.
    pub idle_ns: u64,
    /// CPU time of which nothing is known, and of CPUs that are offline, ns.
    pub unknown_ns: u64,
    /// Switches (`sched_switch`), those from and to the idle task included.
    pub switches: u64,
    /// Switches away from a task in another state than R.
    pub voluntary_switches: u64,
    /// Switches away from a task in state R.
    pub involuntary_switches: u64,
    /// Wake-ups (`sched_wakeup`, or `sched_waking` in a trace without any `sched_wakeup`); `None` when the trace has no
    /// such event, and switch-ins of blocked tasks, unknown tasks that end the idling of a CPU, or no switch at all.
    pub wakeups: Option<u64>,
    /// First wake-ups of new tasks (`sched_wakeup_new`).
    pub new_tasks: u64,
    /// Moves between queues (`sched_migrate_task`); `None` when the trace has no such event, and tasks on changing CPUs
    /// or no switch at all.
    pub migrations: Option<u64>,
    /// Switch-ins on another CPU than the task's last one.
    pub cpu_changes: u64,
    /// Timer ticks in the trace.
    pub ticks: u64,
    /// Marks that all tasks left.
    pub marks: u64,
    /// CPU time that idled while a task that may run there waited in another CPU's queue, ns.
    pub idle_while_waiting_ns: u64,
    /// The longest time without a break in which that was so on some CPU, ns.
    pub idle_while_waiting_longest_ns: u64,
    /// Uninterrupted stretches on a CPU of all tasks.
    pub slices: Samples,
    /// Wake-up latency of all tasks.
    pub wakeup_latency: Samples,
    /// The cost of the scheduler's program; `None` when the trace does not count instructions.
    pub policy: Option<PolicyCost>,
    /// Jain's fairness index over run time / fluid service of all tasks that were runnable; 1 is exactly fair, 1/n
    /// is all to one of n.
    pub jain_index: Option<f64>,
    /// Lines that the scheduler's program printed.
    pub prints: u64,
    /// How often each callback of the scheduler ran, when the recorder was asked for it.
    pub callbacks: Vec<(CallbackKind, u64)>,
}

impl MachineMetrics {
    /// A figure that follows from switches; `None` where the recording has none.
    pub fn of_switches<T>(&self, figure: T) -> Option<T> {
        (!self.lacks_switches).then_some(figure)
    }

    /// Switches per second of the window.
    pub fn switches_per_s(&self) -> Option<f64> {
        self.per_s(self.of_switches(self.switches)?)
    }

    /// Wake-ups per second of the window.
    pub fn wakeups_per_s(&self) -> Option<f64> {
        self.per_s(self.wakeups?)
    }

    /// Migrations per second of the window.
    pub fn migrations_per_s(&self) -> Option<f64> {
        self.per_s(self.migrations?)
    }

    /// Marks per second of the window. `None` for an empty window.
    pub fn marks_per_s(&self) -> Option<f64> {
        self.per_s(self.marks)
    }

    fn per_s(&self, count: u64) -> Option<f64> {
        crate::figures::ratio(count as f64 * 1e9, self.window_ns as f64)
    }

    /// Of CPU time that follows from switches.
    pub(crate) fn cpu_time_percent(&self, part_ns: u64) -> Option<f64> {
        crate::figures::percent(
            self.of_switches(part_ns)? as f64,
            self.window_ns as f64 * f64::from(self.cpus),
        )
    }
}

/// The metrics of the whole machine, in the order of a table.
pub const MACHINE: &[Metric<MachineMetrics>] = &[
    metric("switches", "", Unit::Count, |m| known(m.of_switches(m.switches))),
    usual("switches", "rate", Unit::PerSecond, |m| float(m.switches_per_s())),
    usual("voluntary_switches", "", Unit::Count, |m| known(m.of_switches(m.voluntary_switches))),
    usual("involuntary_switches", "", Unit::Count, |m| {
        known(m.of_switches(m.involuntary_switches))
    }),
    metric("wakeups", "", Unit::Count, |m| known(m.wakeups)),
    usual("wakeups", "rate", Unit::PerSecond, |m| float(m.wakeups_per_s())),
    usual("migrations", "", Unit::Count, |m| known(m.migrations)),
    metric("migrations", "rate", Unit::PerSecond, |m| float(m.migrations_per_s())),
    metric("cpu_changes", "", Unit::Count, |m| known(m.of_switches(m.cpu_changes))),
    metric("marks", "", Unit::Count, |m| int(m.marks)),
    metric("marks", "rate", Unit::PerSecond, |m| float(m.marks_per_s())),
    metric("run_time", "", Unit::Ns, |m| known(m.of_switches(m.run_ns))),
    metric("idle_time", "", Unit::Ns, |m| known(m.of_switches(m.idle_ns))),
    usual("idle_time", "share", Unit::Percent, |m| float(m.cpu_time_percent(m.idle_ns))),
    metric("unknown_time", "", Unit::Ns, |m| known(m.of_switches(m.unknown_ns))),
    metric("idle_while_waiting", "", Unit::Ns, |m| known(m.of_switches(m.idle_while_waiting_ns))),
    usual("idle_while_waiting", "share", Unit::Percent, |m| {
        float(m.cpu_time_percent(m.idle_while_waiting_ns))
    }),
    usual("idle_while_waiting", "longest", Unit::Ns, |m| {
        known(m.of_switches(m.idle_while_waiting_longest_ns))
    }),
    usual("jain_index", "", Unit::Ratio, |m| float(m.jain_index)),
    metric("slice", "count", Unit::Count, |m| count(m.of_switches(&m.slices)?)),
    metric("slice", "mean", Unit::Ns, |m| float(m.slices.mean_ns())),
    metric("slice", "p50", Unit::Ns, |m| known(m.slices.p50_ns())),
    metric("slice", "p99", Unit::Ns, |m| known(m.slices.p99_ns())),
    metric("slice", "max", Unit::Ns, |m| known(m.slices.max_ns())),
    metric("wakeup_latency", "count", Unit::Count, |m| count(m.of_switches(&m.wakeup_latency)?)),
    metric("wakeup_latency", "censored", Unit::Count, |m| {
        known(m.of_switches(m.wakeup_latency.censored))
    }),
    usual("wakeup_latency", "p50", Unit::Ns, |m| known(m.wakeup_latency.p50_ns())),
    metric("wakeup_latency", "p90", Unit::Ns, |m| known(m.wakeup_latency.p90_ns())),
    usual("wakeup_latency", "p99", Unit::Ns, |m| known(m.wakeup_latency.p99_ns())),
    metric("wakeup_latency", "p99.9", Unit::Ns, |m| known(m.wakeup_latency.p999_ns())),
    metric("wakeup_latency", "max", Unit::Ns, |m| known(m.wakeup_latency.max_ns())),
    usual("policy_instructions", "switch", Unit::InsnsPerEvent, |m| {
        float(m.policy.and_then(|cost| cost.switch.mean()))
    }),
    usual("policy_instructions", "wakeup", Unit::InsnsPerEvent, |m| {
        float(m.policy.and_then(|cost| cost.wakeup.mean()))
    }),
    usual("policy_instructions", "tick", Unit::InsnsPerEvent, |m| {
        float(m.policy.and_then(|cost| cost.tick.mean()))
    }),
];

/// Instructions of the scheduler's program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PolicyCost {
    /// On switches: leaving a task and choosing the next.
    pub switch: Instructions,
    /// On wake-ups, those of new tasks included: choosing a CPU and enqueueing.
    pub wakeup: Instructions,
    /// On ticks.
    pub tick: Instructions,
}

/// Instructions executed for one kind of event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Instructions {
    /// The number of events.
    pub events: u64,
    /// Instructions in all.
    pub total: u64,
    /// The most for one event.
    pub max: u32,
}

impl Instructions {
    pub(crate) fn add(&mut self, insns: u32) {
        self.events += 1;
        self.total += u64::from(insns);
        self.max = self.max.max(insns);
    }

    /// Instructions per event; `None` without events.
    pub fn mean(&self) -> Option<f64> {
        crate::figures::ratio(self.total as f64, self.events as f64)
    }
}

/// A change of a tunable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamChange {
    /// When, ns.
    pub time_ns: u64,
    /// `name=value`.
    pub text: String,
}
