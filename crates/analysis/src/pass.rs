//! One pass over the events: task states, and their accounting.

use crate::Options;
use crate::accounting::{Accounting, Accounts};
use crate::states::{States, extent};

use fairground_trace::{Event, TaskId, Trace};

/// The state of a pass.
#[derive(Clone, Debug)]
pub(crate) struct Pass {
    /// The last instant of the trace, ns: an event there still belongs to a window that ends there.
    trace_end_ns: u64,
    pub(crate) states: States,
    pub(crate) accounting: Accounting,
}

impl Pass {
    /// `groups[task]` is the number of the task's group, below `group_count`.
    pub(crate) fn new(
        trace: &Trace,
        options: &Options,
        groups: &[usize],
        group_count: usize,
    ) -> Self {
        let (trace_start_ns, trace_end_ns) = extent(trace);
        let (start_ns, end_ns) = options.window.unwrap_or((trace_start_ns, trace_end_ns));
        let start_ns = start_ns.clamp(trace_start_ns, trace_end_ns);
        let window_ns = (start_ns, end_ns.clamp(start_ns, trace_end_ns));
        let span_ns = (trace_start_ns, window_ns);
        let accounting = Accounting::new(trace, options, span_ns, groups, group_count);
        let states = States::of(trace, options.starts_idle);
        Self { trace_end_ns, states, accounting }
    }

    /// The stream has `sched_wakeup`, or none, whatever came yet.
    pub(crate) fn set_has_wakeups(&mut self, has_wakeups: bool) {
        self.states.queued_at_waking = !has_wakeups;
    }

    /// Enters the tasks of the trace that are new; nothing is known of them since `since_ns`. Their group is the
    /// first one.
    pub(crate) fn add_tasks(&mut self, trace: &Trace, since_ns: u64) {
        if self.states.tasks.len() < trace.tasks().len() {
            self.states.add_tasks(trace, since_ns);
            self.accounting.add_tasks(trace, &vec![0; trace.tasks().len()], since_ns);
        }
    }

    /// A task that was entered before had this nice value from its first appearance on. `None` when that comes too
    /// late.
    pub(crate) fn set_first_nice(&mut self, task: TaskId, nice: i8) -> Option<()> {
        self.accounting.set_first_nice(task, nice)
    }

    /// Takes the next event.
    #[inline(always)]
    pub(crate) fn take(&mut self, trace: &Trace, event: &Event) {
        self.states.take(trace, event, &mut self.accounting);
    }

    /// Reads all events up to the end of the window.
    pub(crate) fn run(mut self, trace: &Trace) -> Accounts {
        let end_ns = self.accounting.window_ns.1;
        for event in trace.events() {
            let time_ns = event.time_ns.max(self.states.now_ns);
            if time_ns > end_ns || (time_ns == end_ns && time_ns < self.trace_end_ns) {
                break;
            }
            self.take(trace, &event);
        }
        self.finish()
    }

    /// Ends the pass at the window's end.
    pub(crate) fn finish(self) -> Accounts {
        self.accounting.finish(self.states)
    }

    /// The window ends there, which was not known; nothing has happened since.
    pub(crate) fn end_window(&mut self, end_ns: u64) {
        self.accounting.end_window(end_ns);
    }

    /// The accounts of a window that ends now; the pass itself goes on undisturbed.
    pub(crate) fn ending_at(&self, end_ns: u64) -> Accounts {
        let mut ending = self.clone();
        ending.end_window(end_ns);
        ending.finish()
    }

    /// A window begins now: nothing is counted yet, and where everything is stays known.
    pub(crate) fn begin_window(&mut self, start_ns: u64) {
        self.states.advance(start_ns, &mut self.accounting);
        self.accounting.begin_window(&self.states.tasks, start_ns);
    }
}
