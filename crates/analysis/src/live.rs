//! The figures of a run that goes on: since the last line that was drawn, and since the begin.
//!
//! It is the same pass over the same events that [`Analysis::of`] makes; no event is kept. Memory grows with the
//! number of tasks and with the slices and waits since the last line, not with the length of the run.

use crate::pass::Pass;
use crate::states::State;
use crate::{Analysis, Figures, Options};
use fairground_trace::{Event, TaskId, Trace};

/// The analysis of a stream of events that has not ended.
#[derive(Clone, Debug)]
pub struct Live {
    pass: Pass,
    /// The figures of each task up to the last line, without samples.
    before: Vec<Figures>,
}

/// The figures at an instant.
#[derive(Clone, Debug)]
pub struct Look {
    /// The figures since the last line.
    pub recent: Analysis,
    /// The figures of each task since the beginning, in the order of `recent.tasks`. It has no samples and no extremes
    /// of lag; fluid service lacks less than 1 ns for each line; migrations are known if they were in each part.
    pub whole: Vec<Figures>,
    /// Where each task is, in that order.
    pub doing: Vec<TaskActivity>,
    /// The CPUs by number.
    pub cpus: Vec<CpuNow>,
}

/// Where a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskActivity {
    /// Not known from the events.
    Unknown,
    /// It does not exist: not yet, or no longer.
    Absent,
    /// It is blocked.
    Asleep,
    /// It was asked to wake and is in no queue yet.
    Waking,
    /// It waits in the queue of that CPU.
    Waiting(u32),
    /// It runs on that CPU.
    Running(u32),
}

/// A CPU at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuNow {
    /// The task that runs, [`TaskId::IDLE`] for none; `None`: not known.
    pub running: Option<TaskId>,
    /// Tasks that are known to wait in its queue, the running one not among them.
    pub queue: u64,
}

impl Live {
    /// Begins with the tasks of `trace` and none of its events, at `trace.start_ns`. The stream must have wake-ups
    /// (`sched_wakeup`). Of `options`, the window and the interval have no effect.
    pub fn new(trace: &Trace, options: &Options) -> Live {
        let options = Options { window: None, interval_ns: None, ..options.clone() };
        let mut live =
            Live { pass: Pass::new(&trace.begun(), &options, &[0], 1), before: Vec::new() };
        live.pass.set_has_wakeups(true);
        live.pass.begin_window(trace.start_ns);
        live.meet(trace);
        live
    }

    /// Takes the next event. `trace` has the tasks and labels that it speaks of.
    pub fn take(&mut self, trace: &Trace, event: &Event) {
        self.meet(trace);
        self.pass.take(trace, event);
    }

    /// The figures at `now_ns`, which lies at or behind the last event.
    pub fn look(&self, trace: &Trace, now_ns: u64) -> Look {
        let mut whole = self.before.clone();
        let recent = self.recent(trace, now_ns);
        whole.resize_with(recent.tasks.len(), Figures::default);
        for (figures, task) in whole.iter_mut().zip(&recent.tasks) {
            figures.follow(&task.figures);
        }
        let doing = self.pass.states.tasks.iter().skip(1).map(|task| match task.state {
            State::Initial | State::Unknown => TaskActivity::Unknown,
            State::Absent => TaskActivity::Absent,
            State::Asleep => TaskActivity::Asleep,
            State::Waking | State::WokenEarly => TaskActivity::Waking,
            State::Waiting => TaskActivity::Waiting(task.cpu),
            State::Running => TaskActivity::Running(task.cpu),
        });
        Look { recent, whole, doing: doing.collect(), cpus: self.cpus() }
    }

    /// Draws a line: what happens from `now_ns` on is counted anew. Returns the figures up to it, and since the
    /// line before.
    pub fn draw_line(&mut self, trace: &Trace, now_ns: u64) -> Analysis {
        self.meet(trace);
        let ended = self.recent(trace, now_ns);
        self.before.resize_with(ended.tasks.len(), Figures::default);
        for (figures, task) in self.before.iter_mut().zip(&ended.tasks) {
            figures.follow(&task.figures);
        }
        self.pass.begin_window(now_ns);
        ended
    }

    fn recent(&self, trace: &Trace, now_ns: u64) -> Analysis {
        Analysis::from_stream(trace, self.pass.ending_at(now_ns))
    }

    fn cpus(&self) -> Vec<CpuNow> {
        let cpus = self.pass.states.cpus.iter();
        let mut cpus: Vec<_> = cpus.map(|cpu| CpuNow { running: cpu.running, queue: 0 }).collect();
        for task in
            self.pass.states.tasks.iter().skip(1).filter(|task| task.state == State::Waiting)
        {
            cpus[task.cpu as usize].queue += 1;
        }
        cpus
    }

    /// Enters the tasks that are new in the trace.
    fn meet(&mut self, trace: &Trace) {
        self.pass.add_tasks(trace, self.pass.states.now_ns);
    }
}
