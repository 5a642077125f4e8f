//! The timer interrupt of a CPU: its tick, and the sleeps that end on it.

use super::{Machine, Step};
use crate::kernel::{Due, Slot};

impl Machine {
    /// A timer of a CPU is due: as soon as interrupts are on there, it is interrupted.
    #[inline]
    pub(crate) fn timer_due(&mut self, cpu: u32) -> Step {
        self.kernel.rq(cpu).timers.raise();
        self.on_cpu(cpu, |_| Ok(()))
    }

    /// `hrtimer_interrupt` on the executing CPU: one interrupt for all that is due there, one after the other. Each
    /// call does the next; the last finds nothing.
    #[inline]
    pub(crate) fn timer_interrupt(&mut self, cpu: u32) -> Step {
        let entered = self.kernel.rq(cpu).timers.enter();
        match self.kernel.next_due(cpu) {
            Some(Due::Tick) => self.tick(cpu, entered),
            Some(Due::Sleep(slot)) => self.sleep_ends(cpu, slot, entered),
            None => {
                let ns = self.kernel.rq(cpu).timers.close();
                self.kernel.charge_irqs_off(cpu, ns);
                self.kernel.program_timer(cpu);
                Ok(())
            }
        }
    }

    /// A sleep is over, in an interrupt of its own or in one that is under way. The cost of the interrupt is charged
    /// after all that end in it.
    fn sleep_ends(&mut self, cpu: u32, slot: Slot, entered: bool) -> Step {
        if !entered {
            self.kernel.wake_from_idle(cpu);
            let ns = self.kernel.cost.timer_irq_ns;
            self.kernel.rq(cpu).timers.owe(ns);
        }
        self.in_interrupt(|machine| machine.wake_up(slot, false))
    }
}
