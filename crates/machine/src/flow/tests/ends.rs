//! The ends of kernel work that are no events: everything happens as if they were.

use super::*;
use crate::prng::Prng;

/// A run in which each end of kernel work is an event, or those behind which a task just computes are not.
fn record(cpus: u32, seed: u64, tasks: &[TaskSpec], stepwise: bool) -> RunResult {
    let mut config = MachineConfig::new(cpus);
    config.cost = CostModel::preset("modern").expect("the preset exists");
    config.check = true;
    config.trace.ticks = true;
    // Several CPUs have no tick: their ticks would end at the same nanosecond, and which of two such ends comes first
    // depends on what was armed first.
    config.hz = if cpus == 1 { 1000 } else { 10 };
    config.seed = seed;
    let mut machine = Machine::new(&config, &core_only(), &[], &workload(tasks.to_vec())).unwrap();
    if stepwise {
        machine.set_stepwise();
    }
    machine.run_until(40 * MS).unwrap();
    machine.finish().unwrap()
}

/// Lengths that are drawn to the nanosecond: two CPUs hardly ever do something at the same one.
fn about(ns: u64) -> Duration {
    Duration::Uniform { low: ns / 2, high: ns * 2 }
}

/// Some of what can come between a switch or an interrupt and the computation behind it.
fn tasks(seed: u64) -> Vec<TaskSpec> {
    let mut prng = Prng::new(seed);
    let length =
        |prng: &mut Prng| about([1_000, 10_000, 100_000, 1_000_000][prng.between(0, 3) as usize]);
    let mut tasks = vec![task("hog", 1, vec![Op::RunForever])];
    for index in 0..prng.between(2, 6) {
        let (run, sleep) = (Op::Run(length(&mut prng)), Op::Sleep(length(&mut prng)));
        let body = match prng.between(0, 6) {
            0 => vec![Op::Signal(Role::All(0)), sleep],
            1 => vec![sleep, run, Op::Yield],
            2 => vec![run, Op::SetNice(prng.between(0, 19) as i8), sleep],
            3 => vec![Op::Loop(Some(3), vec![run, sleep])],
            4 => vec![Op::Signal(Role::All(1)), run, sleep],
            _ => vec![run, sleep],
        };
        tasks.push(task(&format!("task{index}"), 2, vec![Op::Loop(None, body)]));
    }
    tasks
}

/// The first events in which two recordings differ. Which of two CPUs that do something at one nanosecond comes first
/// depends on what was armed first, and is no difference; from there on the two cannot be compared.
fn difference(a: &Trace, b: &Trace) -> Option<String> {
    let (mut a, mut b) = (a.events(), b.events());
    loop {
        match (a.next(), b.next()) {
            (None, None) => return None,
            (Some(one), Some(other)) if one.time_ns == other.time_ns && one.cpu != other.cpu => {
                return None;
            }
            (one, other) if one != other => return Some(format!("{one:?}\n{other:?}")),
            _ => {}
        }
    }
}

/// The seeds are fixed: one of thousands has a signal sent at the nanosecond at which its receiver leaves the kernel.
#[test]
fn nothing_else_changes() {
    for seed in 0..600 {
        let (cpus, tasks) = (1 + seed as u32 % 3, tasks(seed));
        let [all, some] = [true, false].map(|stepwise| record(cpus, seed, &tasks, stepwise));
        assert_eq!(difference(&all.trace, &some.trace), None, "seed {seed}, {cpus} CPUs");
        assert!(some.counters.steps <= all.counters.steps);
    }
}

/// What it is for: a sleeper beside a loop takes less than three quarters of the steps.
#[test]
fn a_sleepers_round_has_fewer_steps() {
    let round = vec![Op::Loop(None, vec![run(100_000), sleep(900_000)])];
    let tasks = [task("hog", 1, vec![Op::RunForever]), task("sleeper", 1, round)];
    let [all, some] = [true, false].map(|stepwise| record(1, 0, &tasks, stepwise));
    assert_eq!(difference(&all.trace, &some.trace), None);
    assert!(
        some.counters.steps * 4 < all.counters.steps * 3,
        "{} of {}",
        some.counters.steps,
        all.counters.steps
    );
}
