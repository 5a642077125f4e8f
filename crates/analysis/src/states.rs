//! The state of every task and CPU of a trace. Here alone is decided what an event means for them.
//!
//! [`States`] takes events in order of time, one by one, from whatever produces them, and reports each change to an
//! [`Observer`]: which task left which state for which, what the time in the old state was, and why it changed.
//! Metrics, findings, waits for locks and perf's figures are observers.
//!
//! ```text
//!            fork            sched_wakeup_new
//!  Absent ─────────► Asleep ───────────────────┐
//!    ▲                 ▲ │ sched_waking         ▼      switch in
//!    │ dead            │ └───────► Waking ──► Waiting ──────────► Running
//!    │                 │     sched_wakeup        ▲                 │ │ │
//!    │                 │                         └──── still R ────┘ │ │
//!    │                 └────────────────────────────── S, D, … ──────┘ │
//!    └─────────────────────────────────────────────────────────────────┘
//! ```
//!
//! A task that is asked to wake before it has left its CPU goes from Running to WokenEarly at the switch: its next
//! event shows whether it slept. A switch in, or `sched_wakeup`, ends a wait that began at the switch away; another
//! `sched_waking` ends a sleep, since the kernel sends none to a task that is awake. A recording that lacks
//! `sched_wakeup` queues a task at `sched_waking`. Events that contradict each other leave [`State::Unknown`] behind
//! and are counted in [`Irregularities`].

mod transitions;

use crate::Irregularities;
use fairground_trace::{Event, EventKind, Label, TaskId, TaskState, Trace};

/// Where a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No event has named it yet.
    Initial,
    /// A contradiction or a loss made its state unknown.
    Unknown,
    /// It does not exist: not yet, or no longer.
    Absent,
    /// Blocked.
    Asleep,
    /// Asked to wake and not yet queued.
    Waking,
    /// Asked to wake while it was still on the CPU that it has left since: it waits, unless it is asked again.
    WokenEarly,
    /// In the queue of a CPU.
    Waiting,
    /// On a CPU.
    Running,
}

impl State {
    /// Whether the task is runnable and belongs to a CPU.
    pub fn is_queued(self) -> bool {
        matches!(self, State::Waiting | State::Running)
    }

    /// Whether the task is in a wait that a switch-in ends.
    pub fn waits(self) -> bool {
        matches!(self, State::Waiting | State::Waking | State::WokenEarly)
    }
}

/// The kind of a stretch of a task's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeKind {
    /// On a CPU.
    Run,
    /// Runnable, between waking and wakeup.
    Waking,
    /// Runnable in a queue after a switch-out in state R.
    Preempted,
    /// Runnable in a queue after a wake-up.
    Queued,
    /// Blocked.
    Sleep,
    /// It did not exist.
    Absent,
    /// Not known from the trace.
    Unknown,
}

/// A task.
#[derive(Clone, Debug)]
pub struct Task {
    /// Its number in the trace.
    pub id: TaskId,
    /// Where it is.
    pub state: State,
    /// Begin of the state, ns; Waking and the Waiting that follows it count as one, as does Waiting in several queues.
    pub since_ns: u64,
    /// The CPU on which it runs or in whose queue it waits.
    pub cpu: u32,
    /// The CPU on which it ran last.
    pub ran_on: Option<u32>,
    /// Whether the present wait began with a switch-out in state R.
    pub preempted: bool,
    /// When the wake-up was asked for that its present wait follows, ns.
    pub woken_ns: Option<u64>,
    /// The task in whose context it was woken last; `None`: an interrupt, the idle task, or not known.
    pub waker: Option<TaskId>,
    /// The lock that it waits for, asleep or spinning.
    pub lock: Option<Label>,
    /// It was asked to wake while it was still on the CPU: when, ns.
    early_waking_ns: Option<u64>,
}

impl Task {
    /// The kind of its time since its last change.
    #[inline(always)]
    pub fn time_kind(&self) -> TimeKind {
        match self.state {
            State::Initial | State::Unknown => TimeKind::Unknown,
            State::Absent => TimeKind::Absent,
            State::Asleep => TimeKind::Sleep,
            State::Waking | State::WokenEarly => TimeKind::Waking,
            State::Waiting if self.preempted => TimeKind::Preempted,
            State::Waiting => TimeKind::Queued,
            State::Running => TimeKind::Run,
        }
    }
}

/// A CPU.
#[derive(Clone, Copy, Debug)]
pub struct Cpu {
    /// The task that runs, [`TaskId::IDLE`] for none; `None`: that is not known, or the CPU is offline.
    pub running: Option<TaskId>,
    /// Since when, ns.
    pub since_ns: u64,
    /// Events of it are missing from the last loss up to its next switch.
    in_gap: bool,
}

/// Why a task changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It left a CPU. The length of the slice is known where the trace shows its begin.
    SwitchOut {
        /// The state in which it left.
        left: TaskState,
        /// How long it had run there, ns.
        slice_ns: Option<u64>,
    },
    /// It came onto a CPU.
    SwitchIn {
        /// How long it had waited, ns; `None` where it was not known to wait.
        wait_ns: Option<u64>,
        /// How long ago it had been asked to wake, ns, where that began the wait.
        latency_ns: Option<u64>,
        /// It was asleep: its wake-up is missing.
        missed_wakeup: bool,
        /// It ran on another CPU before.
        changed_cpu: bool,
    },
    /// It was asked to wake, or queued for it.
    Wakeup,
    /// It waits in the queue of another CPU.
    Migrate,
    /// It was made.
    Fork,
    /// It ended off a CPU.
    Exit,
    /// It ran or waited, and lost events may have ended that.
    Loss,
    /// It was thought to run, and another event contradicts that.
    Contradiction,
}

/// A change of a task's state or queue.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// The state before.
    pub from: State,
    /// [`Task::cpu`] before.
    pub from_cpu: u32,
    /// The kind of the time since the last change.
    pub time: TimeKind,
    /// [`Task::woken_ns`] was set before.
    pub was_woken: bool,
    /// Why.
    pub cause: Cause,
}

/// Receives the changes of tasks and CPUs.
pub trait Observer {
    /// The next events happen at `now_ns`, later than those before.
    fn on_time(&mut self, _now_ns: u64) {}

    /// An event, before the changes that it makes. All tasks, CPUs and control groups that it names exist.
    fn on_event(&mut self, trace: &Trace, states: &States, event: &Event);

    /// A CPU runs another task. `disowned`: what it was thought to run before was wrong.
    fn on_cpu(
        &mut self,
        _cpu: u32,
        _before: Option<TaskId>,
        _after: Option<TaskId>,
        _disowned: bool,
    ) {
    }

    /// A task changed; `task` is as it is now.
    fn on_change(&mut self, _task: &Task, _change: &Change) {}
}

/// The tasks and CPUs at an instant.
#[derive(Clone, Debug)]
pub struct States {
    pub(crate) now_ns: u64,
    pub(crate) tasks: Vec<Task>,
    pub(crate) cpus: Vec<Cpu>,
    /// When events were lost last, ns: what was known before may have changed unseen.
    pub(crate) lost_ns: u64,
    /// Every CPU idled at the begin and no task was runnable.
    pub(crate) starts_idle: bool,
    /// The trace has no `sched_wakeup`: a task is queued as soon as it is asked to wake.
    pub(crate) queued_at_waking: bool,
    pub(crate) irregularities: Irregularities,
}

impl States {
    /// At the begin of a trace, before its first event. `starts_idle`: every CPU idles then and no task is
    /// runnable, as in a simulation.
    pub fn of(trace: &Trace, starts_idle: bool) -> Self {
        Self::new(trace, starts_idle, !has_wakeups(trace))
    }

    /// The time of the last event, or of the trace's begin, ns.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// A task of the trace.
    ///
    /// # Panics
    /// When the trace does not have it.
    pub fn task(&self, id: TaskId) -> &Task {
        &self.tasks[id.index()]
    }

    /// The tasks by [`TaskId`], the idle task included.
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// The CPUs by number.
    pub fn cpus(&self) -> &[Cpu] {
        &self.cpus
    }

    /// Contradictions so far.
    pub fn irregularities(&self) -> &Irregularities {
        &self.irregularities
    }

    /// At the begin of a trace, whose tasks are entered.
    fn new(trace: &Trace, starts_idle: bool, queued_at_waking: bool) -> Self {
        let (now_ns, _) = extent(trace);
        let running = starts_idle.then_some(TaskId::IDLE);
        let mut states = Self {
            now_ns,
            tasks: Vec::new(),
            cpus: vec![Cpu { running, since_ns: now_ns, in_gap: false }; trace.cpus as usize],
            lost_ns: 0,
            starts_idle,
            queued_at_waking,
            irregularities: Irregularities { loss: trace.loss.clone(), ..Default::default() },
        };
        states.add_tasks(trace, now_ns);
        states
    }

    /// Enters the tasks of the trace that are new; nothing is known of them since `since_ns`.
    pub(crate) fn add_tasks(&mut self, trace: &Trace, since_ns: u64) {
        for id in self.tasks.len()..trace.tasks().len() {
            self.tasks.push(Task {
                id: TaskId(id as u32),
                state: State::Initial,
                since_ns,
                cpu: 0,
                ran_on: None,
                preempted: false,
                woken_ns: None,
                waker: None,
                lock: None,
                early_waking_ns: None,
            });
        }
    }

    /// Drives an observer over a whole trace.
    pub fn observe(mut self, trace: &Trace, observer: &mut impl Observer) -> Self {
        trace.events().for_each(|event| self.take(trace, &event, observer));
        self
    }

    /// Takes the next event. Events that lie before the last one count as simultaneous with it; those that name what
    /// the trace does not have are ignored.
    #[inline(always)]
    pub fn take<O: Observer>(&mut self, trace: &Trace, event: &Event, observer: &mut O) {
        if event.time_ns < self.now_ns {
            self.irregularities.clock_jumps += 1;
        } else {
            self.advance(event.time_ns, observer);
        }
        let (tasks, cpus) = (trace.tasks().len(), trace.cpus);
        let is_within = event.kind.is_within(tasks, cpus, trace.cgroups().len());
        if event.cpu >= cpus || !is_within {
            self.irregularities.out_of_range += 1;
            return;
        }
        observer.on_event(trace, self, event);
        match event.kind {
            EventKind::Switch { prev, prev_state, next } => {
                self.on_switch(event.cpu, prev, prev_state, next, observer);
            }
            EventKind::Waking { task, waker, target_cpu } => {
                self.on_waking(task, waker, target_cpu, observer);
            }
            _ => self.take_rarer(trace, event, observer),
        }
    }

    /// Lets time pass.
    #[inline(always)]
    pub(crate) fn advance<O: Observer>(&mut self, now_ns: u64, observer: &mut O) {
        if now_ns > self.now_ns {
            self.now_ns = now_ns;
            observer.on_time(now_ns);
        }
    }

    #[inline(never)]
    fn take_rarer<O: Observer>(&mut self, trace: &Trace, event: &Event, observer: &mut O) {
        match event.kind {
            EventKind::Wakeup { task, target_cpu } => {
                self.on_wakeup(task, target_cpu, false, observer);
            }
            EventKind::WakeupNew { task, target_cpu } => {
                self.on_wakeup(task, target_cpu, true, observer);
            }
            EventKind::Migrate { task, to_cpu, .. } => {
                self.requeue(task, to_cpu, Cause::Migrate, observer);
            }
            EventKind::Fork { child, .. } => self.on_fork(child, observer),
            EventKind::Exit { task } => self.on_exit(task, observer),
            EventKind::Lost { .. } => self.on_lost(event.cpu, observer),
            EventKind::Param { label } => self.on_param(trace.label(label), observer),
            EventKind::ContentionBegin { task, lock, .. } => {
                self.tasks[task.index()].lock = Some(lock);
            }
            EventKind::ContentionEnd { task, .. } => self.tasks[task.index()].lock = None,
            _ => {}
        }
    }
}

/// The CPU that goes offline (false) or comes back (true) with a setting of the run.
pub(crate) fn hotplug(setting: &str) -> Option<(u32, bool)> {
    let (cpu, value) = setting.strip_prefix("cpu.")?.split_once(".online=")?;
    Some((cpu.parse().ok()?, value == "on"))
}

/// The first and the last instant of a trace, ns.
pub(crate) fn extent(trace: &Trace) -> (u64, u64) {
    let last = trace.len().checked_sub(1).and_then(|last| trace.get(last));
    let first_ns = trace.get(0).map_or(trace.start_ns, |first| first.time_ns);
    let start_ns = trace.start_ns.min(first_ns);
    let last_ns = last.map_or(start_ns, |last| last.time_ns);
    (start_ns, trace.end_ns.max(last_ns).max(start_ns))
}

/// Whether any event is a `sched_wakeup`.
fn has_wakeups(trace: &Trace) -> bool {
    trace.events().any(|event| matches!(event.kind, EventKind::Wakeup { .. }))
}
