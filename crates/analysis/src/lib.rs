//! Scheduler metrics, computed from a trace alone.
//!
//! [`Analysis::of`] reads a [`fairground_trace::Trace`] once, in order of time, and gives figures per task, per
//! group of tasks, per CPU and for the whole machine. It works the same for a simulation, for a kernel in a VM and
//! for an imported recording, so that two runs differ by what happened and never by how it was counted.
//!
//! Three rules hold everywhere:
//!
//! * What the trace does not show is unknown. Unknown time is a figure of its own ([`Figures::unknown_ns`],
//!   [`CpuMetrics::unknown_ns`]), and a figure that cannot be had is `None`, never zero.
//! * Quantiles are exact: every sample is kept ([`Samples`]), and the number of samples and of censored ones is
//!   beside them.
//! * A metric has one definition. Its page is `docs/reference/metrics/NAME.md`, where NAME is that of
//!   [`metric::MACHINE`], [`metric::GROUP`], [`metric::SLICE_PROGRAM`],
//!   [`metric::RING_PROGRAM`] or [`metric::PLAYBACK_PROGRAM`].
//!
//! ```
//! use fairground_analysis::{Analysis, Options};
//! use fairground_trace::{Event, EventKind, TaskId, TaskInfo, TaskState, Trace};
//!
//! let mut trace = Trace::new(1);
//! let hog = trace.add_task(TaskInfo::new(7, "hog"));
//! let switch = |time_ns, prev, next, prev_state| Event {
//!     time_ns,
//!     cpu: 0,
//!     insns: 0,
//!     kind: EventKind::Switch { prev, prev_state, next },
//! };
//! trace.push(switch(1_000, TaskId::IDLE, hog, TaskState::Runnable));
//! trace.push(switch(4_000, hog, TaskId::IDLE, TaskState::Sleeping));
//! trace.end_ns = 4_000;
//!
//! let analysis = Analysis::of(&trace, &Options::default());
//! let hog = analysis.task(hog).map(|task| task.figures.run_ns);
//! assert_eq!(hog, Some(3_000));
//! assert_eq!(analysis.cpus[0].unknown_ns, 1_000); // What ran before the first switch is not known.
//! ```

mod accounting;
mod analysis;
mod cgroups;
mod compare;
pub mod contention;
mod counters;
pub mod diagnose;
pub mod difference;
mod figures;
mod fluid;
mod idle_waiting;
mod irregularities;
mod live;
mod machine_metrics;
pub mod metric;
mod options;
mod pass;
pub mod playback;
mod quantiles;
pub mod ring;
mod samples;
mod segments;
mod series;
mod services;
pub mod slice_report;
pub mod states;
mod stream;
mod tree;
mod weight;

pub use analysis::{Analysis, GroupMetrics, NeverRan, TaskMetrics};
pub use cgroups::CgroupMetrics;
pub use compare::{Comparison, ComparisonRow, cgroup_name, compare};
pub use counters::counters;
pub use figures::Figures;
pub use irregularities::Irregularities;
pub use live::{CpuNow, Live, Look, TaskActivity};
pub use machine_metrics::{CpuMetrics, Instructions, MachineMetrics, ParamChange, PolicyCost};
pub use options::{MAX_INTERVALS, Options};
pub use samples::Samples;
pub use segments::Analysed;
pub use series::{Interval, IntervalGroup, Series};
pub use stream::StreamAnalysis;
pub use tree::{command_tree, tasks_called, tree};
pub use weight::{NICE_0_WEIGHT, NICE_WEIGHTS, weight_of_nice};
