//! Building the machine and loading the scheduler.

use fairground_bpf::{Instance, InstanceConfig};
use fairground_trace::Trace;
use fairground_workload::Workload;

use super::{Machine, Step};
use crate::abi::{self, ops_flag};
use crate::actors::{ActorId, Actors};
use crate::changes::{Change, Changes, Target};
use crate::check::Checker;
use crate::cpuset::{CpuMask, IdleCpus};
use crate::dsq::DispatchQueues;
use crate::events::{EventHandle, EventQueue};
use crate::kernel::{
    Caches, CallHistory, CgroupRef, Cgroups, Cids, Clock, DirectDispatch, DispatchBuffer,
    GuestMasks, Kernel, Kicks, Late, Log, Op, Permission, Rq, Tasks, Timers, agenda, write_mask,
};
use crate::layout::offsets::{
    self, cgroup, cgroup_init_args, init_task_args, rq as rq_field, task as field,
};
use crate::machine::Start;
use crate::prng::{Prng, STREAM_SCHEDULER};
use crate::{Counters, MachineConfig, MachineError, Policy, Setting};

/// How long a task may wait before the scheduler is ejected, ns.
fn watchdog_ns(config: &MachineConfig, policy: &Policy) -> u64 {
    policy.ops.timeout_ns.unwrap_or(abi::WATCHDOG_MAX_NS).min(config.watchdog_ns)
}

impl Machine {
    /// All parts, before the scheduler is called for the first time.
    pub(crate) fn assemble(
        config: &MachineConfig,
        policy: &Policy,
        settings: &[Setting],
        workload: &Workload,
    ) -> Result<Machine, MachineError> {
        config.validate()?;
        let cpus = config.cpus();
        let mut cgroups = Cgroups::new(workload);
        let mut first_cgroups = first_cgroups(workload);
        let group_names: Vec<_> = workload.tasks.iter().map(|task| task.name.clone()).collect();
        let (first, mut changes) =
            Changes { policy, groups: &group_names, cgroups: &cgroups }.encode(settings)?;
        changes.iter_mut().for_each(|c| c.at_ns = c.at_ns.saturating_add(config.lead_in_ns));
        let capacity = config.max_tasks + cpus;
        let mut program = policy.image.instantiate(&InstanceConfig {
            cpus,
            fuel_per_call: config.fuel_per_call,
            task_capacity: capacity,
            cgroup_capacity: cgroups.len() as u32,
            null_loads: config.null_loads,
        })?;
        apply_first(first, &mut program, policy, &mut cgroups, &mut first_cgroups)?;
        program.set_prices(config.cost.prices());
        let slab = program.task_slab(offsets::TASK_STRIDE, capacity)?;
        let actors = new_actors(config, workload)?;
        let init_task_args = program.alloc(init_task_args::SIZE, 8)?;
        let exit_task_args = program.alloc(8, 8)?;
        let masks = guest_masks(&program)?;
        let cgroup_init_args = program.alloc(cgroup_init_args::SIZE, 8)?;
        let cmask = program.alloc(Cids::mask_bytes(cpus), 8)?;
        publish_cgroups(&program, &mut cgroups)?;
        let mut kernel = new_kernel(config, policy, slab, masks, cgroups);
        kernel.cids.mask = cmask;
        kernel.preempt_counts = program.alloc(4 * u64::from(cpus), 64)?;
        make_queues(&mut kernel, cpus, program.alloc(rq_field::SIZE * u64::from(cpus), 64)?);
        let mut machine = Machine {
            kernel,
            program,
            policy: policy.clone(),
            actors,
            actor_slots: Vec::new(),
            effects: Vec::new(),
            labels: Vec::new(),
            lock_labels: Vec::new(),
            spinners: Vec::new(),
            nices: workload.tasks.iter().map(|spec| spec.nice).collect(),
            starts: starts(workload, config.lead_in_ns),
            lead_in_ns: config.lead_in_ns,
            changes,
            group_names,
            carry_ps: 0,
            timers: config.timers,
            idle_bound_ns: config.idle_bound_ns,
            watchdog_ns: watchdog_ns(config, policy),
            max_events: config.max_events,
            first_cgroups,
            init_task_args,
            exit_task_args,
            cgroup_init_args,
            broken: false,
            finished: false,
            waiting: Vec::new(),
            steps_at_once: 0,
            stepwise: false,
            failure: None,
        };
        machine.check_workload(workload, config.max_tasks)?;
        machine.preset(config)?;
        Ok(machine)
    }

    /// Writes what programs find before they run.
    fn preset(&mut self, config: &MachineConfig) -> Result<(), MachineError> {
        self.intern_labels()?;
        self.write_fixtures().map_err(MachineError::Memory)?;
        self.preset_hz(config).map_err(MachineError::Memory)?;
        self.preset_topology(config)
    }

    /// The affinities of the workload must leave each task a CPU, and its tasks must fit in.
    fn check_workload(&self, workload: &Workload, max_tasks: u32) -> Result<(), MachineError> {
        for (spec, task) in workload.tasks.iter().enumerate() {
            if let Some(affinity) = self.actors.start_affinity(spec)
                && !self.actors.affinity(affinity).intersects(&self.kernel.all_cpus)
            {
                return Err(MachineError::Workload(format!(
                    "the tasks `{}` may run on CPUs that this machine of {} CPUs does not have; \
                     give the machine more CPUs, or the tasks others",
                    task.name,
                    self.kernel.nr_cpus()
                )));
            }
        }
        let total: u64 = self.starts.iter().map(|start| u64::from(start.count)).sum();
        if total > u64::from(max_tasks) {
            return Err(MachineError::Workload(format!(
                "it starts {total} tasks; the machine has room for {max_tasks}"
            )));
        }
        Ok(())
    }

    /// What programs see of the machine itself: masks, run queues, idle tasks.
    fn write_fixtures(&mut self) -> Step {
        let mem = self.program.memory();
        let kernel = &self.kernel;
        write_mask(mem, kernel.masks.possible, &kernel.all_cpus)?;
        for (cpu, rq) in kernel.cpus.iter().enumerate() {
            let cpu = cpu as u32;
            mem.store_u32(rq.addr() + rq_field::CPU, cpu)?;
            mem.store_u64(rq.addr() + rq_field::CURR, rq.idle_addr())?;
            mem.store_u64(rq.addr() + rq_field::IDLE, rq.idle_addr())?;
            let idle = rq.idle_addr();
            super::fork::write_comm(mem, idle, &format!("swapper/{cpu}"))?;
            mem.store_u32(idle + field::PRIO, 120)?;
            mem.store_u32(idle + field::STATIC_PRIO, 120)?;
            mem.store_u32(idle + field::THREAD_INFO_CPU, cpu)?;
            mem.store_u32(idle + field::NR_CPUS_ALLOWED, 1)?;
            mem.store_u64(idle + field::CPUS_PTR, idle + field::CPUS_MASK)?;
            write_mask(mem, idle + field::CPUS_MASK, &CpuMask::one(cpu))?;
        }
        Ok(())
    }

    /// `CONFIG_HZ` is the machine's, not the program's: each instance gets it anew.
    fn preset_hz(&mut self, config: &MachineConfig) -> Step {
        match &self.policy.hz {
            Some(global) => {
                let bytes = u64::from(config.hz).to_le_bytes();
                self.program.set_global(global, &bytes[..(global.size as usize).min(8)])
            }
            None => Ok(()),
        }
    }

    /// Writes which CPUs share a core, a cache, a node and a socket, for a program that asks for it.
    fn preset_topology(&mut self, config: &MachineConfig) -> Result<(), MachineError> {
        for array in &self.policy.topology {
            let bytes = array.bytes(&config.topology).map_err(MachineError::Config)?;
            self.program
                .set_global(&self.policy.globals[array.global], &bytes)
                .map_err(MachineError::Memory)?;
        }
        Ok(())
    }

    /// `scx_ops_enable_workfn`. Callbacks: `init`, `cgroup_init` of every cgroup.
    pub(crate) fn load(&mut self) -> Step {
        for function in self.policy.setup.before.clone() {
            self.run_program(function);
        }
        self.arm_programs();
        if self.has(Op::Init) {
            self.kernel.cids.open = true;
            let result = self.call(Op::Init, None, &[]) as i32;
            self.kernel.cids.open = false;
            if result != 0 {
                self.kernel.error(format!("ops.init() failed ({result})"));
            }
        }
        if self.policy.ops.flags & ops_flag::ENQ_LAST != 0 && !self.policy.ops.has(Op::Enqueue) {
            self.kernel.error("SCX_OPS_ENQ_LAST requires ops.enqueue() to be implemented");
        }
        self.init_cgroups()?;
        self.rest_all();
        // Loading took its time before the run.
        self.policy_ns(0);
        self.arm_watchdog();
        if self.lead_in_ns > 0 {
            self.kernel.events.arm(EventHandle::Machine(agenda::LEAD_IN), 0);
        }
        self.arm_starts();
        if let Some(change) = self.changes.last() {
            let at = change.at_ns;
            self.kernel.events.arm(EventHandle::Machine(agenda::SETTING), at);
        }
        Ok(())
    }

    /// The tasks that ran while the scheduler was loaded are gone: each CPU goes idle. Callback: `update_idle`.
    /// (`scx_bypass` ends with a pass on every CPU; a real machine has a thread that runs there next and leaves.)
    fn rest_all(&mut self) {
        for cpu in 0..self.kernel.nr_cpus() {
            if self.kernel.exit.is_none() {
                self.kernel.this_cpu = cpu;
                self.update_idle(cpu, true);
            }
        }
        self.kernel.this_cpu = 0;
    }

    /// The CPUs on which an actor may start.
    pub(crate) fn affinity_of(&self, actor: ActorId) -> CpuMask {
        match self.actors.start_affinity(self.actors.spec(actor)) {
            Some(affinity) => self.actors.affinity(affinity).and(&self.kernel.all_cpus),
            None => self.kernel.all_cpus,
        }
    }
}

/// The run queues, whose `struct rq`s lie at `rqs`, and the global queues of the nodes.
fn make_queues(kernel: &mut Kernel, cpus: u32, rqs: u64) {
    for cpu in 0..cpus {
        let local = kernel.queues.create();
        let addr = rqs + rq_field::SIZE * u64::from(cpu);
        let idle = kernel.tasks.idle_addr(cpu);
        kernel.cpus.push(Rq::new(local, addr, idle));
    }
    for _ in 0..kernel.topology.nodes().max(1) {
        kernel.queues.create_global();
    }
}

/// Room for the cpumasks that programs see.
fn guest_masks(program: &Instance<Kernel>) -> Result<GuestMasks, MachineError> {
    Ok(GuestMasks {
        possible: program.alloc(offsets::CPUMASK_SIZE, 8)?,
        idle_cpu: program.alloc(offsets::CPUMASK_SIZE, 8)?,
        idle_smt: program.alloc(offsets::CPUMASK_SIZE, 8)?,
        none: program.alloc(offsets::CPUMASK_SIZE, 8)?,
    })
}

/// Shows the tree to the program.
fn publish_cgroups(program: &Instance<Kernel>, cgroups: &mut Cgroups) -> Result<(), MachineError> {
    let base = program.alloc(cgroup::STRIDE * cgroups.len() as u64, 64)?;
    cgroups.publish(program.memory(), base).map_err(MachineError::Memory)
}

/// What holds from the start on.
fn apply_first(
    changes: Vec<Change>,
    program: &mut Instance<Kernel>,
    policy: &Policy,
    cgroups: &mut Cgroups,
    first_cgroups: &mut [Option<CgroupRef>],
) -> Result<(), MachineError> {
    for (global, value) in &policy.constants {
        let bytes = value.to_le_bytes();
        program.set_global(&policy.globals[*global], &bytes).map_err(MachineError::Memory)?;
    }
    policy.setup.fill(program)?;
    for change in changes {
        match change.target {
            Target::Global { global, bytes } => {
                program.set_global(&policy.globals[global], &bytes).map_err(MachineError::Memory)?
            }
            Target::Weight { cgroup, weight } => cgroups.get_mut(cgroup).weight = weight,
            Target::Move { spec, cgroup } => first_cgroups[spec] = Some(cgroup),
        }
    }
    Ok(())
}

fn new_actors(config: &MachineConfig, workload: &Workload) -> Result<Actors, MachineError> {
    let actors = Actors::new(workload, config.seed, &config.cost);
    let mut actors = actors.map_err(|error| MachineError::Workload(error.to_string()))?;
    actors.set_limit(config.max_tasks);
    Ok(actors)
}

/// The groups that start by themselves, behind a lead-in, the earliest last; groups of one time in the workload's
/// order.
fn starts(workload: &Workload, lead_in_ns: u64) -> Vec<Start> {
    let start = |at_ns: u64| at_ns.saturating_add(lead_in_ns);
    let mut starts: Vec<Start> = workload
        .tasks
        .iter()
        .enumerate()
        .filter_map(|(spec, task)| {
            Some(Start { at_ns: start(task.start_ns?), spec, count: task.count })
        })
        .collect();
    starts.sort_by_key(|start| (start.at_ns, start.spec));
    starts.reverse();
    starts
}

/// The cgroups in which the workload's groups begin, where it says so.
fn first_cgroups(workload: &Workload) -> Vec<Option<CgroupRef>> {
    let first = |cgroup: usize| CgroupRef(cgroup as u32);
    workload.tasks.iter().map(|task| task.cgroup.map(first)).collect()
}

fn new_kernel(
    config: &MachineConfig,
    policy: &Policy,
    slab: u64,
    masks: GuestMasks,
    cgroups: Cgroups,
) -> Kernel {
    let cpus = config.cpus();
    let ops = &policy.ops;
    let builtin_idle = !ops.has(Op::UpdateIdle) || ops.flags & ops_flag::KEEP_BUILTIN_IDLE != 0;
    let mut trace = Trace::new(cpus);
    trace.counts_insns = true;
    cgroups.enter(&mut trace);
    Kernel {
        clock: Clock::new(config.tick_ns()),
        cost: config.cost.clone(),
        calls_ns: 0,
        topology: config.topology.clone(),
        caches: Caches::default(),
        cpus: Vec::with_capacity(cpus as usize),
        tasks: Tasks::new(slab, cpus),
        idle: IdleCpus::new(&config.topology),
        all_cpus: config.topology.all(),
        busy: CpuMask::EMPTY,
        queues: DispatchQueues::new(1024),
        builtin_idle,
        this_cpu: 0,
        permission: Permission::NONE,
        direct: DirectDispatch::Closed,
        buffer: DispatchBuffer::new(ops.batch),
        kicks: Kicks::new(cpus),
        ipis: Vec::new(),
        late: Late::default(),
        exit: None,
        events: EventQueue::new(cpus, 1024),
        timers: Timers::default(),
        armings: 0,
        qseq: 0,
        prng: Prng::new(config.seed).fork(STREAM_SCHEDULER),
        trace,
        trace_options: config.trace,
        log: Log::new(config.max_log_lines),
        counters: Counters::default(),
        reaped_exec_ns: 0,
        check: config.check,
        picks_in_order: config.check && config.picks_in_order,
        checker: if config.check { Checker::new(cpus) } else { Checker::default() },
        violation: None,
        masks,
        idle_shown: false,
        owned_masks: std::collections::BTreeMap::new(),
        cgroups,
        cids: Cids::new(&config.topology, ops.cid_form, ops.flags),
        reenqueues: Vec::new(),
        history: CallHistory::default(),
        preempt_counts: 0,
    }
}
