//! The periodic tick.

use fairground_trace::EventKind;

use super::{Machine, Step};
use crate::Path;
use crate::op::Op;

impl Machine {
    /// The tick: all busy CPUs in the order of their numbers. Idle CPUs have stopped theirs (NO_HZ idle).
    pub(crate) fn tick_event(&mut self) -> Step {
        self.kernel.clock.tick();
        let (busy, tick_ns) = (self.kernel.busy, self.kernel.clock.last_tick_ns());
        for cpu in busy.iter() {
            // One before it may have taken its task away.
            if self.kernel.busy.test(cpu) {
                self.kernel.rq(cpu).timers.raise_tick(tick_ns);
                self.timer_due(cpu)?;
            }
        }
        if !self.kernel.busy.is_empty() {
            self.kernel.arm_tick();
        }
        Ok(())
    }

    /// `sched_tick`, and `task_tick_scx` or `task_tick_rt`. Callback of a task of the scheduler: `tick`. A slice that
    /// is used up makes room: here and nowhere else is the end of a slice noticed. `entered`: the timer interrupt in
    /// which it comes is paid for already.
    pub(crate) fn tick(&mut self, cpu: u32, entered: bool) -> Step {
        // A tick of its own contains its interrupt.
        let shared_ns = if entered { self.kernel.cost.timer_irq_ns } else { 0 };
        let Some(slot) = self.kernel.cpus[cpu as usize].curr() else { return Ok(()) };
        self.kernel.counters.ticks += 1;
        self.kernel.update_curr(self.program.memory(), cpu)?;
        let meter = self.meter();
        let is_rt = self.kernel.task(slot).rt.is_rt();
        match is_rt {
            true => self.tick_rt(cpu, slot),
            false => self.call_task(Op::Tick, slot, None),
        }
        let insns = self.book(Path::Tick, meter);
        if self.kernel.trace_options.ticks {
            let task = self.kernel.task(slot).id;
            self.kernel.emit(cpu, insns, EventKind::Tick { task });
        }
        if !is_rt && self.kernel.task(slot).slice(self.program.memory())? == 0 {
            self.kernel.resched_curr(cpu);
        }
        let ns = self.kernel.cost.tick_ns.saturating_sub(shared_ns) + self.policy_ns(insns);
        self.kernel.charge_irqs_off(cpu, ns);
        Ok(())
    }
}
