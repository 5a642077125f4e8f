//! Queue depths and lags over time, for writers that draw them.

use fairground_trace::{Counter, CounterOf, CounterUnit, TaskId, Trace};

use crate::Options;
use crate::pass::Pass;

/// The depth of each CPU's queue, and each task's lag, over the window.
///
/// * `queue`: tasks that are known to wait in the queue of the CPU, the running one not among them. In a trace that
///   does not begin with its machine ([`Options::starts_idle`]), tasks that no event has named yet are missing, and
///   there is no value before the first change.
/// * `lag`: by how much a task is behind its fluid share of the whole machine, ns (`docs/reference/metrics/lag.md`);
///   negative: ahead of it. A point where its state changes: between two of them it grows while the task waits and
///   falls while it runs.
///
/// CPUs and tasks without any value have no counter.
pub fn counters(trace: &Trace, options: &Options) -> Vec<Counter> {
    let groups = vec![0; trace.tasks().len()];
    let mut pass = Pass::new(trace, options, &groups, 1);
    pass.accounting.tracks = Some(Box::new(Tracks::new(trace)));
    let Some(Tracks { queues, lags, .. }) = pass.run(trace).tracks else { return Vec::new() };
    queues.into_iter().chain(lags).filter(|counter| !counter.points.is_empty()).collect()
}

/// Counters in the making.
#[derive(Clone, Debug)]
pub(crate) struct Tracks {
    waiting: Vec<i64>,
    queues: Vec<Counter>,
    lags: Vec<Counter>,
}

impl Tracks {
    pub(crate) fn new(trace: &Trace) -> Self {
        let queue = |cpu| Counter::new(CounterOf::Cpu(cpu), "queue", CounterUnit::Count);
        let lag = |id| Counter::new(CounterOf::Task(TaskId(id)), "lag", CounterUnit::Ns);
        Self {
            waiting: vec![0; trace.cpus as usize],
            queues: (0..trace.cpus).map(queue).collect(),
            lags: (0..trace.tasks().len() as u32).map(lag).collect(),
        }
    }

    /// So many more tasks wait for a CPU.
    pub(crate) fn queue(&mut self, time_ns: u64, cpu: u32, more: i64) {
        let waiting = &mut self.waiting[cpu as usize];
        *waiting += more;
        self.queues[cpu as usize].set(time_ns, *waiting);
    }

    pub(crate) fn lag(&mut self, time_ns: u64, task: usize, lag_ns: i64) {
        self.lags[task].set(time_ns, lag_ns);
    }
}
