//! The public metrics by name: one list each for the machine, for a task or group, and for the programs that report.
//! Each list stands beside the figures that it reads.
//!
//! A name is that of the definition page, `docs/reference/metrics/NAME.md`. A metric that has several figures has
//! several entries with one page: `wakeup_latency` has `p50`, `p99` …

pub(crate) mod value;

pub use value::{Metric, MetricValue, Shown, Unit};

pub use crate::figures::GROUP;
pub use crate::machine_metrics::MACHINE;
pub use crate::playback::PLAYBACK_PROGRAM;
pub use crate::ring::RING_PROGRAM;
pub use crate::slice_report::SLICE_PROGRAM;

use crate::{Figures, MachineMetrics};

/// The metric of a machine with this key.
pub fn machine(key: &str) -> Option<&'static Metric<MachineMetrics>> {
    MACHINE.iter().find(|metric| metric.key() == key)
}

/// The metric of a task or group with this key.
pub fn group(key: &str) -> Option<&'static Metric<Figures>> {
    GROUP.iter().find(|metric| metric.key() == key)
}
