//! From recorded events to what the machine is told.

use fairground_analysis::Irregularities;
use fairground_analysis::states::{Observer, States};
use fairground_machine::{Driven, MachineError, NewTask, Placement, Wake};
use fairground_trace::{CallbackKind, Event, EventKind, TaskId, TaskState, Trace};

use super::judge::Asked;
use super::knowledge::Knowledge;
use super::moves::Moves;
use super::tally::{Decision, Tally};
use super::timeline::Timeline;
use super::{DecidedBy, Followed};

pub(super) type Told<T = ()> = Result<T, MachineError>;

/// A CPU while the recording is followed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cpu {
    /// A wake-up or a tick for which the scheduler wants another task to run, where the recording shows no switch: the
    /// pass is still to come.
    pub(super) asked: Option<Asked>,
    /// The recording preempts the running task and the scheduler does not.
    pub(super) is_preempted: bool,
    /// The slice of the running task before the present event, ns.
    pub(super) slice_ns: u64,
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
    pub(super) cpus: Vec<Cpu>,
    /// By task: where the scheduler placed it at `sched_waking`, and how it is woken.
    placed: Vec<Option<(Placement, Wake)>>,
    /// Passes of the timeline that have begun.
    passes: usize,
    /// By CPU: the switch at this index has taken place already.
    done: Vec<usize>,
    /// `sched_waking`s so far.
    wakings: usize,
    pub(super) tally: Tally,
    pub(super) moves: Moves,
    pub(super) knowledge: Knowledge<'a>,
    /// By task: it is of the scheduler's class.
    of_class: Vec<bool>,
    pub(super) failure: Option<MachineError>,
}

impl<'a> Follower<'a> {
    pub(super) fn new(
        driven: Driven,
        timeline: &'a Timeline,
        trace: &Trace,
        knowledge: Knowledge<'a>,
        tick_ns: u64,
    ) -> Self {
        Follower {
            driven,
            timeline,
            index: 0,
            now_ns: trace.start_ns,
            tick_ns,
            cpus: vec![Cpu::default(); trace.cpus as usize],
            placed: vec![None; trace.tasks().len()],
            passes: 0,
            done: vec![usize::MAX; trace.cpus as usize],
            wakings: 0,
            tally: Tally::default(),
            moves: Moves::new(trace.tasks().len(), timeline.reaction_ns),
            knowledge,
            of_class: class_of(trace),
            failure: None,
        }
    }

    /// Whether the scheduler is no longer in charge.
    pub(super) fn is_over(&self) -> bool {
        self.driven.exit().is_some()
    }

    /// Makes the tasks that exist when the recording begins: those that its events name before any event that makes
    /// them.
    pub(super) fn begin(&mut self, trace: &Trace) -> Told {
        let mut seen = vec![false; trace.tasks().len()];
        let mut seen_cpu = vec![false; trace.cpus as usize];
        seen[TaskId::IDLE.index()] = true;
        for event in trace.events() {
            let cpu = event.cpu;
            if cpu >= trace.cpus {
                continue;
            }
            let first = |task: TaskId, seen: &mut Vec<bool>| {
                seen.get_mut(task.index()).is_some_and(|seen| !std::mem::replace(seen, true))
            };
            match event.kind {
                EventKind::Switch { prev, next, .. } => {
                    let is_first = !std::mem::replace(&mut seen_cpu[cpu as usize], true);
                    if first(prev, &mut seen) {
                        self.create(trace, prev, None, cpu)?;
                        if is_first {
                            self.put_on(cpu, prev)?;
                        }
                    }
                    if first(next, &mut seen) {
                        self.create(trace, next, None, cpu)?;
                        self.driven.wake(cpu, next, cpu, None, Wake::default())?;
                    }
                }
                EventKind::Waking { task, target_cpu, .. }
                | EventKind::Wakeup { task, target_cpu } => {
                    let is_first = first(task, &mut seen);
                    let cpu = target_cpu.min(trace.cpus - 1);
                    is_first.then(|| self.create(trace, task, None, cpu)).transpose()?;
                }
                EventKind::WakeupNew { task, .. } | EventKind::Fork { child: task, .. } => {
                    first(task, &mut seen);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Lets a CPU run a task from the beginning on.
    fn put_on(&mut self, cpu: u32, task: TaskId) -> Told {
        self.driven.wake(cpu, task, cpu, None, Wake::default())?;
        self.driven.pick(cpu, None)?;
        self.driven.run(task)
    }

    fn create(&mut self, trace: &Trace, task: TaskId, parent: Option<TaskId>, cpu: u32) -> Told {
        if !self.of_class[task.index()] || task.is_idle() {
            return Ok(());
        }
        let info = &trace.tasks()[task.index()];
        self.moves.put(task, cpu);
        self.driven.create(
            cpu,
            &NewTask {
                task,
                parent: parent.filter(|parent| !parent.is_idle()),
                comm: &info.comm,
                nice: info.nice.unwrap_or(0),
                allowed_cpus: info.allowed_cpus.as_deref(),
                cgroup: info.cgroup.map_or(0, |cgroup| cgroup.0),
            },
        )
    }

    fn follow(&mut self, trace: &Trace, event: &Event) -> Told {
        let cpu = event.cpu;
        if let Some(pass) = self.timeline.passes.get(self.passes)
            && pass.first == self.index
        {
            self.passes += 1;
            return self.on_pass(trace, cpu, pass.switch);
        }
        match event.kind {
            EventKind::Switch { .. } if self.done[cpu as usize] == self.index => Ok(()),
            EventKind::Switch { prev, prev_state, next } => {
                self.on_switch(cpu, prev, prev_state, next)
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
            EventKind::Tick { .. } => self.on_tick(cpu),
            EventKind::Migrate { task, to_cpu, .. } => self.on_migrate(cpu, task, to_cpu),
            EventKind::Callback { kind: CallbackKind::Yield, .. } => {
                self.driven.yields(cpu)?;
                self.driven.ask(cpu);
                self.after_step()
            }
            EventKind::Exit { task } => self.driven.begin_exit(task),
            EventKind::Nice { task, nice } => {
                self.driven.set_nice(cpu, task, nice)?;
                self.after_step()
            }
            EventKind::CgroupMove { task, to, .. } => {
                self.driven.move_to_cgroup(cpu, task, to.0)?;
                self.after_step()
            }
            EventKind::CgroupWeight { cgroup, weight } => {
                self.driven.set_cgroup_weight(cpu, cgroup.0, weight)?;
                self.after_step()
            }
            _ => Ok(()),
        }
    }

    fn on_waking(&mut self, cpu: u32, task: TaskId, waker: TaskId) -> Told {
        let recorded = self.timeline.woken_on(self.wakings);
        self.wakings += 1;
        self.placed[task.index()] = None;
        if !self.driven.exists(task) || self.driven.is_runnable(task) {
            // It has not left its CPU yet.
            return Ok(());
        }
        let placed = self.place(cpu, task, !waker.is_idle(), recorded)?;
        self.placed[task.index()] = placed;
        match placed {
            // The recording says no more of this wake-up.
            Some((placed, how)) if !self.timeline.has_wakeups => {
                self.moves.put(task, placed.cpu);
                self.driven.wake(cpu, task, placed.cpu, Some(placed), how)?;
                self.after_step()
            }
            _ => Ok(()),
        }
    }

    /// Where the scheduler places a task that is woken. No event says whether the waker is about to sleep: where the
    /// answer is not the recorded one, the scheduler is asked again with that hint.
    fn place(
        &mut self,
        cpu: u32,
        task: TaskId,
        by_task: bool,
        recorded: Option<u32>,
    ) -> Told<Option<(Placement, Wake)>> {
        let how = Wake { in_interrupt: !by_task, ..Wake::default() };
        let Some(first) = self.driven.place(cpu, task, how)? else { return Ok(None) };
        let is_recorded = recorded.is_none_or(|recorded| recorded == first.cpu);
        if is_recorded || !by_task || !first.was_asked {
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

    fn on_wakeup(&mut self, cpu: u32, task: TaskId, to: u32) -> Told {
        if !self.driven.exists(task) || self.driven.is_runnable(task) {
            return Ok(());
        }
        let placed = match self.placed[task.index()].take() {
            Some(placed) => Some(placed),
            None => self.place(cpu, task, true, Some(to))?,
        };
        self.note_slices()?;
        let last_cpu = self.driven.cpu_of(task).unwrap_or(to);
        let (placed, how) = placed.map_or((None, Wake::default()), |(at, how)| (Some(at), how));
        let asked = placed.filter(|placed| placed.was_asked && self.timeline.has_wakings);
        if let Some(placed) = asked {
            self.judge_place(Decision::PlaceWoken, (cpu, task), (last_cpu, to), placed.cpu);
        }
        self.moves.put(task, to);
        self.driven.wake(cpu, task, to, placed, how)?;
        self.judge_preemption(Decision::PreemptAtWakeup, to, task)?;
        self.after_step()
    }

    fn on_wakeup_new(&mut self, trace: &Trace, cpu: u32, task: TaskId, to: u32) -> Told {
        if !self.driven.exists(task) {
            self.create(trace, task, None, cpu)?;
        }
        if self.driven.is_runnable(task) {
            return Ok(());
        }
        self.note_slices()?;
        let how = Wake { is_new: true, ..Wake::default() };
        let placed = self.driven.place(cpu, task, how)?;
        if let Some(placed) = placed.filter(|placed| placed.was_asked) {
            self.judge_place(Decision::PlaceNew, (cpu, task), (cpu, to), placed.cpu);
        }
        self.moves.put(task, to);
        self.driven.wake(cpu, task, to, placed, how)?;
        self.judge_preemption(Decision::PreemptAtWakeup, to, task)?;
        self.after_step()
    }

    fn on_tick(&mut self, cpu: u32) -> Told {
        let running = self.driven.running(cpu);
        if running.is_idle() || self.driven.is_taken(cpu) {
            return Ok(());
        }
        self.note_slices()?;
        self.driven.tick(cpu)?;
        self.judge_preemption(Decision::PreemptAtTick, cpu, running)?;
        self.after_step()
    }

    /// A pass of a CPU begins that ends with the switch at an index, or without one.
    fn on_pass(&mut self, trace: &Trace, cpu: u32, switch: Option<usize>) -> Told {
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

    fn on_switch(&mut self, cpu: u32, prev: TaskId, state: TaskState, next: TaskId) -> Told {
        let leaves = (!prev.is_idle() && state != TaskState::Runnable).then_some(state);
        if !next.is_idle() && !self.of_class[next.index()] {
            self.resume(cpu, prev)?;
            self.driven.take_cpu(cpu, leaves)?;
            return self.end_switch(cpu, prev, state);
        }
        self.resume(cpu, prev)?;
        let of_class = !prev.is_idle() && self.of_class[prev.index()];
        if of_class && leaves.is_none() && !self.driven.wants_pass(cpu) {
            // Without ticks in the recording it is not known when a slice ended.
            let yields = self.timeline.has_ticks && !self.timeline.has_yields;
            match self.cpus[cpu as usize].is_preempted || !yields {
                true => self.driven.preempt(cpu)?,
                false => self.driven.yields(cpu)?,
            }
        }
        let chosen = self.driven.pick(cpu, leaves.filter(|_| of_class))?;
        self.judge_pick(cpu, prev, next, chosen);
        if !next.is_idle() {
            self.judge_move_of(next);
            self.moves.put(next, cpu);
        }
        self.driven.run(next)?;
        self.end_switch(cpu, prev, state)
    }

    fn end_switch(&mut self, cpu: u32, prev: TaskId, state: TaskState) -> Told {
        let at = &mut self.cpus[cpu as usize];
        (at.is_preempted, at.asked, at.wants_from_ns) = (false, None, None);
        if matches!(state, TaskState::Dead | TaskState::Zombie) {
            self.driven.remove(prev)?;
        }
        self.after_step()
    }

    /// Where the machine runs another task than the recording (events are missing), it changes to that one.
    fn resume(&mut self, cpu: u32, task: TaskId) -> Told {
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
        self.driven.pick(cpu, None)?;
        self.driven.run(task)
    }

    /// Notes what is left of the slices of the running tasks.
    fn note_slices(&mut self) -> Told {
        for cpu in 0..self.cpus.len() {
            self.cpus[cpu].slice_ns = self.driven.slice_ns(cpu as u32)?;
        }
        Ok(())
    }

    /// Time passes: what was asked for at the last instant and does not show in the recording is settled, and CPUs tick
    /// if the recording does not say when.
    fn pass_time(&mut self, now_ns: u64) -> Told {
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

    fn move_clock(&mut self, now_ns: u64) -> Told {
        self.now_ns = now_ns;
        self.driven.advance(now_ns)
    }

    /// What was not compared, and why.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.timeline.has_wakings {
            notes.push(
                "not compared: placements and preemptions at wake-ups: the recording has no \
                 sched_waking, which says when they were decided"
                    .to_owned(),
            );
        } else if !self.timeline.has_wakeups {
            notes.push(
                "not compared: placements: the recording has no sched_wakeup, which has their results"
                    .to_owned(),
            );
        }
        if !self.timeline.has_ticks {
            notes.push(
                "not compared: preemptions at ticks: the recording does not say when CPUs tick; the \
                 scheduler was told of ticks at multiples of 1/HZ"
                    .to_owned(),
            );
        }
        let outside = self.of_class.iter().skip(1).filter(|of_class| !**of_class).count();
        if outside > 0 {
            notes.push(format!(
                "tasks of other classes, without a nice value: {outside}; the scheduler does not have \
                 a CPU while one of them runs"
            ));
        }
        notes
    }

    pub(super) fn finish(
        self,
        label: String,
        until_ns: u64,
        irregularities: Irregularities,
        callbacks: Vec<(Decision, DecidedBy)>,
    ) -> Followed {
        let agreement = Decision::ALL.map(|decision| (decision, self.tally.agreement(decision)));
        Followed {
            label,
            agreement: agreement.to_vec(),
            kinds: self.tally.kinds(),
            first: self.tally.first().cloned(),
            reaction_ns: self.timeline.reaction_ns,
            clock_ns: self.knowledge.clock_ns,
            callbacks,
            notes: self.notes(),
            exit: self.driven.exit().cloned(),
            until_ns,
            irregularities,
        }
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
