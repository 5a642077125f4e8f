//! Same inputs, same bytes: across runs, threads and engines. (Across processes and builds: `crates/cli/tests/`.)

use std::thread;

use fairground_bpf::Object;
use fairground_machine::{
    Engine, Machine, MachineConfig, Policy, RunResult, Setting, TraceOptions,
};
use fairground_trace::Event;
use fairground_workload::from_spec;

/// Workloads that together use every part of the machine: sleeps, random draws, signals, messages, forks, nice values.
const WORKLOADS: [&str; 3] =
    ["slice:16", "hogs:5,nice=5 + sleepers:9,run=50us..300us,sleep=100us..2ms", "hogs:3"];

fn run(name: &str, engine: Engine, workload: &str) -> RunResult {
    let builtin = fairground_policies::get(name).expect("a built-in scheduler");
    let object = Object::parse(name, builtin.object).expect("it parses");
    let policy = Policy::load(&object, engine).expect("it loads");
    let mut config = MachineConfig::new(4);
    config.seed = 42;
    config.check = true;
    config.trace = TraceOptions { callbacks: true, ticks: true, calls: false };
    let workload = from_spec(workload).expect("a workload of the library");
    let settings: &[Setting] = &[];
    let mut machine = Machine::new(&config, &policy, settings, &workload).expect("a machine");
    machine.run_until(1_500_000_000).expect("a run");
    machine.finish().expect("an end")
}

fn events(result: &RunResult) -> Vec<Event> {
    assert!(result.trace.len() > 1_000, "only {} events", result.trace.len());
    result.trace.events().collect()
}

fn first_difference(a: &[Event], b: &[Event]) -> Option<usize> {
    (0..a.len().max(b.len())).find(|i| a.get(*i) != b.get(*i))
}

#[test]
fn a_run_repeats_itself() {
    for policy in fairground_policies::all() {
        for workload in WORKLOADS {
            let (first, second) =
                (run(policy.name, Engine::Jit, workload), run(policy.name, Engine::Jit, workload));
            assert_eq!(
                first_difference(&events(&first), &events(&second)),
                None,
                "{} {workload}",
                policy.name
            );
            assert_eq!(first.counters, second.counters, "{} {workload}", policy.name);
        }
    }
}

#[test]
fn machines_side_by_side_do_not_touch_each_other() {
    let alone = events(&run("cfs", Engine::Jit, WORKLOADS[1]));
    let threads: Vec<_> =
        (0..4).map(|_| thread::spawn(|| events(&run("cfs", Engine::Jit, WORKLOADS[1])))).collect();
    for thread in threads {
        let beside = thread.join().expect("the thread ends");
        assert_eq!(first_difference(&alone, &beside), None);
    }
}

#[test]
fn both_engines_give_the_same_run() {
    for policy in fairground_policies::all() {
        let jit = run(policy.name, Engine::Jit, WORKLOADS[1]);
        let interpreter = run(policy.name, Engine::Interpreter, WORKLOADS[1]);
        assert_eq!(first_difference(&events(&jit), &events(&interpreter)), None, "{}", policy.name);
        assert_eq!(jit.counters.insns, interpreter.counters.insns, "{}", policy.name);
    }
}

#[test]
fn another_seed_is_another_run() {
    // Otherwise the tests above would hold for a machine that draws nothing.
    let workload = from_spec(WORKLOADS[1]).expect("a workload");
    let object = Object::parse("cfs", fairground_policies::get("cfs").expect("cfs").object)
        .expect("it parses");
    let policy = Policy::load(&object, Engine::Jit).expect("it loads");
    let of_seed = |seed| {
        let mut config = MachineConfig::new(4);
        config.seed = seed;
        let mut machine = Machine::new(&config, &policy, &[], &workload).expect("a machine");
        machine.run_until(200_000_000).expect("a run");
        events(&machine.finish().expect("an end"))
    };
    assert!(first_difference(&of_seed(1), &of_seed(2)).is_some());
}
