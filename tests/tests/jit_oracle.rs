//! The interpreter is the oracle of the JIT compiler: over a million callbacks of each scheduler, in each parameter
//! set and with every feature switched, both produce the same trace, instruction counts and variables.

use std::thread;

use fairground_bpf::{GlobalType, Object};
use fairground_machine::{
    Counters, Engine, Exit, Machine, MachineConfig, Policy, PrintedLine, Setting, TraceOptions,
};
use fairground_trace::{CallbackKind, Event, Trace};
use fairground_workload::Workload;

/// Callbacks of each scheduler that both engines must agree on.
const CALLBACKS_PER_POLICY: u64 = 1_000_000;
/// Simulated time between two checks of the count, ns.
const STEP_NS: u64 = 5_000_000;
/// Limit of a run, ns.
const END_NS: u64 = 60_000_000_000;
/// Time between two changes of a switch, ns: short enough that each is on and off within a run.
const THROW_EVERY_NS: u64 = 3_000_000;

/// Tasks that start and exit, wake each other, yield, change weight, affinity and control group, beside some that
/// compute all the time.
const WORKLOAD: &str = r#"
format = 1
name = "everything"
duration = "60s"

[cgroups.left]
weight = 300

[cgroups."left/inner"]

[cgroups.right]

[[pipe]]
name = "there"

[[pipe]]
name = "back"

[[queue]]
name = "requests"

[[queue]]
name = "answers"

[[task]]
name = "hog"
count = 3
program = [{ run = "forever" }]
on_signal = [{ run = "10us" }]

[[task]]
name = "light"
count = 2
nice = 7
program = [{ loop = [{ run = "30us..300us" }, { sleep = "50us..2ms" }] }]

[[task]]
name = "heavy"
nice = -9
program = [{ loop = [{ run = "20us..80us" }, { sleep = "100us..900us" }] }]

[[task]]
name = "ping"
program = [{ loop = [{ run = "5us..15us" }, { write = "there" }, { read = "back" }] }]

[[task]]
name = "pong"
program = [{ loop = [{ read = "there" }, { run = "5us..15us" }, { write = "back" }] }]

[[task]]
name = "client"
count = 3
program = [{ loop = [{ run = "5us..60us" }, { send = "requests" }, { receive = "answers" }] }]

[[task]]
name = "server"
program = [{ loop = [{ receive = "requests" }, { run = "1us..50us" }, { send = "answers" }] }]

[[task]]
name = "polite"
count = 2
program = [{ loop = [{ run = "10us..40us" }, "yield"] }]

[[task]]
name = "moody"
program = [{ loop = [
  { nice = 5 }, { run = "100us" }, { sleep = "200us" }, { nice = -3 }, { run = "300us" },
  { cpus = "1" }, { run = "50us" }, { sleep = "1ms" }, { cpus = "0-3" }, { signal = "hog" },
] }]

[[task]]
name = "mover"
count = 2
cgroup = "left/inner"
program = [{ loop = [
  { run = "80us" }, { cgroup = "right" }, { run = "60us" }, { sleep = "300us" },
    { weight = { cgroup = "left", weight = 50 } },
  { run = "40us" }, { cgroup = "left/inner" }, { sleep = "200us" }, { weight = { cgroup = "left", weight = 900 } },
] }]

[[task]]
name = "forker"
cgroup = "right"
program = [{ loop = [{ fork = "child" }, { sleep = "1ms" }, "wait"] }]

[[task]]
name = "child"
count = 2
program = [{ loop = [{ run = "20us..200us" }, { sleep = "50us" }], times = 3 }]
"#;

/// A scheduler in one of its configurations.
struct Variant {
    name: String,
    settings: Vec<Setting>,
}

/// The results of a run that an engine could get wrong.
struct Outcome {
    trace: Trace,
    counters: Counters,
    exit: Exit,
    log: Vec<PrintedLine>,
    variables: Vec<(String, Vec<u8>)>,
}

fn callbacks(counters: &Counters) -> u64 {
    CallbackKind::ALL.iter().map(|kind| counters.callbacks(*kind)).sum()
}

/// The scheduler by default, in each of its parameter sets, and with its switches changed one after the other.
fn variants(object: &Object) -> Vec<Variant> {
    let mut variants = vec![Variant { name: "default".to_owned(), settings: Vec::new() }];
    for global in object.globals() {
        for tag in global.tags.iter().filter_map(|tag| tag.strip_prefix("set:")) {
            let (set, value) = tag.split_once('=').expect("a set has values");
            if !variants.iter().any(|variant| variant.name == set) {
                variants.push(Variant { name: set.to_owned(), settings: Vec::new() });
            }
            let variant = variants.iter_mut().find(|variant| variant.name == set);
            variant.expect("just made").settings.push(Setting::initial(&global.name, value));
        }
    }
    let switches = object.globals().iter().filter(|global| {
        global.ty == GlobalType::Bool && !global.read_only && !global.tags.is_empty()
    });
    let switches: Vec<&str> = switches.map(|global| global.name.as_str()).collect();
    if !switches.is_empty() {
        let settings = thrown(&switches);
        variants.push(Variant { name: "switches thrown".to_owned(), settings });
    }
    variants
}

/// Every switch alternately on and off, so that any two meet in several states.
fn thrown(switches: &[&str]) -> Vec<Setting> {
    let count = switches.len();
    let settings = (0..END_NS / THROW_EVERY_NS).map(|n| {
        let n = n as usize;
        let (round, switch) = (n / count, n % count);
        // Later rounds use another period; otherwise all would be on, then all off.
        let on = (switch >> (round / 2 % 3)).is_multiple_of(2) == round.is_multiple_of(2);
        let value = if on { "on" } else { "off" };
        Setting::at((n as u64 + 1) * THROW_EVERY_NS, switches[switch], value)
    });
    settings.collect()
}

/// Runs until this many callbacks.
fn run(
    object: &Object,
    engine: Engine,
    variant: &Variant,
    workload: &Workload,
    wanted: u64,
    seed: u64,
) -> Outcome {
    let policy = Policy::load(object, engine).expect("it loads");
    let mut config = MachineConfig::new(4);
    config.hz = 250;
    config.seed = seed;
    config.check = false;
    config.trace = TraceOptions { callbacks: true, ticks: true, calls: false };
    let mut machine =
        Machine::new(&config, &policy, &variant.settings, workload).expect("a machine");
    while callbacks(&machine.counters()) < wanted {
        assert!(machine.exit().is_none(), "{}: {:?}", variant.name, machine.exit());
        assert!(machine.now_ns() < END_NS, "{}: too few callbacks", variant.name);
        machine.run_until(machine.now_ns() + STEP_NS).expect("a run");
    }
    let variables = object.globals().iter().filter_map(|global| {
        machine.variable(&global.name).map(|bytes| (global.name.clone(), bytes))
    });
    let variables = variables.collect();
    let result = machine.finish().expect("an end");
    Outcome {
        trace: result.trace,
        counters: result.counters,
        exit: result.exit,
        log: result.log,
        variables,
    }
}

fn first_difference(a: &Trace, b: &Trace) -> Option<(usize, Option<Event>, Option<Event>)> {
    (0..a.len().max(b.len())).map(|n| (n, a.get(n), b.get(n))).find(|(_, a, b)| a != b)
}

#[test]
fn both_engines_agree_over_a_million_callbacks_of_each_scheduler() {
    let workload = fairground_workload::parse("everything", WORKLOAD).expect("a workload");
    for policy in fairground_policies::all() {
        let object = Object::parse(policy.name, policy.object).expect("it parses");
        let variants = variants(&object);
        let share = CALLBACKS_PER_POLICY.div_ceil(variants.len() as u64);
        let mut agreed = 0;
        for (seed, variant) in (1..).zip(&variants) {
            let on = |engine| run(&object, engine, variant, &workload, share, seed);
            let (jit, oracle) = thread::scope(|scope| {
                let jit = scope.spawn(|| on(Engine::Jit));
                let oracle = on(Engine::Interpreter);
                (jit.join().expect("the translated run ends"), oracle)
            });
            let place = format!("{}, {}", policy.name, variant.name);
            assert_eq!(first_difference(&jit.trace, &oracle.trace), None, "{place}");
            assert_eq!(jit.trace.digest(), oracle.trace.digest(), "{place}");
            assert_eq!(jit.counters, oracle.counters, "{place}");
            assert_eq!(jit.exit, oracle.exit, "{place}");
            assert_eq!(jit.log, oracle.log, "{place}");
            assert!(!oracle.variables.is_empty(), "{place}");
            for (mine, its) in jit.variables.iter().zip(&oracle.variables) {
                assert!(mine == its, "{place}: `{}` differs", its.0);
            }
            assert!(oracle.counters.insns > share, "{place}: {} insns", oracle.counters.insns);
            agreed += callbacks(&oracle.counters);
        }
        assert!(agreed >= CALLBACKS_PER_POLICY, "{}: {agreed}", policy.name);
    }
}

/// The workload covers what it is meant to cover; otherwise the agreement above would say little.
#[test]
fn the_workload_uses_every_callback_and_another_seed_is_seen() {
    let workload = fairground_workload::parse("everything", WORKLOAD).expect("a workload");
    let builtin = fairground_policies::get("cfs").expect("cfs");
    let object = Object::parse("cfs", builtin.object).expect("it parses");
    let variant = Variant { name: "default".to_owned(), settings: Vec::new() };
    let of_seed = |seed| run(&object, Engine::Interpreter, &variant, &workload, 20_000, seed);
    let (first, second) = (of_seed(1), of_seed(2));
    assert!(first_difference(&first.trace, &second.trace).is_some());
    assert_ne!(first.trace.digest(), second.trace.digest());
    for ops in object.struct_ops() {
        for field in &ops.fields {
            let kind = CallbackKind::ALL.into_iter().find(|kind| kind.name() == field.name);
            let Some(kind) = kind else { continue };
            assert!(first.counters.callbacks(kind) > 0, "{} never ran", field.name);
        }
    }
}
