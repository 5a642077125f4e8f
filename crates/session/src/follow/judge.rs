//! Comparing decisions.

use fairground_trace::TaskId;

use super::follower::{Follower, Told};
use super::tally::{Decision, Difference, Kind, Verdict};
use super::timeline;

/// A pass that the scheduler asks for and the recording does not show.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
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
        let (recorded, scheduler) = (Verdict::Task(next), Verdict::Task(chosen));
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
        let (recorded, scheduler) = (Verdict::Cpu(recorded), Verdict::Cpu(chosen));
        self.differ(decision, kind, (cpu, task), recorded, scheduler, &[task]);
    }

    /// A wake-up or a tick may make what runs on a CPU leave.
    pub(super) fn judge_preemption(&mut self, decision: Decision, cpu: u32, task: TaskId) -> Told {
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
            (true, timeline::Verdict::Preempts) | (false, timeline::Verdict::Stays) => {
                self.tally.agree(decision);
            }
            (true, timeline::Verdict::Stays) => at.asked = Some(Asked { decision, slice_ns }),
            (false, timeline::Verdict::Preempts) => {
                at.is_preempted = true;
                let kind = Kind::OnlyRecordingPreempts;
                let (recorded, scheduler) = (Verdict::Preempt, Verdict::Stay);
                let tasks = [running, task];
                let tasks = if by_tick { &tasks[..1] } else { &tasks };
                self.differ(decision, kind, (cpu, running), recorded, scheduler, tasks);
            }
            (_, timeline::Verdict::Unclear) => {}
        }
        Ok(())
    }

    /// Passes that the scheduler asks for and the recording does not show take place, before time goes on to
    /// `next_ns`: they change nothing, or the scheduler decided otherwise.
    pub(super) fn settle(&mut self, next_ns: u64) -> Told {
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
    fn is_unseen(&self, cpu: u32) -> Told<bool> {
        if self.timeline.has_dispatches {
            // A pass without a callback lets the running task use up its slice.
            return Ok(self.driven.slice_ns(cpu)? > 0
                && !self.timeline.schedules_soon(cpu, self.index, self.now_ns));
        }
        Ok(!self.timeline.schedules_soon(cpu, self.index, self.now_ns))
    }

    pub(super) fn settle_cpu(&mut self, cpu: u32) -> Told {
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
            let (recorded, scheduler) = (Verdict::Task(running), Verdict::Task(chosen));
            let kind = Kind::RunsInsteadOfIdle;
            self.differ(Decision::Pick, kind, (cpu, running), recorded, scheduler, &[chosen]);
        } else if asked.is_some() || (!unseen && self.timeline.has_wakings) {
            // Without one of its own: by a wake-up for another CPU.
            let decision = asked.map_or(Decision::PreemptAtWakeup, |asked| asked.decision);
            let kind = Kind::OnlySchedulerPreempts;
            let (recorded, scheduler) = (Verdict::Stay, Verdict::Preempt);
            let tasks = [running, chosen];
            self.differ(decision, kind, (cpu, running), recorded, scheduler, &tasks);
        }
        let slice_ns = asked.map_or(self.cpus[cpu as usize].slice_ns, |asked| asked.slice_ns);
        self.driven.stay(slice_ns)?;
        self.after_step()
    }

    pub(super) fn differ(
        &mut self,
        decision: Decision,
        kind: Kind,
        (cpu, task): (u32, TaskId),
        recorded: Verdict,
        scheduler: Verdict,
        candidates: &[TaskId],
    ) {
        let is_new = self.tally.differ(Difference {
            time_ns: self.now_ns,
            cpu,
            decision,
            kind,
            task,
            recorded,
            scheduler,
            known: Vec::new(),
        });
        if is_new {
            let known = candidates.iter().filter_map(|task| self.knowledge.of(&self.driven, *task));
            let known = known.collect();
            self.tally.explain(decision, kind, known);
        }
    }
}
