//! The timers of sleeping tasks, as each CPU keeps them (`struct hrtimer_cpu_base`, `kernel/time/hrtimer.c`).

use super::{Kernel, Slot, Tasks};
use crate::CostModel;
use crate::events::{CpuEvent, EventHandle, SLOT_BITS};
use crate::heap::Keyed;
use crate::mostly_sorted::MostlySorted;

/// A sleep's timer. They end in the order of their hard expiry; equal ones in the order in which they were armed.
#[derive(Clone, Copy, Debug)]
struct Hrtimer {
    /// The end of its slack: when it makes an interrupt of its own, ns.
    hard_ns: u64,
    /// The number of its arming, and in the low [`SLOT_BITS`] the task.
    arming: u64,
}

impl Keyed for Hrtimer {
    const LAST: Hrtimer = Hrtimer { hard_ns: u64::MAX, arming: u64::MAX };

    #[inline]
    fn key(self) -> u128 {
        u128::from(self.hard_ns) << 64 | u128::from(self.arming)
    }
}

impl Hrtimer {
    fn slot(self) -> Slot {
        Slot((self.arming & ((1 << SLOT_BITS) - 1)) as u32)
    }

    /// Its task has been woken otherwise since.
    fn is_stale(self, tasks: &Tasks) -> bool {
        tasks[self.slot()].timer.is_none_or(|armed| armed.arming != self.arming)
    }
}

/// The timer by which a task's sleep is to end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Armed {
    arming: u64,
    /// The CPU that armed it, and on which it ends.
    cpu: u32,
}

/// One CPU's timers, and the state of its timer interrupt.
#[derive(Debug, Default)]
pub(crate) struct Hrtimers {
    /// The first is never stale; others may be, until they are half of all.
    queue: MostlySorted<Hrtimer>,
    stale: usize,
    /// Until when interrupts are off, ns.
    irqs_off_ns: u64,
    /// A timer is due and waits for interrupts to be on again.
    pending: bool,
    /// The time that the interrupt under way goes by, ns: what is due then ends in it.
    interrupt_ns: Option<u64>,
    /// The interrupt under way has nothing more to do: it is over when interrupts are on again, which is no event of
    /// its own.
    lapses: bool,
    /// Since when a tick is due, ns. It comes before others that end at that time: most often it was armed before them.
    tick: Option<u64>,
    /// A kick has come up in the interrupt under way: the others share its interrupt.
    kicked: bool,
    /// Cost of the end of the interrupt under way, ns: its own part, and that of the kicks, which go out there.
    owed_ns: u64,
}

/// Next work of a timer interrupt.
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

    /// Whether the interrupt under way finds nothing more to do when interrupts are on again.
    #[inline]
    pub(crate) fn is_through(&self, reach_ns: u64) -> bool {
        let Some(base_ns) = self.interrupt_ns else { return false };
        let may_end_ns = self.next_ns().saturating_sub(reach_ns);
        !self.pending
            && self.owed_ns == 0
            && self.tick.is_none()
            && may_end_ns > base_ns
            && self.next_ns() > self.irqs_off_ns
    }

    /// Something happens on the CPU: an interrupt whose end was no event is over by now.
    #[inline]
    pub(crate) fn lapse(&mut self, now_ns: u64) {
        if self.lapses && self.irqs_off_ns < now_ns {
            (self.interrupt_ns, self.kicked, self.lapses) = (None, false, false);
        }
    }

    /// The interrupt under way is over: what its end costs, ns.
    #[inline]
    pub(crate) fn close(&mut self) -> u64 {
        (self.interrupt_ns, self.kicked, self.lapses) = (None, false, false);
        std::mem::take(&mut self.owed_ns)
    }

    /// A timer is due: the interrupt comes as soon as interrupts are on.
    #[inline]
    pub(crate) fn raise(&mut self) {
        self.pending = true;
    }

    /// A tick is due since a time, ns.
    #[inline]
    pub(crate) fn raise_tick(&mut self, since_ns: u64) {
        self.tick = Some(since_ns);
    }

    /// The interrupt comes, or goes on: whether it was under way.
    #[inline]
    pub(crate) fn enter(&mut self) -> bool {
        (self.pending, self.lapses) = (false, false);
        self.interrupt_ns.is_some()
    }

    /// The end of the interrupt under way costs so much more, ns.
    #[inline]
    pub(crate) fn owe(&mut self, ns: u64) {
        self.owed_ns += ns;
    }

    /// Kicks go out that cost so much, ns. In an interrupt they go out at its end, and all share the cost of the first.
    /// False: no interrupt is under way, and they are paid for at once.
    pub(crate) fn owe_kicks(&mut self, ns: u64) -> bool {
        if self.interrupt_ns.is_some() && !std::mem::replace(&mut self.kicked, true) {
            self.owed_ns += ns;
        }
        self.interrupt_ns.is_some()
    }

    /// The end of the interrupt under way, which has nothing more to do, is no event: whatever happens next finds it
    /// over.
    #[inline]
    pub(crate) fn let_lapse(&mut self) {
        self.lapses = true;
    }

    /// When the interrupt under way is over without an event, ns; `None`: there is none, or its end is an event.
    #[inline]
    pub(crate) fn lapses_ns(&self) -> Option<u64> {
        self.lapses.then_some(self.irqs_off_ns)
    }

    /// Keeps interrupts off for so long, from now or from the end of what keeps them off already.
    #[inline]
    pub(crate) fn keep_off(&mut self, now_ns: u64, ns: u64) {
        self.irqs_off_ns = self.irqs_off_ns.max(now_ns).saturating_add(ns);
    }

    /// The task whose sleep ends first.
    #[inline]
    pub(crate) fn first(&self) -> Option<Slot> {
        self.queue.first().map(Hrtimer::slot)
    }

    /// When the next timer makes an interrupt, ns; `u64::MAX`: none.
    #[inline]
    pub(crate) fn next_ns(&self) -> u64 {
        self.queue.first().map_or(u64::MAX, |timer| timer.hard_ns)
    }

    /// Prefetches the cache lines that ending the first sleep, or a new one, reads first.
    #[inline]
    pub(crate) fn prefetch(&self) {
        self.queue.prefetch();
    }

    /// Forgets timers whose tasks are awake.
    fn drop_stale(&mut self, tasks: &Tasks) {
        while self.stale > 0
            && let Some(timer) = self.queue.first()
            && timer.is_stale(tasks)
        {
            self.queue.pop();
            self.stale -= 1;
        }
        if self.stale > self.queue.len() / 2 {
            self.queue.retain(|timer| !timer.is_stale(tasks));
            self.stale = 0;
        }
    }

    /// `__hrtimer_run_queues`: takes out what an interrupt at a time does next, in the order in which the timers end at
    /// the latest, each up to `reach_ns` before; the first one that may not end yet holds up all behind it.
    fn take_due(&mut self, now_ns: u64, reach_ns: u64) -> Option<Due> {
        if self.tick.is_some_and(|tick| tick <= self.next_ns()) {
            self.tick = None;
            return Some(Due::Tick);
        }
        let first = self.queue.first()?;
        if first.hard_ns.saturating_sub(reach_ns) > now_ns {
            return None;
        }
        self.queue.pop();
        Some(Due::Sleep(first.slot()))
    }

    /// Next work of the interrupt under way at `now_ns`; `None`: it is over. One that has ended all that was due
    /// reads the clock again, and continues if meanwhile a timer's last moment has come (`hrtimer_interrupt`, its
    /// `retry`).
    fn next_due(&mut self, now_ns: u64, reach_ns: u64) -> Option<Due> {
        let base_ns = *self.interrupt_ns.get_or_insert(now_ns);
        if let Some(due) = self.take_due(base_ns, reach_ns) {
            return Some(due);
        }
        if self.next_ns() <= now_ns {
            self.interrupt_ns = Some(now_ns);
            return self.take_due(now_ns, reach_ns);
        }
        None
    }
}

impl CostModel {
    /// How far before the end of its slack a timer may end in the interrupt of an earlier one, ns: that reads the clock
    /// when it has been entered, a third of its cost after its time.
    #[inline]
    pub(crate) fn timer_reach_ns(&self) -> u64 {
        let entry_ns = if self.timer_slack_ns == 0 { 0 } else { self.timer_irq_ns / 3 };
        self.timer_slack_ns.saturating_add(entry_ns)
    }
}

impl Kernel {
    /// Arms the timer of a task that goes to sleep on the executing CPU: it may end from `soft_ns` on, and ends at the
    /// end of the machine's timer slack at the latest (`hrtimer_start_range_ns`).
    #[inline]
    pub(crate) fn arm_sleep(&mut self, slot: Slot, soft_ns: u64) {
        let cpu = self.this_cpu;
        self.armings += 1;
        // As of the event queue: days of simulation, and more tasks than a machine's memory has room for.
        assert!(slot.0 < 1 << SLOT_BITS, "2^24 tasks are more than can be");
        assert!(self.armings < 1 << (64 - SLOT_BITS), "a run of 2^40 sleeps is too long");
        let arming = self.armings << SLOT_BITS | u64::from(slot.0);
        self.task_mut(slot).timer = Some(Armed { arming, cpu });
        let timers = &mut self.cpus[cpu as usize].timers;
        let hard_ns = soft_ns.saturating_add(self.cost.timer_slack_ns);
        timers.queue.push(Hrtimer { hard_ns, arming });
        self.program_timer(cpu);
    }

    /// Takes the timer of a task away, if one is armed.
    #[inline]
    pub(crate) fn cancel_sleep(&mut self, slot: Slot) {
        let Some(armed) = self.tasks[slot].timer.take() else { return };
        let timers = &mut self.cpus[armed.cpu as usize].timers;
        timers.stale += 1;
        timers.drop_stale(&self.tasks);
        self.program_timer(armed.cpu);
    }

    /// `migrate_hrtimer_list`: the timers of a CPU, and what is left of its timer interrupt, go to another CPU.
    pub(crate) fn move_sleeps(&mut self, cpu: u32, to: u32) {
        let mut left = std::mem::take(&mut self.cpus[cpu as usize].timers);
        while let Some(timer) = left.queue.pop() {
            if !timer.is_stale(&self.tasks)
                && let Some(armed) = &mut self.tasks[timer.slot()].timer
            {
                armed.cpu = to;
                self.cpus[to as usize].timers.queue.push(timer);
            }
        }
        self.program_timer(to);
    }

    /// Next work of the interrupt under way on a CPU; `None`: it is over.
    #[inline]
    pub(crate) fn next_due(&mut self, cpu: u32) -> Option<Due> {
        let timers = &mut self.cpus[cpu as usize].timers;
        let due = timers.next_due(self.clock.now_ns(), self.cost.timer_reach_ns());
        if let Some(Due::Sleep(slot)) = due {
            self.tasks[slot].timer = None;
            timers.drop_stale(&self.tasks);
        }
        due
    }

    /// Sets a CPU's timer interrupt for its next timer, unless one is under way or waiting.
    #[inline]
    pub(crate) fn program_timer(&mut self, cpu: u32) {
        let timers = &self.cpus[cpu as usize].timers;
        if timers.pending || (timers.interrupt_ns.is_some() && !timers.lapses) {
            return;
        }
        let (slot, at_ns) = (EventHandle::Cpu(cpu, CpuEvent::Timer), timers.next_ns());
        if at_ns == u64::MAX {
            self.events.cancel(slot);
        } else if self.events.armed(slot) != Some(at_ns) {
            self.events.arm(slot, at_ns.max(self.clock.now_ns()));
        }
    }

    /// Kernel work with interrupts off occupies a CPU for so long.
    #[inline]
    pub(crate) fn charge_irqs_off(&mut self, cpu: u32, ns: u64) {
        let now = self.clock.now_ns();
        self.cpus[cpu as usize].timers.keep_off(now, ns);
        self.charge(cpu, ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLACK_NS: u64 = 50;

    /// Sleeps that end at these times at the latest.
    fn timers(hard_ns: &[u64]) -> Hrtimers {
        let mut some = Hrtimers::default();
        for (index, hard_ns) in hard_ns.iter().enumerate() {
            let arming = (index << SLOT_BITS | index) as u64;
            some.queue.push(Hrtimer { hard_ns: *hard_ns, arming });
        }
        some
    }

    /// The sleeps that an interrupt at a time ends, each in no time.
    fn ended(timers: &mut Hrtimers, now_ns: u64) -> Vec<Due> {
        std::iter::from_fn(|| timers.next_due(now_ns, SLACK_NS)).collect()
    }

    #[test]
    fn one_interrupt_ends_what_may_end_in_the_order_of_the_last_moments() {
        let mut some = timers(&[70, 60, 111]);
        assert_eq!(ended(&mut some, 60), [Due::Sleep(Slot(1)), Due::Sleep(Slot(0))]);
        assert_eq!(some.next_ns(), 111);
    }

    #[test]
    fn equal_ones_end_in_the_order_in_which_they_were_armed() {
        let mut some = timers(&[80, 60, 60, 60]);
        let order = [1, 2, 3, 0].map(|number| Due::Sleep(Slot(number)));
        assert_eq!(ended(&mut some, 60), order);
    }

    #[test]
    fn the_tick_is_one_of_the_timers() {
        let mut some = timers(&[100, 80]);
        some.tick = Some(80);
        assert_eq!(ended(&mut some, 80), [Due::Tick, Due::Sleep(Slot(1)), Due::Sleep(Slot(0))]);
    }

    #[test]
    fn an_interrupt_goes_on_when_a_last_moment_comes_while_it_works() {
        let mut some = timers(&[60, 115, 120]);
        assert_eq!(some.next_due(60, SLACK_NS), Some(Due::Sleep(Slot(0))));
        assert_eq!(some.next_due(114, SLACK_NS), None, "the others may end, and need not");
        assert_eq!(some.next_due(115, SLACK_NS), Some(Due::Sleep(Slot(1))));
        assert_eq!(some.next_due(115, SLACK_NS), Some(Due::Sleep(Slot(2))));
    }
}
