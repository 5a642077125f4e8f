//! A workload while it is being drawn.

use super::{DRAWN_DURATION_NS, DRAWN_TASKS_MAX, PART_TASKS_MAX};
use crate::join::free_name;
use crate::model::{
    Barrier, Carrier, Condition, Lock, LockKind, Op, PIPE_CAPACITY_DEFAULT, Pipe, Program, Queue,
    SOCKET_BUFFER_DEFAULT, TaskSpec, TaskSpecId, Timer, Workload, independent,
};
use crate::prng::Prng;
use crate::units::Duration;

/// The shortest and the longest cycle of a task, ns.
const CYCLE_NS: (u64, u64) = (300_000, 60_000_000);
/// Drawn lengths are whole microseconds.
const GRAIN_NS: u64 = 1_000;
/// The shortest computation, ns: shorter ones measure the costs of system calls alone.
const RUN_NS_MIN: u64 = 20_000;
/// The shortest sleep, ns.
const SLEEP_NS_MIN: u64 = 20_000;
/// The most of a cycle that a task that also sleeps computes, thousandths.
const DUTY_MAX: u64 = 950;

/// The workload so far, and what the rest of it is drawn from.
pub(super) struct Draft {
    pub(super) prng: Prng,
    /// CPUs of the machine.
    pub(super) cpus: u32,
    /// The load of all parts, percent of what the CPUs can do.
    pub(super) load_percent: u64,
    pub(super) workload: Workload,
    /// The length of an iteration of each group's last loop, on a CPU of its own, ns; 0 where it has none.
    pub(super) cycles_ns: Vec<u64>,
    /// Tasks that live at the same time.
    pub(super) tasks: u32,
}

/// A cycle of a task: what it computes, and what it sleeps.
#[derive(Clone, Copy)]
pub(super) struct Pace {
    pub(super) run_ns: u64,
    pub(super) sleep_ns: u64,
}

impl Pace {
    pub(super) fn cycle_ns(self) -> u64 {
        self.run_ns + self.sleep_ns
    }
}

impl Draft {
    pub(super) fn new(prng: Prng, cpus: u32) -> Draft {
        let (workload, cycles_ns) = (independent(String::new(), Vec::new()), Vec::new());
        Draft { prng, cpus, load_percent: 0, workload, cycles_ns, tasks: 0 }
    }

    /// The drawn workload.
    pub(super) fn finish(self) -> Workload {
        self.workload
    }

    /// Whether there is room for any part.
    pub(super) fn has_room(&self) -> bool {
        self.tasks + PART_TASKS_MAX <= DRAWN_TASKS_MAX
    }

    /// A number of tasks between two bounds.
    pub(super) fn number(&mut self, least: u64, most: u64) -> u32 {
        self.prng.between(least, most) as u32
    }

    /// True once in `n` draws.
    pub(super) fn one_in(&mut self, n: u64) -> bool {
        self.prng.below(n) == 0
    }

    /// One of several things.
    pub(super) fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.prng.below(list.len() as u64) as usize]
    }

    /// A number between two bounds (not 0) whose magnitude is uniform: each doubling is equally likely.
    pub(super) fn magnitude(&mut self, low: u64, high: u64) -> u64 {
        let doublings = u64::from((high / low.max(1)).max(1).ilog2());
        let base = low << self.prng.below(doublings + 1);
        self.prng.between(base, (2 * base).min(high)).min(high)
    }

    /// Adds a group that starts with the run. `cycle_ns` is the length of an iteration of its last loop, 0 without.
    pub(super) fn add(
        &mut self,
        name: &str,
        count: u32,
        cycle_ns: u64,
        program: Program,
    ) -> TaskSpecId {
        let name = free_name(self.workload.tasks.iter().map(|task| &task.name), name.to_owned());
        self.workload.tasks.push(TaskSpec::new(name, count, Some(0), program));
        self.cycles_ns.push(cycle_ns);
        self.tasks += count;
        self.workload.tasks.len() - 1
    }

    /// Adds a group of equal tasks that repeat a body for ever.
    pub(super) fn add_loop(
        &mut self,
        name: &str,
        count: u32,
        cycle_ns: u64,
        body: Program,
    ) -> TaskSpecId {
        self.add(name, count, cycle_ns, vec![Op::Loop(None, body)])
    }

    /// Adds a group that another one forks.
    pub(super) fn add_forked(&mut self, name: &str, count: u32, program: Program) -> TaskSpecId {
        let group = self.add(name, count, 0, program);
        self.workload.tasks[group].start_ns = None;
        group
    }

    /// The cycle of a task that computes so many thousandths of its time.
    pub(super) fn pace(&mut self, permille: u64) -> Pace {
        let cycle_ns = self.magnitude(CYCLE_NS.0, CYCLE_NS.1);
        self.pace_of(cycle_ns, permille)
    }

    /// The same with the length of the cycle, ns; longer where a computation would be shorter than the shortest one, so
    /// that the load stays.
    fn pace_of(&self, cycle_ns: u64, permille: u64) -> Pace {
        let permille = permille.clamp(1, DUTY_MAX);
        let cycle_ns = cycle_ns.max(RUN_NS_MIN * 1_000 / permille);
        let run_ns = grains(cycle_ns * permille / 1_000).max(RUN_NS_MIN);
        Pace { run_ns, sleep_ns: grains(cycle_ns.saturating_sub(run_ns)).max(SLEEP_NS_MIN) }
    }

    /// A length with this mean: fixed, or from half to one and a half of it.
    pub(super) fn length(&mut self, mean_ns: u64) -> Duration {
        let mean_ns = grains(mean_ns).max(GRAIN_NS);
        match self.one_in(2) {
            true => Duration::Fixed(mean_ns),
            false => Duration::Uniform {
                low: grains(mean_ns / 2).max(GRAIN_NS),
                high: grains(mean_ns + mean_ns / 2).max(2 * GRAIN_NS),
            },
        }
    }

    pub(super) fn sleep(&mut self, mean_ns: u64) -> Op {
        Op::Sleep(self.length(mean_ns))
    }

    /// Operations that compute about so long: at once, in pieces with or without yields between them, by the clock, or
    /// with memory that is touched.
    pub(super) fn work(&mut self, mean_ns: u64) -> Program {
        let mean_ns = mean_ns.max(RUN_NS_MIN);
        let run = Op::Run(self.length(mean_ns));
        match self.prng.below(16) {
            0 => vec![Op::Busy(self.length(mean_ns))],
            1 => vec![Op::Touch(1 << self.prng.between(10, 15)), run],
            2 => {
                let pieces = self.prng.between(2, 6);
                let piece = Op::Run(self.length((mean_ns / pieces).max(RUN_NS_MIN)));
                vec![Op::Loop(Some(pieces), vec![piece, Op::Yield])]
            }
            3 => {
                let half = Op::Run(self.length((mean_ns / 2).max(RUN_NS_MIN)));
                vec![half.clone(), half]
            }
            _ => vec![run],
        }
    }

    /// A pipe, or one direction of a pair of sockets.
    pub(super) fn pipe(&mut self) -> usize {
        let carrier = self.pick(&[Carrier::Pipe, Carrier::Pipe, Carrier::Socket]);
        let capacity = match carrier {
            Carrier::Pipe if self.one_in(3) => 4_096,
            Carrier::Pipe => PIPE_CAPACITY_DEFAULT,
            Carrier::Socket => SOCKET_BUFFER_DEFAULT,
        };
        let name = format!("pipe-{}", self.workload.pipes.len());
        self.workload.pipes.push(Pipe { name, capacity, carrier });
        self.workload.pipes.len() - 1
    }

    pub(super) fn queue(&mut self, capacity: Option<u64>, initial: u64) -> usize {
        let name = format!("queue-{}", self.workload.queues.len());
        self.workload.queues.push(Queue { name, capacity, initial, sync: false });
        self.workload.queues.len() - 1
    }

    pub(super) fn lock(&mut self, kind: LockKind) -> usize {
        let name = format!("lock-{}", self.workload.locks.len());
        self.workload.locks.push(Lock::new(name, kind));
        self.workload.locks.len() - 1
    }

    pub(super) fn condition(&mut self) -> usize {
        let name = format!("condition-{}", self.workload.conditions.len());
        self.workload.conditions.push(Condition { name });
        self.workload.conditions.len() - 1
    }

    pub(super) fn barrier(&mut self, count: u32) -> usize {
        let name = format!("barrier-{}", self.workload.barriers.len());
        self.workload.barriers.push(Barrier { name, count });
        self.workload.barriers.len() - 1
    }

    pub(super) fn timer(&mut self, period_ns: u64, relative: bool, shared: bool) -> usize {
        let name = format!("timer-{}", self.workload.timers.len());
        self.workload.timers.push(Timer { relative, shared, ..Timer::new(name, period_ns) });
        self.workload.timers.len() - 1
    }

    /// A moment of the run, as a length from its beginning, ns: between two parts of it in percent.
    pub(super) fn moment(&mut self, from_percent: u64, to_percent: u64) -> u64 {
        let percent = self.prng.between(from_percent, to_percent);
        grains(DRAWN_DURATION_NS * percent / 100)
    }
}

/// A length in whole grains, ns.
pub(super) fn grains(ns: u64) -> u64 {
    ns / GRAIN_NS * GRAIN_NS
}
