//! Choosing what runs next: `__schedule` with the sched_ext class.

use fairground_trace::{EventKind, TaskId, TaskState};

use super::call::Meter;
use super::enqueue::Sticky;
use super::{Machine, Step};
use crate::Path;
use crate::abi::{self, deq, enq, ops_flag};
use crate::check::Invariant;
use crate::kernel::{Again, Slot};
use crate::layout::offsets;
use crate::op::Op;
use crate::real_time::Taker;

/// The result of the pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pick {
    /// The previous task continues.
    Keep,
    /// This task.
    Task(Slot),
    /// Nothing: the idle task.
    Idle,
}

impl Machine {
    /// `__schedule` on the executing CPU. `blocks`: what runs leaves the CPU in this state, unless it was woken
    /// meanwhile.
    ///
    /// Callbacks in the order of 6.12: (`stopping`, `quiescent` of a task that blocks), `dispatch`, then, when another
    /// task is chosen, `stopping` and `enqueue` of the one that ran, `update_idle`, and `running` of the next.
    pub(crate) fn schedule(&mut self, blocks: Option<TaskState>) -> Step {
        let cpu = self.kernel.this_cpu;
        let stops = self.kernel.cpus[cpu as usize].stop_requested;
        if stops && blocks.is_none() {
            return self.go_offline(cpu);
        }
        let meter = self.meter();
        let prev = self.kernel.cpus[cpu as usize].curr();
        let mut prev_state = TaskState::Runnable;
        if let (Some(slot), Some(state)) = (prev, blocks) {
            self.block(slot, state)?;
            prev_state = state;
        }
        let pick = self.pick_next(cpu, prev)?;
        let next = match pick {
            Pick::Keep => prev,
            Pick::Task(slot) => Some(slot),
            Pick::Idle => None,
        };
        // Requests that came up during the pass are met by it (`clear_tsk_need_resched`).
        if next != prev {
            let again = self.switch(cpu, prev, prev_state, next, meter)?;
            self.kernel.rq(cpu).need_resched = again;
            self.push_behind(next)?;
        } else {
            self.kernel.rq(cpu).need_resched = false;
            if next.is_none() {
                // `pick_task_idle` when the idle task stays: the CPU counts as idle again, though it was claimed.
                self.kernel.mark_idle(cpu, true);
            }
            let insns = self.book(Path::Repick, meter);
            let ns = self.policy_ns(insns);
            self.kernel.charge_irqs_off(cpu, ns);
        }
        // What leaves by itself leaves first; the stopper comes in the pass after that.
        self.kernel.rq(cpu).need_resched |= stops;
        self.kernel.limit_passes(cpu, prev.is_none() && next.is_none());
        self.kernel.run_deferred(self.program.memory(), cpu)
    }

    /// `try_to_block_task`: off the run queue.
    pub(crate) fn block(&mut self, slot: Slot, state: TaskState) -> Step {
        let dead = state == TaskState::Dead;
        self.kernel.task_mut(slot).state = state;
        let flags = deq::SLEEP | deq::NOCLOCK | if dead { deq::SPECIAL } else { 0 };
        let addr = self.kernel.task(slot).addr;
        // The task itself has set it, before it called.
        let bits = match state {
            TaskState::Dead => 0x80,
            TaskState::Uninterruptible => 2,
            _ => 1,
        };
        self.program.memory().store_u32(addr + offsets::task::STATE, bits)?;
        self.dequeue_task(slot, flags)?;
        self.program.memory().store_u32(addr + offsets::task::ON_RQ, 0)
    }

    /// `pick_next_task`: the real-time class's, or `balance_one` and `pick_task_scx`. Callbacks: `cpu_acquire`, if a
    /// higher class had the CPU; `dispatch`.
    #[inline(always)]
    pub(crate) fn pick_next(&mut self, cpu: u32, prev: Option<Slot>) -> Step<Pick> {
        match self.kernel.rt.is_used() {
            true => self.pick_of_classes(cpu, prev),
            false => self.pick_scx(cpu, prev),
        }
    }

    /// `pick_task_scx`. `prev`: what ran, if it is a task of the scheduler.
    #[inline(always)]
    pub(crate) fn pick_scx(&mut self, cpu: u32, prev: Option<Slot>) -> Step<Pick> {
        self.acquire_cpu(cpu);
        self.kernel.rq(cpu).in_balance = true;
        let keep = self.balance(cpu, prev);
        if self.kernel.uses_immed {
            self.kernel.look_for_immed(cpu);
        }
        self.kernel.rq(cpu).in_balance = false;
        let mem = self.program.memory();
        if keep? && let Some(slot) = prev {
            self.kernel.refill_slice(mem, slot)?;
            return Ok(Pick::Keep);
        }
        let local = self.kernel.cpus[cpu as usize].local;
        let Some(slot) = self.kernel.queues.first(local).map(Slot) else { return Ok(Pick::Idle) };
        self.kernel.refill_slice(mem, slot)?;
        if self.kernel.check && !self.kernel.task(slot).allows(cpu) {
            let what = format!("it would run on CPU {cpu}, where it may not");
            self.kernel.violate(Invariant::Affinity, Some(slot), what);
        }
        Ok(Pick::Task(slot))
    }

    /// `balance_one`: makes sure that the local queue holds a task if there is one to run. True: the previous task
    /// continues.
    fn balance(&mut self, cpu: u32, prev: Option<Slot>) -> Step<bool> {
        let mem = self.program.memory();
        self.kernel.update_curr(mem, cpu)?;
        let prev_queued = prev.filter(|slot| self.kernel.task(*slot).queued);
        if self.kernel.has_slice(mem, prev_queued)? {
            return Ok(true);
        }
        let local = self.kernel.cpus[cpu as usize].local;
        if !self.kernel.queues.is_empty(local) || self.kernel.consume_global(mem, cpu)? {
            return Ok(false);
        }
        if self.has(Op::Dispatch) && self.dispatch_loop(cpu, prev, prev_queued)? {
            return self.kernel.has_slice(self.program.memory(), prev_queued);
        }
        let enq_last = self.policy.ops.flags & ops_flag::ENQ_LAST != 0 && !self.broken;
        let keeps = prev_queued.is_some() && !enq_last;
        self.kernel.counters.kept_last += u64::from(keeps);
        Ok(keeps)
    }

    /// The loop of `balance_one` around `ops.dispatch()`: again while it dispatched something and yet nothing can run
    /// here. True: there is something to run.
    fn dispatch_loop(
        &mut self,
        cpu: u32,
        prev: Option<Slot>,
        prev_queued: Option<Slot>,
    ) -> Step<bool> {
        let prev_addr = prev.map_or(0, |slot| self.kernel.task(slot).addr);
        let told = self.kernel.cids.told(cpu);
        for _ in 0..abi::DISPATCH_MAX_LOOPS {
            self.kernel.buffer.begin();
            self.call(Op::Dispatch, prev, &[told, prev_addr]);
            let mem = self.program.memory();
            self.kernel.flush_dispatch_buffer(mem, cpu)?;
            let local = self.kernel.cpus[cpu as usize].local;
            if self.kernel.has_slice(mem, prev_queued)?
                || !self.kernel.queues.is_empty(local)
                || self.kernel.consume_global(mem, cpu)?
            {
                return Ok(true);
            }
            if !self.kernel.buffer.has_dispatched() {
                return Ok(false);
            }
        }
        self.kernel.kick(i64::from(cpu), 0);
        Ok(false)
    }

    /// `put_prev_set_next_task` and the switch itself. True: the idle task that comes next shall make room at once.
    pub(crate) fn switch(
        &mut self,
        cpu: u32,
        prev: Option<Slot>,
        prev_state: TaskState,
        next: Option<Slot>,
        meter: Meter,
    ) -> Step<bool> {
        let again = match (prev, next) {
            (_, Some(slot)) if self.kernel.task(slot).rt.is_rt() => {
                self.make_way(cpu, prev, Taker::Rt(slot))?;
                false
            }
            (Some(slot), _) => self.put_prev(cpu, slot, next.is_none())?,
            (None, _) => {
                self.update_idle(cpu, false);
                false
            }
        };
        match next {
            Some(slot) => self.set_next(slot)?,
            None => self.update_idle(cpu, true),
        }
        self.raise_switch(cpu, prev, next)?;
        let insns = self.book(Path::Switch, meter);
        let mem = self.program.memory();
        self.kernel.leave_cpu(mem, prev, prev_state)?;
        if let Some(slot) = prev {
            self.take_signal(slot);
            self.owner_leaves(slot);
        }
        self.enter_next(cpu, (prev, prev_state), next, insns)?;
        Ok(again)
    }

    /// The pass after a thread of a higher class, which no callback reports. `prev`: what ran before that thread;
    /// `meter`: since when this pass is going on.
    pub(crate) fn schedule_after_stop(
        &mut self,
        cpu: u32,
        prev: Option<Slot>,
        meter: Meter,
    ) -> Step {
        let next = match self.pick_next(cpu, None)? {
            Pick::Task(slot) => Some(slot),
            _ => None,
        };
        match next {
            Some(slot) => self.set_next(slot)?,
            None => self.update_idle(cpu, true),
        }
        self.kernel.rq(cpu).need_resched = false;
        self.raise_switch(cpu, prev, next)?;
        let insns = self.book(Path::Switch, meter);
        self.enter_next(cpu, (prev, TaskState::Runnable), next, insns)?;
        self.push_behind(next)
    }

    /// `rt_queue_push_tasks`: after a switch to a real-time task, others that wait there go to CPUs that run something
    /// lower.
    #[inline]
    fn push_behind(&mut self, next: Option<Slot>) -> Step {
        match next {
            Some(slot) if self.kernel.task(slot).rt.is_rt() => {
                self.push_rt(self.kernel.task(slot).cpu)
            }
            _ => Ok(()),
        }
    }

    /// `context_switch` to what was chosen by so many instructions, with its event and what it costs. `prev`: what ran
    /// before, and the state in which it leaves.
    #[inline(always)]
    pub(crate) fn enter_next(
        &mut self,
        cpu: u32,
        (prev, prev_state): (Option<Slot>, TaskState),
        next: Option<Slot>,
        insns: u64,
    ) -> Step {
        self.kernel.enter_cpu(self.program.memory(), cpu, next)?;
        let choice_ns = self.policy_ns(insns);
        let mut ns = choice_ns;
        if next != prev {
            let id =
                |slot: Option<Slot>| slot.map_or(TaskId::IDLE, |slot| self.kernel.task(slot).id);
            let kind = EventKind::Switch { prev: id(prev), prev_state, next: id(next) };
            self.kernel.emit_switch(cpu, insns, kind, choice_ns);
            self.kernel.counters.switches += 1;
            let saving_ns = if prev.is_none() { self.kernel.cost.idle_saving_ns } else { 0 };
            ns += self.kernel.cost.context_switch_ns.saturating_sub(saving_ns);
        }
        self.kernel.charge_irqs_off(cpu, ns);
        if let Some(slot) = next {
            let ns = self.kernel.arrival_cost(slot, cpu);
            self.kernel.charge(cpu, ns);
            self.kernel.arm_tick();
        }
        Ok(())
    }

    /// `put_prev_task`, for a task of the scheduler `put_prev_task_scx`: the previous task leaves. Callbacks:
    /// `stopping`, and `enqueue` when its slice is used up. True: the scheduler left it in the local queue though the
    /// CPU goes idle, so that the idle task has to make room for it.
    pub(crate) fn put_prev(&mut self, cpu: u32, slot: Slot, next_is_idle: bool) -> Step<bool> {
        self.kernel.update_curr(self.program.memory(), cpu)?;
        if !self.kernel.task(slot).queued || self.kernel.task(slot).rt.is_rt() {
            return Ok(false);
        }
        self.call_task(Op::Stopping, slot, Some(1));
        let mem = self.program.memory();
        self.kernel.set_task_runnable(mem, slot)?;
        if self.kernel.task(slot).slice(mem)? != 0 {
            if self.kernel.task(slot).immed {
                self.enqueue_again(slot, Again::Preempted)?;
                return Ok(false);
            }
            let local = crate::dsq::DsqRef::Local(cpu);
            self.kernel.dispatch_enqueue(mem, local, slot, enq::HEAD)?;
            return Ok(false);
        }
        self.do_enqueue_task(slot, if next_is_idle { enq::LAST } else { 0 }, Sticky::No)?;
        let local = self.kernel.cpus[cpu as usize].local;
        Ok(next_is_idle && self.kernel.queues.queue_of(slot.0) == Some(local))
    }

    /// `set_next_task`, for a task of the scheduler `set_next_task_scx`: this task runs now. Callback: `running`.
    pub(crate) fn set_next(&mut self, slot: Slot) -> Step {
        let is_rt = self.kernel.task(slot).rt.is_rt();
        if self.kernel.task(slot).queued && !is_rt {
            self.ops_dequeue(slot, deq::CORE_SCHED_EXEC);
            self.kernel.dispatch_dequeue(slot);
        }
        let now = self.kernel.clock.now_ns();
        let mem = self.program.memory();
        let task = self.kernel.task_mut(slot);
        task.exec_start_ns = now;
        mem.store_u64(task.addr + offsets::task::EXEC_START, now)?;
        mem.store_u64(task.addr + offsets::task::PREV_SUM_EXEC, task.sum_exec_ns)?;
        if is_rt {
            return Ok(());
        }
        if task.queued {
            self.call_task(Op::Running, slot, None);
        }
        let task = self.kernel.task_mut(slot);
        task.waiting = false;
        task.reset_runnable_at = true;
        self.kernel.task(slot).publish_flags(self.program.memory(), &self.kernel.states)
    }

    /// `__scx_update_idle` at a real change between a task and the idle task. Callback: `update_idle`.
    pub(crate) fn update_idle(&mut self, cpu: u32, idle: bool) {
        if self.has(Op::UpdateIdle) {
            let told = self.kernel.cids.told(cpu);
            self.call(Op::UpdateIdle, None, &[told, u64::from(idle)]);
        }
        self.kernel.mark_idle(cpu, idle);
    }
}
