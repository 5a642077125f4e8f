//! A scheduler without a machine: the test takes the part of the kernel of one CPU and calls the callbacks of the
//! compiled object itself, in the order of `kernel/sched/ext.c`. So it can do what no workload controls: dequeue a
//! waiting task, or check the scheduler's state after each operation.

use std::sync::Arc;

use fairground_bpf::{
    ConfigValue, Engine, Env, Field, Global, HostFn, Image, Instance, InstanceConfig, Object,
    StructOps, TargetTypes, Trap,
};

use super::PerScheduler;
use super::one_cpu::{DSQ_VTIME, OneCpu, Walk};

/// Offsets in this kernel's `task_struct`; they differ from the machine's.
const SLICE: u64 = 0;
const SUM_EXEC: u64 = 32;
const PID: u64 = 40;
const STATIC_PRIO: u64 = 48;
const NR_CPUS_ALLOWED: u64 = 56;
const TGID: u64 = 60;
const FLAGS: u64 = 44;
const POLICY: u64 = 52;
const CUSTOM_SLICE_NS: u64 = 72;
const CUSTOM_SLICE: u64 = 80;
const EXEC_START: u64 = 88;
const TASK_BYTES: u64 = 128;
const MAX_TASKS: u32 = 256;

/// `SCX_SLICE_INF`.
const SLICE_INF: u64 = u64::MAX;
/// `SCX_ENQ_WAKEUP`, and `SCX_DEQ_SLEEP`.
const BY_WAKEUP: u64 = 1;
const BY_SLEEP: u64 = 1;
/// `SCX_DSQ_ITER_REV`.
const FROM_THE_END: u64 = 1 << 16;
/// `SCX_DSQ_LOCAL`.
const LOCAL: u64 = 1 << 63 | 2;
/// The value of `CONFIG_HZ`.
pub const HZ: u64 = 1000;

/// The guest address of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Task(u64);

type Kfunc = (&'static str, HostFn<OneCpu>);

/// The address of the mask of online CPUs, which nothing reads.
const ONLINE: u64 = u64::MAX;

const KFUNCS: [Kfunc; 25] = [
    ("scx_bpf_now", |k, _, _| Ok(k.now_ns)),
    ("scx_bpf_task_cpu", |k, _, _| Ok(k.home)),
    ("scx_bpf_nr_cpu_ids", |_, _, _| Ok(1)),
    ("scx_bpf_create_dsq", |_, _, _| Ok(0)),
    ("scx_bpf_kick_cpu", |k, _, _| {
        k.kicks += 1;
        Ok(0)
    }),
    ("scx_bpf_dsq_insert", |_, _, _| Err(Trap::host("no task goes to the local queue here"))),
    ("scx_bpf_dsq_insert_vtime", |k, mem, [task, queue, slice_ns, vtime, _]| {
        mem.store_u64(task + DSQ_VTIME, vtime)?;
        mem.store_u64(task + SLICE, slice_ns)?;
        k.waiting.push((queue, task));
        Ok(0)
    }),
    ("scx_bpf_dsq_move_to_local", |k, mem, [queue, ..]| {
        k.next = if k.refuses { None } else { k.in_order(mem, queue)?.first().copied() };
        if let Some(task) = k.next {
            k.leave(task);
        }
        Ok(u64::from(k.next.is_some()))
    }),
    ("scx_bpf_dsq_nr_queued", |k, _, [queue, ..]| {
        Ok(k.waiting.iter().filter(|(of, _)| *of == queue).count() as u64)
    }),
    ("scx_bpf_select_cpu_dfl", |_, _, _| Err(Trap::host("the test selects the CPU"))),
    ("scx_bpf_pick_idle_cpu", |_, _, _| Err(Trap::host("all tasks are pinned"))),
    ("scx_bpf_test_and_clear_cpu_idle", |_, _, _| Err(Trap::host("the test selects the CPU"))),
    ("scx_bpf_get_online_cpumask", |_, _, _| Ok(ONLINE)),
    ("scx_bpf_put_cpumask", |_, _, _| Ok(0)),
    ("bpf_cpumask_test_cpu", |_, _, [_, mask, ..]| match mask {
        ONLINE => Ok(1),
        _ => Err(Trap::host("there is one CPU")),
    }),
    ("bpf_iter_scx_dsq_new", |k, mem, [it, queue, flags, ..]| {
        let mut left = k.in_order(mem, queue)?;
        if flags & FROM_THE_END == 0 {
            left.reverse();
        }
        mem.store_u64(it, k.walks.len() as u64)?;
        k.walks.push(Walk { queue, left, vtime: 0 });
        Ok(0)
    }),
    ("bpf_iter_scx_dsq_next", |k, mem, [it, ..]| Ok(k.walk(mem, it)?.left.pop().unwrap_or(0))),
    ("bpf_iter_scx_dsq_destroy", |k, mem, [it, ..]| {
        k.walk(mem, it)?;
        k.walks.pop();
        Ok(0)
    }),
    ("scx_bpf_dsq_move_set_vtime", |k, mem, [it, vtime, ..]| {
        k.walk(mem, it)?.vtime = vtime;
        Ok(0)
    }),
    ("scx_bpf_dsq_move_vtime", |k, mem, [it, task, queue, ..]| {
        let walk = k.walk(mem, it)?;
        let (from, vtime) = (walk.queue, walk.vtime);
        if !k.waiting.contains(&(from, task)) {
            return Ok(0);
        }
        k.leave(task);
        mem.store_u64(task + DSQ_VTIME, vtime)?;
        k.waiting.push((queue, task));
        Ok(1)
    }),
    ("scx_bpf_dsq_move", |k, mem, [it, task, queue, ..]| {
        let from = k.walk(mem, it)?.queue;
        if queue != LOCAL || !k.waiting.contains(&(from, task)) {
            return Ok(0);
        }
        k.leave(task);
        k.next = Some(task);
        Ok(1)
    }),
    ("bpf_task_from_pid", |k, _, [pid, ..]| {
        Ok((pid as usize).checked_sub(1).and_then(|at| k.tasks.get(at)).copied().unwrap_or(0))
    }),
    ("bpf_task_release", |_, _, _| Ok(0)),
    ("bpf_cgroup_ancestor", |_, _, _| Err(Trap::host("there are no control groups here"))),
    ("bpf_cgroup_release", |_, _, _| Ok(0)),
];

fn types() -> TargetTypes {
    let mut t = TargetTypes::new();
    let (u32, s32) = (t.unsigned("unsigned int", 4), t.signed("int", 4));
    let u64 = t.unsigned("unsigned long long", 8);
    let boolean = t.boolean();
    let long = t.unsigned("unsigned long", 8);
    let bits = t.array(long, 16);
    let cpumask = t.structure("cpumask", 128, &[Field::at("bits", 0, bits)]);
    let cpumask = t.typedef("cpumask_t", cpumask);
    let cpumask = t.pointer(cpumask);
    let u8 = t.unsigned("unsigned char", 1);
    let se = [
        ("sum_exec_runtime", 0, u64),
        ("slice", (CUSTOM_SLICE_NS - SUM_EXEC) as u32, u64),
        ("custom_slice", (CUSTOM_SLICE - SUM_EXEC) as u32, u8),
        ("exec_start", (EXEC_START - SUM_EXEC) as u32, u64),
    ];
    let se = t.structure("sched_entity", 64, &se.map(|(name, at, ty)| Field::at(name, at, ty)));
    let scx = [("slice", 0, u64), ("dsq_vtime", 8, u64), ("weight", 16, u32), ("flags", 20, u32)];
    let scx = t.structure("sched_ext_entity", 32, &scx.map(|(n, at, ty)| Field::at(n, at, ty)));
    let task = [
        ("scx", 0, scx),
        ("se", SUM_EXEC as u32, se),
        ("pid", PID as u32, s32),
        ("flags", FLAGS as u32, u32),
        ("static_prio", STATIC_PRIO as u32, s32),
        ("policy", POLICY as u32, u32),
        ("nr_cpus_allowed", NR_CPUS_ALLOWED as u32, s32),
        ("tgid", TGID as u32, s32),
        ("cpus_ptr", 64, cpumask),
    ];
    let task = task.map(|(name, at, ty)| Field::at(name, at, ty));
    t.structure("task_struct", TASK_BYTES as u32, &task);
    let node = t.structure("kernfs_node", 8, &[Field::at("id", 0, u64)]);
    let node = t.pointer(node);
    let group = t.structure("cgroup", 16, &[Field::at("level", 0, s32), Field::at("kn", 8, node)]);
    let group = t.pointer(group);
    let args = [Field::at("fork", 0, boolean), Field::at("cgroup", 8, group)];
    t.structure("scx_init_task_args", 16, &args);
    t.structure("scx_cgroup_init_args", 4, &[Field::at("weight", 0, u32)]);
    t
}

/// A loaded built-in scheduler; it can be instantiated any number of times.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub image: Arc<Image<OneCpu>>,
    globals: Vec<Global>,
    ops: StructOps,
}

pub fn load(scheduler: &str) -> Loaded {
    static LOADED: PerScheduler<Loaded> = PerScheduler::new();
    let compile = |object: &Object| {
        let mut env = Env::new(types());
        env.kfuncs = KFUNCS.to_vec();
        // bpf_jiffies64
        env.helpers = vec![(118, |k: &mut OneCpu, _, _| Ok(k.now_ns * HZ / 1_000_000_000))];
        env.kconfig = vec![("CONFIG_HZ".to_owned(), ConfigValue::Number(HZ))];
        let image = Image::new(object, &env, Engine::Jit).unwrap_or_else(|e| panic!("{e}"));
        Loaded { image, globals: object.globals().to_vec(), ops: object.struct_ops()[0].clone() }
    };
    LOADED.get(scheduler, compile).clone()
}

/// A scheduler in charge of one CPU.
#[derive(Debug)]
pub struct Callbacks {
    program: Instance<OneCpu>,
    loaded: Loaded,
    cpu: OneCpu,
    slab: u64,
    tasks: u64,
    current: Option<Task>,
}

impl Callbacks {
    /// Sets variables to numbers and calls `init`.
    pub fn new(loaded: &Loaded, settings: &[(&str, u64)]) -> Callbacks {
        let config = InstanceConfig { task_capacity: MAX_TASKS, ..InstanceConfig::default() };
        let mut program = loaded.image.instantiate(&config).expect("memory");
        let slab = program.task_slab(TASK_BYTES, MAX_TASKS).expect("memory");
        let loaded = loaded.clone();
        let cpu = OneCpu::default();
        let mut one = Callbacks { program, loaded, cpu, slab, tasks: 0, current: None };
        for (name, value) in settings {
            let global = one.global(name).clone();
            let bytes = &value.to_le_bytes()[..global.size as usize];
            one.program.set_global(&global, bytes).expect("it has that size");
        }
        assert_eq!(one.call("init", &[]) as i32, 0, "init succeeds");
        one
    }

    fn global(&self, name: &str) -> &Global {
        let global = self.loaded.globals.iter().find(|g| g.name == name);
        global.unwrap_or_else(|| panic!("the scheduler has no variable {name}"))
    }

    fn call(&mut self, callback: &str, args: &[u64]) -> u64 {
        let function = self.loaded.ops.function(callback).expect("the scheduler has it");
        let context = self.program.context();
        (context.cpu, context.now_ns) = (0, self.cpu.now_ns);
        let result = self.program.call(function, args, &mut self.cpu);
        result.unwrap_or_else(|trap| panic!("{callback}: {trap}"))
    }

    /// A 64-bit word within a variable.
    pub fn word(&self, name: &str, word: usize) -> u64 {
        let at = self.program.global_address(self.global(name)).expect("it is of this object");
        self.program.memory().load_u64(at + word as u64 * 8).expect("within the variable")
    }

    /// Overwrites it, to test a check.
    pub fn set_word(&mut self, name: &str, word: usize, value: u64) {
        let at = self.program.global_address(self.global(name)).expect("it is of this object");
        self.program.memory().store_u64(at + word as u64 * 8, value).expect("a variable");
    }

    /// A word of the scheduler's per-task state in its map `task_ctx`.
    pub fn storage(&self, task: Task, word: usize) -> u64 {
        let at = self.program.task_storage("task_ctx", task.0).expect("init_task made it");
        self.program.memory().load_u64(at + word as u64 * 8).expect("within the value")
    }

    /// Overwrites it, to set up a state.
    pub fn set_storage(&mut self, task: Task, word: usize, value: u64) {
        let at = self.program.task_storage("task_ctx", task.0).expect("init_task made it");
        self.program.memory().store_u64(at + word as u64 * 8, value).expect("within the value");
    }

    fn load(&self, task: Task, offset: u64) -> u64 {
        self.program.memory().load_u64(task.0 + offset).expect("a task")
    }

    fn store(&self, task: Task, offset: u64, value: u64) {
        self.program.memory().store_u64(task.0 + offset, value).expect("a task");
    }

    fn store_u32(&self, task: Task, offset: u64, value: u32) {
        self.program.memory().store_u32(task.0 + offset, value).expect("a task");
    }

    pub fn dsq_vtime(&self, task: Task) -> u64 {
        self.load(task, DSQ_VTIME)
    }

    pub fn set_dsq_vtime(&mut self, task: Task, vtime: u64) {
        self.store(task, DSQ_VTIME, vtime);
    }

    pub fn set_nice(&mut self, task: Task, nice: i8) {
        self.store_u32(task, STATIC_PRIO, (120 + i32::from(nice)) as u32);
    }

    /// `SCHED_NORMAL` 0, `SCHED_BATCH` 3, `SCHED_IDLE` 5.
    pub fn set_policy(&mut self, task: Task, policy: u32) {
        self.store_u32(task, POLICY, policy);
    }

    /// The task's own slice as set by `sched_setattr`; 0: none.
    pub fn set_slice(&mut self, task: Task, slice_ns: u64) {
        self.store(task, CUSTOM_SLICE_NS, slice_ns);
        self.store_u32(task, CUSTOM_SLICE, u32::from(slice_ns != 0));
    }

    /// Changes attributes of a task that runs or waits: it is dequeued, `change` is applied, and it is enqueued again.
    pub fn change(&mut self, task: Task, change: impl FnOnce(&mut Callbacks, Task)) {
        let runs = self.current == Some(task);
        if runs {
            self.call("stopping", &[task.0, 0]);
        } else {
            assert!(self.is_waiting(task), "it runs or waits");
            self.cpu.leave(task.0);
        }
        self.call("quiescent", &[task.0, 0]);
        change(self, task);
        self.runnable(task, 0);
        let last = if runs { "running" } else { "enqueue" };
        let arguments: &[u64] = if runs { &[task.0] } else { &[task.0, 0] };
        self.call(last, arguments);
    }

    pub fn is_waiting(&self, task: Task) -> bool {
        self.cpu.waiting.iter().any(|(_, waiting)| *waiting == task.0)
    }

    pub fn nice(&self, task: Task) -> i8 {
        (self.load(task, STATIC_PRIO) as u32 as i32 - 120) as i8
    }

    pub fn current(&self) -> Option<Task> {
        self.current
    }

    /// Calls that asked this CPU to reschedule.
    pub fn kicks(&self) -> u32 {
        self.cpu.kicks
    }

    /// A task that has not run yet: `init_task`. It is asleep.
    pub fn task(&mut self, nice: i8) -> Task {
        let task = Task(self.slab + self.tasks * TASK_BYTES);
        self.tasks += 1;
        self.cpu.tasks.push(task.0);
        self.store_u32(task, PID, self.tasks as u32);
        self.store_u32(task, TGID, self.tasks as u32);
        self.store_u32(task, NR_CPUS_ALLOWED, 1);
        self.set_nice(task, nice);
        let args = self.program.alloc(16, 8).expect("memory");
        assert_eq!(self.call("init_task", &[task.0, args]) as i32, 0, "init_task succeeds");
        task
    }

    /// Some schedulers do all of it in `enqueue`, or in `running` for a task that the kernel does not enqueue.
    fn runnable(&mut self, task: Task, flags: u64) {
        if self.loaded.ops.function("runnable").is_some() {
            self.call("runnable", &[task.0, flags]);
        }
    }

    fn join(&mut self, task: Task, flags: u64) {
        self.runnable(task, flags);
        self.call("enqueue", &[task.0, flags]);
    }

    /// A new task becomes runnable, or one is enqueued again after an attribute change.
    pub fn restore(&mut self, task: Task) {
        self.join(task, 0);
    }

    pub fn wake(&mut self, task: Task) {
        self.join(task, BY_WAKEUP);
    }

    /// A waiting task is dequeued.
    pub fn take_out(&mut self, task: Task) {
        assert!(self.is_waiting(task), "it waits");
        self.cpu.leave(task.0);
        self.call("quiescent", &[task.0, BY_SLEEP]);
    }

    /// The current task leaves its CPU for the queue.
    pub fn put_back(&mut self) {
        if let Some(task) = self.current.take() {
            self.call("stopping", &[task.0, 1]);
            self.call("enqueue", &[task.0, 0]);
        }
    }

    /// The current task goes to sleep.
    pub fn sleep(&mut self) {
        let task = self.current.take().expect("a task runs");
        self.call("stopping", &[task.0, 0]);
        self.call("quiescent", &[task.0, BY_SLEEP]);
    }

    /// A task wakes up on a CPU that is not on line, for whose tasks the kernel asks neither `enqueue` nor `dispatch`.
    pub fn wake_offline(&mut self, task: Task) {
        self.runnable(task, BY_WAKEUP);
    }

    /// Such a CPU switches to a task that woke up there; the previous one stays runnable.
    pub fn switch_offline(&mut self, next: Task) {
        if let Some(task) = self.current.replace(next) {
            self.call("stopping", &[task.0, 1]);
        }
        self.call("running", &[next.0]);
    }

    /// From now on the tasks belong to another CPU, and the kernel moves none of them to this one.
    pub fn refuse(&mut self, home: u32) {
        (self.cpu.home, self.cpu.refuses) = (home.into(), true);
    }

    /// The CPU picks the next task.
    pub fn schedule(&mut self) -> Option<Task> {
        self.cpu.next = None;
        self.call("dispatch", &[0, self.current.map_or(0, |task| task.0)]);
        if let Some(next) = self.cpu.next.take() {
            self.put_back();
            self.current = Some(Task(next));
            self.call("running", &[next]);
        }
        self.current
    }

    /// `sched_yield` by the current task; `schedule` is to follow.
    pub fn yield_now(&mut self) {
        let task = self.current.expect("a task runs");
        self.call("yield", &[task.0, 0]);
    }

    /// The tasks in the queue, in the order of their arrival.
    pub fn waiting(&self) -> Vec<Task> {
        self.cpu.waiting.iter().map(|(_, task)| Task(*task)).collect()
    }

    /// The queues that hold tasks.
    pub fn queues(&self) -> Vec<u64> {
        self.cpu.waiting.iter().map(|(queue, _)| *queue).collect()
    }

    /// Time passes; the current task, if any, runs.
    pub fn pass(&mut self, ns: u64) {
        self.cpu.now_ns += ns;
        if let Some(task) = self.current {
            // Earlier than the kernel, which does so before tick, dispatch and stopping: nothing reads it in between.
            self.store(task, SUM_EXEC, self.load(task, SUM_EXEC) + ns);
        }
    }

    /// A tick; whether the current task is to be preempted.
    pub fn tick(&mut self) -> bool {
        let task = self.current.expect("a task runs");
        self.store(task, SLICE, SLICE_INF);
        self.call("tick", &[task.0]);
        self.load(task, SLICE) == 0
    }
}
