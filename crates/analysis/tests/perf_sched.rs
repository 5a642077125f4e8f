//! The figures of `perf sched timehist -s`, by perf's own rules, to set beside perf's output for the same recording.
//!
//! perf accounts for a task when it leaves the CPU, and differs from [`Figures`](fairground_analysis::Figures) in these
//! points:
//!
//! * *run time* is the time since the CPU's last switch, whichever task that switch brought in. Where a recording
//!   lacks a switch, the next task to leave is given the time of the one before; [`Figures`](fairground_analysis::Figures) calls that time
//!   unknown. A stretch that is still going on at the recording's end is not counted.
//! * *sch delay* begins with `sched_waking` where the recording has it, otherwise with `sched_wakeup`, and with
//!   `sched_wakeup_new`. A wake-up that is asked for while the task is still on the CPU counts nothing, since the
//!   switch away forgets it; `Figures::wakeup_latency` counts it.
//! * *wait time* is all time off the CPU: sleep, the delay after it, and preemption. perf splits it by the state in
//!   which the task left (`sleep`, `iowait`, `preempt`), with `R+`, preempted in the kernel, under `sleep`.
//!
//! The rules were read off perf's output and its manual page, perf-sched(1); agreement to the printed digit on a
//! recording with 4919 switches is a test.

use fairground_analysis::states::{Observer, States};
use fairground_trace::{Event, EventKind, TaskId, Trace};

/// What `perf sched timehist -s` prints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Timehist {
    /// "Total number of context switches".
    pub(crate) switches: u64,
    /// By [`TaskId`]; the idle task's entry stays zero.
    pub(crate) tasks: Vec<TimehistTask>,
}

/// A task's line of `perf sched timehist -s --state`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TimehistTask {
    /// The column `sched-in`: times that the task left a CPU.
    pub(crate) sched_in: u64,
    /// The column `run-time`, ns.
    pub(crate) run_ns: u64,
    /// The columns `sleep`, `iowait` and `preempt` together, ns: time off the CPU.
    pub(crate) off_cpu_ns: u64,
    /// The column `delay`, ns: from waking to switch-in.
    pub(crate) delay_ns: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    ready_ns: Option<u64>,
    left_ns: Option<u64>,
}

/// Observes events and not states: what perf makes of contradictions and of early wake-ups is part of its rules.
struct Watch {
    timehist: Timehist,
    marks: Vec<Mark>,
    last_switch_ns: Vec<Option<u64>>,
    has_waking: bool,
}

impl Timehist {
    /// Computes perf's figures. Events that name tasks or CPUs which the trace does not have are ignored.
    pub(crate) fn of(trace: &Trace) -> Self {
        let count = trace.tasks().len();
        let mut watch = Watch {
            timehist: Self { switches: 0, tasks: vec![TimehistTask::default(); count] },
            marks: vec![Mark::default(); count],
            last_switch_ns: vec![None; trace.cpus as usize],
            has_waking: trace.events().any(|e| matches!(e.kind, EventKind::Waking { .. })),
        };
        States::of(trace, false).observe(trace, &mut watch);
        watch.timehist
    }
}

impl Watch {
    fn on_switch(&mut self, event: &Event, prev: TaskId) {
        let since_ns = self.last_switch_ns[event.cpu as usize].replace(event.time_ns);
        self.timehist.switches += 1;
        if !prev.is_idle() {
            let left = Mark { ready_ns: None, left_ns: Some(event.time_ns) };
            let mark = std::mem::replace(&mut self.marks[prev.index()], left);
            self.timehist.tasks[prev.index()].leave(event.time_ns, since_ns, mark);
        }
    }
}

impl Observer for Watch {
    fn on_event(&mut self, _: &Trace, _: &States, event: &Event) {
        match event.kind {
            EventKind::Waking { task, .. } | EventKind::WakeupNew { task, .. } => {
                self.marks[task.index()].ready_ns.get_or_insert(event.time_ns);
            }
            EventKind::Wakeup { task, .. } if !self.has_waking => {
                self.marks[task.index()].ready_ns.get_or_insert(event.time_ns);
            }
            EventKind::Switch { prev, .. } => self.on_switch(event, prev),
            _ => {}
        }
    }
}

impl TimehistTask {
    /// The task leaves the CPU whose last switch was at `since_ns`.
    fn leave(&mut self, now_ns: u64, since_ns: Option<u64>, mark: Mark) {
        self.sched_in += 1;
        let Some(since_ns) = since_ns else { return };
        let until_in = |from_ns: Option<u64>| from_ns.map_or(0, |ns| since_ns.saturating_sub(ns));
        self.run_ns = self.run_ns.saturating_add(now_ns.saturating_sub(since_ns));
        self.delay_ns = self.delay_ns.saturating_add(until_in(mark.ready_ns));
        self.off_cpu_ns = self.off_cpu_ns.saturating_add(until_in(mark.left_ns));
    }
}
