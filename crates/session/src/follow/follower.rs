//! From recorded events to what the machine is told.

use fairground_analysis::states::{Observer, States};
use fairground_machine::{Driven, MachineError, Placement, Wake};
use fairground_trace::{Call, CallbackKind, Event, EventKind, TaskId, TaskState, Trace};

use super::judge::PendingPreemption;
use super::knowledge::Knowledge;
use super::moves::Moves;
use super::resolution::Resolution;
use super::tally::{Decision, Tally};
use super::timeline::Timeline;
use super::yields::Yielded;

/// A step of the machine.
pub(super) type MachineResult<T = ()> = Result<T, MachineError>;

/// A CPU while the recording is followed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cpu {
    /// A wake-up or a tick for which the scheduler wants another task to run, where the recording shows no switch: the
    /// pass is still to come.
    pub(super) asked: Option<PendingPreemption>,
    /// So does one of a kind that the recording does not have: its pass is not compared.
    pub(super) asked_unseen: bool,
    /// The recording preempts the running task and the scheduler does not.
    pub(super) is_preempted: bool,
    /// The slice of the running task before the present event, ns.
    pub(super) slice_ns: u64,
    /// A tick waits for the charge that goes with it.
    ticks: bool,
    /// The charge at this index was told with its wake-up.
    charged: Option<usize>,
    /// Since when the scheduler wants a pass, ns.
    pub(super) wants_from_ns: Option<u64>,
}

/// A recording being followed.
pub(super) struct Follower<'a> {
    pub(super) driven: Driven,
    pub(super) timeline: &'a Timeline,
    /// The index of the present event.
    pub(super) index: usize,
    pub(super) now_ns: u64,
    tick_ns: u64,
    /// How much later the machine's time is than the recording's, ns.
    pub(super) lead_ns: u64,
    pub(super) cpus: Vec<Cpu>,
    /// The task whose wake-up comes next on a CPU and is synchronous.
    sync: Option<TaskId>,
    /// By task: where the scheduler placed it at `sched_waking`, and how it is woken.
    placed: Vec<Option<(Placement, Wake)>>,
    /// Passes of the timeline that have begun.
    passes: usize,
    /// Charges of the timeline that were told with their wake-ups.
    deferred: usize,
    /// Wake-ups of the timeline that read the clock only, so far.
    reads: usize,
    /// Yields of the timeline that have taken place.
    yields: usize,
    /// By CPU: the switch at this index has taken place already.
    done: Vec<usize>,
    /// `sched_waking`s so far.
    wakings: usize,
    pub(super) tally: Tally,
    pub(super) moves: Moves,
    pub(super) knowledge: Knowledge<'a>,
    pub(super) resolution: Resolution,
    /// By task: whether it is of the scheduler's class.
    pub(super) of_class: Vec<bool>,
    pub(super) failure: Option<MachineError>,
}

impl<'a> Follower<'a> {
    pub(super) fn new(
        driven: Driven,
        timeline: &'a Timeline,
        trace: &Trace,
        knowledge: Knowledge<'a>,
        resolution: Resolution,
        tick_ns: u64,
    ) -> Self {
        Follower {
            driven,
            timeline,
            index: 0,
            now_ns: trace.start_ns,
            tick_ns,
            lead_ns: 0,
            cpus: vec![Cpu::default(); trace.cpus as usize],
            sync: None,
            placed: vec![None; trace.tasks().len()],
            passes: 0,
            deferred: 0,
            reads: 0,
            yields: 0,
            done: vec![usize::MAX; trace.cpus as usize],
            wakings: 0,
            tally: Tally::default(),
            moves: Moves::new(trace.tasks().len(), trace.cpus, timeline.move_ns),
            knowledge,
            resolution,
            of_class: class_of(trace),
            failure: None,
        }
    }

    /// Whether the scheduler is no longer in charge.
    pub(super) fn is_over(&self) -> bool {
        self.driven.exit().is_some()
    }

    fn follow(&mut self, trace: &Trace, event: &Event) -> MachineResult {
        let cpu = event.cpu;
        if let Some(pass) = self.timeline.passes.get(self.passes)
            && pass.first == self.index
        {
            self.passes += 1;
            return self.on_pass(trace, cpu, pass.switch);
        }
        if !self.charge_ahead(trace)? {
            self.read_clock(&event.kind);
        }
        match event.kind {
            EventKind::Switch { .. } if self.done[cpu as usize] == self.index => Ok(()),
            EventKind::Switch { prev, prev_state, next } => {
                self.on_switch(cpu, prev, prev_state, next)
            }
            EventKind::WakeSync { task } => {
                self.sync = Some(task);
                Ok(())
            }
            EventKind::Waking { task, waker, .. } => self.on_waking(cpu, task, waker),
            EventKind::Wakeup { task, target_cpu } => self.on_wakeup(cpu, task, target_cpu),
            EventKind::WakeupNew { task, target_cpu } => {
                self.on_wakeup_new(trace, cpu, task, target_cpu)
            }
            EventKind::Fork { parent, child } if !child.is_idle() => {
                self.driven.remove(child)?;
                self.create(trace, child, Some(parent), cpu)
            }
            EventKind::Tick { .. } => self.is_due(cpu),
            EventKind::CallEnter { call: Call::Yield, .. }
                if !self.timeline.has_yield_callbacks && !self.timeline.has_charges =>
            {
                self.settle_due(cpu)?;
                self.on_yield(cpu)
            }
            EventKind::Charge { .. } if self.cpus[cpu as usize].charged == Some(self.index) => {
                self.settle_due(cpu)
            }
            EventKind::Charge { task, runtime_ns } => self.on_charge(cpu, task, runtime_ns),
            EventKind::Migrate { task, to_cpu, .. } => self.on_migrate(cpu, task, to_cpu),
            EventKind::Callback { kind: CallbackKind::Yield, .. } => self.on_yield(cpu),
            EventKind::Exit { task } => self.driven.begin_exit(task),
            _ => self.change(trace, cpu, event.kind),
        }
    }

    /// Whether a task is the scheduler's and sleeps.
    fn sleeps(&self, task: TaskId) -> bool {
        self.of_class[task.index()] && self.driven.exists(task) && !self.driven.is_runnable(task)
    }

    fn on_waking(&mut self, cpu: u32, task: TaskId, waker: TaskId) -> MachineResult {
        let recorded = self.timeline.woken_on(self.wakings);
        self.wakings += 1;
        self.placed[task.index()] = None;
        let sync = self.sync.take() == Some(task);
        if !self.sleeps(task) {
            // It has not left its CPU yet.
            return Ok(());
        }
        let how = Wake { in_interrupt: waker.is_idle(), sync, ..Wake::default() };
        let placed = self.place(cpu, task, how, recorded)?;
        self.placed[task.index()] = placed;
        match placed {
            // The recording says no more of this wake-up.
            Some((placed, how)) if !self.timeline.has_wakeups => {
                self.put(task, placed.cpu);
                self.resolution.waits(task, self.now_ns);
                self.driven.wake(cpu, task, placed.cpu, Some(placed), how)?;
                self.after_step()
            }
            _ => Ok(()),
        }
    }

    /// The scheduler places a task that is woken. Where no event says whether the waker is about to sleep, and the
    /// answer is not the recorded one, the scheduler is asked again with that hint.
    fn place(
        &mut self,
        cpu: u32,
        task: TaskId,
        how: Wake,
        recorded: Option<u32>,
    ) -> MachineResult<Option<(Placement, Wake)>> {
        let Some(first) = self.driven.place(cpu, task, how)? else { return Ok(None) };
        let is_recorded = recorded.is_none_or(|recorded| recorded == first.cpu);
        if is_recorded || self.timeline.has_syncs || how.in_interrupt || !first.was_asked {
            return Ok(Some((first, how)));
        }
        self.driven.withdraw(task, first)?;
        let how = Wake { sync: true, ..how };
        let second = self.driven.place(cpu, task, how)?;
        match second.filter(|second| Some(second.cpu) == recorded) {
            Some(second) => Ok(Some((second, how))),
            None => Ok(Some((first, how))),
        }
    }

    fn on_wakeup(&mut self, cpu: u32, task: TaskId, to: u32) -> MachineResult {
        if !self.sleeps(task) {
            return Ok(());
        }
        let placed = match self.placed[task.index()].take() {
            Some(placed) => Some(placed),
            None => self.place(cpu, task, Wake::default(), Some(to))?,
        };
        self.note_slices()?;
        let last_cpu = self.driven.cpu_of(task).unwrap_or(to);
        let (placed, how) = placed.map_or((None, Wake::default()), |(at, how)| (Some(at), how));
        let asked = placed.filter(|placed| placed.was_asked && self.timeline.has_wakings);
        if asked.is_some() && how.sync && !self.timeline.has_syncs {
            self.tally.agree_with_sync(Decision::PlaceWoken);
        } else if let Some(placed) = asked {
            self.judge_place(Decision::PlaceWoken, (cpu, task), (last_cpu, to), placed.cpu);
        }
        self.put(task, to);
        self.resolution.waits(task, self.now_ns);
        self.driven.wake(cpu, task, to, placed, how)?;
        self.judge_preemption(Decision::PreemptAtWakeup, to, task)?;
        self.after_step()
    }

    fn on_wakeup_new(&mut self, trace: &Trace, cpu: u32, task: TaskId, to: u32) -> MachineResult {
        if !self.driven.exists(task) {
            self.create(trace, task, None, cpu)?;
        }
        if !self.sleeps(task) {
            return Ok(());
        }
        self.note_slices()?;
        let how = Wake { is_new: true, ..Wake::default() };
        let placed = self.driven.place(cpu, task, how)?;
        if let Some(placed) = placed.filter(|placed| placed.was_asked) {
            self.judge_place(Decision::PlaceNew, (cpu, task), (cpu, to), placed.cpu);
        }
        self.put(task, to);
        self.resolution.waits(task, self.now_ns);
        self.driven.wake(cpu, task, to, placed, how)?;
        self.judge_preemption(Decision::PreemptAtWakeup, to, task)?;
        self.after_step()
    }

    fn on_tick(&mut self, cpu: u32) -> MachineResult {
        let running = self.driven.running(cpu);
        if running.is_idle() || self.driven.is_taken(cpu) {
            return Ok(());
        }
        self.note_slices()?;
        self.driven.tick(cpu)?;
        self.judge_preemption(Decision::PreemptAtTick, cpu, running)?;
        self.after_step()
    }

    fn on_charge(&mut self, cpu: u32, task: TaskId, runtime_ns: u64) -> MachineResult {
        let at = self.driven.cpu_of(task).filter(|at| self.driven.running(*at) == task);
        self.driven.charge(at.unwrap_or(cpu), task, runtime_ns)?;
        self.settle_due(cpu)?;
        if let Some(yielded) = self.yielded() {
            self.on_yield(cpu)?;
            if yielded.stays && self.driven.wants_pass(cpu) {
                return self.settle_cpu(cpu);
            }
        }
        let is_pass = self.timeline.keeps(cpu, self.index) && !self.driven.is_taken(cpu);
        if is_pass && self.driven.wants_pass(cpu) { self.settle_cpu(cpu) } else { Ok(()) }
    }

    /// The yield whose charge is the present one.
    fn yielded(&mut self) -> Option<Yielded> {
        let rest = &self.timeline.yields[self.yields..];
        self.yields += rest.partition_point(|yielded| yielded.charge < self.index);
        self.timeline.yields.get(self.yields).copied().filter(|next| next.charge == self.index)
    }

    /// A wake-up with whose clock the running task is charged later: it is charged now. False: it is none.
    fn charge_ahead(&mut self, trace: &Trace) -> MachineResult<bool> {
        let Some(deferred) =
            self.timeline.deferred.get(self.deferred).filter(|at| at.wakeup == self.index)
        else {
            return Ok(false);
        };
        self.deferred += 1;
        let Some(Event { cpu, kind: EventKind::Charge { task, runtime_ns }, .. }) =
            trace.get(deferred.charge)
        else {
            return Ok(false);
        };
        self.cpus[cpu as usize].charged = Some(deferred.charge);
        self.on_charge(cpu, task, runtime_ns)?;
        Ok(true)
    }

    /// A wake-up that reads the clock of its CPU and charges nothing.
    fn read_clock(&mut self, kind: &EventKind) {
        let rest = &self.timeline.reads[self.reads..];
        self.reads += rest.partition_point(|read| read.wakeup < self.index);
        if let Some(read) = self.timeline.reads.get(self.reads)
            && let EventKind::Wakeup { target_cpu, .. } = kind
            && read.wakeup == self.index
        {
            self.driven.read_clock(*target_cpu, read.ahead_ns);
        }
    }

    fn on_yield(&mut self, cpu: u32) -> MachineResult {
        self.driven.yields(cpu)?;
        self.driven.ask(cpu);
        self.after_step()
    }

    /// The kernel charges the running task, then it asks the scheduler.
    fn is_due(&mut self, cpu: u32) -> MachineResult {
        self.settle_due(cpu)?;
        self.cpus[cpu as usize].ticks = true;
        if self.timeline.has_charges { Ok(()) } else { self.settle_due(cpu) }
    }

    /// A tick that waits for its charge takes place.
    fn settle_due(&mut self, cpu: u32) -> MachineResult {
        match std::mem::take(&mut self.cpus[cpu as usize].ticks) {
            true => self.on_tick(cpu),
            false => Ok(()),
        }
    }

    /// A pass of a CPU begins that ends with the switch at an index, or without one.
    fn on_pass(&mut self, trace: &Trace, cpu: u32, switch: Option<usize>) -> MachineResult {
        let event = switch.and_then(|index| trace.get(index));
        match event.map(|event| event.kind) {
            Some(EventKind::Switch { prev, prev_state, next }) => {
                self.done[cpu as usize] = switch.unwrap_or(usize::MAX);
                self.on_switch(cpu, prev, prev_state, next)
            }
            _ if self.driven.wants_pass(cpu) => self.settle_cpu(cpu),
            _ => Ok(()),
        }
    }

    fn on_switch(
        &mut self,
        cpu: u32,
        prev: TaskId,
        state: TaskState,
        next: TaskId,
    ) -> MachineResult {
        let leaves = (!prev.is_idle() && !state.is_runnable()).then_some(state);
        if !next.is_idle() && !self.of_class[next.index()] {
            self.resume(cpu, prev)?;
            self.driven.take_cpu(cpu, leaves)?;
            return self.end_switch(cpu, prev, state);
        }
        self.resume(cpu, prev)?;
        self.settle_due(cpu)?;
        let of_class = !prev.is_idle() && self.of_class[prev.index()];
        if of_class && leaves.is_none() && !self.driven.wants_pass(cpu) {
            // Without ticks in the recording it is not known when a slice ended.
            let yields = self.timeline.has_ticks && !self.timeline.has_yields;
            match self.cpus[cpu as usize].is_preempted || !yields {
                true => self.driven.preempt(cpu)?,
                false => self.driven.yields(cpu)?,
            }
        }
        let shows_wakes = self.timeline.has_wakings || self.timeline.has_wakeups;
        if !shows_wakes && !next.is_idle() && self.sleeps(next) {
            // Its wake-up was not recorded.
            self.resolution.waits(next, self.now_ns);
            self.driven.wake(cpu, next, cpu, None, Wake::default())?;
        }
        let resumes = self.driven.is_taken(cpu);
        let chosen = self.driven.pick(cpu, leaves.filter(|_| of_class))?;
        if !resumes {
            self.learn_order(cpu, prev, chosen);
        }
        self.judge_pick(cpu, prev, next, chosen);
        if !next.is_idle() {
            self.judge_move_of(next);
            self.put(next, cpu);
        }
        self.driven.run(next)?;
        self.note_run_times(cpu, (prev, leaves.is_none()), next);
        self.end_switch(cpu, prev, state)
    }

    fn end_switch(&mut self, cpu: u32, prev: TaskId, state: TaskState) -> MachineResult {
        let at = &mut self.cpus[cpu as usize];
        // A task that is in the kernel leaves late; one that blocks before says nothing.
        if let Some(asked) = at.asked.filter(|_| !prev.is_idle() && state.is_runnable()) {
            self.tally.agree(asked.decision);
        }
        (at.is_preempted, at.asked, at.wants_from_ns) = (false, None, None);
        at.asked_unseen = false;
        if state.is_dead() {
            self.driven.remove(prev)?;
        }
        self.after_step()
    }

    /// The machine changes to the task that the recording runs, where it runs another one: events are missing.
    fn resume(&mut self, cpu: u32, task: TaskId) -> MachineResult {
        let is_outside = !task.is_idle() && !self.of_class[task.index()];
        if is_outside {
            return self.driven.take_cpu(cpu, None);
        }
        if self.driven.running(cpu) == task && !self.driven.is_taken(cpu) {
            return Ok(());
        }
        if !task.is_idle() && !self.driven.exists(task) {
            return Ok(());
        }
        let slept = self.timeline.slept.binary_search(&self.index).is_ok();
        self.driven.pick(cpu, slept.then_some(TaskState::Sleeping))?;
        self.driven.run(task)
    }

    /// Notes what is left of the slices of the running tasks.
    fn note_slices(&mut self) -> MachineResult {
        for cpu in 0..self.cpus.len() {
            self.cpus[cpu].slice_ns = self.driven.slice_ns(cpu as u32)?;
        }
        Ok(())
    }

    /// Time passes: what was asked for at the last instant and does not show in the recording is settled, and CPUs tick
    /// if the recording does not say when.
    fn pass_time(&mut self, now_ns: u64) -> MachineResult {
        self.settle(now_ns)?;
        self.settle_moves(now_ns)?;
        if !self.timeline.has_ticks {
            let mut at_ns = (self.now_ns / self.tick_ns + 1) * self.tick_ns;
            while at_ns < now_ns {
                self.move_clock(at_ns)?;
                for cpu in 0..self.cpus.len() {
                    self.on_tick(cpu as u32)?;
                }
                self.settle(at_ns + 1)?;
                at_ns += self.tick_ns;
            }
        }
        self.move_clock(now_ns)
    }

    fn move_clock(&mut self, now_ns: u64) -> MachineResult {
        self.now_ns = now_ns;
        self.driven.advance(now_ns + self.lead_ns)
    }
}

/// By task: whether it is of the scheduler's class: it has a nice value, or no task of the recording has one.
fn class_of(trace: &Trace) -> Vec<bool> {
    let known = trace.tasks().iter().skip(1).any(|task| task.nice.is_some());
    trace.tasks().iter().map(|task| task.nice.is_some() || !known).collect()
}

impl Observer for Follower<'_> {
    fn on_time(&mut self, now_ns: u64) {
        if self.failure.is_none() {
            self.failure = self.pass_time(now_ns).err();
        }
    }

    fn on_event(&mut self, trace: &Trace, _: &States, event: &Event) {
        if self.failure.is_none() {
            self.failure = self.follow(trace, event).err();
        }
    }
}
