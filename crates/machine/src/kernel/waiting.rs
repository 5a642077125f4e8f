//! Tasks that are runnable and do not run.

use super::{Kernel, OpsState, ScxState, Slot, Task};
use crate::{Waiting, WaitingPlace};

impl Kernel {
    /// `check_rq_for_timeouts`: the first task that has waited for longer than a time, ns, and how long, ns.
    pub(crate) fn stalled_task(&self, timeout_ns: u64) -> Option<(Slot, u64)> {
        let mut waiting = self.waiting().map(|(slot, task)| (slot, self.waited_ns(task)));
        waiting.find(|(_, waited_ns)| *waited_ns > timeout_ns)
    }

    /// All of them, the one that has waited longest first.
    pub(crate) fn waiting_tasks(&self) -> Vec<Waiting> {
        let place = |slot: Slot, task: &Task| match self.queues.queue_of(slot.0) {
            _ if task.ops_state == OpsState::Queued => WaitingPlace::Scheduler,
            Some(queue) if queue == self.cpus[task.cpu as usize].local => {
                WaitingPlace::Local(task.cpu)
            }
            _ => WaitingPlace::Queue,
        };
        let mut waiting: Vec<Waiting> = self
            .waiting()
            .map(|(slot, task)| Waiting {
                task: task.id,
                waited_ns: self.waited_ns(task),
                place: place(slot, task),
            })
            .collect();
        waiting.sort_by_key(|task| (u64::MAX - task.waited_ns, task.task));
        waiting
    }

    fn waiting(&self) -> impl Iterator<Item = (Slot, &Task)> {
        let waits = |task: &Task| task.scx_state == ScxState::Enabled && task.waiting;
        self.tasks.iter().filter(move |(_, task)| waits(task))
    }

    fn waited_ns(&self, task: &Task) -> u64 {
        self.clock.now_ns().saturating_sub(task.runnable_at_ns)
    }
}
