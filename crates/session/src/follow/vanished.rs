//! Tasks that leave their CPU without an event: it was lost, or the kernel does not show it.
//!
//! The next switch of the CPU is away from another task than the one that came last. Whether that one slept or waited
//! meanwhile is told by the next event of its own: only who sleeps is woken. One that never comes again counts as
//! asleep.

use fairground_trace::{Event, EventKind, TaskId};

/// Finds them in the events in their order.
#[derive(Debug)]
pub(super) struct VanishedFinder {
    /// By CPU: the task that came last.
    running: Vec<Option<TaskId>>,
    /// By task: the index of the switch before which it had left.
    gone: Vec<Option<usize>>,
    slept: Vec<usize>,
}

impl VanishedFinder {
    pub(super) fn new(tasks: usize, cpus: usize) -> VanishedFinder {
        VanishedFinder { running: vec![None; cpus], gone: vec![None; tasks], slept: Vec::new() }
    }

    pub(super) fn take(&mut self, index: usize, event: &Event) {
        match event.kind {
            EventKind::Switch { prev, next, .. } => {
                let known = self.running[event.cpu as usize].replace(next);
                if let Some(known) = known.filter(|known| *known != prev && !known.is_idle()) {
                    self.gone[known.index()] = Some(index);
                }
                for task in [prev, next] {
                    self.gone[task.index()] = None;
                }
            }
            EventKind::Waking { task, .. } | EventKind::Wakeup { task, .. } => {
                self.slept.extend(self.gone[task.index()].take());
            }
            _ => {}
        }
    }

    /// The indices of the switches before which the task that the CPU ran had gone to sleep, in order.
    pub(super) fn finish(mut self) -> Vec<usize> {
        self.slept.extend(self.gone.iter().flatten());
        self.slept.sort_unstable();
        self.slept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairground_trace::TaskState;

    #[test]
    fn who_is_woken_next_had_slept() {
        let [a, b, c] = [1, 2, 3].map(TaskId);
        let switch =
            |prev, next| EventKind::Switch { prev, prev_state: TaskState::Preempted, next };
        let woken = |task| EventKind::Wakeup { task, target_cpu: 0 };
        let kinds = [
            switch(TaskId::IDLE, a),
            // `a` left unseen and is woken; `b` left unseen and comes again; `c` left unseen for good.
            switch(b, c),
            woken(a),
            switch(c, b),
            switch(a, c),
            switch(b, a),
        ];
        let mut finder = VanishedFinder::new(4, 1);
        for (index, kind) in kinds.into_iter().enumerate() {
            finder.take(index, &Event { time_ns: index as u64, cpu: 0, insns: 0, kind });
        }
        assert_eq!(finder.finish(), [1, 5]);
    }
}
