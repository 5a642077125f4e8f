//! The timers of sleeping tasks, as each CPU keeps them (`struct hrtimer_cpu_base`, `kernel/time/hrtimer.c`).

use std::collections::BTreeSet;

use super::{Kernel, Slot};
use crate::events::{CpuEvent, Slot as EventSlot};

/// A sleep's timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Hrtimer {
    /// The end of its slack: when it makes an interrupt of its own, ns.
    pub(crate) hard_ns: u64,
    /// Equal ones end in the order in which they were armed.
    pub(crate) armed: u64,
    /// From when on it may end with another one's interrupt, ns.
    pub(crate) soft_ns: u64,
    pub(crate) slot: Slot,
    /// The CPU that armed it, and on which it ends.
    pub(crate) cpu: u32,
}

/// One CPU's timers, and the state of its timer interrupt.
#[derive(Debug, Default)]
pub(crate) struct Hrtimers {
    tree: BTreeSet<Hrtimer>,
    /// Until when interrupts are off, ns.
    pub(crate) irqs_off_ns: u64,
    /// A timer is due and waits for interrupts to be on again.
    pub(crate) pending: bool,
    /// The time that the interrupt under way goes by, ns: what is due then ends in it.
    pub(crate) interrupt_ns: Option<u64>,
    /// Since when a tick is due, ns. It comes before others that end at that time: most often it was armed before them.
    pub(crate) tick: Option<u64>,
    /// A kick has been paid for in the interrupt under way: the others share its interrupt.
    pub(crate) kicked: bool,
}

/// What a timer interrupt does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Tick,
    Sleep(Slot),
}

impl Hrtimers {
    /// When the timer interrupt that is due or under way goes on, ns; `None`: there is none.
    #[inline]
    pub(crate) fn goes_on_ns(&self) -> Option<u64> {
        (self.pending || self.interrupt_ns.is_some()).then_some(self.irqs_off_ns)
    }

    /// The timer that ends first.
    #[inline]
    pub(crate) fn first(&self) -> Option<&Hrtimer> {
        self.tree.first()
    }

    /// When the next timer makes an interrupt, ns; `u64::MAX`: none.
    #[inline]
    pub(crate) fn next_ns(&self) -> u64 {
        self.first().map_or(u64::MAX, |timer| timer.hard_ns)
    }

    /// `__hrtimer_run_queues`: takes out what an interrupt at a time does next, in the order in which the timers end at the
    /// latest; the first one that may not end yet holds up all behind it.
    fn take_due(&mut self, now_ns: u64) -> Option<Due> {
        let first = self.first().copied();
        match (self.tick, first) {
            (Some(tick), first) if first.is_none_or(|timer| tick <= timer.hard_ns) => {
                self.tick = None;
                Some(Due::Tick)
            }
            (_, Some(timer)) if timer.soft_ns <= now_ns => {
                self.tree.pop_first();
                Some(Due::Sleep(timer.slot))
            }
            _ => None,
        }
    }

    /// What the interrupt under way does next at `now_ns`; `None`: it is over. One that has ended all that was due looks at
    /// the clock again, and goes on if meanwhile a timer's last moment has come (`hrtimer_interrupt`, its `retry`).
    pub(crate) fn next_due(&mut self, now_ns: u64) -> Option<Due> {
        let base_ns = *self.interrupt_ns.get_or_insert(now_ns);
        if let Some(due) = self.take_due(base_ns) {
            return Some(due);
        }
        if self.next_ns() <= now_ns {
            self.interrupt_ns = Some(now_ns);
            return self.take_due(now_ns);
        }
        None
    }
}

impl Kernel {
    /// Arms the timer of a task that goes to sleep on the executing CPU: it may end from `soft_ns` on, and ends `slack_ns` later
    /// at the latest (`hrtimer_start_range_ns`).
    #[inline]
    pub(crate) fn arm_sleep(&mut self, slot: Slot, soft_ns: u64, slack_ns: u64) {
        let (hard_ns, cpu) = (soft_ns.saturating_add(slack_ns), self.this_cpu);
        self.armings += 1;
        let timer = Hrtimer { hard_ns, armed: self.armings, soft_ns, slot, cpu };
        self.task_mut(slot).timer = Some(timer);
        self.cpus[cpu as usize].timers.tree.insert(timer);
        self.program_timer(cpu);
    }

    /// Takes the timer of a task away, if one is armed.
    #[inline]
    pub(crate) fn cancel_sleep(&mut self, slot: Slot) {
        let Some(timer) = self.tasks[slot.index()].timer.take() else { return };
        if self.cpus[timer.cpu as usize].timers.tree.remove(&timer) {
            self.program_timer(timer.cpu);
        }
    }

    /// Sets a CPU's timer interrupt for its next timer, unless one is under way or waiting.
    #[inline]
    pub(crate) fn program_timer(&mut self, cpu: u32) {
        let timers = &self.cpus[cpu as usize].timers;
        if timers.pending || timers.interrupt_ns.is_some() {
            return;
        }
        let (slot, at_ns) = (EventSlot::Cpu(cpu, CpuEvent::Timer), timers.next_ns());
        if at_ns == u64::MAX {
            self.events.cancel(slot);
        } else if self.events.armed(slot) != Some(at_ns) {
            // One that is overdue waits for its CPU's turn.
            self.events.arm(slot, at_ns.max(self.now_ns));
        }
    }

    /// Kernel work with interrupts off occupies a CPU for so long.
    #[inline]
    pub(crate) fn charge_irqs_off(&mut self, cpu: u32, ns: u64) {
        let now = self.now_ns;
        let timers = &mut self.cpus[cpu as usize].timers;
        timers.irqs_off_ns = timers.irqs_off_ns.max(now).saturating_add(ns);
        self.charge(cpu, ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timers(sleeps: &[(u64, u64)]) -> Hrtimers {
        let timer = |(index, (soft_ns, hard_ns)): (usize, &(u64, u64))| Hrtimer {
            hard_ns: *hard_ns,
            armed: index as u64,
            soft_ns: *soft_ns,
            slot: Slot(index as u32),
            cpu: 0,
        };
        Hrtimers { tree: sleeps.iter().enumerate().map(timer).collect(), ..Hrtimers::default() }
    }

    /// What an interrupt at a time ends, each in no time.
    fn ended(timers: &mut Hrtimers, now_ns: u64) -> Vec<Due> {
        std::iter::from_fn(|| timers.next_due(now_ns)).collect()
    }

    #[test]
    fn one_interrupt_ends_what_may_end_in_the_order_of_the_last_moments() {
        let mut some = timers(&[(20, 70), (10, 60), (61, 111)]);
        assert_eq!(ended(&mut some, 60), [Due::Sleep(Slot(1)), Due::Sleep(Slot(0))]);
        assert_eq!(some.next_ns(), 111);
    }

    #[test]
    fn the_first_that_may_not_end_yet_holds_up_all_behind_it() {
        let mut some = timers(&[(10, 60), (70, 80), (20, 90)]);
        assert_eq!(ended(&mut some, 60), [Due::Sleep(Slot(0))]);
    }

    #[test]
    fn the_tick_is_one_of_the_timers() {
        let mut some = timers(&[(50, 100), (30, 80)]);
        some.tick = Some(80);
        assert_eq!(ended(&mut some, 80), [Due::Tick, Due::Sleep(Slot(1)), Due::Sleep(Slot(0))]);
    }

    #[test]
    fn an_interrupt_goes_on_when_a_last_moment_comes_while_it_works() {
        let mut some = timers(&[(10, 60), (65, 90), (70, 95)]);
        assert_eq!(some.next_due(60), Some(Due::Sleep(Slot(0))));
        assert_eq!(some.next_due(89), None, "the others may end, and need not");
        assert_eq!(some.next_due(90), Some(Due::Sleep(Slot(1))));
        assert_eq!(some.next_due(90), Some(Due::Sleep(Slot(2))));
    }
}
