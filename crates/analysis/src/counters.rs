//! Queue depths and lags over time, for writers that draw them.

use fairground_trace::{Counter, Trace};

use crate::Options;
use crate::pass::Pass;
use crate::tracks::Tracks;

/// The depth of each CPU's queue, and each task's lag, over the window.
///
/// * `queue`: tasks that are known to wait in the queue of the CPU, the running one not among them. In a trace that does not
///   begin with its machine ([`Options::starts_idle`]), tasks that no event has named yet are missing, and there is no value before the first change.
/// * `lag`: by how much a task is behind its fluid share of the whole machine, ns (`docs/reference/metrics/lag.md`); negative: ahead of it. A point
///   where its state changes: between two of them it grows while the task waits and falls while it runs.
///
/// CPUs and tasks without any value have no counter.
pub fn counters(trace: &Trace, options: &Options) -> Vec<Counter> {
    let groups = vec![0; trace.tasks().len()];
    let mut pass = Pass::new(trace, options, &groups, 1);
    pass.accounting.tracks = Some(Box::new(Tracks::new(trace)));
    let tracks = pass.run(trace).tracks.map_or_else(Vec::new, Tracks::finish);
    tracks.into_iter().filter(|counter| !counter.points.is_empty()).collect()
}
