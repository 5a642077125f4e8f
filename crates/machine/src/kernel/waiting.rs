//! Tasks that are runnable and do not run.

use std::collections::BTreeSet;

use super::{Kernel, OpsState, ScxState, Slot, Task};
use crate::cpuset::CpuMask;
use crate::{Waiting, WaitingPlace};

impl Kernel {
    /// `check_rq_for_timeouts`: the first task that has waited for longer than a time, ns, and how long, ns.
    pub(crate) fn stalled_task(&self, timeout_ns: u64) -> Option<(Slot, u64)> {
        let mut waiting = self.waiting().map(|(slot, task)| (slot, self.waited_ns(task)));
        waiting.find(|(_, waited_ns)| *waited_ns > timeout_ns)
    }

    /// All of them, the one that has waited longest first.
    pub(crate) fn waiting_tasks(&self) -> Vec<Waiting> {
        let (positions, rivals, idle) = (self.positions(), self.rivals(), self.resting());
        let waits = |(slot, task): (Slot, &Task)| {
            let usable = self.usable(slot);
            let queue = self.queues.queue_of(slot.0);
            Waiting {
                task: task.id,
                waited_ns: self.waited_ns(task),
                place: self.place(slot, task),
                position: queue.map(|queue| (positions[slot.index()], self.queues.len(queue))),
                allowed: (usable != self.online.mask).then(|| usable.ranges()),
                idle: usable.and(&idle).ranges(),
                due_ns: self.due_ns(task, &usable, &rivals),
            }
        };
        let mut waiting: Vec<Waiting> = self.waiting().map(waits).collect();
        waiting.sort_by_key(|task| (u64::MAX - task.waited_ns, task.task));
        waiting
    }

    fn place(&self, slot: Slot, task: &Task) -> WaitingPlace {
        match self.queues.queue_of(slot.0) {
            _ if task.ops_state == OpsState::Queued => WaitingPlace::Scheduler,
            None => WaitingPlace::Scheduler,
            Some(queue) if queue == self.cpus[task.cpu as usize].local => {
                WaitingPlace::Local(task.cpu)
            }
            Some(queue) => match self.queues.user_id(queue) {
                Some(id) => WaitingPlace::Queue(id),
                None => WaitingPlace::Global,
            },
        }
    }

    /// By place of the task: its position in its queue, from 1 on; 0 outside of queues.
    fn positions(&self) -> Vec<u32> {
        let mut positions = vec![0; self.tasks.len()];
        let queues: BTreeSet<_> =
            self.waiting().filter_map(|(slot, _)| self.queues.queue_of(slot.0)).collect();
        for queue in queues {
            let mut next = self.queues.first(queue);
            for position in 1..=self.queues.len(queue) {
                let Some(task) = next else { break };
                positions[task as usize] = position;
                next = self.queues.next(task);
            }
        }
        positions
    }

    /// The weight of the runnable tasks that may run on the same CPUs, for each set of CPUs that occurs.
    fn rivals(&self) -> Vec<(CpuMask, u64)> {
        let mut rivals: Vec<(CpuMask, u64)> = Vec::new();
        let runnable = |(slot, task): &(Slot, &Task)| {
            task.scx_state == ScxState::Enabled && (task.waiting || self.runs(*slot))
        };
        for (slot, task) in self.tasks.iter().filter(runnable) {
            let (usable, weight) = (self.usable(slot), u64::from(task.weight()));
            match rivals.iter_mut().find(|(mask, _)| *mask == usable) {
                Some((_, sum)) => *sum += weight,
                None => rivals.push((usable, weight)),
            }
        }
        rivals
    }

    /// CPU time due to a task in its wait, ns.
    fn due_ns(&self, task: &Task, usable: &CpuMask, rivals: &[(CpuMask, u64)]) -> u64 {
        let waited_ns = self.waited_ns(task);
        let all: u64 =
            rivals.iter().filter(|(mask, _)| mask.intersects(usable)).map(|(_, sum)| sum).sum();
        let own = u128::from(task.weight()) * u128::from(usable.count());
        let due_ns = u128::from(waited_ns) * own / u128::from(all.max(1));
        u64::try_from(due_ns).map_or(waited_ns, |due_ns| due_ns.min(waited_ns))
    }

    /// The CPUs that are online and run nothing.
    fn resting(&self) -> CpuMask {
        let mut idle = CpuMask::EMPTY;
        for cpu in self.online.mask.iter().filter(|cpu| self.cpus[*cpu as usize].is_idle()) {
            idle.set(cpu);
        }
        idle
    }

    fn waiting(&self) -> impl Iterator<Item = (Slot, &Task)> {
        let waits = |task: &Task| task.scx_state == ScxState::Enabled && task.waiting;
        self.tasks.iter().filter(move |(_, task)| waits(task))
    }

    fn waited_ns(&self, task: &Task) -> u64 {
        self.clock.now_ns().saturating_sub(task.runnable_at_ns)
    }
}
