//! The real-time class (`kernel/sched/rt.c`): what it keeps of a task, and the run queues of the CPUs.

use fairground_workload::SchedPolicy;

use super::server::Server;
use crate::kernel::Slot;

/// The turn of a task of `SCHED_RR`, ns (`RR_TIMESLICE`).
const RR_SLICE_NS: u64 = 100_000_000;

/// State of a task in the class (`struct sched_rt_entity`, `p->rt_priority`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RtEntity {
    /// `sched_priority`, 1…99, a higher one first; 0: the task is of the scheduler's class.
    priority: u8,
    /// `SCHED_RR`.
    takes_turns: bool,
    /// Ticks that are left of its turn.
    ticks_left: u16,
}

impl RtEntity {
    /// A new task of a policy, under a tick of this period.
    pub(crate) fn new(policy: SchedPolicy, tick_ns: u64) -> RtEntity {
        let ticks_left = (RR_SLICE_NS / tick_ns).clamp(1, u64::from(u16::MAX)) as u16;
        RtEntity { ticks_left, ..RtEntity::default() }.with_policy(policy)
    }

    /// The same task under another policy. Its turn goes on.
    pub(crate) fn with_policy(self, policy: SchedPolicy) -> RtEntity {
        let takes_turns = matches!(policy, SchedPolicy::Rr(_));
        RtEntity { priority: policy.priority().unwrap_or(0), takes_turns, ..self }
    }

    /// Whether the task is of the class.
    #[inline]
    pub(crate) fn is_rt(self) -> bool {
        self.priority != 0
    }

    /// `sched_priority`, 1…99; 0: it is not of the class.
    #[inline]
    pub(crate) fn priority(self) -> u8 {
        self.priority
    }

    /// `p->policy`.
    pub(crate) fn policy_number(self) -> u32 {
        match (self.is_rt(), self.takes_turns) {
            (false, _) => 0,
            (true, false) => 1,
            (true, true) => 2,
        }
    }

    /// A tick of a running task under a tick of this period: whether its turn is over, and the next begins.
    pub(crate) fn tick(&mut self, tick_ns: u64) -> bool {
        if !self.takes_turns {
            return false;
        }
        self.ticks_left -= 1;
        let over = self.ticks_left == 0;
        if over {
            self.ticks_left = (RR_SLICE_NS / tick_ns).clamp(1, u64::from(u16::MAX)) as u16;
        }
        over
    }
}

/// The run queues of the class (`struct rt_rq`): runnable tasks, the running one included, the next one first.
#[derive(Debug)]
pub(crate) struct RtQueues {
    /// A task of the workload is, or may come to be, of the class.
    used: bool,
    /// By CPU: tasks with their priorities.
    queues: Vec<Vec<(u8, Slot)>>,
    /// By CPU: what keeps the class from starving the scheduler's.
    pub(super) servers: Vec<Server>,
}

impl RtQueues {
    /// Empty queues of so many CPUs, for a workload that has tasks of the class or not.
    pub(crate) fn new(cpus: u32, used: bool) -> RtQueues {
        let cpus = cpus as usize;
        RtQueues { used, queues: vec![Vec::new(); cpus], servers: vec![Server::new(); cpus] }
    }

    /// Whether a task of the workload is, or may come to be, of the class.
    #[inline]
    pub(crate) fn is_used(&self) -> bool {
        self.used
    }

    /// Adds a task behind, or at the `head` of, those of its priority.
    pub(crate) fn push(&mut self, cpu: u32, slot: Slot, priority: u8, head: bool) {
        let queue = &mut self.queues[cpu as usize];
        let place = match head {
            true => queue.partition_point(|(other, _)| *other > priority),
            false => queue.partition_point(|(other, _)| *other >= priority),
        };
        queue.insert(place, (priority, slot));
    }

    /// Takes a task out. False: it is not there.
    pub(crate) fn remove(&mut self, cpu: u32, slot: Slot) -> bool {
        let queue = &mut self.queues[cpu as usize];
        let place = queue.iter().position(|(_, other)| *other == slot);
        place.map(|place| queue.remove(place)).is_some()
    }

    /// Puts a task behind, or before, the others of its priority. False: there is no other.
    pub(crate) fn requeue(&mut self, cpu: u32, slot: Slot, priority: u8, head: bool) -> bool {
        let queue = &self.queues[cpu as usize];
        let alone = queue.iter().filter(|(other, _)| *other == priority).count() <= 1;
        if self.remove(cpu, slot) {
            self.push(cpu, slot, priority, head);
        }
        !alone
    }

    /// Whether the scheduler's class runs above this one on a CPU, by its deadline server.
    pub(crate) fn is_served(&self, cpu: u32) -> bool {
        self.servers[cpu as usize].is_running()
    }

    /// The server of a CPU finds no task of the scheduler.
    pub(crate) fn stop_server(&mut self, cpu: u32) {
        self.servers[cpu as usize].stop();
    }

    /// `_pick_next_task_rt`: the task that runs next on a CPU.
    #[inline]
    pub(crate) fn first(&self, cpu: u32) -> Option<Slot> {
        self.queues[cpu as usize].first().map(|(_, slot)| *slot)
    }

    /// `rt_rq->highest_prio.curr`: the highest priority of a runnable task on a CPU; 0 without one.
    pub(crate) fn highest(&self, cpu: u32) -> u8 {
        self.queues[cpu as usize].first().map_or(0, |(priority, _)| *priority)
    }

    /// The runnable tasks of a CPU, the next one first.
    pub(crate) fn of_cpu(&self, cpu: u32) -> impl Iterator<Item = Slot> {
        self.queues[cpu as usize].iter().map(|(_, slot)| *slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_priority_is_first_and_equals_come_in_turn() {
        let mut queues = RtQueues::new(1, true);
        for (slot, priority) in [(1, 10), (2, 50), (3, 10), (4, 50)] {
            queues.push(0, Slot(slot), priority, false);
        }
        let order = |queues: &RtQueues| queues.of_cpu(0).map(|slot| slot.0).collect::<Vec<_>>();
        assert_eq!(order(&queues), [2, 4, 1, 3]);
        assert!(queues.requeue(0, Slot(2), 50, false));
        queues.push(0, Slot(5), 10, true);
        assert_eq!(order(&queues), [4, 2, 5, 1, 3]);
        assert!(queues.remove(0, Slot(4)) && !queues.remove(0, Slot(4)));
        assert!(!queues.requeue(0, Slot(2), 50, false), "it is alone");
        assert_eq!((queues.first(0), queues.highest(0)), (Some(Slot(2)), 50));
    }

    #[test]
    fn a_turn_is_as_long_as_the_kernels() {
        for (hz, ticks) in [(100, 10), (250, 25), (300, 30), (1000, 100)] {
            let tick_ns = 1_000_000_000 / hz;
            let mut task = RtEntity::new(SchedPolicy::Rr(1), tick_ns);
            for _ in 0..2 {
                let lasts = (1..).find(|_| task.tick(tick_ns));
                assert_eq!(lasts, Some(ticks), "HZ {hz}");
            }
            let mut fifo = RtEntity::new(SchedPolicy::Fifo(1), tick_ns);
            assert!((0..1000).all(|_| !fifo.tick(tick_ns)));
        }
    }
}
