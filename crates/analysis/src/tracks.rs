//! Queue depths and lags over time, in the making.

use fairground_trace::{Counter, CounterOf, CounterUnit, TaskId, Trace};

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

    pub(crate) fn finish(self) -> Vec<Counter> {
        self.queues.into_iter().chain(self.lags).collect()
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
