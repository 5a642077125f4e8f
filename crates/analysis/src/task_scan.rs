//! What a scan knows of a task at an instant.

use crate::{Figures, Samples};

/// Where a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// No event has spoken of it yet.
    Initial,
    /// A contradiction or a loss made its state unknown.
    Unknown,
    /// It does not exist: not yet, or no longer.
    Absent,
    /// Blocked.
    Asleep,
    /// Asked to wake and not yet queued.
    Waking,
    /// In a queue.
    Waiting,
    /// On a CPU.
    Running,
}

impl State {
    /// Whether the task is runnable and stands in the queue of a CPU, as the fluid schedules see it.
    pub(crate) fn is_queued(self) -> bool {
        matches!(self, State::Waiting | State::Running)
    }

    /// Whether the task is in a wait that a switch-in ends.
    pub(crate) fn waits(self) -> bool {
        matches!(self, State::Waiting | State::Waking)
    }

    /// Category of the time in the state; `Initial` depends on what ends it.
    pub(crate) fn category(self) -> Category {
        match self {
            State::Initial | State::Unknown => Category::Unknown,
            State::Absent => Category::Absent,
            State::Asleep => Category::Sleep,
            State::Waking | State::Waiting => Category::Wait,
            State::Running => Category::Run,
        }
    }
}

/// To which figure the time in a state goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Category {
    Run,
    Wait,
    Sleep,
    Absent,
    Unknown,
}

/// A task during the scan.
#[derive(Clone, Debug)]
pub(crate) struct TaskScan {
    /// Its number in the trace.
    pub(crate) id: u32,
    pub(crate) state: State,
    /// Begin of the state, or of the part of it that is not yet accounted for, in the window, ns.
    pub(crate) since_ns: u64,
    /// The CPU on which it runs or in whose queue it waits.
    pub(crate) cpu: u32,
    /// The CPU on which it ran last.
    pub(crate) ran_on: Option<u32>,
    /// While it runs: begin of the present stretch on the CPU, ns.
    pub(crate) stretch_from_ns: u64,
    /// While it wakes or waits: begin of the present wait, ns.
    pub(crate) wait_from_ns: u64,
    /// Whether the present wait began with a switch-out in state R.
    pub(crate) preempted: bool,
    /// When the wake-up that it has not yet followed was asked for, ns.
    pub(crate) woken_ns: Option<u64>,
    /// It was asked to wake while it was still on the CPU.
    pub(crate) early_waking_ns: Option<u64>,
    pub(crate) nice_known: bool,
    /// It has been in the fluid schedules, where its weight counts.
    pub(crate) was_queued: bool,
    pub(crate) weight: u32,
    /// Its cgroup, by number in the trace; 0 where the trace has none.
    pub(crate) cgroup: usize,
    /// What it got in the cgroups that it left, in order; complete at the end of the scan for a task that moved.
    pub(crate) pieces: Vec<(usize, Figures)>,
    /// Run time in those, ns.
    pub(crate) moved_run_ns: u64,
    /// The restriction under which it is entered in the idle-while-waiting count.
    pub(crate) restriction: Option<usize>,
    pub(crate) migrations: u64,
    pub(crate) group: usize,
    /// Waits that are wake-up latencies, too, as most are: they miss in both sets of the figures until these are complete.
    pub(crate) woken_waits: Samples,
    /// At the end of the window: how long it has been waiting for a CPU, ns.
    pub(crate) waiting_ns: Option<u64>,
    pub(crate) figures: Figures,
}

impl TaskScan {
    /// No more comes to the figures.
    pub(crate) fn complete_samples(&mut self) {
        let mut woken_waits = std::mem::take(&mut self.woken_waits);
        woken_waits.seal();
        self.figures.waits.merge(&woken_waits);
        self.figures.wakeup_latency.merge(&woken_waits);
        self.figures.samples_mut().into_iter().for_each(Samples::seal);
    }
}
