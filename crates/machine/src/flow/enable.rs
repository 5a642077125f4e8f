//! Building the machine and loading the scheduler.

use std::collections::{BTreeMap, VecDeque};

use fairground_bpf::{Instance, InstanceConfig, Memory};
use fairground_trace::{Label, Trace};
use fairground_workload::Workload;

use super::{Machine, Step};
use crate::abi::{self, ops_flag};
use crate::actors::Actors;
use crate::cgroup::{CgroupRef, Cgroups};
use crate::changes::{Change, Changes, Target, TaskChange, patch};
use crate::check::Checker;
use crate::cpuset::CpuMask;
use crate::dsq::DispatchQueues;
use crate::events::EventQueue;
use crate::idle_cpus::IdleCpus;
use crate::kernel::{
    Caches, CallHistory, Cids, Clock, DirectDispatch, DispatchBuffer, GuestMasks, Hotplug, Kernel,
    Kicks, Late, Log, Online, Permission, Rq, Spinners, Tasks, Timers, agenda, residents,
    state_flags,
};
use crate::layout::offsets::{self, cgroup, cgroup_init_args, init_task_args, rq as rq_field};
use crate::op::Op;
use crate::prng::{Prng, STREAM_SCHEDULER};
use crate::real_time::RtQueues;
use crate::real_time::Taker;
use crate::starts::Starts;
use crate::tracing::{CONTEXT_BYTES, PATH_BYTES};
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
        let config = &*config.charging(workload);
        let cpus = config.cpus();
        let mut cgroups = Cgroups::new(workload);
        let mut first_cgroups = first_cgroups(workload);
        let group_names: Vec<_> = workload.tasks.iter().map(|task| task.name.clone()).collect();
        let (first, mut changes) =
            Changes { policy, groups: &group_names, cgroups: &cgroups, topology: &config.topology }
                .encode(settings)?;
        let missing = offline_first(&first);
        changes.iter_mut().for_each(|c| c.at_ns = c.at_ns.saturating_add(config.lead_in_ns));
        let capacity = config.max_tasks + cpus + residents::count(cpus);
        let mut program = instance(config, policy, capacity, cgroups.len() as u32)?;
        preset(&mut program, policy, config)?;
        apply_first(first, &mut program, policy, &mut cgroups, &mut first_cgroups)?;
        program.set_prices(config.cost.prices());
        let slab = program.task_slab(offsets::TASK_STRIDE, capacity)?;
        let actors = new_actors(config, policy, workload)?;
        let init_task_args = program.alloc(init_task_args::SIZE, 8)?;
        let exit_task_args = program.alloc(8, 8)?;
        let masks = guest_masks(&program, policy, config.topology.nodes())?;
        let cgroup_init_args = program.alloc(cgroup_init_args::SIZE, 8)?;
        let cmask = program.alloc(Cids::mask_bytes(cpus), 8)?;
        publish_cgroups(&program, &mut cgroups)?;
        let mut kernel = new_kernel(config, policy, slab, masks, cgroups);
        kernel.rt = RtQueues::new(cpus, workload.uses_real_time() || make_real_time(&changes));
        kernel.cids.mask = cmask;
        kernel.preempt_counts = program.alloc(4 * u64::from(cpus), 64)?;
        kernel.null_pointer = program.alloc(8, 8)?;
        make_queues(&mut kernel, cpus, program.alloc(rq_field::SIZE * u64::from(cpus), 64)?);
        kernel.write_fixtures(program.memory()).map_err(MachineError::Memory)?;
        begin_without(&mut kernel, program.memory(), missing).map_err(MachineError::Memory)?;
        let release_args = release_args(policy, &program)?;
        let trace_context = trace_context(policy, &program)?;
        let starts = Starts::new(workload, config.lead_in_ns);
        check_workload(workload, &actors, &starts, config)?;
        let labels = labels(&actors, &mut kernel.trace)?;
        Ok(Machine {
            kernel,
            program,
            policy: policy.clone(),
            actors,
            effects: Vec::new(),
            labels,
            lock_labels: Vec::new(),
            policies: workload.tasks.iter().map(|spec| spec.policy).collect(),
            nices: workload.tasks.iter().map(|spec| spec.nice).collect(),
            starts,
            changes,
            group_names,
            carry_ps: 0,
            idle_bound_ns: config.idle_bound_ns,
            watchdog_ns: watchdog_ns(config, policy),
            max_events: config.max_events,
            first_cgroups,
            init_task_args,
            exit_task_args,
            release_args,
            cgroup_init_args,
            trace_context,
            saved: BTreeMap::new(),
            initialized: false,
            broken: false,
            finished: false,
            waiting: Vec::new(),
            stepwise: false,
            failure: None,
        })
    }

    /// `scx_ops_enable_workfn`. Callbacks: `init`, `cgroup_init` of every cgroup.
    pub(crate) fn load(&mut self) -> Step {
        for run in self.policy.setup.before.clone() {
            self.run_program(&run);
        }
        self.arm_programs();
        self.raise_register()?;
        if self.has(Op::Init) {
            self.kernel.cids.open = true;
            let result = self.call(Op::Init, None, &[]) as i32;
            self.kernel.cids.open = false;
            if result != 0 {
                self.kernel.error(format!("ops.init() failed ({result})"));
            }
        }
        self.initialized = self.kernel.exit.is_none();
        self.check_hotplug_seq();
        if self.policy.ops.flags & ops_flag::ENQ_LAST != 0 && !self.policy.ops.has(Op::Enqueue) {
            self.kernel.error("SCX_OPS_ENQ_LAST requires ops.enqueue() to be implemented");
        }
        self.init_cgroups()?;
        self.rest_all();
        self.raise_registered()?;
        for run in self.policy.setup.after.clone() {
            self.run_program(&run);
        }
        // Loading took its time before the run.
        self.policy_ns(0);
        self.arm_watchdog();
        self.kernel.plan(agenda::LEAD_IN, (self.starts.lead_in_ns > 0).then_some(0));
        self.kernel.plan(agenda::START, self.starts.next_ns());
        self.kernel.plan(agenda::SETTING, self.changes.last().map(|change| change.at_ns));
        Ok(())
    }

    /// The tasks that ran while the scheduler was loaded are gone: each CPU goes idle. Callback: `update_idle`.
    /// (`scx_bypass` ends with a pass on every CPU; a real machine has a thread that runs there next and leaves.)
    fn rest_all(&mut self) {
        for cpu in 0..self.kernel.nr_cpus() {
            if self.kernel.exit.is_none() && self.kernel.is_online(cpu) {
                self.kernel.this_cpu = cpu;
                self.update_idle(cpu, true);
            }
        }
        self.kernel.this_cpu = 0;
    }
}

/// The scheduler's program, with room for so many tasks and control groups.
fn instance(
    config: &MachineConfig,
    policy: &Policy,
    task_capacity: u32,
    cgroup_capacity: u32,
) -> Result<Instance<Kernel>, MachineError> {
    Ok(policy.image.instantiate(&InstanceConfig {
        cpus: config.cpus(),
        fuel_per_call: config.fuel_per_call,
        task_capacity,
        cgroup_capacity,
        null_loads: config.null_loads,
        remove_dead_code: true,
    })?)
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

/// The memory of the arguments of `cpu_release`, for a scheduler that has it.
fn release_args(policy: &Policy, program: &Instance<Kernel>) -> Result<u64, MachineError> {
    match policy.ops.has(Op::CpuRelease) {
        true => Ok(program.alloc(Taker::ARGS_BYTES, 8)?),
        false => Ok(0),
    }
}

/// The memory of the context of programs that are called at events, and of a cgroup's path.
fn trace_context(policy: &Policy, program: &Instance<Kernel>) -> Result<u64, MachineError> {
    match policy.tracing.is_empty() {
        true => Ok(0),
        false => Ok(program.alloc(CONTEXT_BYTES + PATH_BYTES, 8)?),
    }
}

/// The memory of the cpumasks that programs see.
fn guest_masks(
    program: &Instance<Kernel>,
    policy: &Policy,
    nodes: u32,
) -> Result<GuestMasks, MachineError> {
    let by_node = policy.ops.flags & ops_flag::BUILTIN_IDLE_PER_NODE != 0;
    let nodes = if by_node { u64::from(nodes.max(1)) } else { 0 };
    Ok(GuestMasks {
        possible: program.alloc(offsets::CPUMASK_SIZE, 8)?,
        online: program.alloc(offsets::CPUMASK_SIZE, 8)?,
        idle_cpu: program.alloc(offsets::CPUMASK_SIZE, 8)?,
        idle_smt: program.alloc(offsets::CPUMASK_SIZE, 8)?,
        none: program.alloc(offsets::CPUMASK_SIZE, 8)?,
        nodes: match nodes {
            0 => 0,
            nodes => program.alloc(2 * nodes * offsets::CPUMASK_SIZE, 8)?,
        },
    })
}

/// Writes the tree for the program.
fn publish_cgroups(program: &Instance<Kernel>, cgroups: &mut Cgroups) -> Result<(), MachineError> {
    let base = program.alloc(cgroup::STRIDE * cgroups.len() as u64, 64)?;
    cgroups.publish(program.memory(), base).map_err(MachineError::Memory)
}

/// The values that the machine determines: `CONFIG_HZ`, which CPUs share a core, a cache, a node and a socket, and the
/// costs for which a tag `cost:NAME` asks, for a program that reads them.
fn preset(
    program: &mut Instance<Kernel>,
    policy: &Policy,
    config: &MachineConfig,
) -> Result<(), MachineError> {
    if let Some(global) = &policy.hz {
        let bytes = u64::from(config.hz).to_le_bytes();
        let bytes = &bytes[..(global.size as usize).min(8)];
        program.set_global(global, bytes).map_err(MachineError::Memory)?;
    }
    for array in &policy.topology {
        let bytes = array.bytes(&config.topology).map_err(MachineError::Config)?;
        let global = &policy.globals[array.global];
        program.set_global(global, &bytes).map_err(MachineError::Memory)?;
    }
    for global in &policy.globals {
        for name in global.tags.iter().filter_map(|tag| tag.strip_prefix("cost:")) {
            let cost = config.cost.parameters().into_iter().find(|cost| cost.name == name);
            if let Some(cost) = cost.filter(|_| global.size == 8) {
                let bytes = cost.value.to_le_bytes();
                program.set_global(global, &bytes).map_err(MachineError::Memory)?;
            }
        }
    }
    Ok(())
}

/// The CPUs that are offline when the scheduler is loaded.
fn offline_first(changes: &[Change]) -> Vec<Hotplug> {
    let mut last = BTreeMap::new();
    for change in changes {
        if let Target::Online(change) = change.target {
            last.insert(change.cpu, change);
        }
    }
    last.into_values().filter(|change| !change.online).collect()
}

/// Whether a change during the run makes tasks real-time ones.
fn make_real_time(changes: &[Change]) -> bool {
    changes.iter().any(|change| match change.target {
        Target::Tasks { change: TaskChange::Policy(policy), .. } => policy.priority().is_some(),
        _ => false,
    })
}

/// CPUs are offline from the start.
fn begin_without(kernel: &mut Kernel, mem: &Memory, missing: Vec<Hotplug>) -> Step {
    for change in missing {
        kernel.set_online(mem, change)?;
        kernel.tell_hotplug(change);
    }
    Ok(())
}

/// Applies the changes of the start.
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
            Target::Global { global, patches } => {
                patch(program, &policy.globals[global], &patches).map_err(MachineError::Memory)?;
            }
            Target::Cgroup { cgroup, control } => cgroups.get_mut(cgroup).set(control),
            Target::Tasks { spec, change: TaskChange::Cgroup(cgroup) } => {
                first_cgroups[spec] = Some(cgroup);
            }
            // Offline CPUs come first; other attributes of tasks do not change before the run.
            Target::Tasks { .. } | Target::Online(_) => {}
        }
    }
    Ok(())
}

fn new_actors(
    config: &MachineConfig,
    policy: &Policy,
    workload: &Workload,
) -> Result<Actors, MachineError> {
    let actors = Actors::new(workload, config.seed, &config.cost);
    let mut actors = actors.map_err(|error| MachineError::Workload(error.to_string()))?;
    actors.set_limit(config.max_tasks);
    if config.trace.calls || (policy.tracing.has_futexes() && uses_futexes(workload)) {
        actors.trace_calls();
    }
    Ok(actors)
}

/// Whether tasks may call the kernel to wait for each other, or to wake each other.
fn uses_futexes(workload: &Workload) -> bool {
    let Workload { locks, conditions, barriers, queues, .. } = workload;
    !(locks.is_empty() && conditions.is_empty() && barriers.is_empty() && queues.is_empty())
}

/// The cgroups in which the workload's groups begin, where it says so.
fn first_cgroups(workload: &Workload) -> Vec<Option<CgroupRef>> {
    let first = |cgroup: usize| CgroupRef(cgroup as u32);
    workload.tasks.iter().map(|task| task.cgroup.map(first)).collect()
}

/// The affinities of the workload must leave each task a CPU, and its tasks must fit in.
fn check_workload(
    workload: &Workload,
    actors: &Actors,
    starts: &Starts,
    config: &MachineConfig,
) -> Result<(), MachineError> {
    for (spec, task) in workload.tasks.iter().enumerate() {
        if let Some(affinity) = actors.start_affinity(spec)
            && !actors.affinity(affinity).intersects(&config.topology.all())
        {
            return Err(MachineError::Workload(format!(
                "the tasks `{}` may run on CPUs that this machine of {} CPUs does not have; give \
                 the machine more CPUs (`--cpus {}`), or the tasks others",
                task.name,
                config.cpus(),
                workload.cpus_named()
            )));
        }
    }
    let total: u64 = starts.iter().map(|start| u64::from(start.count)).sum();
    if total > u64::from(config.max_tasks) {
        return Err(MachineError::Workload(format!(
            "it starts {total} tasks; the machine has room for {}",
            config.max_tasks
        )));
    }
    Ok(())
}

/// Texts of the workload's marks as labels of the trace.
fn labels(actors: &Actors, trace: &mut Trace) -> Result<Vec<Label>, MachineError> {
    let labels: Vec<Label> = actors.labels().iter().map(|text| trace.intern(text)).collect();
    if labels.iter().any(|Label(number)| *number > 255) {
        return Err(MachineError::Workload(
            "a trace holds at most 256 different marks; use fewer".to_owned(),
        ));
    }
    Ok(labels)
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
        states: state_flags(policy.abi),
        idle: IdleCpus::new(&config.topology),
        all_cpus: config.topology.all(),
        online: Online::new(config.topology.all()),
        busy: CpuMask::EMPTY,
        queues: DispatchQueues::new(1024),
        rt: RtQueues::new(0, false),
        spinners: Spinners::default(),
        builtin_idle,
        idle_per_node: builtin_idle && ops.flags & ops_flag::BUILTIN_IDLE_PER_NODE != 0,
        abi: policy.abi,
        this_cpu: 0,
        charges_are_told: false,
        in_interrupt: false,
        permission: Permission::UNLOCKED,
        direct: DirectDispatch::Closed,
        buffer: DispatchBuffer::new(ops.batch),
        kicks: Kicks::new(cpus),
        ipis: Vec::new(),
        late: Late::default(),
        exit: None,
        exit_cpu: 0,
        dump: None,
        events: EventQueue::new(cpus, 1024),
        timers: Timers::default(),
        sleep_timers: config.timers,
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
        tells_dequeue: policy.ops.has(Op::Dequeue),
        left_custody: VecDeque::new(),
        always_immed: ops.flags & ops_flag::ALWAYS_ENQ_IMMED != 0,
        uses_immed: false,
        history: CallHistory::default(),
        preempt_counts: 0,
        null_pointer: 0,
        keeps_sched_info: policy.reads_sched_info,
    }
}
