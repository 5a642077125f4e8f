//! The end of kernel work after which a task only computes is no event of the simulated machine: the trace is as if it
//! were.

use fairground_machine::{
    CostModel, Counters, Machine, MachineConfig, Policy, RunResult, TraceOptions,
};
use fairground_workload::from_spec;

use crate::rig::compiled;

/// All interactions of tasks, with times drawn to the nanosecond where possible, so that two CPUs rarely act at the
/// same one.
const WORKLOADS: [&str; 10] = [
    "hogs:3 + sleepers:9,run=5us..300us,sleep=10us..2ms",
    "sleepers:2,run=500ns..9us,sleep=500ns..20us + sleepers:4,run=50us..3ms,sleep=1us..900us",
    "schbench:3 + hogs:2,nice=3",
    "critical:4,kind=mutex + forkstorm:2,run=20us..400us",
    "critical:5,kind=spin + sleepers:3,run=5us..70us,sleep=10us..200us",
    "critical:5,kind=rt_mutex + critical:3,kind=rt_spin",
    "slice:9,report=20ms,sleeper_run=1us..30us",
    "netperf-stream:2,pin=no + hogs:1",
    "periodic:3,period=3ms,load=20 + massive_intr:3,run=1ms,sleep=300us,start=1ms",
    "dbench:4",
];

const LENGTH_NS: u64 = 100_000_000;

fn run(policy: &Policy, workload: &str, cpus: u32, seed: u64, stepwise: bool) -> RunResult {
    let mut config = MachineConfig::new(cpus);
    config.seed = seed;
    config.hz = 250;
    config.cost = CostModel::preset("modern").expect("a preset");
    config.trace = TraceOptions { callbacks: true, ticks: true, calls: false };
    let workload = from_spec(workload).expect("a workload of the library");
    let mut machine = Machine::new(&config, policy, &[], &workload).expect("a machine");
    if stepwise {
        machine.set_stepwise();
    }
    machine.run_until(LENGTH_NS).expect("a run");
    machine.finish().expect("an end")
}

/// The number of equal events of two recordings, and the first different ones. The order of two CPUs that act at one
/// nanosecond is no difference; the recordings cannot be compared beyond it.
fn compared(a: &RunResult, b: &RunResult) -> (usize, Option<String>) {
    let (mut one, mut other) = (a.trace.events(), b.trace.events());
    for equal in 0.. {
        match (one.next(), other.next()) {
            (None, None) => return (equal, None),
            (Some(x), Some(y)) if x.time_ns == y.time_ns && x.cpu != y.cpu => return (equal, None),
            (x, y) if x != y => return (equal, Some(format!("{x:?}\n{y:?}"))),
            _ => {}
        }
    }
    unreachable!("a recording ends")
}

fn without_steps(result: &RunResult) -> Counters {
    let mut counters = result.counters.clone();
    counters.steps = 0;
    counters
}

#[test]
fn nothing_else_changes_under_any_scheduler() {
    for builtin in fairground_policies::all() {
        let policy = &compiled(builtin.name).policy;
        let (mut equal, mut all, mut steps, mut fewer) = (0, 0, 0, 0);
        for (seed, workload) in WORKLOADS.iter().enumerate() {
            for cpus in [1, 2, 3] {
                let [every, some] = [true, false]
                    .map(|stepwise| run(policy, workload, cpus, seed as u64, stepwise));
                let (same, different) = compared(&every, &some);
                let what = format!("{} {workload}, {cpus} CPUs", builtin.name);
                assert_eq!(different, None, "{what}, after {same} events");
                assert!(same == every.trace.len() || cpus > 1, "{what}: one CPU has no ties");
                if same == every.trace.len() {
                    assert_eq!(without_steps(&every), without_steps(&some), "{what}");
                }
                (equal, all) = (equal + same, all + every.trace.len());
                (steps, fewer) = (steps + every.counters.steps, fewer + some.counters.steps);
            }
        }
        println!("{}: {equal} of {all} events compared, {fewer} steps for {steps}", builtin.name);
        assert!(fewer < steps, "{}: {fewer} steps for {steps}", builtin.name);
        assert!(equal * 3 > all, "{}: {equal} of {all} events were compared", builtin.name);
    }
}
