//! The place of each `sched_yield`, in a recording with calls and charges.
//!
//! The call charges the running task, and the pass that follows does not read the clock again (`do_sched_yield`,
//! `rq_clock_skip_update`): the first charge after the call is that of the yield. But an interrupt may come before the
//! call has locked the run queue. If it ends the task's slice, the task leaves inside the kernel, and the yield is
//! still to come when it is back: the charges before were those of the interrupt and of its pass.

use fairground_trace::{Call, Event, EventKind, TaskId, TaskState};

/// A yield.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Yielded {
    /// The index of its charge.
    pub(super) charge: usize,
    /// The pass that followed left the task where it was: the call is over without a switch.
    pub(super) stays: bool,
}

/// Finds them in the events in their order.
#[derive(Debug)]
pub(super) struct YieldFinder {
    /// By task: it is in the call; the index of the first charge in it.
    called: Vec<Option<Option<usize>>>,
    /// By CPU: a wake-up or a tick is what the next charge is for.
    explained: Vec<bool>,
    found: Vec<Yielded>,
}

impl YieldFinder {
    pub(super) fn new(tasks: usize, cpus: usize) -> YieldFinder {
        let explained = vec![false; cpus];
        YieldFinder { called: vec![None; tasks], explained, found: Vec::new() }
    }

    pub(super) fn take(&mut self, index: usize, event: &Event) {
        match event.kind {
            EventKind::CallEnter { task, call: Call::Yield, .. } => {
                self.called[task.index()] = Some(None);
            }
            EventKind::Waking { .. } | EventKind::Tick { .. } => {
                self.explained[event.cpu as usize] = true;
            }
            EventKind::Charge { task, .. } => {
                let is_explained = std::mem::take(&mut self.explained[event.cpu as usize]);
                if let Some(charge) = self.called[task.index()].as_mut().filter(|_| !is_explained) {
                    charge.get_or_insert(index);
                }
            }
            EventKind::Switch { prev, prev_state: TaskState::Preempted, .. } => {
                if let Some(charge) = &mut self.called[prev.index()] {
                    *charge = None;
                }
            }
            EventKind::Switch { prev, .. } => self.end(prev, false),
            EventKind::CallExit { task, .. } => self.end(task, true),
            _ => {}
        }
    }

    fn end(&mut self, task: TaskId, stays: bool) {
        let charge = self.called[task.index()].take().flatten();
        self.found.extend(charge.map(|charge| Yielded { charge, stays }));
    }

    /// The yields in the order of their charges.
    pub(super) fn finish(mut self) -> Vec<Yielded> {
        self.found.sort_unstable();
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASK: TaskId = TaskId(1);
    const YIELD: EventKind = EventKind::CallEnter { task: TASK, call: Call::Yield, object: 0 };
    const EXIT: EventKind = EventKind::CallExit { task: TASK, result: 0 };
    const CHARGE: EventKind = EventKind::Charge { task: TASK, runtime_ns: 1 };

    fn leaves(prev_state: TaskState) -> EventKind {
        EventKind::Switch { prev: TASK, prev_state, next: TaskId(2) }
    }

    fn found(kinds: &[EventKind]) -> Vec<(usize, bool)> {
        let mut finder = YieldFinder::new(3, 1);
        for (index, &kind) in kinds.iter().enumerate() {
            finder.take(index, &Event { time_ns: index as u64, cpu: 0, insns: 0, kind });
        }
        finder.finish().into_iter().map(|found| (found.charge, found.stays)).collect()
    }

    #[test]
    fn a_yield_is_at_the_first_charge_of_its_call() {
        let runs = leaves(TaskState::Runnable);
        assert_eq!(found(&[CHARGE, YIELD, CHARGE, CHARGE, runs, CHARGE]), [(2, false)]);
        assert_eq!(found(&[YIELD, CHARGE, EXIT, CHARGE]), [(1, true)]);
        assert_eq!(
            found(&[YIELD, EventKind::Tick { task: TASK }, CHARGE, CHARGE, runs]),
            [(3, false)]
        );
    }

    #[test]
    fn a_task_that_is_preempted_in_the_call_yields_when_it_is_back() {
        let preempted = leaves(TaskState::Preempted);
        let runs = leaves(TaskState::Runnable);
        assert_eq!(found(&[YIELD, CHARGE, CHARGE, preempted, CHARGE, runs]), [(4, false)]);
    }
}
