//! What each task gets in the fluid schedules of the machine and of its CPU: the books that the pass over the events keeps, by its changes
//! alone. So they can be kept on another thread.

use crate::fluid::{CpuFluid, FRACTION_BITS, MachineFluid};

/// What changes for the fluid schedules. There are many, and they go from thread to thread: each takes 16 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    /// What follows is at this time, never before the one before it.
    Now { now_ns: u64 },
    /// The next task comes into being.
    Enter { weight: u32, cgroup: u32 },
    /// A task is runnable in the queue of a CPU.
    Join { task: u32, cpu: u32 },
    /// It has got so much so far and is not any more.
    Leave { task: u32, run_ns: u64 },
    /// It has got so much so far and is runnable still.
    Settle { task: u32, run_ns: u64 },
    /// A task that is in no queue has another weight.
    Weigh { task: u32, weight: u32 },
}

const _: () = assert!(size_of::<Change>() == 16);

/// The books.
#[derive(Clone, Debug)]
pub(crate) struct Services {
    now_ns: u64,
    machine: MachineFluid,
    cpus: Vec<CpuFluid>,
    tasks: Vec<Service>,
}

/// One task's.
#[derive(Clone, Debug, Default)]
struct Service {
    /// In whose queue it is.
    queue: Option<u32>,
    weight: u32,
    cgroup: usize,
    /// The class of the weight in the machine's fluid schedule.
    class: usize,
    /// Readings of the fluid schedules when it came into the queue.
    machine_mark: u128,
    cpu_mark: u128,
    /// Fluid services up to then, ns << FRACTION_BITS.
    machine: u128,
    cpu: u128,
    /// What it got of the machine in the cgroups that it left, ns.
    moved_ns: u64,
    /// How far it was behind and ahead, ns.
    lag_max_ns: u64,
    lead_max_ns: u64,
}

/// What a task got in the end, ns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Served {
    pub(crate) machine_ns: u64,
    pub(crate) cpu_ns: u64,
    pub(crate) lag_max_ns: u64,
    pub(crate) lead_max_ns: u64,
    /// Whether there was anything at all.
    pub(crate) any: bool,
}

impl Services {
    /// `weights`: every weight that any task may have. Nothing is counted before `start_ns`.
    pub(crate) fn new(cpus: u32, weights: &[u32], start_ns: u64) -> Self {
        let mut machine = MachineFluid::new(cpus, weights);
        machine.advance(start_ns);
        let mut cpu = CpuFluid::default();
        cpu.advance(start_ns);
        Self { now_ns: start_ns, machine, cpus: vec![cpu; cpus as usize], tasks: Vec::new() }
    }

    /// Books without anything in them, for the time in which the true ones are on another thread.
    pub(crate) fn none() -> Self {
        Self { now_ns: 0, machine: MachineFluid::new(0, &[1]), cpus: Vec::new(), tasks: Vec::new() }
    }

    /// [`MachineFluid::add_group`].
    pub(crate) fn add_group(&mut self, parent: usize, weight: u32) {
        self.machine.add_group(parent, weight);
    }

    /// [`MachineFluid::set_group_weight`].
    pub(crate) fn set_group_weight(&mut self, now_ns: u64, group: usize, weight: u32) {
        self.machine.advance(now_ns);
        self.machine.set_group_weight(group, weight);
    }

    /// Enters changes in their order.
    pub(crate) fn apply(&mut self, changes: &[Change]) {
        changes.iter().for_each(|change| self.enter(*change));
    }

    #[inline(always)]
    fn enter(&mut self, change: Change) {
        let Self { now_ns, machine, cpus, tasks } = self;
        match change {
            Change::Now { now_ns: next_ns } => {
                *now_ns = next_ns;
                machine.advance(next_ns);
            }
            Change::Enter { weight, cgroup } => {
                let (cgroup, class) = (cgroup as usize, machine.class_of(weight));
                tasks.push(Service { cgroup, weight, class, ..Service::default() });
            }
            Change::Join { task, cpu: queue } => {
                let (task, cpu) = (&mut tasks[task as usize], &mut cpus[queue as usize]);
                machine.add(task.cgroup, task.class);
                task.cpu_mark = cpu.advance(*now_ns);
                cpu.add(task.weight);
                task.queue = Some(queue);
                task.machine_mark = machine.served(task.cgroup, task.class);
            }
            Change::Leave { task, run_ns } => {
                let task = &mut tasks[task as usize];
                let Some(queue) = task.queue else { return };
                let cpu = &mut cpus[queue as usize];
                task.book(machine, cpu.advance(*now_ns));
                task.settle(machine, run_ns);
                task.queue = None;
                machine.remove(task.cgroup, task.class);
                cpu.remove(task.weight);
            }
            Change::Settle { task, run_ns } => {
                let task = &mut tasks[task as usize];
                if let Some(queue) = task.queue {
                    cpus[queue as usize].advance(*now_ns);
                }
                task.settle(machine, run_ns);
            }
            Change::Weigh { task, weight } => {
                let task = &mut tasks[task as usize];
                (task.weight, task.class) = (weight, machine.class_of(weight));
            }
        }
    }

    /// By how much a task that got `run_ns` was behind when it was settled last, ns.
    pub(crate) fn lag_ns(&self, task: usize, run_ns: u64) -> i64 {
        (self.tasks[task].fluid_ns(&self.machine) as i64).wrapping_sub(run_ns as i64)
    }

    /// What a task got in its present cgroup so far.
    pub(crate) fn served(&self, task: usize) -> Served {
        let mut task = self.tasks[task].clone();
        if let Some(queue) = task.queue {
            task.book(&self.machine, self.cpus[queue as usize].served_per_weight());
        }
        Served {
            machine_ns: whole_ns(task.machine),
            cpu_ns: whole_ns(task.cpu),
            lag_max_ns: task.lag_max_ns,
            lead_max_ns: task.lead_max_ns,
            any: task.machine > 0,
        }
    }

    /// A task that is in no queue is in another cgroup from now on.
    pub(crate) fn change_cgroup(&mut self, task: usize, cgroup: usize) {
        let task = &mut self.tasks[task];
        task.moved_ns += whole_ns(task.machine);
        task.machine &= (1 << FRACTION_BITS) - 1;
        (task.lag_max_ns, task.lead_max_ns) = (0, 0);
        task.cgroup = cgroup;
    }

    /// Counts a task's services anew.
    pub(crate) fn begin(&mut self, task: usize) {
        let task = &mut self.tasks[task];
        if let Some(queue) = task.queue {
            task.book(&self.machine, self.cpus[queue as usize].served_per_weight());
        }
        (task.machine, task.cpu, task.moved_ns) = (0, 0, 0);
        (task.lag_max_ns, task.lead_max_ns) = (0, 0);
    }
}

impl Service {
    /// In a queue: counts the services from here on, with what they were so far.
    #[inline]
    fn book(&mut self, machine: &MachineFluid, per_weight: u128) {
        let served = machine.served(self.cgroup, self.class);
        self.machine += served - self.machine_mark;
        self.machine_mark = served;
        self.cpu += (per_weight - self.cpu_mark) * u128::from(self.weight);
        self.cpu_mark = per_weight;
    }

    /// Notes how far the task is behind or ahead.
    ///
    /// Lag grows only while a task waits and shrinks only while it runs, so its extremes are at its own changes of state.
    #[inline]
    fn settle(&mut self, machine: &MachineFluid, run_ns: u64) {
        let fluid_ns = self.fluid_ns(machine);
        self.lag_max_ns = self.lag_max_ns.max(fluid_ns.saturating_sub(run_ns));
        self.lead_max_ns = self.lead_max_ns.max(run_ns.saturating_sub(fluid_ns));
    }

    /// What it got of the machine so far, in all cgroups.
    #[inline]
    fn fluid_ns(&self, machine: &MachineFluid) -> u64 {
        let since = match self.queue {
            Some(_) => machine.served(self.cgroup, self.class) - self.machine_mark,
            None => 0,
        };
        whole_ns(self.machine + since) + self.moved_ns
    }
}

#[inline]
fn whole_ns(service: u128) -> u64 {
    (service >> FRACTION_BITS) as u64
}
