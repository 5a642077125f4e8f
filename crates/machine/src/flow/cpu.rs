//! One CPU: computation, interrupts, and the end of kernel work.

use fairground_trace::TaskState;

use super::{Machine, Step};
use crate::Path;
use crate::abi;
use crate::kernel::{Slot, Stage};
use crate::op::Op;

impl Machine {
    /// An interrupt, or the end of an activity, on a CPU: the running task's burst is updated, `step` runs, and the CPU
    /// continues with its next work.
    #[inline]
    pub(crate) fn on_cpu(&mut self, cpu: u32, step: impl FnOnce(&mut Self) -> Step) -> Step {
        self.kernel.this_cpu = cpu;
        self.kernel.settle(cpu);
        let now = self.kernel.clock.now_ns();
        self.kernel.rq(cpu).timers.lapse(now);
        step(self)?;
        self.go_on(cpu)
    }

    /// Does something as a hardware interrupt on the executing CPU: programs see it in the CPU's `__preempt_count`.
    #[inline]
    pub(crate) fn in_interrupt<T>(&mut self, step: impl FnOnce(&mut Self) -> Step<T>) -> Step<T> {
        let count = self.kernel.preempt_counts + 4 * u64::from(self.kernel.this_cpu);
        self.program.memory().store_u32(count, abi::HARDIRQ_OFFSET)?;
        self.kernel.in_interrupt = true;
        let result = step(self);
        self.kernel.in_interrupt = false;
        self.program.memory().store_u32(count, 0)?;
        result
    }

    /// The CPU's own event: a burst is over, or kernel work is.
    #[inline]
    pub(crate) fn cpu_event(&mut self, cpu: u32) -> Step {
        self.kernel.rq(cpu).note_armed(u64::MAX);
        self.on_cpu(cpu, |_| Ok(()))
    }

    /// A reschedule interrupt arrives. An idle CPU has to come out of its idle state first.
    pub(crate) fn resched_event(&mut self, cpu: u32) -> Step {
        self.on_cpu(cpu, |machine| {
            machine.kernel.wake_from_idle(cpu);
            machine.kernel.enter_ipi(cpu);
            Ok(())
        })
    }

    /// Interrupts are on again: kicks go out (`kick_cpus_irq_workfn`). Then, once kernel work is paid for, the CPU
    /// schedules, continues the task, or idles.
    pub(crate) fn go_on(&mut self, cpu: u32) -> Step {
        while self.does_next(cpu)? && self.failure.is_none() {}
        Ok(())
    }

    /// The next thing on a CPU. False: nothing is due there now; the CPU's own event is armed for when something is.
    #[inline(always)]
    fn does_next(&mut self, cpu: u32) -> Step<bool> {
        self.kernel.this_cpu = cpu;
        if !self.kernel.reenqueues.is_empty() {
            self.run_reenqueues(cpu)?;
        }
        self.kernel.flush_kicks(self.program.memory())?;
        self.kernel.flush_ipis();
        if self.kernel.exit.is_some() {
            return Ok(false);
        }
        let now = self.kernel.clock.now_ns();
        let rq = &self.kernel.cpus[cpu as usize];
        let (start, resched, curr) = (rq.busy_until_ns(), rq.makes_room(), rq.curr());
        let leaves = curr.is_some_and(|slot| self.kernel.task(slot).blocks);
        if let Some(at) = rq.timers.goes_on_ns()
            && !(leaves && start <= now)
        {
            if at > now {
                let at = self.computes_until_ns(cpu).unwrap_or(at);
                self.kernel.arm_cpu(cpu, at);
                return Ok(false);
            }
            return self.timer_interrupt(cpu).map(|()| true);
        }
        let at = match curr {
            None if !resched => u64::MAX,
            None => start,
            Some(slot) => match self.kernel.task(slot).stage {
                Stage::Compute(u64::MAX) if !resched => u64::MAX,
                Stage::Compute(left) if !resched => start.saturating_add(left),
                Stage::Advance if start > now => {
                    start.saturating_add(self.begin_run(slot, resched))
                }
                _ => start,
            },
        };
        if at > now {
            self.kernel.arm_cpu(cpu, at);
            return Ok(false);
        }
        match curr {
            None => self.schedule(None)?,
            Some(slot) => self.next_stage(cpu, slot, resched)?,
        }
        Ok(true)
    }

    /// A task that goes on with a computation begins it together with the kernel work before it. How long it takes, ns;
    /// 0: something else comes first.
    #[inline(always)]
    fn begin_run(&mut self, slot: Slot, resched: bool) -> u64 {
        let task = self.kernel.task(slot);
        if resched || task.signalled || self.stepwise {
            return 0;
        }
        let Some(ns) = self.actors.begin_run(task.actor) else { return 0 };
        let task = self.kernel.task_mut(slot);
        (task.stage, task.begins) = (Stage::Compute(ns), true);
        ns
    }

    /// When the computation ends that goes on behind the timer interrupt under way, ns, if that has nothing more to do:
    /// whatever happens on the CPU next finds it over. `None`: there is something to do at its end.
    fn computes_until_ns(&mut self, cpu: u32) -> Option<u64> {
        let reach_ns = self.kernel.cost.timer_reach_ns();
        let rq = &self.kernel.cpus[cpu as usize];
        if self.stepwise || rq.makes_room() || !rq.timers.is_through(reach_ns) {
            return None;
        }
        let at = match self.kernel.task(rq.curr()?).stage {
            Stage::Compute(u64::MAX) => u64::MAX,
            Stage::Compute(left) => rq.busy_until_ns().saturating_add(left),
            _ => return None,
        };
        self.kernel.rq(cpu).timers.let_lapse();
        self.kernel.program_timer(cpu);
        Some(at)
    }

    /// Kernel work on a CPU is done and something is due there at once.
    #[inline(always)]
    fn next_stage(&mut self, cpu: u32, slot: Slot, resched: bool) -> Step {
        if resched && !self.kernel.spinners.is_empty() && self.stops_spinning(slot) {
            return Ok(());
        }
        match self.kernel.task(slot).stage {
            Stage::Block(state, until_ns) => self.block_current(slot, state, until_ns),
            Stage::Exit => self.exit_current(cpu, slot),
            Stage::Yield => {
                self.kernel.task_mut(slot).stage = Stage::Advance;
                self.yield_task(slot)?;
                self.schedule(None)
            }
            Stage::InCall => self.advance(cpu, slot),
            _ if resched => self.schedule(None),
            _ => self.advance(cpu, slot),
        }
    }

    /// The task has called for sleep. If it was woken in the meantime it goes on instead (`ttwu_runnable`).
    fn block_current(&mut self, slot: Slot, state: TaskState, until_ns: Option<u64>) -> Step {
        if self.kernel.pays_way_off(slot) {
            return Ok(());
        }
        let task = self.kernel.task_mut(slot);
        task.stage = Stage::Advance;
        if std::mem::take(&mut task.woken) {
            return Ok(());
        }
        if let Some(at_ns) = until_ns
            && !self.kernel.arm_wakeup(slot, state, at_ns)
        {
            return Ok(());
        }
        self.schedule(Some(state))
    }

    /// `yield_task_scx`. Callback: `yield`; without it the slice ends. For a real-time task `yield_task_rt`.
    pub(crate) fn yield_task(&mut self, slot: Slot) -> Step {
        if self.kernel.task(slot).rt.is_rt() {
            self.yield_rt(slot);
            return Ok(());
        }
        if self.has(Op::Yield) {
            let addr = self.kernel.task(slot).addr;
            let meter = self.meter();
            self.call(Op::Yield, Some(slot), &[addr, 0]);
            let insns = self.book(Path::Yield, meter);
            let ns = self.policy_ns(insns);
            let cpu = self.kernel.this_cpu;
            self.kernel.charge(cpu, ns);
            return Ok(());
        }
        self.kernel.task(slot).set_slice(self.program.memory(), 0)
    }
}
