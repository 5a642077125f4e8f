//! Charges that belong to a wake-up before them.
//!
//! A wake-up that preempts reads the run queue's clock, and the pass that follows does not read it again
//! (`rq_clock_skip_update` in `check_preempt_curr`, 2.6.37 and later). Where the woken task is of another control group
//! than the running one, the wake-up charges only the groups at which their ancestors meet; the running task itself is
//! charged by the pass, up to the clock of the wake-up. A scheduler that is followed must know that charge when the
//! wake-up is told: only then does it see the clock by which the kernel decided.

use fairground_trace::{Event, EventKind};

/// A charge that is told before its place in the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DeferredCharge {
    /// The index of the wake-up.
    pub(super) wakeup: usize,
    /// The index of the charge.
    pub(super) charge: usize,
}

/// A wake-up for a CPU, after which nothing but a charge came.
#[derive(Clone, Copy, Debug)]
struct PendingWakeup {
    wakeup: usize,
    time_ns: u64,
    charge: Option<FollowingCharge>,
}

/// The charge after it.
#[derive(Clone, Copy, Debug)]
struct FollowingCharge {
    index: usize,
    /// It ends at the clock of the wake-up, not at its own time: as far as stamps tell.
    is_older: bool,
}

/// The events of a CPU so far.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    asked: Option<PendingWakeup>,
    /// When its task was charged last, or came, ns.
    since_ns: u64,
}

impl Seen {
    fn charge(&mut self, index: usize, now_ns: u64, runtime_ns: u64) {
        let asked = self.asked.take().filter(|asked| asked.charge.is_none());
        self.asked = asked.map(|asked| {
            let apart = |at_ns: u64| (at_ns - self.since_ns).abs_diff(runtime_ns);
            let is_older = asked.time_ns >= self.since_ns && apart(asked.time_ns) < apart(now_ns);
            PendingWakeup { charge: Some(FollowingCharge { index, is_older }), ..asked }
        });
        self.since_ns = now_ns;
    }
}

/// Finds them in the events in their order.
#[derive(Debug)]
pub(super) struct DeferredFinder {
    cpus: Vec<Seen>,
    found: Vec<DeferredCharge>,
}

impl DeferredFinder {
    pub(super) fn new(cpus: usize) -> DeferredFinder {
        DeferredFinder { cpus: vec![Seen::default(); cpus], found: Vec::new() }
    }

    pub(super) fn take(&mut self, index: usize, event: &Event) {
        let time_ns = event.time_ns;
        match event.kind {
            EventKind::Wakeup { target_cpu, .. } | EventKind::WakeupNew { target_cpu, .. } => {
                if let Some(seen) = self.cpus.get_mut(target_cpu as usize) {
                    seen.asked = Some(PendingWakeup { wakeup: index, time_ns, charge: None });
                }
            }
            EventKind::Charge { runtime_ns, .. } => {
                self.cpus[event.cpu as usize].charge(index, time_ns, runtime_ns);
            }
            // The tick reads the clock.
            EventKind::Tick { .. } => self.cpus[event.cpu as usize].asked = None,
            EventKind::Switch { prev, .. } => {
                let seen = &mut self.cpus[event.cpu as usize];
                if let Some(PendingWakeup { wakeup, charge: Some(charge), .. }) = seen.asked.take()
                    && !prev.is_idle()
                    && charge.is_older
                {
                    self.found.push(DeferredCharge { wakeup, charge: charge.index });
                }
                if prev.is_idle() {
                    seen.since_ns = time_ns;
                }
            }
            _ => {}
        }
    }

    /// Those of all CPUs, in the order of their wake-ups.
    pub(super) fn finish(mut self) -> Vec<DeferredCharge> {
        self.found.sort_unstable_by_key(|deferred| deferred.wakeup);
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairground_trace::{TaskId, TaskState};

    const RUNS: TaskId = TaskId(1);
    const WOKEN: TaskId = TaskId(2);

    /// Events 10 ns apart.
    fn found(kinds: &[EventKind]) -> Vec<DeferredCharge> {
        let mut finder = DeferredFinder::new(1);
        for (index, kind) in kinds.iter().enumerate() {
            let time_ns = 10 * index as u64;
            finder.take(index, &Event { time_ns, cpu: 0, insns: 0, kind: *kind });
        }
        finder.finish()
    }

    const WAKEUP: EventKind = EventKind::Wakeup { task: WOKEN, target_cpu: 0 };

    fn charge(runtime_ns: u64) -> EventKind {
        EventKind::Charge { task: RUNS, runtime_ns }
    }

    fn switch(prev_state: TaskState) -> EventKind {
        EventKind::Switch { prev: RUNS, prev_state, next: WOKEN }
    }

    #[test]
    fn a_preempting_wake_up_has_the_charge_of_the_pass() {
        let preempts = switch(TaskState::Runnable);
        // FollowingCharge at 0, woken at 10, charged at 20 for what lay before the wake-up.
        assert_eq!(
            found(&[charge(9), WAKEUP, charge(11), preempts]),
            [DeferredCharge { wakeup: 1, charge: 2 }]
        );
        // The pass has read the clock.
        assert_eq!(found(&[charge(9), WAKEUP, charge(19), preempts]), []);
        // FollowingCharge twice, charged by the wake-up, or after a tick: the clock was read since.
        assert_eq!(found(&[charge(9), WAKEUP, charge(11), charge(5), preempts]), []);
        assert_eq!(found(&[charge(5), WAKEUP, preempts]), []);
        let tick = EventKind::Tick { task: RUNS };
        assert_eq!(found(&[charge(9), WAKEUP, tick, charge(11), preempts]), []);
        // Of two wake-ups the last one read the clock.
        assert_eq!(
            found(&[charge(9), WAKEUP, WAKEUP, charge(21), preempts]),
            [DeferredCharge { wakeup: 2, charge: 3 }]
        );
    }

    #[test]
    fn a_task_that_sleeps_is_charged_up_to_the_wake_up_if_that_asked_for_a_pass() {
        let sleeps = switch(TaskState::Sleeping);
        assert_eq!(
            found(&[charge(9), WAKEUP, charge(11), sleeps]),
            [DeferredCharge { wakeup: 1, charge: 2 }]
        );
        assert_eq!(found(&[charge(9), WAKEUP, charge(19), sleeps]), []);
    }
}
