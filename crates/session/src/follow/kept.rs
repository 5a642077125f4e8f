//! Passes that left the running task where it was, in a recording of a real kernel with its charges.
//!
//! A CPU that schedules charges the task that runs (`update_curr` in `pick_task_fair`). If it goes on with that task,
//! no other event tells of the pass. Other charges have events of their own: a wake-up, a new task, a tick,
//! `sched_yield`, a change of the task; and a timer that ends a slice (HRTICK) charges, too. So a charge without such
//! an event, which no switch follows, is that of a pass if something since the last pass may have asked for one. If
//! nothing has, it is that of the timer, and the next one that of the pass.
//!
//! A program that reads its CPU time is charged without a pass: a pass counts only if the scheduler wants one.

use fairground_trace::{Call, Event, EventKind};

/// A pass of a CPU without a switch, by its charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeptSeen {
    pub(super) index: usize,
    pub(super) time_ns: u64,
}

/// A charge that may be that of a pass.
#[derive(Clone, Copy, Debug)]
struct Maybe {
    seen: KeptSeen,
    /// Something had asked for a pass.
    has_cause: bool,
    /// It follows another charge so soon that no timer's interrupt made it.
    is_sure: bool,
}

/// A CPU.
#[derive(Clone, Copy, Debug, Default)]
struct Charged {
    /// An event since the last charge says why the next one takes place.
    has_reason: bool,
    /// A wake-up, a tick or a timer since the last pass may have asked for one.
    has_cause: bool,
    maybe: Option<Maybe>,
    /// When the task was charged last, ns.
    charged_ns: Option<u64>,
}

/// Finds the passes without a switch.
#[derive(Debug)]
pub(super) struct KeptFinder {
    /// Between the charge of a timer that ends a slice and that of the pass there are at most so many ns: the time in
    /// which CPUs of the recording react.
    soon_ns: u64,
    cpus: Vec<Charged>,
    /// By CPU, in order.
    passes: Vec<Vec<KeptSeen>>,
}

impl KeptFinder {
    pub(super) fn new(cpus: usize, reaction_ns: u64) -> KeptFinder {
        let soon_ns = reaction_ns;
        KeptFinder { soon_ns, cpus: vec![Charged::default(); cpus], passes: vec![Vec::new(); cpus] }
    }

    pub(super) fn take(&mut self, index: usize, event: &Event) {
        match event.kind {
            EventKind::Charge { .. } => self.charge(event.cpu, index, event.time_ns),
            EventKind::Switch { .. } => self.switch(event.cpu),
            EventKind::Wakeup { target_cpu, .. } | EventKind::WakeupNew { target_cpu, .. } => {
                self.wake(target_cpu);
            }
            EventKind::Waking { target_cpu, waker, .. } => {
                let in_interrupt = waker.is_idle();
                self.explain(event.cpu, event.time_ns, in_interrupt);
                self.explain(target_cpu, event.time_ns, in_interrupt);
            }
            EventKind::Tick { .. } => self.explain(event.cpu, event.time_ns, true),
            EventKind::Fork { .. }
            | EventKind::Exit { .. }
            | EventKind::Nice { .. }
            | EventKind::RtPrio { .. }
            | EventKind::Slice { .. }
            | EventKind::Affinity { .. }
            | EventKind::CgroupMove { .. }
            | EventKind::CgroupWeight { .. }
            | EventKind::Migrate { .. }
            | EventKind::CallEnter { call: Call::Yield, .. } => {
                self.explain(event.cpu, event.time_ns, false);
            }
            _ => {}
        }
    }

    fn charge(&mut self, cpu: u32, index: usize, time_ns: u64) {
        let Some(at) = self.cpus.get_mut(cpu as usize) else { return };
        let is_soon = |since_ns: u64| time_ns - since_ns <= self.soon_ns;
        if let Some(before) = at.maybe.take() {
            match before.has_cause && !is_soon(before.seen.time_ns) {
                true => self.passes[cpu as usize].push(before.seen),
                false => at.has_cause = true,
            }
        }
        let is_sure = at.charged_ns.replace(time_ns).is_some_and(is_soon);
        if !std::mem::take(&mut at.has_reason) {
            let (seen, has_cause) = (KeptSeen { index, time_ns }, at.has_cause);
            at.maybe = Some(Maybe { seen, has_cause, is_sure });
            at.has_cause = false;
        }
    }

    /// The last charge was that of a switch.
    fn switch(&mut self, cpu: u32) {
        if let Some(at) = self.cpus.get_mut(cpu as usize) {
            *at = Charged::default();
        }
    }

    /// The last charge was that of a wake-up.
    fn wake(&mut self, cpu: u32) {
        if let Some(at) = self.cpus.get_mut(cpu as usize) {
            (at.maybe, at.has_reason, at.has_cause) = (None, false, true);
        }
    }

    /// The next charge has a reason of its own; the last one had none, but may be of another timer that expired in the
    /// same interrupt.
    fn explain(&mut self, cpu: u32, time_ns: u64, in_interrupt: bool) {
        let Some(at) = self.cpus.get_mut(cpu as usize) else { return };
        if let Some(before) = at.maybe.take() {
            let is_timer = in_interrupt && time_ns - before.seen.time_ns <= self.soon_ns;
            if before.has_cause && (before.is_sure || !is_timer) {
                self.passes[cpu as usize].push(before.seen);
            }
        }
        (at.has_reason, at.has_cause) = (true, true);
    }

    /// By CPU, in order.
    pub(super) fn finish(mut self) -> Vec<Vec<KeptSeen>> {
        for (at, passes) in self.cpus.iter_mut().zip(&mut self.passes) {
            passes.extend(at.maybe.filter(|maybe| maybe.has_cause).map(|maybe| maybe.seen));
        }
        self.passes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairground_trace::{TaskId, TaskState};

    fn kept(events: &[(u64, EventKind)]) -> Vec<usize> {
        let mut finder = KeptFinder::new(1, 45_000);
        for (index, &(time_ns, kind)) in events.iter().enumerate() {
            finder.take(index, &Event { time_ns, cpu: 0, kind, insns: 0 });
        }
        finder.finish().remove(0).into_iter().map(|kept| kept.index).collect()
    }

    const TASK: TaskId = TaskId(1);
    const CHARGE: EventKind = EventKind::Charge { task: TASK, runtime_ns: 1 };
    const TICK: EventKind = EventKind::Tick { task: TASK };
    const SWITCH: EventKind =
        EventKind::Switch { prev: TASK, prev_state: TaskState::Runnable, next: TaskId(2) };
    const WAKING: EventKind = EventKind::Waking { task: TaskId(2), waker: TASK, target_cpu: 0 };
    const WAKEUP: EventKind = EventKind::Wakeup { task: TaskId(2), target_cpu: 0 };

    #[test]
    fn a_charge_behind_that_of_a_tick_or_a_timer_is_a_pass() {
        assert_eq!(kept(&[(0, TICK), (10_000, CHARGE), (25_000, CHARGE), (900_000, TICK)]), [2]);
        assert_eq!(kept(&[(10_000, CHARGE), (25_000, CHARGE), (900_000, TICK)]), [1]);
    }

    #[test]
    fn a_charge_of_a_tick_a_wake_up_or_a_switch_is_none() {
        assert_eq!(kept(&[(0, TICK), (10_000, CHARGE), (900_000, TICK)]), [0_usize; 0]);
        assert_eq!(kept(&[(0, WAKING), (10_000, CHARGE), (20_000, WAKEUP)]), [0_usize; 0]);
        assert_eq!(kept(&[(10_000, CHARGE), (25_000, CHARGE), (40_000, SWITCH)]), [0_usize; 0]);
    }

    #[test]
    fn without_a_cause_a_charge_is_that_of_the_timer() {
        assert_eq!(kept(&[(10_000, CHARGE), (90_000, CHARGE), (99_000, SWITCH)]), [0_usize; 0]);
        assert_eq!(kept(&[(10_000, CHARGE), (90_000, CHARGE), (900_000, TICK)]), [1]);
    }

    #[test]
    fn two_timers_may_expire_in_one_interrupt() {
        let events = [(0, CHARGE), (13_000, TICK), (28_000, CHARGE), (44_000, CHARGE)];
        assert_eq!(kept(&events), [3]);
    }

    #[test]
    fn a_pass_may_come_long_after_the_wake_up_that_asks_for_it() {
        let events = [(0, WAKING), (9_000, CHARGE), (20_000, WAKEUP), (200_000, CHARGE)];
        assert_eq!(kept(&events), [3]);
    }
}
