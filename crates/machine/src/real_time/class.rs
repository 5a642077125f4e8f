//! The real-time class: its steps that call the scheduler or end in such a step (`kernel/sched/rt.c`, 7.2).
//!
//! Not modelled: overload interrupts (`RT_PUSH_IPI`), where a CPU that has room for a waiting task lets the other CPU
//! push it; here it pulls the task itself (`pull_rt_task`), at once. Capacities (`rt_task_fits_capacity`), bandwidth of
//! groups (`CONFIG_RT_GROUP_SCHED`) and limits of a task's own (`RLIMIT_RTTIME`) do not exist.

use fairground_trace::{EventKind, RtPrio};
use fairground_workload::SchedPolicy;

use crate::abi::{deq, enq};
use crate::flow::{Machine, Pick, Step, Sticky};
use crate::kernel::{ScxState, Slot};
use crate::layout::offsets::task as field;
use crate::op::Op;

impl Machine {
    /// `enqueue_task_rt`: behind, or at the `head` of, the runnable tasks of its priority on its CPU.
    pub(crate) fn enqueue_rt(&mut self, slot: Slot, head: bool) -> Step {
        let task = self.kernel.task_mut(slot);
        if std::mem::replace(&mut task.queued, true) {
            return Ok(());
        }
        let (cpu, priority) = (task.cpu, task.rt.priority());
        self.kernel.rt.push(cpu, slot, priority, head);
        self.kernel.rq(cpu).add_running(self.program.memory())
    }

    /// `dequeue_task_rt`.
    pub(crate) fn dequeue_rt(&mut self, slot: Slot) -> Step {
        let mem = self.program.memory();
        let cpu = self.kernel.task(slot).cpu;
        if self.kernel.runs(slot) {
            self.kernel.update_curr(mem, cpu)?;
        }
        self.kernel.task_mut(slot).queued = false;
        self.kernel.rt.remove(cpu, slot);
        self.kernel.rq(cpu).sub_running(mem)
    }

    /// `select_task_rq_rt`: a task stays, unless its CPU runs a real-time task that it does not preempt, or that cannot
    /// go elsewhere, and another CPU runs something lower.
    pub(crate) fn select_cpu_rt(&mut self, slot: Slot, prev_cpu: u32) -> u32 {
        let priority = self.kernel.task(slot).rt.priority();
        let Some(curr) = self.kernel.cpus[prev_cpu as usize].curr() else { return prev_cpu };
        let curr = self.kernel.task(curr);
        let is_higher = curr.allowed_count < 2 || curr.rt.priority() >= priority;
        if !curr.rt.is_rt() || !is_higher {
            return prev_cpu;
        }
        let lowest = self.kernel.find_lowest_cpu(slot);
        lowest.filter(|cpu| priority > self.kernel.rt.highest(*cpu)).unwrap_or(prev_cpu)
    }

    /// `wakeup_preempt_rt` and `task_woken_rt`: a task was queued for its CPU.
    pub(crate) fn preempt_for_rt(&mut self, slot: Slot) -> Step {
        let task = self.kernel.task(slot);
        let (cpu, priority, is_pinned) = (task.cpu, task.rt.priority(), task.allowed_count < 2);
        let curr_priority = self.kernel.running_priority(cpu);
        if priority > curr_priority {
            self.kernel.resched_curr(cpu);
            return Ok(());
        }
        let Some(curr) = self.kernel.cpus[cpu as usize].curr() else { return Ok(()) };
        if curr == slot || self.kernel.cpus[cpu as usize].need_resched {
            return Ok(());
        }
        if priority == curr_priority
            && self.kernel.find_lowest_cpu(curr).is_some()
            && (is_pinned || self.kernel.find_lowest_cpu(slot).is_none())
        {
            // `check_preempt_equal_prio`: the running one can go elsewhere, and this one cannot.
            self.kernel.rt.requeue(cpu, slot, priority, true);
            self.kernel.resched_curr(cpu);
            return Ok(());
        }
        if is_pinned { Ok(()) } else { self.push_rt(cpu) }
    }

    /// `balance_rt` and `pick_task_rt`: what the class runs next on a CPU; `None`: it has nothing to run there. `prev`
    /// has run, and is off the run queue if it blocks.
    fn pick_rt(&mut self, cpu: u32, prev: Option<Slot>) -> Step<Option<Pick>> {
        if let Some(slot) = prev {
            let task = self.kernel.task(slot);
            let left_priority = task.rt.priority();
            if !task.queued && left_priority > self.kernel.rt.highest(cpu) {
                self.pull_rt(cpu)?;
            }
        }
        let first = self.kernel.rt.first(cpu);
        Ok(first.map(|slot| if prev == Some(slot) { Pick::Keep } else { Pick::Task(slot) }))
    }

    /// The classes in their order: the scheduler's while its deadline server runs, the real-time class, the
    /// scheduler's.
    #[inline(never)]
    pub(crate) fn pick_of_classes(&mut self, cpu: u32, prev: Option<Slot>) -> Step<Pick> {
        let own = prev.filter(|slot| !self.kernel.task(*slot).rt.is_rt());
        if self.kernel.rt.is_served(cpu) {
            match self.pick_scx(cpu, own)? {
                Pick::Idle => self.kernel.rt.stop_server(cpu),
                pick => return Ok(pick),
            }
        }
        match self.pick_rt(cpu, prev)? {
            Some(pick) => Ok(pick),
            None => self.pick_scx(cpu, own),
        }
    }

    /// `dl_server_timer`, an interrupt of the CPU.
    pub(crate) fn server_event(&mut self, cpu: u32) -> Step {
        self.on_cpu(cpu, |machine| {
            machine.kernel.wake_from_idle(cpu);
            machine.kernel.update_curr(machine.program.memory(), cpu)?;
            machine.kernel.book_idle(cpu);
            machine.kernel.expire_server(cpu);
            let ns = machine.kernel.cost.timer_irq_ns;
            machine.kernel.charge_irqs_off(cpu, ns);
            Ok(())
        })
    }

    /// `push_rt_tasks`: tasks that wait on a CPU, the highest first, go to CPUs that run something lower.
    pub(crate) fn push_rt(&mut self, cpu: u32) -> Step {
        // Ends: each task that is pushed runs, or preempts, where it goes.
        while let Some(slot) = self.kernel.pushable(cpu, None) {
            let priority = self.kernel.task(slot).rt.priority();
            if priority > self.kernel.running_priority(cpu) {
                self.kernel.resched_curr(cpu);
                break;
            }
            let lowest = self.kernel.find_lowest_cpu(slot);
            let Some(to) = lowest.filter(|to| *to != cpu && priority > self.kernel.rt.highest(*to))
            else {
                break;
            };
            self.move_rt(slot, to)?;
            self.kernel.resched_curr(to);
        }
        Ok(())
    }

    /// `pull_rt_task`: tasks that wait on other CPUs, and are higher than what is runnable on this one, come here.
    pub(crate) fn pull_rt(&mut self, cpu: u32) -> Step {
        for from in 0..self.kernel.nr_cpus() {
            if from == cpu {
                continue;
            }
            let Some(slot) = self.kernel.pushable(from, Some(cpu)) else { continue };
            let priority = self.kernel.task(slot).rt.priority();
            let preempts_there = priority > self.kernel.running_priority(from);
            if priority > self.kernel.rt.highest(cpu) && !preempts_there {
                self.move_rt(slot, cpu)?;
            }
        }
        Ok(())
    }

    /// `move_queued_task_locked`.
    fn move_rt(&mut self, slot: Slot, to: u32) -> Step {
        self.dequeue_rt(slot)?;
        self.kernel.set_task_cpu(self.program.memory(), slot, to)?;
        self.enqueue_rt(slot, false)
    }

    /// `task_tick_rt` of the running task.
    pub(crate) fn tick_rt(&mut self, cpu: u32, slot: Slot) {
        let tick_ns = self.kernel.clock.period_ns();
        let rt = &mut self.kernel.task_mut(slot).rt;
        let (over, priority) = (rt.tick(tick_ns), rt.priority());
        if over && self.kernel.rt.requeue(cpu, slot, priority, false) {
            self.kernel.resched_curr(cpu);
        }
    }

    /// `yield_task_rt`.
    pub(crate) fn yield_rt(&mut self, slot: Slot) {
        let task = self.kernel.task(slot);
        let (cpu, priority) = (task.cpu, task.rt.priority());
        self.kernel.rt.requeue(cpu, slot, priority, false);
    }

    /// `__sched_setscheduler`: another policy or priority. A task that leaves the scheduler's class: callbacks
    /// `dequeue` if the scheduler owned it, `stopping` if it runs, `quiescent`, `disable`. One that comes: `enable`,
    /// `set_weight`, `set_cpumask`, `runnable`, then `running` if it runs, else `enqueue`.
    pub(crate) fn set_policy(&mut self, slot: Slot, policy: SchedPolicy) -> Step {
        let before = self.kernel.task(slot).rt;
        let after = before.with_policy(policy);
        if before == after {
            return Ok(());
        }
        self.at_its_cost(self.kernel.this_cpu, |machine| match before.is_rt() == after.is_rt() {
            true => machine.change_priority(slot, policy),
            false => machine.change_class(slot, policy),
        })?;
        let task = self.kernel.task(slot);
        let (id, nice) = (task.id, task.nice);
        let prio = after.is_rt().then(|| RtPrio::new(99 - i32::from(after.priority()))).flatten();
        let kind = match prio {
            Some(prio) => EventKind::RtPrio { task: id, prio },
            None => EventKind::Nice { task: id, nice },
        };
        self.kernel.emit(self.kernel.this_cpu, 0, kind);
        Ok(())
    }

    /// `prio_changed_rt`.
    fn change_priority(&mut self, slot: Slot, policy: SchedPolicy) -> Step {
        let task = self.kernel.task(slot);
        let (cpu, queued, before) = (task.cpu, task.queued, task.rt.priority());
        let runs = self.kernel.runs(slot);
        if queued {
            self.dequeue_rt(slot)?;
        }
        self.apply_policy(slot, policy)?;
        let after = self.kernel.task(slot).rt.priority();
        if !queued {
            return Ok(());
        }
        self.enqueue_rt(slot, after < before)?;
        if !runs {
            return self.preempt_for_rt(slot);
        }
        if after < before {
            self.pull_rt(cpu)?;
        }
        if after < self.kernel.rt.highest(cpu) {
            self.kernel.resched_curr(cpu);
        }
        Ok(())
    }

    /// `sched_change_begin` and `sched_change_end` of a task that changes its class.
    fn change_class(&mut self, slot: Slot, policy: SchedPolicy) -> Step {
        let task = self.kernel.task(slot);
        let (cpu, queued, was_rt) = (task.cpu, task.queued, task.rt.is_rt());
        let runs = self.kernel.runs(slot);
        if queued {
            self.dequeue_task(slot, deq::SAVE | deq::MOVE | deq::NOCLOCK)?;
        }
        if !was_rt {
            self.disable_task(slot);
        }
        self.apply_policy(slot, policy)?;
        if was_rt && self.kernel.task(slot).scx_state == ScxState::Ready {
            self.enable_task(slot)?;
            self.tell_cpumask(slot)?;
        }
        if !queued {
            return Ok(());
        }
        let flags = enq::RESTORE | enq::MOVE | enq::NOCLOCK;
        let sticky = if runs { Sticky::Here } else { Sticky::No };
        self.enqueue_task(slot, flags, sticky)?;
        if !runs {
            self.preempt_for(slot)?;
            return self.kernel.run_deferred(self.program.memory(), cpu);
        }
        self.set_next(slot)?;
        if was_rt {
            // It may have to make room for what it kept waiting, here and elsewhere.
            self.pull_rt(cpu)?;
            self.kernel.resched_curr(cpu);
        }
        Ok(())
    }

    fn apply_policy(&mut self, slot: Slot, policy: SchedPolicy) -> Step {
        let task = self.kernel.task_mut(slot);
        task.rt = task.rt.with_policy(policy);
        self.kernel.task(slot).publish_policy(self.program.memory())
    }

    /// `scx_disable_task`. Callback: `disable`.
    pub(crate) fn disable_task(&mut self, slot: Slot) {
        if self.kernel.task(slot).scx_state == ScxState::Enabled {
            self.call_task(Op::Disable, slot, None);
            self.kernel.task_mut(slot).scx_state = ScxState::Ready;
        }
    }

    /// `scx_call_op_set_cpumask`. Callback: `set_cpumask`.
    pub(crate) fn tell_cpumask(&mut self, slot: Slot) -> Step {
        if !self.has(Op::SetCpumask) {
            return Ok(());
        }
        let addr = self.kernel.task(slot).addr;
        let shown = match self.kernel.cids.form {
            true => {
                let mask = self.kernel.allowed(slot);
                self.kernel.cids.write_mask(self.program.memory(), &mask)?
            }
            false => addr + field::CPUS_MASK,
        };
        self.call(Op::SetCpumask, Some(slot), &[addr, shown]);
        Ok(())
    }
}
