//! A test bench for the laws of the schedulers: a machine whose kernel work takes no time, run in small steps, with
//! samples of the scheduler's state between them.
#![allow(
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    reason = "a part of each test program"
)]
#![allow(dead_code, reason = "each test program uses its part of the bench")]

pub mod callbacks;
pub mod cfs2623;
pub mod eevdf;
pub mod fixture;
pub mod naive;
pub mod naive_cfs;
pub mod naive_eevdf;
pub mod o1;
pub mod one_cpu;
pub mod pair_cfs;
pub mod pair_eevdf;
pub mod random;
pub mod rfs;
pub mod sd;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use fairground_bpf::Object;
use fairground_machine::{
    CostModel, Engine, Machine, MachineConfig, Policy, Setting, TaskView, TraceOptions,
};
use fairground_trace::{Event, EventKind, TaskId, TaskState};
use fairground_workload::Workload;

/// One millisecond, ns.
pub const MS: u64 = 1_000_000;
/// One microsecond, ns.
pub const US: u64 = 1_000;

/// Load weights, nice −20 first (`sched_prio_to_weight`).
pub const WEIGHTS: [u64; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904,
    3906, 3121, 2501, 1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87,
    70, 56, 45, 36, 29, 23, 18, 15,
];

/// The load weight of a nice value.
pub fn weight(nice: i8) -> u64 {
    WEIGHTS[(i32::from(nice) + 20) as usize]
}

/// The parameters of a machine.
pub struct Bench {
    scheduler: &'static str,
    set: Option<&'static str>,
    settings: Vec<Setting>,
    config: MachineConfig,
}

/// A scheduler, optionally with a parameter set after an `@`: `cfs@2.6.24`.
pub fn bench(scheduler: &'static str) -> Bench {
    let (scheduler, set) = match scheduler.split_once('@') {
        Some((name, set)) => (name, Some(set)),
        None => (scheduler, None),
    };
    let mut config = MachineConfig::new(1);
    config.cost = CostModel::preset("zero").expect("a preset of that name");
    config.check = true;
    config.trace = TraceOptions { callbacks: false, ticks: true, calls: false };
    Bench { scheduler, set, settings: Vec::new(), config }
}

/// A built-in scheduler.
pub struct Compiled {
    pub object: Object,
    pub policy: Policy,
}

/// What is made of a scheduler once for all tests of the program.
pub struct PerScheduler<T: 'static>(Mutex<BTreeMap<String, &'static T>>);

impl<T> PerScheduler<T> {
    pub const fn new() -> PerScheduler<T> {
        PerScheduler(Mutex::new(BTreeMap::new()))
    }

    pub fn get(&self, scheduler: &str, make: impl FnOnce(&Object) -> T) -> &'static T {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        made.entry(scheduler.to_owned()).or_insert_with(|| {
            let builtin = fairground_policies::get(scheduler).expect("a built-in scheduler");
            let object = Object::parse(scheduler, builtin.object).expect("it parses");
            Box::leak(Box::new(make(&object)))
        })
    }
}

/// A built-in scheduler, compiled.
pub fn compiled(scheduler: &str) -> &'static Compiled {
    static COMPILED: PerScheduler<Compiled> = PerScheduler::new();
    COMPILED.get(scheduler, |object| {
        let policy = Policy::load(object, Engine::Jit).expect("it loads");
        Compiled { object: object.clone(), policy }
    })
}

impl Bench {
    pub fn cpus(mut self, cpus: u32) -> Bench {
        self.config.topology = fairground_machine::Topology::flat(cpus);
        self
    }

    /// Sockets × cores × threads (`2x4x2`, `8x1x1,nodes=1`).
    pub fn topology(mut self, text: &str) -> Bench {
        self.config.topology = text.parse().expect("a topology");
        self
    }

    pub fn hz(mut self, hz: u32) -> Bench {
        self.config.hz = hz;
        self
    }

    /// The preset of costs, and how long the tasks sleep before they start, ns.
    pub fn like_a_kernel(mut self, costs: &str, lead_in_ns: u64) -> Bench {
        self.config.cost = CostModel::preset(costs).expect("a preset of that name");
        self.lead_in(lead_in_ns)
    }

    /// How long before the start the tasks are forked, ns.
    pub fn lead_in(mut self, lead_in_ns: u64) -> Bench {
        self.config.lead_in_ns = lead_in_ns;
        self
    }

    /// One cost, by name.
    pub fn cost(mut self, name: &str, value: u64) -> Bench {
        self.config.cost.set(name, value).expect("a cost of that name");
        self
    }

    /// Records every callback in the trace.
    pub fn callbacks(mut self) -> Bench {
        self.config.trace.callbacks = true;
        self
    }

    pub fn set(mut self, name: &str, value: impl ToString) -> Bench {
        self.settings.push(Setting::initial(name, &value.to_string()));
        self
    }

    pub fn at(mut self, at_ns: u64, name: &str, value: impl ToString) -> Bench {
        self.settings.push(Setting::at(at_ns, name, &value.to_string()));
        self
    }

    /// Runs a workload of the library.
    pub fn run(self, workload: &str) -> Run {
        self.run_workload(&self::workload(workload))
    }

    /// Runs a workload given as TOML.
    pub fn run_toml(self, text: &str) -> Run {
        let workload = fairground_workload::parse("test", text).unwrap_or_else(|e| panic!("{e:?}"));
        self.run_workload(&workload)
    }

    pub fn run_workload(self, workload: &Workload) -> Run {
        let Compiled { object, policy } = compiled(self.scheduler);
        let mut settings = Vec::new();
        if let Some(set) = self.set {
            settings = parameter_set(object, set);
            assert!(!settings.is_empty(), "{} has no set {set}", self.scheduler);
        }
        settings.extend(self.settings);
        let machine = Machine::new(&self.config, policy, &settings, workload).expect("a machine");
        // One entry per CPU that a scheduler supports; `eevdf` has those of its groups behind them.
        let queues = if self.scheduler == "eevdf" { 8192 } else { 1024 };
        let queue_stride = machine.variable("cpu_queues").map_or(0, |bytes| bytes.len() / queues);
        Run { machine, step_ns: 50 * US, queue_stride }
    }
}

/// `20`, `20ms`, `on`.
fn plain_number(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match &text[digits.len()..] {
        "" | "ns" => 1,
        "us" => US,
        "ms" => MS,
        "s" => 1_000 * MS,
        word => {
            return ["off", "on", "false", "true"]
                .iter()
                .position(|w| *w == word)
                .map(|at| at as u64 % 2);
        }
    };
    digits.parse::<u64>().ok().map(|number| number * unit)
}

/// A parameter set, all values as numbers.
pub fn set_of(scheduler: &str, set: &str) -> Vec<(String, u64)> {
    let object = &compiled(scheduler).object;
    let prefix = format!("set:{set}=");
    let of_set = |global: &fairground_bpf::Global| {
        let value = global.tags.iter().find_map(|tag| tag.strip_prefix(&prefix))?;
        let number = match &global.ty {
            fairground_bpf::GlobalType::Enum { values, .. } => {
                values.iter().find(|(name, _)| name == value).map(|(_, number)| *number as u64)
            }
            _ => plain_number(value),
        };
        Some((global.name.clone(), number.unwrap_or_else(|| panic!("{} = {value}", global.name))))
    };
    object.globals().iter().filter_map(of_set).collect()
}

fn parameter_set(object: &Object, set: &str) -> Vec<Setting> {
    let prefix = format!("set:{set}=");
    let values = object.globals().iter().flat_map(|global| {
        let values = global.tags.iter().filter_map(|tag| tag.strip_prefix(&prefix));
        values.map(|value| Setting::initial(&global.name, value))
    });
    values.collect()
}

/// A machine in a run.
pub struct Run {
    pub machine: Machine,
    /// Step of [`Run::watch`], ns.
    pub step_ns: u64,
    queue_stride: usize,
}

impl Run {
    /// Runs until a time; the scheduler must still be attached then.
    pub fn until(&mut self, time_ns: u64) -> &mut Run {
        self.machine.run_until(time_ns).unwrap_or_else(|e| panic!("{e}"));
        if let Some(exit) = self.machine.exit() {
            panic!("the scheduler was thrown out: {exit:?}");
        }
        self
    }

    /// Runs until a time, and calls `look` every `step_ns`.
    pub fn watch(&mut self, until_ns: u64, mut look: impl FnMut(&mut Run)) -> &mut Run {
        let mut now_ns = self.machine.now_ns();
        while now_ns < until_ns {
            now_ns = (now_ns + self.step_ns).min(until_ns);
            self.until(now_ns);
            look(self);
        }
        self
    }

    /// An unsigned field of a CPU's `cpu_queues` entry: `at` bytes from its start, `size` bytes long.
    pub fn queue_field(&self, cpu: usize, at: usize, size: usize) -> u64 {
        let field = self.machine.variable_field(
            "cpu_queues",
            (cpu * self.queue_stride + at) as u64,
            size as u64,
        );
        field.expect("the scheduler has cpu_queues")
    }

    pub fn queue_u64(&self, cpu: usize, word: usize) -> u64 {
        self.queue_field(cpu, word * 8, 8)
    }

    /// Every task, by number, with name and nice value.
    pub fn tasks(&self) -> Vec<(TaskId, String, i8)> {
        let infos = self.machine.trace().tasks().iter().enumerate().skip(1);
        infos
            .map(|(n, info)| (TaskId(n as u32), info.comm.clone(), info.nice.unwrap_or(0)))
            .collect()
    }

    /// The tasks whose name has this prefix.
    pub fn named(&self, prefix: &str) -> Vec<TaskId> {
        self.tasks()
            .into_iter()
            .filter(|(_, comm, _)| comm.starts_with(prefix))
            .map(|(id, ..)| id)
            .collect()
    }

    pub fn task(&self, id: TaskId) -> TaskView {
        self.machine.task(id).unwrap_or_else(|| panic!("task {id:?} exists"))
    }

    /// The lines that the scheduler printed: time, CPU, text.
    pub fn lines(&self) -> Vec<(u64, u32, String)> {
        let trace = self.machine.trace();
        let print = |event: Event| match event.kind {
            EventKind::Print { label } => {
                Some((event.time_ns, event.cpu, trace.label(label).to_owned()))
            }
            _ => None,
        };
        trace.events().filter_map(print).collect()
    }

    /// The shortest and the longest time, ns, between two searches of a CPU for work after 500 ms, as printed with
    /// `trace_balance`. Each of the CPUs must search.
    pub fn between_looks(&self, cpus: usize) -> (u64, u64) {
        let mut last = vec![None; cpus];
        let (mut shortest, mut longest) = (u64::MAX, 0);
        for (time, cpu, text) in self.lines() {
            let is_look = !text.contains("moved") && !text.contains("idle-scan");
            if time < 500 * MS || !is_look {
                continue;
            }
            if let Some(before) = last[cpu as usize].replace(time) {
                shortest = shortest.min(time - before);
                longest = longest.max(time - before);
            }
        }
        assert!(last.iter().all(Option::is_some), "every CPU looks");
        (shortest, longest)
    }

    pub fn events(&self) -> Vec<Event> {
        self.machine.trace().events().collect()
    }

    /// Every on-CPU interval: task, start, end, reason of its end.
    pub fn slices(&self) -> Vec<Slice> {
        let mut open: BTreeMap<u16, (TaskId, u64)> = BTreeMap::new();
        let mut slices = Vec::new();
        for event in self.events() {
            let EventKind::Switch { prev, prev_state, next } = event.kind else { continue };
            let cpu = event.cpu as u16;
            if let Some((task, start_ns)) = open.insert(cpu, (next, event.time_ns)) {
                assert_eq!(task, prev, "the trace is consistent");
                if !task.is_idle() {
                    slices.push(Slice { task, start_ns, end_ns: event.time_ns, state: prev_state });
                }
            }
        }
        slices
    }

    /// CPU time of each task between two times, ns.
    pub fn cpu_time(&self, from_ns: u64, to_ns: u64) -> BTreeMap<TaskId, u64> {
        let mut time: BTreeMap<TaskId, u64> = BTreeMap::new();
        let mut open: BTreeMap<u16, (TaskId, u64)> = BTreeMap::new();
        let mut add = |task: TaskId, start: u64, end: u64| {
            let (start, end) = (start.max(from_ns), end.min(to_ns));
            if !task.is_idle() && start < end {
                *time.entry(task).or_default() += end - start;
            }
        };
        for event in self.events() {
            let EventKind::Switch { next, .. } = event.kind else { continue };
            if let Some((task, start)) = open.insert(event.cpu as u16, (next, event.time_ns)) {
                add(task, start, event.time_ns);
            }
        }
        for (task, start) in open.into_values() {
            add(task, start, self.machine.now_ns());
        }
        time
    }
}

/// One on-CPU interval.
#[derive(Clone, Copy, Debug)]
pub struct Slice {
    pub task: TaskId,
    pub start_ns: u64,
    pub end_ns: u64,
    pub state: TaskState,
}

impl Slice {
    pub fn ran_ns(&self) -> u64 {
        self.end_ns - self.start_ns
    }
}

/// `a - b` of two times that wrap.
pub fn diff(a: u64, b: u64) -> i64 {
    a.wrapping_sub(b) as i64
}

/// A workload of the library.
pub fn workload(spec: &str) -> Workload {
    fairground_workload::from_spec(spec).unwrap_or_else(|e| panic!("{spec}: {e:?}"))
}
