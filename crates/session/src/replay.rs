//! A workload from a recording: an observer of task states that writes down what each task did.
//!
//! [`ReplayBuilder`] defines the programs of a replay; this module maps parts of a recording to operations. What a
//! recording does not contain is counted in [`ReplayNotes`], never invented: run time of a task before the first event
//! that names it, except for the first task that is seen on a CPU, which ran there from the first event on; what lost
//! events held.

mod charges;
mod nearness;
mod own;
mod plan;

use fairground_analysis::states::{Cause, Change, Observer, State, States, Task, TimeKind};
use fairground_trace::{
    Call, CgroupInfo, Event, EventKind, Policy, RtPrio, TaskId, TaskInfo, Trace,
};
use fairground_workload::{
    CpuList, MessageId, ReplayBuilder, ReplayNotes, SchedPolicy, Workload, WorkloadError,
};

pub use charges::Charges;
pub use nearness::{Closeness, Near, nearness, worst};
pub use own::{OwnScheduler, recorded_machine};
pub use plan::{Replay, without_pid};

/// Makes a workload named `name` of a whole recording, for a machine that charges for kernel work anew, and notes what
/// the recording does not contain.
///
/// # Errors
/// When no task of the recording ever ran, or when the workload passes a limit (groups, operations).
pub fn replay_workload(
    name: &str,
    trace: &Trace,
    charges: Charges,
) -> Result<(Workload, ReplayNotes), WorkloadError> {
    let states = States::of(trace, false);
    let first_ns = trace.get(0).map_or(0, |event| event.time_ns).max(states.now_ns());
    let mut recorder = Recorder {
        builder: ReplayBuilder::new(name),
        charges,
        first_ns,
        now_ns: states.now_ns(),
        seen_cpus: vec![false; trace.cpus as usize],
        is_first: false,
        message: None,
        has_wakings: trace.events().any(|event| matches!(event.kind, EventKind::Waking { .. })),
        has_wakeups: trace.events().any(|event| matches!(event.kind, EventKind::Wakeup { .. })),
        ends_idling: false,
        tasks: vec![Recorded::default(); trace.tasks().len()],
    };
    for (id, task) in trace.tasks().iter().enumerate().skip(1) {
        recorder.task(trace, id as u32, task);
    }
    let start_ns = states.now_ns();
    recorder.builder.begin_at(first_ns - start_ns);
    let states = states.observe(trace, &mut recorder);
    recorder.finish(&states, (start_ns, trace.end_ns))
}

/// The policy of a task of a class above the normal one. The stop class has the priority 99 in a recording; the
/// deadline class, which the simulated machine does not have, gets it.
fn policy_of(prio: RtPrio, policy: Option<Policy>) -> SchedPolicy {
    let priority = prio.sched_priority().unwrap_or(99);
    if policy == Some(Policy::Rr) { SchedPolicy::Rr(priority) } else { SchedPolicy::Fifo(priority) }
}

/// A wake-up of a task that has not left its CPU yet.
#[derive(Clone, Copy, Debug)]
enum EarlyWake {
    Message(MessageId),
    Outside,
}

/// A task while the recording is read.
#[derive(Clone, Copy, Debug, Default)]
struct Recorded {
    /// While it runs: from when on that is not written down yet, ns.
    runs_from_ns: Option<u64>,
    /// While it is blocked: since when, ns.
    blocked_from_ns: Option<u64>,
    /// The first event that named it queued it: when, ns. It may have come onto a CPU of which there was no event yet.
    queued_from_ns: Option<u64>,
    early: Option<EarlyWake>,
    /// It is of a class above the normal one now.
    is_above_normal: bool,
    /// The last message that it sent in its present burst.
    sent: Option<MessageId>,
    /// What the machine charges it anew and was not taken out of its bursts yet, ns.
    charged_ns: u64,
}

struct Recorder {
    builder: ReplayBuilder,
    charges: Charges,
    /// The time of the first event.
    first_ns: u64,
    now_ns: u64,
    /// CPUs of which there was an event that says what they run.
    seen_cpus: Vec<bool>,
    /// The present switch is the first event of its CPU.
    is_first: bool,
    /// The message of the present wake-up.
    message: Option<MessageId>,
    /// The recording has `sched_waking`. Without it, a task whose first event is a wake-up was blocked until then.
    has_wakings: bool,
    has_wakeups: bool,
    /// The present switch ends the idling of its CPU.
    ends_idling: bool,
    tasks: Vec<Recorded>,
}

impl Recorder {
    /// What is known of a task beforehand.
    fn task(&mut self, trace: &Trace, id: u32, task: &TaskInfo) {
        self.builder.task(id, task.pid, &task.comm, task.nice.unwrap_or(0));
        if let Some(prio) = task.rt_prio.filter(|_| task.nice.is_none()) {
            self.builder.notes.deadlines += u64::from(prio.is_deadline());
            self.builder.begin_under(id, policy_of(prio, task.policy));
            self.tasks[id as usize].is_above_normal = true;
        }
        if let Some(cpus) = &task.allowed_cpus {
            self.builder.allow(id, CpuList::of(cpus.clone()));
        }
        let own = task.cgroup.map(|cgroup| &trace.cgroups()[cgroup.index()]);
        let Some(own) = own.filter(|own| own.parent.is_some()) else { return };
        self.builder.join(id, &own.path);
        let above = |cgroup: &&CgroupInfo| cgroup.parent.map(|id| &trace.cgroups()[id.index()]);
        let way = std::iter::successors(Some(own), above).filter(|one| one.parent.is_some());
        let mut known = true;
        way.for_each(|one| known &= self.builder.cgroup(&one.path, one.weight));
        self.builder.notes.unplaced_cgroups += u64::from(!known);
    }

    /// A burst, or a part of one, without what the machine charges for it.
    fn run(&mut self, id: TaskId, ns: u64) {
        let charged_ns = &mut self.tasks[id.index()].charged_ns;
        let taken_ns = ns.min(*charged_ns);
        *charged_ns -= taken_ns;
        self.builder.notes.charged_ns += taken_ns;
        self.builder.run(id.0, ns - taken_ns);
    }

    fn charge(&mut self, id: TaskId, ns: u64) {
        self.tasks[id.index()].charged_ns += ns;
    }

    /// Charges what a CPU runs.
    fn charge_current(&mut self, states: &States, cpu: u32, ns: u64) {
        if let Some(id) = states.cpus()[cpu as usize].running.filter(|id| !id.is_idle()) {
            self.charge(id, ns);
        }
    }

    /// Ends the burst of a running task at this time and begins the next one; `false` when it does not run.
    fn split_burst(&mut self, id: TaskId) -> bool {
        let now_ns = self.now_ns;
        let runs_from_ns = &mut self.tasks[id.index()].runs_from_ns;
        let Some(from_ns) = runs_from_ns.as_mut().map(|from| std::mem::replace(from, now_ns))
        else {
            return false;
        };
        self.run(id, now_ns - from_ns);
        true
    }

    /// Lets the waker send at this point of its burst; `None` when no recorded task did it.
    fn send(
        &mut self,
        states: &States,
        cpu: u32,
        waker: TaskId,
        wakee: TaskId,
    ) -> Option<MessageId> {
        if waker.is_idle() {
            self.charge_current(states, cpu, self.charges.interrupt_ns + self.charges.wakeup_ns);
            return None;
        }
        if waker == wakee || waker.index() >= self.tasks.len() {
            return None;
        }
        let from_ns = self.unseen_from_ns(waker, states.task(waker).state);
        let seen = &mut self.seen_cpus[cpu as usize];
        let runs_from_ns = &mut self.tasks[waker.index()].runs_from_ns;
        if !*seen && runs_from_ns.is_none() && from_ns.is_some() {
            // The first event of this CPU: the waker has been running there.
            (*seen, *runs_from_ns) = (true, from_ns);
        }
        if !self.split_burst(waker) {
            self.builder.notes.wakers_not_running += 1;
            return None;
        }
        self.charge(waker, self.charges.wakeup_ns);
        let message = self.builder.send(waker.0, wakee.0);
        self.tasks[waker.index()].sent = Some(message);
        Some(message)
    }

    /// From when on a task that was not seen on a CPU may have run on one of which there was no event, ns; `None`
    /// where its state excludes that.
    fn unseen_from_ns(&self, id: TaskId, state: State) -> Option<u64> {
        let unnamed = (state == State::Initial).then_some(self.first_ns);
        self.tasks[id.index()].queued_from_ns.or(unnamed)
    }

    fn on_waking(&mut self, states: &States, cpu: u32, waker: TaskId, wakee: TaskId) {
        let state = states.task(wakee).state;
        if self.tasks[wakee.index()].runs_from_ns.is_some() {
            let message = self.send(states, cpu, waker, wakee);
            let early = message.map_or(EarlyWake::Outside, EarlyWake::Message);
            self.tasks[wakee.index()].early = Some(early);
        } else if (state.waits() && state != State::WokenEarly) || state == State::Absent {
            self.builder.notes.needless_wakes += 1;
        } else {
            let recorded = &mut self.tasks[wakee.index()];
            if state == State::WokenEarly {
                // The one before ended no sleep.
                recorded.early = None;
                recorded.sent.take().into_iter().for_each(|sent| self.builder.blocked_after(sent));
            }
            self.message = self.send(states, cpu, waker, wakee);
            if state == State::Initial {
                self.tasks[wakee.index()].blocked_from_ns = Some(self.first_ns);
            }
        }
    }

    fn on_fork(&mut self, states: &States, parent: TaskId, child: TaskId) {
        if child.is_idle() {
            return;
        }
        let runs = self.tasks[child.index()].runs_from_ns.is_some();
        if runs || states.task(child).state != State::Initial {
            self.builder.notes.unplaced_forks += 1;
        } else if !parent.is_idle() && self.split_burst(parent) {
            self.builder.notes.forks += 1;
            self.builder.fork(parent.0, child.0);
        } else {
            self.builder.notes.unplaced_forks += 1;
            self.builder.start_at(child.0, self.now_ns - self.first_ns);
        }
    }

    fn on_switch_out(&mut self, task: &Task, change: &Change) {
        // The first event of this CPU, and of this task on one: it has been running there.
        let unseen = self.unseen_from_ns(task.id, change.from).filter(|_| self.is_first);
        let recorded = &mut self.tasks[task.id.index()];
        let blocked_from_ns = recorded.blocked_from_ns.take();
        let early = recorded.early.take();
        let sent = recorded.sent.take();
        recorded.queued_from_ns = None;
        recorded.charged_ns += self.charges.choice_ns;
        match recorded.runs_from_ns.take().or(unseen) {
            Some(from_ns) => self.run(task.id, self.now_ns - from_ns),
            None => {
                self.builder.notes.unmatched_switches += 1;
                self.miss_wakeup(task.id, blocked_from_ns);
            }
        }
        let recorded = &mut self.tasks[task.id.index()];
        match early.filter(|_| !task.preempted) {
            // The next event shows whether it blocked.
            _ if task.state == State::WokenEarly => {
                recorded.blocked_from_ns = Some(self.now_ns);
                (recorded.early, recorded.sent) = (early, sent);
            }
            Some(EarlyWake::Message(message)) => self.builder.receive_early(task.id.0, message),
            // It was woken before it could block: it does not wait.
            Some(EarlyWake::Outside) => {}
            None if task.state == State::Asleep => {
                recorded.blocked_from_ns = Some(self.now_ns);
                sent.into_iter().for_each(|message| self.builder.blocked_after(message));
            }
            None => {}
        }
    }

    /// A task that was woken before it left its CPU did not block.
    fn receive_early(&mut self, id: TaskId) {
        let recorded = &mut self.tasks[id.index()];
        (recorded.blocked_from_ns, recorded.sent) = (None, None);
        if let Some(EarlyWake::Message(message)) = recorded.early.take() {
            self.builder.receive_early(id.0, message);
        }
    }

    fn on_switch_in(&mut self, task: &Task, change: &Change) {
        if change.from == State::WokenEarly {
            self.receive_early(task.id);
        }
        let recorded = &mut self.tasks[task.id.index()];
        (recorded.runs_from_ns, recorded.queued_from_ns) = (Some(self.now_ns), None);
        recorded.early = None;
        recorded.charged_ns += self.charges.switch_ns;
        let blocked_from_ns = recorded.blocked_from_ns.take();
        self.builder.notes.unmatched_switches += u64::from(change.from == State::Absent);
        // In a recording without wake-ups, a task that was runnable would have ended the idling earlier.
        let came_late = change.from == State::Initial && self.ends_idling;
        if change.from == State::Asleep {
            self.miss_wakeup(task.id, blocked_from_ns);
        } else if came_late && !self.has_wakings && !self.has_wakeups {
            self.miss_wakeup(task.id, Some(self.first_ns));
        }
    }

    /// No event says what ended this: the task sleeps until now.
    fn miss_wakeup(&mut self, id: TaskId, blocked_from_ns: Option<u64>) {
        if let Some(from_ns) = blocked_from_ns {
            self.builder.notes.missing_wakes += 1;
            self.builder.sleep(id.0, self.now_ns - from_ns);
        }
    }

    fn on_wakeup(&mut self, task: &Task, change: &Change) {
        let message = self.message.take();
        let recorded = &mut self.tasks[task.id.index()];
        let mut blocked_from_ns = recorded.blocked_from_ns.take();
        if change.from == State::Initial && blocked_from_ns.is_none() {
            recorded.queued_from_ns = Some(self.now_ns);
            // A new task did not exist before.
            let was_blocked = !self.has_wakings && change.time != TimeKind::Absent;
            blocked_from_ns = was_blocked.then_some(self.first_ns);
        }
        let Some(from_ns) = blocked_from_ns else { return };
        match message {
            Some(message) => self.builder.receive(task.id.0, message),
            None => {
                self.builder.notes.sleeps += 1;
                self.builder.sleep(task.id.0, self.now_ns - from_ns);
            }
        }
    }

    fn finish(
        mut self,
        states: &States,
        (start_ns, end_ns): (u64, u64),
    ) -> Result<(Workload, ReplayNotes), WorkloadError> {
        let end_ns = end_ns.max(self.now_ns);
        for task in states.tasks().iter().skip(1) {
            if task.state == State::WokenEarly {
                self.receive_early(task.id);
            }
            let recorded = self.tasks[task.id.index()];
            if let Some(from_ns) = recorded.runs_from_ns {
                self.run(task.id, end_ns - from_ns);
            } else if let Some(from_ns) = recorded.blocked_from_ns {
                self.builder.notes.blocked_at_end += 1;
                self.builder.sleep(task.id.0, end_ns - from_ns);
            } else if task.state == State::Initial {
                self.builder.notes.unseen_tasks += 1;
            }
        }
        let found = states.irregularities();
        self.builder.notes.clock_jumps = found.clock_jumps + found.loss.clock_jumps;
        self.builder.finish((end_ns - start_ns).max(1))
    }
}

impl Observer for Recorder {
    fn on_time(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
    }

    fn on_event(&mut self, trace: &Trace, states: &States, event: &Event) {
        match event.kind {
            EventKind::Switch { prev, prev_state, .. } => {
                if prev_state.is_dead() && !prev.is_idle() {
                    self.builder.exit(prev.0);
                }
                self.builder.notes.switches += 1;
                let seen = &mut self.seen_cpus[event.cpu as usize];
                self.is_first = !std::mem::replace(seen, true);
                let running = states.cpus()[event.cpu as usize].running;
                self.ends_idling = prev.is_idle() && running == Some(TaskId::IDLE);
            }
            EventKind::Waking { task, waker, .. } if !task.is_idle() => {
                self.on_waking(states, event.cpu, waker, task);
            }
            // It is awake before it left its CPU: it does not block.
            EventKind::Wakeup { task, .. } if states.task(task).state == State::Running => {
                self.tasks[task.index()].early = None;
            }
            EventKind::Fork { parent, child } => self.on_fork(states, parent, child),
            EventKind::Nice { task, nice } if !task.is_idle() => {
                self.split_burst(task);
                if std::mem::take(&mut self.tasks[task.index()].is_above_normal) {
                    self.builder.set_policy(task.0, SchedPolicy::Other);
                }
                self.builder.set_nice(task.0, nice);
            }
            EventKind::CallEnter { task, call: Call::Yield, .. } if self.split_burst(task) => {
                self.builder.yield_cpu(task.0);
                self.charge(task, self.charges.yield_ns);
            }
            EventKind::RtPrio { task, prio } if !task.is_idle() => {
                self.split_burst(task);
                self.tasks[task.index()].is_above_normal = true;
                let policy = trace.tasks()[task.index()].policy;
                self.builder.set_policy(task.0, policy_of(prio, policy));
            }
            EventKind::Exit { task } if !task.is_idle() => {
                self.builder.notes.exits += 1;
                self.builder.exit(task.0);
            }
            EventKind::Tick { .. } => self.charge_current(states, event.cpu, self.charges.tick_ns),
            EventKind::Lost { count } => {
                let lost = &mut self.builder.notes.lost_events;
                *lost = lost.saturating_add(count);
            }
            _ => {}
        }
    }

    fn on_change(&mut self, task: &Task, change: &Change) {
        match change.cause {
            Cause::SwitchOut { .. } => self.on_switch_out(task, change),
            Cause::SwitchIn { .. } => self.on_switch_in(task, change),
            Cause::Wakeup
                if change.from == State::WokenEarly && change.time == TimeKind::Waking =>
            {
                self.receive_early(task.id);
            }
            Cause::Wakeup if change.from != State::Waking => self.on_wakeup(task, change),
            Cause::Contradiction => {
                self.builder.notes.unmatched_switches += 1;
                self.tasks[task.id.index()].runs_from_ns = None;
            }
            Cause::Loss => {
                // It ran up to here.
                if let Some(from_ns) = self.tasks[task.id.index()].runs_from_ns.take() {
                    self.run(task.id, self.now_ns - from_ns);
                }
            }
            Cause::Exit => self.tasks[task.id.index()].blocked_from_ns = None,
            Cause::Wakeup | Cause::Migrate | Cause::Fork => {}
        }
    }
}
