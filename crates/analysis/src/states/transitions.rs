//! The transitions of tasks and CPUs: what each kind of event means for the states of those that it names.

use fairground_trace::{TaskId, TaskState};

use super::{Cause, Change, Cpu, Observer, State, States, Task, TimeKind};

impl States {
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
        let now = Cpu { running: task, since_ns: self.now_ns, in_gap: false };
        let before = std::mem::replace(&mut self.cpus[cpu as usize], now).running;
        observer.on_cpu(cpu, before, task, disowned);
        before.filter(|task| !task.is_idle())
    }

    /// Takes back what the CPU was known to run, which turned out to be wrong.
    #[cold]
    fn disown<O: Observer>(&mut self, cpu: u32, observer: &mut O) {
        let now_ns = self.now_ns;
        if let Some(task) = self.run_on(cpu, None, true, observer) {
            let (to, time) = ((State::Unknown, cpu), TimeKind::Unknown);
            let update = |task: &mut Task| task.since_ns = now_ns;
            self.change(task, to, time, Cause::Contradiction, observer, update);
        }
    }

    /// A CPU that has gone offline runs nothing, and is not idle, up to its return or the next switch there.
    pub(super) fn on_param<O: Observer>(&mut self, setting: &str, observer: &mut O) {
        let Some((cpu, online)) = super::hotplug(setting) else { return };
        let Some(now) = self.cpus.get(cpu as usize) else { return };
        let (from, to) = match online {
            true => (None, Some(TaskId::IDLE)),
            false => (Some(TaskId::IDLE), None),
        };
        if now.running == from {
            self.run_on(cpu, to, false, observer);
        }
    }

    /// After lost events neither the CPU's state is known, nor that of its task and of those in its queue.
    pub(super) fn on_lost<O: Observer>(&mut self, cpu: u32, observer: &mut O) {
        let now_ns = self.now_ns;
        self.lost_ns = now_ns;
        let ran = self.run_on(cpu, None, false, observer);
        let waits = self.tasks.iter().filter(|task| task.state.waits() && task.cpu == cpu);
        let concerned: Vec<TaskId> = ran.into_iter().chain(waits.map(|task| task.id)).collect();
        for id in concerned {
            let time = self.tasks[id.index()].time_kind();
            let update = |task: &mut Task| (task.since_ns, task.woken_ns) = (now_ns, None);
            self.change(id, (State::Unknown, cpu), time, Cause::Loss, observer, update);
        }
        self.cpus[cpu as usize].in_gap = true;
    }

    #[inline(always)]
    pub(super) fn on_switch<O: Observer>(
        &mut self,
        cpu: u32,
        prev: TaskId,
        left: TaskState,
        next: TaskId,
        observer: &mut O,
    ) {
        match self.cpus[cpu as usize] {
            Cpu { running: Some(known), .. } if known != prev => {
                self.irregularities.broken_switches += 1;
                self.disown(cpu, observer);
            }
            Cpu { running: None, in_gap: true, .. } => self.lost_ns = self.now_ns,
            _ => {}
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
        let to = match early_waking_ns {
            _ if left.is_runnable() => State::Waiting,
            _ if left.is_dead() => State::Absent,
            Some(_) => State::WokenEarly,
            None => State::Asleep,
        };
        let time = if ran_here { TimeKind::Run } else { TimeKind::Unknown };
        let cause = Cause::SwitchOut { left, slice_ns };
        self.change(id, (to, cpu), time, cause, observer, |task| {
            task.since_ns = now_ns;
            task.ran_on = Some(cpu);
            task.preempted = left.is_runnable();
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
    pub(super) fn on_waking<O: Observer>(
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
            State::Asleep | State::WokenEarly | State::Initial | State::Unknown | State::Absent => {
                task.waker = waker;
                self.irregularities.after_exit += u64::from(task.state == State::Absent);
                let to = if self.queued_at_waking { State::Waiting } else { State::Waking };
                self.begin_wait(id, (to, target_cpu), TimeKind::Sleep, true, observer);
            }
        }
    }

    /// `first`: the task is new.
    pub(super) fn on_wakeup<O: Observer>(
        &mut self,
        id: TaskId,
        cpu: u32,
        first: bool,
        observer: &mut O,
    ) {
        if id.is_idle() {
            return;
        }
        let task = &mut self.tasks[id.index()];
        let to = (State::Waiting, cpu);
        match task.state {
            // Woken before it came off the CPU: it never slept.
            State::Running => task.early_waking_ns = None,
            State::Waiting => self.requeue(id, cpu, Cause::Wakeup, observer),
            State::Waking | State::WokenEarly => {
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

    /// `before`: what a task that no event has named has done until now, where the recording saw all of it.
    /// `woken`: the wait follows a request to wake.
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
            // It is asked to wake again.
            State::WokenEarly => TimeKind::Sleep,
            _ => task.time_kind(),
        };
        self.change(id, to, time, Cause::Wakeup, observer, |task| {
            (task.since_ns, task.preempted) = (now_ns, false);
            task.woken_ns = woken.then_some(now_ns);
        });
    }

    /// A waiting task moves to the queue of a CPU.
    pub(super) fn requeue<O: Observer>(
        &mut self,
        id: TaskId,
        cpu: u32,
        cause: Cause,
        observer: &mut O,
    ) {
        let task = &self.tasks[id.index()];
        if task.state == State::Waiting && task.cpu != cpu && !id.is_idle() {
            let time = task.time_kind();
            self.change(id, (State::Waiting, cpu), time, cause, observer, |_| {});
        }
    }

    pub(super) fn on_fork<O: Observer>(&mut self, child: TaskId, observer: &mut O) {
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
    pub(super) fn on_exit<O: Observer>(&mut self, id: TaskId, observer: &mut O) {
        let (task, now_ns) = (&self.tasks[id.index()], self.now_ns);
        if !id.is_idle() && task.state != State::Running {
            let time = task.time_kind();
            self.change(id, (State::Absent, 0), time, Cause::Exit, observer, |task| {
                (task.since_ns, task.woken_ns) = (now_ns, None);
            });
        }
    }
}
