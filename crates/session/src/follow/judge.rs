//! Comparing decisions.

use fairground_machine::Driven;
use fairground_trace::TaskId;

use super::follower::{Follower, MachineResult};
use super::tally::{Choice, Decision, Difference, Kind};
use super::timeline::RecordedPreemption;

/// A preemption that the scheduler asks for and the recording does not show, before its pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingPreemption {
    pub(super) decision: Decision,
    /// The slice of the running task before, ns.
    slice_ns: u64,
}

impl Follower<'_> {
    pub(super) fn judge_pick(&mut self, cpu: u32, prev: TaskId, next: TaskId, chosen: TaskId) {
        if next == chosen {
            return self.tally.agree(Decision::Pick);
        }
        if self.is_pulled(cpu, next) || self.judge_pull(cpu, chosen) {
            // Only one of the two had this task to pick: the moves differ.
            return;
        }
        let kind = if next.is_idle() {
            Kind::RunsInsteadOfIdle
        } else if chosen.is_idle() {
            Kind::IdleInsteadOfRun
        } else if chosen == prev {
            Kind::KeepsRunning
        } else {
            Kind::OtherTask
        };
        if kind == Kind::OtherTask && self.knowledge.are_equal(&self.driven, next, chosen) {
            return self.tally.tie(Decision::Pick);
        }
        let (recorded, scheduler) = (Choice::Task(next), Choice::Task(chosen));
        self.differ(Decision::Pick, kind, (cpu, prev), recorded, scheduler, &[next, chosen]);
    }

    pub(super) fn judge_place(
        &mut self,
        decision: Decision,
        (cpu, task): (u32, TaskId),
        (last, recorded): (u32, u32),
        chosen: u32,
    ) {
        if recorded == chosen {
            return self.tally.agree(decision);
        }
        let kind = match (recorded == last, chosen == last) {
            (true, _) => Kind::RecordingStays,
            (_, true) => Kind::SchedulerStays,
            _ => Kind::OtherCpu,
        };
        let idle = self.driven.is_idle(recorded) && self.driven.is_idle(chosen);
        if kind == Kind::OtherCpu && idle && self.knowledge.share_cache(recorded, chosen) {
            return self.tally.tie(decision);
        }
        let (recorded, scheduler) = (Choice::Cpu(recorded), Choice::Cpu(chosen));
        self.differ(decision, kind, (cpu, task), recorded, scheduler, &[task]);
    }

    /// A wake-up or a tick may make what runs on a CPU leave.
    pub(super) fn judge_preemption(
        &mut self,
        decision: Decision,
        cpu: u32,
        task: TaskId,
    ) -> MachineResult {
        let wants = self.driven.wants_pass(cpu);
        let running = self.driven.running(cpu);
        let by_tick = decision == Decision::PreemptAtTick;
        let is_known = if by_tick { self.timeline.has_ticks } else { self.timeline.has_wakings };
        if running.is_idle() || !is_known {
            self.cpus[cpu as usize].asked_unseen |= wants && !running.is_idle();
            return Ok(());
        }
        let recorded = self.timeline.verdict(cpu, self.index + 1, self.now_ns);
        let at = &mut self.cpus[cpu as usize];
        let slice_ns = at.slice_ns;
        match (wants, recorded) {
            (true, RecordedPreemption::Preempts) | (false, RecordedPreemption::Stays) => {
                self.tally.agree(decision);
            }
            (true, RecordedPreemption::Stays) => {
                at.asked = Some(PendingPreemption { decision, slice_ns })
            }
            (false, RecordedPreemption::Preempts) => {
                at.is_preempted = true;
                let kind = Kind::OnlyRecordingPreempts;
                let (recorded, scheduler) = (Choice::Preempt, Choice::Stay);
                let tasks = [running, task];
                let tasks = if by_tick { &tasks[..1] } else { &tasks };
                self.differ(decision, kind, (cpu, running), recorded, scheduler, tasks);
            }
            (_, RecordedPreemption::Unclear) => {}
        }
        Ok(())
    }

    /// Passes that the scheduler asks for and the recording does not show take place, before time goes on to
    /// `next_ns`: they change nothing, or the scheduler decided otherwise.
    pub(super) fn settle(&mut self, next_ns: u64) -> MachineResult {
        for cpu in 0..self.cpus.len() as u32 {
            if !self.driven.wants_pass(cpu) || self.driven.is_taken(cpu) {
                continue;
            }
            let since_ns = *self.cpus[cpu as usize].wants_from_ns.get_or_insert(self.now_ns);
            // An idle CPU reacts later than at once.
            let wait_ns = match self.driven.is_idle(cpu) {
                true => self.timeline.reaction_ns,
                false => 0,
            };
            let is_due = since_ns + wait_ns < next_ns;
            if is_due && self.is_unseen(cpu)? {
                self.settle_cpu(cpu)?;
            }
        }
        Ok(())
    }

    /// Whether a pass that a CPU is asked for has no place of its own in the recording.
    fn is_unseen(&self, cpu: u32) -> MachineResult<bool> {
        if self.timeline.has_dispatches {
            // A pass without a callback lets the running task use up its slice.
            return Ok(self.driven.slice_ns(cpu)? > 0
                && !self.timeline.schedules_soon(cpu, self.index, self.now_ns));
        }
        Ok(!self.timeline.schedules_soon(cpu, self.index, self.now_ns))
    }

    pub(super) fn settle_cpu(&mut self, cpu: u32) -> MachineResult {
        let running = self.driven.running(cpu);
        self.cpus[cpu as usize].wants_from_ns = None;
        let asked = self.cpus[cpu as usize].asked.take();
        let unseen = std::mem::take(&mut self.cpus[cpu as usize].asked_unseen);
        let chosen = self.driven.pick(cpu, None)?;
        if chosen == running {
            if let Some(asked) = asked {
                self.tally.agree(asked.decision);
            }
            self.driven.run(running)?;
            return self.after_step();
        }
        if running.is_idle() {
            let (recorded, scheduler) = (Choice::Task(running), Choice::Task(chosen));
            let kind = Kind::RunsInsteadOfIdle;
            self.differ(Decision::Pick, kind, (cpu, running), recorded, scheduler, &[chosen]);
        } else if asked.is_some() || (!unseen && self.timeline.has_wakings) {
            // Without one of its own: by a wake-up for another CPU.
            let decision = asked.map_or(Decision::PreemptAtWakeup, |asked| asked.decision);
            let kind = Kind::OnlySchedulerPreempts;
            let (recorded, scheduler) = (Choice::Stay, Choice::Preempt);
            let tasks = [running, chosen];
            self.differ(decision, kind, (cpu, running), recorded, scheduler, &tasks);
        }
        let slice_ns = asked.map_or(self.cpus[cpu as usize].slice_ns, |asked| asked.slice_ns);
        self.driven.stay(slice_ns)?;
        self.after_step()
    }

    /// Learns from a pick how strictly the scheduler takes the task first that is ahead.
    pub(super) fn learn_order(&mut self, cpu: u32, prev: TaskId, chosen: TaskId) {
        if self.resolution.is_exact() || chosen.is_idle() || chosen == prev {
            return;
        }
        let waits = |driven: &Driven, task: TaskId| {
            task != prev && driven.is_runnable(task) && driven.cpu_of(task) == Some(cpu)
        };
        if !waits(&self.driven, chosen) {
            return;
        }
        let of_chosen = (chosen, self.knowledge.order_keys(&self.driven, chosen));
        self.resolution.sees(of_chosen.1);
        for &task in self.moves.queue(cpu) {
            if waits(&self.driven, task) {
                let of_task = (task, self.knowledge.order_keys(&self.driven, task));
                self.resolution.passes_over(self.resolution.gap(of_task, of_chosen));
            }
        }
    }

    /// Notes how the numbers by which the scheduler may order a task grow while it runs.
    pub(super) fn note_run_times(&mut self, cpu: u32, (prev, stays): (TaskId, bool), next: TaskId) {
        if self.resolution.is_exact() {
            return;
        }
        if stays && !prev.is_idle() {
            let keys = self.knowledge.order_keys(&self.driven, prev);
            self.resolution.leaves(prev, keys, self.now_ns);
        }
        let keys = self.knowledge.order_keys(&self.driven, next).filter(|_| !next.is_idle());
        self.resolution.comes(cpu, next, keys, self.now_ns);
    }

    /// Counts a difference, or a tie where the error of the recording explains it.
    fn count(&mut self, difference: Difference) {
        let (decision, now_ns) = (difference.decision, self.now_ns);
        let may_yield = self.timeline.yielders[difference.task.index()];
        if difference.kind == Kind::OnlyRecordingPreempts && may_yield {
            return self.tally.tie(decision);
        }
        if self.resolution.is_exact() {
            return self.tally.differ(difference);
        }
        let cpu = difference.cpu;
        let is_here = |task: TaskId| {
            let queues = (self.driven.cpu_of(task), self.moves.recorded[task.index()]);
            self.driven.is_runnable(task) && queues == (Some(cpu), cpu)
        };
        // A scheduler moves tasks between its queues without an event: where one runs next tells where it was.
        let stays_here = |task: TaskId| {
            is_here(task) && self.timeline.runs_next_on(task, self.index) == Some(cpu)
        };
        let waits = |task: TaskId| self.resolution.waits_surely(task, now_ns);
        match (difference.kind, difference.recorded, difference.scheduler) {
            (Kind::IdleInsteadOfRun, Choice::Task(task), _)
                if self.cpus.len() == 1 && is_here(task) && waits(task) =>
            {
                self.resolution.counts(difference);
            }
            (Kind::RunsInsteadOfIdle, _, Choice::Task(task)) if stays_here(task) && waits(task) => {
                self.resolution.counts(difference);
            }
            (Kind::OtherTask, Choice::Task(recorded), Choice::Task(chosen))
                if is_here(recorded) && stays_here(chosen) =>
            {
                let keys = |task| (task, self.knowledge.order_keys(&self.driven, task));
                let ahead = self.resolution.gap(keys(chosen), keys(recorded));
                if !self.resolution.may_count(difference, ahead, [recorded, chosen]) {
                    self.tally.tie(decision);
                }
            }
            _ => self.tally.tie(decision),
        }
    }

    /// Counts the differences that the whole recording confirms.
    pub(super) fn judge_open(&mut self) {
        for (difference, counts) in self.resolution.finish() {
            match counts {
                true => self.tally.differ(difference),
                false => self.tally.tie(difference.decision),
            }
        }
    }

    pub(super) fn differ(
        &mut self,
        decision: Decision,
        kind: Kind,
        (cpu, task): (u32, TaskId),
        recorded: Choice,
        scheduler: Choice,
        candidates: &[TaskId],
    ) {
        let of_task = |task: &TaskId| self.knowledge.of(&self.driven, *task);
        let candidates = match self.tally.is_new(decision, kind) {
            true => candidates.iter().filter_map(of_task).collect(),
            false => Vec::new(),
        };
        let time_ns = self.now_ns;
        self.count(Difference {
            time_ns,
            cpu,
            decision,
            kind,
            task,
            recorded,
            scheduler,
            candidates,
        });
    }
}
