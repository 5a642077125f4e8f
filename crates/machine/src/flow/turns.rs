//! Events of a machine whose CPUs execute in turns on one thread ([`crate::kernel::Turns`]).

use super::{Machine, Step};
use crate::actors::Work;
use crate::events::{CpuEvent, Slot as EventSlot};
use crate::kernel::{Slot, Stage, agenda, is_timer};

impl Machine {
    /// An event comes: at the CPU that executes, at once; at another one, when that has its turn. A timer ends the turn of the one
    /// that executes, as it does in QEMU; an interrupt from another CPU does not.
    #[cold]
    pub(crate) fn handle_in_turns(&mut self, slot: EventSlot) -> Step {
        match (slot, self.kernel.cpu_of(slot)) {
            (EventSlot::Machine(agenda::TICK), _) => self.tick_in_turns(),
            (EventSlot::Machine(agenda::TURN), _) => {
                self.kernel.turns.ends = false;
                if self.kernel.turns.others_want_it() {
                    self.kernel.end_turn();
                }
            }
            (_, Some(cpu)) if self.kernel.turns.may_handle(cpu, slot) => self.handle_now(slot)?,
            (_, Some(cpu)) => self.interrupt(cpu, slot),
            (_, None) => self.handle_now(slot)?,
        }
        self.next_turns()
    }

    /// The tick of every busy CPU.
    fn tick_in_turns(&mut self) {
        self.tick_armed = false;
        for cpu in self.ticking().iter() {
            self.interrupt(cpu, EventSlot::Cpu(cpu, CpuEvent::Tick));
        }
        if !self.kernel.busy.is_empty() {
            self.arm_tick(self.kernel.now_ns);
        }
    }

    /// Something comes up on a CPU that does not execute at the moment.
    fn interrupt(&mut self, cpu: u32, slot: EventSlot) {
        let turns = &mut self.kernel.turns;
        turns.waiting.set(cpu);
        if slot == EventSlot::Cpu(cpu, CpuEvent::Burst) {
            self.kernel.rq(cpu).armed_ns = u64::MAX;
        } else if !turns.pending[cpu as usize].contains(&slot) {
            turns.pending[cpu as usize].push(slot);
        }
        if let EventSlot::Task(number) = slot {
            self.kernel.task_mut(Slot(number)).timer_pending = true;
        }
        if slot == EventSlot::Cpu(cpu, CpuEvent::Timer) {
            self.kernel.rq(cpu).timers.pending = true;
        }
        if is_timer(slot) {
            self.kernel.turns.expired(cpu);
            self.kernel.begin_round();
        } else if self.kernel.turns.holder.is_some() && !self.kernel.turns.ends {
            let turn_ns = self.kernel.turn_ns();
            self.kernel.arm_turn(turn_ns);
        }
    }

    /// Something is due on a CPU that has not got the turn: it takes it, or has to wait for it. True: it may go on.
    pub(crate) fn gets_turn(&mut self, cpu: u32) -> bool {
        let rq = &self.kernel.cpus[cpu as usize];
        if self.kernel.turns.holder.is_none() && rq.paused_ns.is_none() {
            self.kernel.take_turn(cpu);
            return true;
        }
        self.kernel.turns.waiting.set(cpu);
        false
    }

    /// The CPU does nothing new before `at_ns`; until `start_ns` it works for the kernel. It keeps its turn as long as it needs one.
    pub(crate) fn keep_turn(&mut self, cpu: u32, start_ns: u64, at_ns: u64) {
        let rq = &self.kernel.cpus[cpu as usize];
        let (resched, curr) = (rq.makes_room(), rq.curr);
        let in_kernel = curr.is_some_and(|slot| self.kernel.task(slot).in_kernel);
        let left_ns = match curr.map(|slot| self.kernel.task(slot).stage) {
            Some(Stage::Compute(left_ns)) if !resched => Some(left_ns),
            Some(_) => Some(0),
            None if resched => Some(0),
            None => None,
        };
        debug_assert!(at_ns >= start_ns);
        if self.kernel.loses_turn(cpu) {
            return;
        }
        if let Some(slot) = curr
            && start_ns <= self.kernel.now_ns
            && std::mem::take(&mut self.kernel.task_mut(slot).gives_way)
            && self.kernel.turns.others_want_it()
        {
            return self.kernel.end_turn();
        }
        let gives_way = curr.is_some_and(|slot| self.kernel.task(slot).gives_way);
        let (until_ns, due_ns) = match left_ns {
            Some(left_ns) if gives_way => (start_ns, start_ns.saturating_add(left_ns)),
            Some(left_ns) if in_kernel => {
                let at_ns = start_ns.saturating_add(left_ns);
                (at_ns, at_ns)
            }
            _ => self.kernel.turn_until(start_ns, left_ns),
        };
        if until_ns > self.kernel.now_ns {
            self.kernel.arm_cpu(cpu, until_ns);
        } else {
            self.kernel.release_turn(cpu);
            if curr.is_some() {
                self.kernel.computes(cpu);
            }
            self.kernel.arm_cpu(cpu, due_ns);
        }
    }

    /// The end of a timer's interrupt, which sets the CPU's timer again or leaves that to the switch that it has asked for and that comes at
    /// once: not where it has interrupted the kernel.
    pub(crate) fn interrupt_sets_timer(&mut self, cpu: u32) {
        if !self.kernel.turns.on() {
            return;
        }
        let rq = &self.kernel.cpus[cpu as usize];
        let in_user_mode =
            rq.curr.is_none_or(|slot| self.actors.work(self.kernel.task(slot).actor) == Work::Own);
        let late = self.kernel.cost.timer_set_ns > 0 && rq.makes_room() && in_user_mode;
        self.kernel.rq(cpu).timers.set_late = late;
        if !late {
            self.set_timer(cpu);
        }
    }

    /// The switch behind a timer's interrupt is all but over. True: the CPU has lost its turn by setting its timer.
    pub(crate) fn sets_timer_late(&mut self, cpu: u32) -> bool {
        let ns = self.kernel.left_of_switch_ns(cpu);
        self.kernel.rq(cpu).timers.set_late = false;
        self.kernel.charge_irqs_off(cpu, ns);
        self.set_timer(cpu);
        self.kernel.loses_turn(cpu)
    }

    /// The CPU's timer is set for its next sleep or tick.
    pub(crate) fn set_timer(&mut self, cpu: u32) {
        let sleep_ns = self.kernel.cpus[cpu as usize].timers.next_ns();
        let tick_ns = if self.ticking().test(cpu) { self.tick_due_ns } else { u64::MAX };
        self.kernel.program_apic(cpu, sleep_ns.min(tick_ns));
    }

    /// While nobody executes, the next one does.
    fn next_turns(&mut self) -> Step {
        while self.kernel.turns.holder.is_none()
            && self.failure.is_none()
            && self.kernel.exit.is_none()
            && let Some(cpu) = self.kernel.turns.next()
        {
            self.kernel.take_turn(cpu);
            let pending = std::mem::take(&mut self.kernel.turns.pending[cpu as usize]);
            let mut interrupted = false;
            for slot in pending {
                if self.kernel.turns.holder != Some(cpu) {
                    self.kernel.take_turn(cpu);
                }
                if let EventSlot::Task(number) = slot
                    && !std::mem::take(&mut self.kernel.task_mut(Slot(number)).timer_pending)
                {
                    // Cancelled before the interrupt was seen.
                    continue;
                }
                interrupted = true;
                self.handle_now(slot)?;
            }
            if !interrupted {
                self.on_cpu(cpu, |_| Ok(()))?;
            }
        }
        Ok(())
    }
}
