//! The service of each task in the fluid schedules of the machine and of its CPU.

use crate::fluid::{CpuFluid, FRACTION_BITS, MachineFluid};

/// The fluid services of all tasks.
#[derive(Clone, Debug)]
pub(crate) struct Services {
    machine: MachineFluid,
    cpus: Vec<CpuFluid>,
    /// By CPU: whether it is online.
    online: Vec<bool>,
    tasks: Vec<Service>,
}

/// The services of a task.
///
/// While the task is in a queue its services are the differences between what it got before and the readings of the
/// fluid schedules at the time at which it came; readings at the time at which it leaves are added. All of this is
/// below 2^104, as there are 2^64 ns, so that wrapping arithmetic gives the right result.
#[derive(Clone, Debug, Default)]
struct Service {
    /// Fluid services, ns << FRACTION_BITS.
    machine: u128,
    cpu: u128,
    /// Its service from the machine in the cgroups that it left, ns.
    moved_ns: u64,
    /// How far it was behind and ahead, ns.
    lag_max_ns: u64,
    lead_max_ns: u64,
    /// Its class in the machine's fluid schedule.
    class: usize,
    /// In whose queue it is.
    queue: Option<u32>,
    weight: u32,
    cgroup: u32,
}

/// The service of a task in the end, ns.
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
        let online = vec![true; cpus as usize];
        Self { machine, cpus: vec![cpu; cpus as usize], online, tasks: Vec::new() }
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

    /// A CPU goes offline or comes back: the machine's fluid schedule has one less, or more.
    pub(crate) fn set_online(&mut self, now_ns: u64, cpu: u32, online: bool) {
        let Some(known) = self.online.get_mut(cpu as usize) else { return };
        *known = online;
        let cpus = self.online.iter().filter(|online| **online).count();
        self.machine.advance(now_ns);
        self.machine.set_cpus(cpus as u64);
    }

    /// Enters the next task.
    pub(crate) fn add_task(&mut self, weight: u32, cgroup: usize) {
        let class = self.machine.class_of(cgroup, weight);
        self.tasks.push(Service { cgroup: cgroup as u32, weight, class, ..Service::default() });
    }

    /// A task is runnable in the queue of a CPU.
    #[inline(always)]
    pub(crate) fn join(&mut self, now_ns: u64, task: usize, cpu: u32) {
        self.machine.advance(now_ns);
        let task = &mut self.tasks[task];
        task.queue = Some(cpu);
        let cpu = &mut self.cpus[cpu as usize];
        task.begin(self.machine.add(task.class), cpu.advance(now_ns));
        cpu.add(task.weight);
    }

    /// A task that got `run_ns` so far is not runnable any more, or not in its queue.
    #[inline(always)]
    pub(crate) fn leave(&mut self, now_ns: u64, task: usize, run_ns: u64) {
        self.machine.advance(now_ns);
        let task = &mut self.tasks[task];
        let Some(queue) = task.queue.take() else { return };
        let cpu = &mut self.cpus[queue as usize];
        task.end(self.machine.remove(task.class), cpu.advance(now_ns));
        task.note_lag(task.machine, run_ns);
        cpu.remove(task.weight);
    }

    /// A task that got `run_ns` so far stays runnable in its queue.
    #[inline(always)]
    pub(crate) fn stay(&mut self, now_ns: u64, task: usize, run_ns: u64) {
        self.machine.advance(now_ns);
        let task = &mut self.tasks[task];
        task.note_lag(task.served(&self.machine), run_ns);
    }

    /// A task that is in no queue has another weight.
    pub(crate) fn weigh(&mut self, task: usize, weight: u32) {
        let task = &mut self.tasks[task];
        task.weight = weight;
        task.class = self.machine.class_of(task.cgroup as usize, weight);
    }

    /// Lag of a task with run time `run_ns`, as of the last update, ns; positive: behind.
    pub(crate) fn lag_ns(&self, task: usize, run_ns: u64) -> i64 {
        let task = &self.tasks[task];
        (task.fluid_ns(task.served(&self.machine)) as i64).wrapping_sub(run_ns as i64)
    }

    /// The service of a task in its present cgroup so far.
    pub(crate) fn served(&self, task: usize) -> Served {
        let mut task = self.tasks[task].clone();
        if let Some(queue) = task.queue {
            let per_weight = self.cpus[queue as usize].clone().advance(self.machine.now_ns());
            task.end(self.machine.served(task.class), per_weight);
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
        (task.cgroup, task.class) = (cgroup as u32, self.machine.class_of(cgroup, task.weight));
    }

    /// Counts a task's services anew.
    pub(crate) fn begin(&mut self, task: usize) {
        let task = &mut self.tasks[task];
        (task.machine, task.cpu, task.moved_ns) = (0, 0, 0);
        (task.lag_max_ns, task.lead_max_ns) = (0, 0);
        if let Some(queue) = task.queue {
            let per_weight = self.cpus[queue as usize].advance(self.machine.now_ns());
            task.begin(self.machine.served(task.class), per_weight);
        }
    }
}

impl Service {
    /// Counts the services from these readings on.
    #[inline(always)]
    fn begin(&mut self, machine: u128, per_weight: u128) {
        self.machine = self.machine.wrapping_sub(machine);
        self.cpu = self.cpu.wrapping_sub(per_weight.wrapping_mul(self.weight.into()));
    }

    /// Counts the services up to these readings.
    #[inline(always)]
    fn end(&mut self, machine: u128, per_weight: u128) {
        self.machine = self.machine.wrapping_add(machine);
        self.cpu = self.cpu.wrapping_add(per_weight.wrapping_mul(self.weight.into()));
    }

    /// Notes how far the task that got so much in the fluid schedule is behind or ahead.
    ///
    /// Lag grows only while a task waits and shrinks only while it runs, so its extremes are at its own changes of
    /// state.
    #[inline(always)]
    fn note_lag(&mut self, served: u128, run_ns: u64) {
        let fluid_ns = self.fluid_ns(served);
        self.lag_max_ns = self.lag_max_ns.max(fluid_ns.saturating_sub(run_ns));
        self.lead_max_ns = self.lead_max_ns.max(run_ns.saturating_sub(fluid_ns));
    }

    /// Its service from the machine so far, in its present cgroup.
    #[inline(always)]
    fn served(&self, machine: &MachineFluid) -> u128 {
        match self.queue {
            Some(_) => self.machine.wrapping_add(machine.served(self.class)),
            None => self.machine,
        }
    }

    /// With that, what it got in all cgroups.
    #[inline(always)]
    fn fluid_ns(&self, served: u128) -> u64 {
        whole_ns(served) + self.moved_ns
    }
}

#[inline]
fn whole_ns(service: u128) -> u64 {
    (service >> FRACTION_BITS) as u64
}
