//! The state of every task and CPU of a trace: the one place that decides what an event means for them.
//!
//! [`States`] takes events in order of time, one by one, from whatever produces them, and tells an [`Observer`] of each change:
//! which task left which state for which, what the time in the old state was, and why it changed. Metrics, findings, waits for
//! locks and perf's figures are observers.
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
//! A task that is asked to wake before it has left its CPU goes from Running to Waking at the switch. A recording that lacks
//! `sched_wakeup` queues a task at `sched_waking`. Events that contradict each other leave [`State::Unknown`] behind and are
//! counted in [`Irregularities`].

use crate::Irregularities;
use fairground_trace::{CgroupId, Event, EventKind, Label, TaskId, TaskState, Trace};

/// Where a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
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
    /// In the queue of a CPU.
    Waiting,
    /// On a CPU.
    Running,
}

impl State {
    /// Whether the task is runnable and belongs to a CPU.
    pub(crate) fn is_queued(self) -> bool {
        matches!(self, State::Waiting | State::Running)
    }

    /// Whether the task is in a wait that a switch-in ends.
    pub(crate) fn waits(self) -> bool {
        matches!(self, State::Waiting | State::Waking)
    }
}

/// What a task did in a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeKind {
    Run,
    /// Runnable, between waking and wakeup.
    Waking,
    /// Runnable in a queue after a switch-out in state R.
    Preempted,
    /// Runnable in a queue after a wake-up.
    Queued,
    Sleep,
    Absent,
    Unknown,
}

/// A task.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) id: TaskId,
    pub(crate) state: State,
    /// Begin of the state, ns; Waking and the Waiting that follows it count as one, as does Waiting in several queues.
    pub(crate) since_ns: u64,
    /// The CPU on which it runs or in whose queue it waits.
    pub(crate) cpu: u32,
    /// The CPU on which it ran last.
    pub(crate) ran_on: Option<u32>,
    /// Whether the present wait began with a switch-out in state R.
    pub(crate) preempted: bool,
    /// When the wake-up was asked for that its present wait follows, ns.
    pub(crate) woken_ns: Option<u64>,
    /// The task in whose context it was woken last; `None`: an interrupt, the idle task, or not known.
    pub(crate) waker: Option<TaskId>,
    /// The lock that it waits for, asleep or spinning.
    pub(crate) lock: Option<Label>,
    /// It was asked to wake while it was still on the CPU: when, ns.
    early_waking_ns: Option<u64>,
}

impl Task {
    /// What it has been doing since its last change.
    #[inline(always)]
    pub(crate) fn time_kind(&self) -> TimeKind {
        match self.state {
            State::Initial | State::Unknown => TimeKind::Unknown,
            State::Absent => TimeKind::Absent,
            State::Asleep => TimeKind::Sleep,
            State::Waking => TimeKind::Waking,
            State::Waiting if self.preempted => TimeKind::Preempted,
            State::Waiting => TimeKind::Queued,
            State::Running => TimeKind::Run,
        }
    }
}

/// A CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cpu {
    /// The task that runs, [`TaskId::IDLE`] for none; `None`: that is not known.
    pub(crate) running: Option<TaskId>,
    /// Since when, ns.
    pub(crate) since_ns: u64,
}

/// Why a task changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// It left a CPU in state `left`. `slice_ns`: how long it had run there, where the trace shows the begin.
    SwitchOut { left: TaskState, slice_ns: Option<u64> },
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
    /// It ran, and lost events may have ended that.
    Loss,
    /// It was thought to run, and another event contradicts that.
    Contradiction,
}

/// A change of a task's state or queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    /// The state before.
    pub(crate) from: State,
    /// [`Task::cpu`] before.
    pub(crate) from_cpu: u32,
    /// What the time since the last change was.
    pub(crate) time: TimeKind,
    /// [`Task::woken_ns`] was set before.
    pub(crate) was_woken: bool,
    pub(crate) cause: Cause,
}

/// Receives the changes of tasks and CPUs.
pub(crate) trait Observer {
    /// The next events happen at `now_ns`, later than those before.
    fn on_time(&mut self, _now_ns: u64) {}

    /// An event, before the changes that it makes. All tasks, CPUs and control groups that it names exist, save for wakers.
    fn on_event(&mut self, trace: &Trace, states: &States, event: &Event);

    /// What runs on a CPU changed. `disowned`: what it was thought to run before was wrong.
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
pub(crate) struct States {
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
    /// At the begin of a trace, whose tasks are entered.
    pub(crate) fn new(trace: &Trace, starts_idle: bool, queued_at_waking: bool) -> Self {
        let (now_ns, _) = extent(trace);
        let running = starts_idle.then_some(TaskId::IDLE);
        let mut states = Self {
            now_ns,
            tasks: Vec::new(),
            cpus: vec![Cpu { running, since_ns: now_ns }; trace.cpus as usize],
            lost_ns: 0,
            starts_idle,
            queued_at_waking,
            irregularities: Irregularities::default(),
        };
        states.add_tasks(trace);
        states
    }

    /// Enters the tasks of the trace that are new.
    pub(crate) fn add_tasks(&mut self, trace: &Trace) {
        for id in self.tasks.len()..trace.tasks().len() {
            self.tasks.push(Task {
                id: TaskId(id as u32),
                state: State::Initial,
                since_ns: self.now_ns,
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
    pub(crate) fn observe(mut self, trace: &Trace, observer: &mut impl Observer) -> Self {
        trace.events().for_each(|event| self.take(trace, &event, observer));
        self
    }

    /// What happened next. Events that lie before the last one count as simultaneous with it; those that name what the trace
    /// does not have are ignored.
    #[inline(always)]
    pub(crate) fn take<O: Observer>(&mut self, trace: &Trace, event: &Event, observer: &mut O) {
        if event.time_ns < self.now_ns {
            self.irregularities.clock_jumps += 1;
        } else {
            self.advance(event.time_ns, observer);
        }
        if !is_in_range(trace, event) {
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
            _ => self.take_rarer(event, observer),
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
    fn take_rarer<O: Observer>(&mut self, event: &Event, observer: &mut O) {
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
            EventKind::ContentionBegin { task, lock, .. } => {
                self.tasks[task.index()].lock = Some(lock);
            }
            EventKind::ContentionEnd { task, .. } => self.tasks[task.index()].lock = None,
            _ => {}
        }
    }

    /// Enters a change: `update` sets what else is new of the task.
    #[inline(always)]
    fn change<O: Observer>(
        &mut self,
        id: TaskId,
        (to, cpu): (State, u32),
        time: TimeKind,
        cause: Cause,
        observer: &mut O,
        update: impl FnOnce(&mut Task),
    ) {
        let task = &mut self.tasks[id.index()];
        let was_woken = task.woken_ns.is_some();
        let change = Change { from: task.state, from_cpu: task.cpu, time, was_woken, cause };
        (task.state, task.cpu) = (to, cpu);
        update(task);
        observer.on_change(task, &change);
    }

    #[inline(always)]
    fn run_on<O: Observer>(
        &mut self,
        cpu: u32,
        task: Option<TaskId>,
        disowned: bool,
        observer: &mut O,
    ) -> Option<TaskId> {
        let now = Cpu { running: task, since_ns: self.now_ns };
        let before = std::mem::replace(&mut self.cpus[cpu as usize], now).running;
        observer.on_cpu(cpu, before, task, disowned);
        before.filter(|task| !task.is_idle())
    }

    /// What the CPU was known to run turned out to be wrong.
    #[cold]
    fn disown<O: Observer>(&mut self, cpu: u32, observer: &mut O) {
        let now_ns = self.now_ns;
        if let Some(task) = self.run_on(cpu, None, true, observer) {
            let (to, time) = ((State::Unknown, cpu), TimeKind::Unknown);
            let update = |task: &mut Task| task.since_ns = now_ns;
            self.change(task, to, time, Cause::Contradiction, observer, update);
        }
    }

    /// After lost events neither the CPU's state nor that of its task is known.
    fn on_lost<O: Observer>(&mut self, cpu: u32, observer: &mut O) {
        let now_ns = self.now_ns;
        self.lost_ns = now_ns;
        if let Some(task) = self.run_on(cpu, None, false, observer) {
            let time = self.tasks[task.index()].time_kind();
            let update = |task: &mut Task| task.since_ns = now_ns;
            self.change(task, (State::Unknown, cpu), time, Cause::Loss, observer, update);
        }
    }

    #[inline(always)]
    fn on_switch<O: Observer>(
        &mut self,
        cpu: u32,
        prev: TaskId,
        left: TaskState,
        next: TaskId,
        observer: &mut O,
    ) {
        if self.cpus[cpu as usize].running.is_some_and(|known| known != prev) {
            self.irregularities.broken_switches += 1;
            self.disown(cpu, observer);
        }
        if !prev.is_idle() {
            self.switch_out(cpu, prev, left, observer);
        }
        if !next.is_idle() {
            self.switch_in(cpu, next, observer);
        }
        self.run_on(cpu, Some(next), false, observer);
    }

    #[inline(always)]
    fn switch_out<O: Observer>(&mut self, cpu: u32, id: TaskId, left: TaskState, observer: &mut O) {
        let (task, now_ns) = (&self.tasks[id.index()], self.now_ns);
        let ran_here = task.state == State::Running && task.cpu == cpu;
        let slice_ns = ran_here.then(|| now_ns - task.since_ns);
        if !ran_here {
            self.contradict_run(id, observer);
        }
        let task = &mut self.tasks[id.index()];
        let early_waking_ns = task.early_waking_ns.take();
        let to = match (left, early_waking_ns) {
            (TaskState::Runnable, _) => State::Waiting,
            (TaskState::Dead, _) => State::Absent,
            (_, Some(_)) if self.queued_at_waking => State::Waiting,
            (_, Some(_)) => State::Waking,
            (_, None) => State::Asleep,
        };
        let time = if ran_here { TimeKind::Run } else { TimeKind::Unknown };
        let cause = Cause::SwitchOut { left, slice_ns };
        self.change(id, (to, cpu), time, cause, observer, |task| {
            task.since_ns = now_ns;
            task.ran_on = Some(cpu);
            task.preempted = left == TaskState::Runnable;
            task.woken_ns = early_waking_ns.filter(|_| to.waits() && !task.preempted);
        });
    }

    /// A task that leaves or enters a CPU was not known to be where that is possible.
    #[cold]
    fn contradict_run<O: Observer>(&mut self, id: TaskId, observer: &mut O) {
        let task = &self.tasks[id.index()];
        match task.state {
            State::Running => {
                self.irregularities.doubly_running += 1;
                self.disown(task.cpu, observer);
            }
            State::Absent => self.irregularities.after_exit += 1,
            _ => {}
        }
    }

    #[inline(always)]
    fn switch_in<O: Observer>(&mut self, cpu: u32, id: TaskId, observer: &mut O) {
        if self.tasks[id.index()].state != State::Waiting {
            self.contradict_run(id, observer);
        }
        let (task, now_ns) = (&self.tasks[id.index()], self.now_ns);
        let waited = task.state.waits();
        let missed_wakeup = task.state == State::Asleep;
        self.irregularities.missed_wakeups += u64::from(missed_wakeup);
        let cause = Cause::SwitchIn {
            wait_ns: waited.then(|| now_ns - task.since_ns),
            latency_ns: task.woken_ns.filter(|_| waited).map(|woken_ns| now_ns - woken_ns),
            missed_wakeup,
            changed_cpu: task.ran_on.is_some_and(|before| before != cpu),
        };
        let time = if missed_wakeup { TimeKind::Unknown } else { task.time_kind() };
        self.change(id, (State::Running, cpu), time, cause, observer, |task| {
            (task.since_ns, task.ran_on) = (now_ns, Some(cpu));
            (task.woken_ns, task.early_waking_ns) = (None, None);
        });
    }

    #[inline(always)]
    fn on_waking<O: Observer>(
        &mut self,
        id: TaskId,
        waker: TaskId,
        target_cpu: u32,
        observer: &mut O,
    ) {
        if id.is_idle() {
            return;
        }
        let is_task = !waker.is_idle() && waker.index() < self.tasks.len();
        let waker = is_task.then_some(waker);
        let task = &mut self.tasks[id.index()];
        match task.state {
            State::Running => (task.early_waking_ns, task.waker) = (Some(self.now_ns), waker),
            State::Waking | State::Waiting => {}
            State::Asleep | State::Initial | State::Unknown | State::Absent => {
                task.waker = waker;
                self.irregularities.after_exit += u64::from(task.state == State::Absent);
                let to = if self.queued_at_waking { State::Waiting } else { State::Waking };
                self.begin_wait(id, (to, target_cpu), TimeKind::Sleep, true, observer);
            }
        }
    }

    /// `first`: the task is new.
    fn on_wakeup<O: Observer>(&mut self, id: TaskId, cpu: u32, first: bool, observer: &mut O) {
        if id.is_idle() {
            return;
        }
        let task = &mut self.tasks[id.index()];
        let to = (State::Waiting, cpu);
        match task.state {
            // Woken before it came off the CPU: it never slept.
            State::Running => task.early_waking_ns = None,
            State::Waiting => self.requeue(id, cpu, Cause::Wakeup, observer),
            State::Waking => {
                self.change(id, to, TimeKind::Waking, Cause::Wakeup, observer, |_| {});
            }
            State::Initial | State::Unknown | State::Absent | State::Asleep => {
                task.waker = None;
                let before = if first { TimeKind::Absent } else { TimeKind::Sleep };
                let ended = task.state == State::Absent && !first;
                self.irregularities.after_exit += u64::from(ended);
                self.begin_wait(id, to, before, !first, observer);
            }
        }
    }

    /// `before`: what a task that no event has named has done until now, where the recording saw all of it. `woken`: the wait
    /// follows a request to wake.
    #[inline(always)]
    fn begin_wait<O: Observer>(
        &mut self,
        id: TaskId,
        to: (State, u32),
        before: TimeKind,
        woken: bool,
        observer: &mut O,
    ) {
        let (task, now_ns) = (&self.tasks[id.index()], self.now_ns);
        // A new task did not exist before; any other slept if the recording saw everything.
        let is_told = self.starts_idle || before == TimeKind::Absent;
        let time = match task.state {
            State::Initial if is_told => before,
            _ => task.time_kind(),
        };
        self.change(id, to, time, Cause::Wakeup, observer, |task| {
            (task.since_ns, task.preempted) = (now_ns, false);
            task.woken_ns = woken.then_some(now_ns);
        });
    }

    /// A waiting task moves to the queue of a CPU.
    fn requeue<O: Observer>(&mut self, id: TaskId, cpu: u32, cause: Cause, observer: &mut O) {
        let task = &self.tasks[id.index()];
        if task.state == State::Waiting && task.cpu != cpu && !id.is_idle() {
            let time = task.time_kind();
            self.change(id, (State::Waiting, cpu), time, cause, observer, |_| {});
        }
    }

    fn on_fork<O: Observer>(&mut self, child: TaskId, observer: &mut O) {
        let now_ns = self.now_ns;
        let is_new = matches!(self.tasks[child.index()].state, State::Initial | State::Absent);
        if is_new && !child.is_idle() {
            let (to, time) = ((State::Asleep, 0), TimeKind::Absent);
            let update = |task: &mut Task| task.since_ns = now_ns;
            self.change(child, to, time, Cause::Fork, observer, update);
        }
    }

    /// A task announces its end while it is still on the CPU; the switch away in state dead is its end. One that is
    /// anywhere else has ended already.
    fn on_exit<O: Observer>(&mut self, id: TaskId, observer: &mut O) {
        let (task, now_ns) = (&self.tasks[id.index()], self.now_ns);
        if !id.is_idle() && task.state != State::Running {
            let time = task.time_kind();
            self.change(id, (State::Absent, 0), time, Cause::Exit, observer, |task| {
                (task.since_ns, task.woken_ns) = (now_ns, None);
            });
        }
    }
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
pub(crate) fn has_wakeups(trace: &Trace) -> bool {
    trace.events().any(|event| matches!(event.kind, EventKind::Wakeup { .. }))
}

/// Whether every task, CPU and control group that an event names is one of the trace's.
#[inline(always)]
fn is_in_range(trace: &Trace, event: &Event) -> bool {
    let task = |task: TaskId| task.index() < trace.tasks().len();
    let cpu = |cpu: u32| cpu < trace.cpus;
    cpu(event.cpu)
        && match event.kind {
            EventKind::Switch { prev, next, .. } => task(prev) && task(next),
            EventKind::Waking { task: t, target_cpu, .. }
            | EventKind::Wakeup { task: t, target_cpu }
            | EventKind::WakeupNew { task: t, target_cpu } => task(t) && cpu(target_cpu),
            EventKind::Migrate { task: t, from_cpu, to_cpu } => {
                task(t) && cpu(from_cpu) && cpu(to_cpu)
            }
            EventKind::Fork { child: t, .. }
            | EventKind::Exit { task: t }
            | EventKind::Nice { task: t, .. }
            | EventKind::Tick { task: t }
            | EventKind::Mark { task: t, .. }
            | EventKind::ContentionEnd { task: t, .. }
            | EventKind::Stack { task: t, .. }
            | EventKind::Callback { task: t, .. } => task(t),
            EventKind::ContentionBegin { task: t, holder, .. } => task(t) && task(holder),
            EventKind::CgroupMove { task: t, from, to } => {
                let known = |id: CgroupId| id.index() < trace.cgroups().len();
                task(t) && known(from) && known(to)
            }
            EventKind::CgroupWeight { cgroup, .. } => cgroup.index() < trace.cgroups().len(),
            EventKind::Param { .. } | EventKind::Print { .. } | EventKind::Lost { .. } => true,
        }
}
