//! The analysis of a run while it is made: its events are taken as they come, and none has to be kept.

use fairground_trace::Trace;

use crate::pass::Pass;
use crate::{Analysis, Options};

/// The figures of a run that goes on, as [`Analysis::of`] has them of its whole trace.
#[derive(Debug)]
pub struct StreamAnalysis {
    pass: Pass,
    start_ns: u64,
}

impl StreamAnalysis {
    /// Begins with a trace that has no events yet, of a run that ends at `end_ns` at the latest. The stream must have
    /// wake-ups (`sched_wakeup`). Figures over time ([`Options::interval_ns`]) are not made: they need the groups of
    /// tasks, which are not known before the end.
    pub fn new(trace: &Trace, options: &Options, end_ns: u64) -> StreamAnalysis {
        let mut whole = trace.begun();
        whole.end_ns = end_ns;
        let options = Options { interval_ns: None, ..options.clone() };
        let mut pass = Pass::new(&whole, &options, &[0], 1);
        pass.set_has_wakeups(true);
        StreamAnalysis { pass, start_ns: trace.start_ns }
    }

    /// Takes all events of the trace: those that came since the last time.
    pub fn take(&mut self, trace: &Trace) {
        self.pass.add_tasks(trace, self.start_ns);
        for event in trace.events() {
            self.pass.take(trace, &event);
        }
    }

    /// The run has ended at [`Trace::end_ns`], and all its events were taken.
    pub fn finish(mut self, trace: &Trace) -> Analysis {
        self.pass.add_tasks(trace, self.start_ns);
        if trace.end_ns < self.pass.accounting.window_ns.1 {
            self.pass.end_window(trace.end_ns);
        }
        Analysis::from_stream(trace, self.pass.finish())
    }
}
