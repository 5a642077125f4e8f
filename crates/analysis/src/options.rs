//! The options of an analysis.

use crate::NICE_WEIGHTS;

/// More intervals than this in a series are not kept; the interval is doubled until they fit, and the series says so.
pub const MAX_INTERVALS: u64 = 10_000;

/// The options of an analysis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The window in ns of the trace's clock, from the first instant to the last; clipped to the trace. Events
    /// before it are read to learn the state in which the window begins. `None` is the whole trace.
    pub window: Option<(u64, u64)>,
    /// The length of one interval of [`crate::Series`], ns. `None` or 0: no series.
    pub interval_ns: Option<u64>,
    /// The recording begins with the machine itself, as in a simulation: at `start_ns` every CPU idles and no task
    /// runs or waits. Without it, what happened on a CPU before its first switch is unknown.
    pub starts_idle: bool,
    /// The weights of nice −20…19 in the fluid schedule. A scheduler with another table is judged by Linux's
    /// unless its own is given here. Zeros count as 1.
    pub weights: [u32; 40],
}

impl Default for Options {
    fn default() -> Self {
        Self { window: None, interval_ns: None, starts_idle: false, weights: NICE_WEIGHTS }
    }
}

impl Options {
    /// The options for a trace that a simulated machine wrote from its first instant.
    pub fn simulated() -> Self {
        Self { starts_idle: true, ..Self::default() }
    }

    pub(crate) fn weight(&self, nice: Option<i8>) -> u32 {
        let index = (i32::from(nice.unwrap_or(0)) + 20).clamp(0, 39);
        self.weights[index as usize].max(1)
    }
}
