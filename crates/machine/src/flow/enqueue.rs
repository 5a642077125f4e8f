//! Enqueueing and dequeueing.

use super::{Machine, Step};
use crate::abi::{self, deq, enq, ops_flag};
use crate::dsq::DsqRef;
use crate::kernel::{Again, DirectDispatch, OpsState, Reenqueue, Slot};
use crate::op::Op;

/// Where [`Machine::do_enqueue_task`] puts a task.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sticky {
    /// Where the scheduler decides.
    No,
    /// Into the local queue of its CPU: it runs there at once.
    Here,
}

impl Machine {
    /// `enqueue_task`, for a task of the scheduler `enqueue_task_scx`: the task becomes runnable on the run queue of
    /// its CPU. Callbacks: `runnable` (not when it only moves between run queues), then `enqueue`.
    pub(crate) fn enqueue_task(&mut self, slot: Slot, enq_flags: u64, sticky: Sticky) -> Step {
        if self.kernel.task(slot).rt.is_rt() {
            return self.enqueue_rt(slot, false);
        }
        if self.kernel.task(slot).queued {
            return Ok(());
        }
        let mem = self.program.memory();
        self.kernel.set_task_runnable(mem, slot)?;
        let task = self.kernel.task_mut(slot);
        task.queued = true;
        let (cpu, migrating) = (task.cpu, task.migrating);
        self.kernel.task(slot).publish_flags(mem, &self.kernel.states)?;
        self.kernel.rq(cpu).add_running(mem)?;
        if self.kernel.rt.is_used() {
            self.kernel.start_server(cpu);
        }
        if !migrating {
            self.call_task(Op::Runnable, slot, Some(enq_flags));
        }
        self.do_enqueue_task(slot, enq_flags, sticky)
    }

    /// `do_enqueue_task`: into a local or global queue by the core's own rules, or by `ops.enqueue()`.
    pub(crate) fn do_enqueue_task(&mut self, slot: Slot, enq_flags: u64, sticky: Sticky) -> Step {
        let cpu = self.kernel.task(slot).cpu;
        if sticky == Sticky::Here {
            self.kernel.task_mut(slot).ddsp = None;
            return self.kernel.dispatch_enqueue(
                self.program.memory(),
                DsqRef::Local(cpu),
                slot,
                enq_flags,
            );
        }
        if self.kernel.uses_immed && self.kernel.task(slot).immed {
            self.kernel.task_mut(slot).immed = false;
            self.kernel.task(slot).publish_flags(self.program.memory(), &self.kernel.states)?;
        }
        // `scx_rq_online`: the scheduler knows that the CPU goes, and the task is about to leave it.
        let goes = !self.kernel.is_online(cpu);
        let task = self.kernel.task(slot);
        if task.ddsp.is_some() && !self.broken && !goes {
            return self.kernel.direct_dispatch(self.program.memory(), slot, enq_flags);
        }
        let core_only = task.exiting && self.policy.ops.flags & ops_flag::ENQ_EXITING == 0;
        if core_only || goes || !self.has(Op::Enqueue) {
            let mem = self.program.memory();
            self.kernel.counters.skipped_exiting += u64::from(core_only && !goes);
            self.kernel.set_default_slice(mem, slot)?;
            self.kernel.task_mut(slot).ddsp = None;
            let node = self.kernel.topology.node_of(cpu);
            let to_local = core_only || goes;
            let target = if to_local { DsqRef::Local(cpu) } else { DsqRef::Global(node) };
            return self.kernel.dispatch_enqueue(mem, target, slot, enq_flags);
        }
        self.kernel.qseq += 1;
        let qseq = self.kernel.qseq;
        let task = self.kernel.task_mut(slot);
        task.qseq = qseq;
        task.ops_state = OpsState::Queueing;
        self.kernel.direct = DirectDispatch::Open(slot);
        self.call_task(Op::Enqueue, slot, Some(enq_flags));
        self.kernel.direct = DirectDispatch::Closed;
        if self.kernel.task(slot).ddsp.is_some() {
            return self.kernel.direct_dispatch(self.program.memory(), slot, enq_flags);
        }
        self.kernel.task_mut(slot).ops_state = OpsState::Queued;
        self.kernel.enter_custody(slot);
        Ok(())
    }

    /// `process_deferred_reenq_locals`, `process_deferred_reenq_users`: the tasks of the queues that were named go to
    /// the scheduler again. Tasks that come into a queue meanwhile are not met. Callback: `enqueue`.
    #[inline(never)]
    pub(crate) fn run_reenqueues(&mut self, cpu: u32) -> Step {
        let mut rounds = 0;
        while !self.kernel.reenqueues.is_empty() && self.kernel.exit.is_none() {
            if rounds > abi::REENQ_MAX_REPEAT {
                self.kernel.error(format!("SCX_ENQ_REENQ repeated {rounds} times"));
            }
            self.kernel.counters.reenqueue_repeats += u64::from(rounds > 0);
            rounds += 1;
            for ask in std::mem::take(&mut self.kernel.reenqueues) {
                self.at_its_cost(cpu, |machine| machine.reenqueue(ask))?;
            }
        }
        self.kernel.reenqueues.clear();
        Ok(())
    }

    fn reenqueue(&mut self, ask: Reenqueue) -> Step {
        let dsq = self.kernel.dsq_of(ask.queue);
        for (slot, again) in self.kernel.tasks_again(ask) {
            if self.kernel.exit.is_some() {
                break;
            }
            if self.kernel.queues.queue_of(slot.0) != Some(dsq) {
                continue;
            }
            self.kernel.dispatch_dequeue(slot);
            self.enqueue_again(slot, again)?;
            let cpu = self.kernel.task(slot).cpu;
            self.kernel.run_deferred(self.program.memory(), cpu)?;
        }
        Ok(())
    }

    /// A task goes to the scheduler again. Callback: `enqueue`.
    pub(crate) fn enqueue_again(&mut self, slot: Slot, again: Again) -> Step {
        self.kernel.task_mut(slot).again = again;
        self.kernel.task(slot).publish_flags(self.program.memory(), &self.kernel.states)?;
        self.do_enqueue_task(slot, enq::REENQ, Sticky::No)?;
        self.kernel.task_mut(slot).again = Again::No;
        self.kernel.task(slot).publish_flags(self.program.memory(), &self.kernel.states)
    }

    /// `ops_dequeue`: takes a task back from the scheduler. Callback: `dequeue`, if the scheduler has it.
    #[inline(always)]
    pub(crate) fn ops_dequeue(&mut self, slot: Slot, deq_flags: u64) {
        let task = self.kernel.task_mut(slot);
        task.waiting = false;
        if task.ops_state == OpsState::Queued {
            task.ops_state = OpsState::None;
        }
        if std::mem::take(&mut task.in_custody) {
            self.call_task(Op::Dequeue, slot, Some(deq_flags));
        }
    }

    /// Callback `dequeue` for the tasks that the scheduler has dispatched to where they run, on the CPUs that did it.
    #[inline(never)]
    pub(crate) fn tell_left(&mut self) {
        let this_cpu = self.kernel.this_cpu;
        while let Some((slot, cpu)) = self.kernel.left_custody.pop_front() {
            self.kernel.this_cpu = cpu;
            self.call_task(Op::Dequeue, slot, Some(0));
        }
        self.kernel.this_cpu = this_cpu;
    }

    /// `dequeue_task`, for a task of the scheduler `dequeue_task_scx`: the task leaves the run queue. Callbacks:
    /// `dequeue` if the scheduler has it, `stopping` if it runs, then `quiescent` (not when it only moves between run
    /// queues).
    pub(crate) fn dequeue_task(&mut self, slot: Slot, deq_flags: u64) -> Step {
        if !self.kernel.task(slot).queued {
            return Ok(());
        }
        if self.kernel.task(slot).rt.is_rt() {
            return self.dequeue_rt(slot);
        }
        let is_change = deq_flags & deq::SLEEP == 0;
        let deq_flags = deq_flags | if is_change { deq::SCHED_CHANGE } else { 0 };
        self.ops_dequeue(slot, deq_flags);
        let cpu = self.kernel.task(slot).cpu;
        if self.kernel.runs(slot) {
            self.kernel.update_curr(self.program.memory(), cpu)?;
            self.call_task(Op::Stopping, slot, Some(0));
        }
        if !self.kernel.task(slot).migrating {
            self.call_task(Op::Quiescent, slot, Some(deq_flags));
        }
        let mem = self.program.memory();
        let task = self.kernel.task_mut(slot);
        task.queued = false;
        task.deqd_for_sleep = deq_flags & deq::SLEEP != 0;
        self.kernel.task(slot).publish_flags(mem, &self.kernel.states)?;
        self.kernel.rq(cpu).sub_running(mem)?;
        self.kernel.dispatch_dequeue(slot);
        self.kernel.task_mut(slot).ddsp = None;
        Ok(())
    }

    /// `activate_task` for a wake-up or a new task, then what `wakeup_preempt` and `task_woken_scx` do: an idle CPU is
    /// notified, and direct dispatches to other CPUs are carried out.
    pub(crate) fn activate_woken(&mut self, slot: Slot, enq_flags: u64) -> Step {
        self.enqueue_task(slot, enq_flags, Sticky::No)?;
        self.preempt_for(slot)
    }

    /// `wakeup_preempt`: a task was queued for its CPU, which is to schedule if it runs something of a lower class, or
    /// of lower priority.
    #[inline]
    pub(crate) fn preempt_for(&mut self, slot: Slot) -> Step {
        let task = self.kernel.task(slot);
        if task.rt.is_rt() {
            return self.preempt_for_rt(slot);
        }
        let cpu = task.cpu;
        if self.kernel.cpus[cpu as usize].is_idle() {
            self.kernel.resched_curr(cpu);
        }
        Ok(())
    }

    /// `move_queued_task`: takes a runnable task that does not run from its run queue to another one, where it is
    /// enqueued again.
    pub(crate) fn move_queued_task(&mut self, slot: Slot, cpu: u32) -> Step {
        self.kernel.task_mut(slot).migrating = true;
        self.dequeue_task(slot, deq::NOCLOCK)?;
        self.kernel.set_task_cpu(self.program.memory(), slot, cpu)?;
        self.enqueue_task(slot, 0, Sticky::No)?;
        self.kernel.task_mut(slot).migrating = false;
        self.preempt_for(slot)?;
        self.kernel.run_deferred(self.program.memory(), cpu)
    }
}
