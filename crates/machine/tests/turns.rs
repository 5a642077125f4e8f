//! CPUs that share the thread of an emulator: one at a time is at work.

use crate::support::{
    MS, cpu_time, cpus, free_machine, lines, policy, run, simulate, sleep, task, workload,
};
use fairground_machine::MachineConfig;
use fairground_trace::{EventKind, Trace};
use fairground_workload::{Op, Queue, TaskSpec, Workload};
use proptest::prelude::*;

const US: u64 = 1_000;

/// CPUs where nothing costs anything but these, on one thread.
fn emulated(count: u32, costs: &[(&str, u64)]) -> MachineConfig {
    let mut config = free_machine(count);
    for (name, value) in [("emulator_threads", 1)].iter().chain(costs) {
        config.cost.set(name, *value).expect("a cost of that name");
    }
    config
}

fn pinned(name: &str, cpu: u32, program: Vec<Op>) -> TaskSpec {
    let mut spec = task(name, 1, program);
    spec.cpus = Some(cpus(cpu, cpu));
    spec
}

/// When tasks leave their CPUs for good or for a sleep, with their names, us.
fn left(trace: &Trace) -> Vec<(String, u64)> {
    let events = trace.events().filter_map(|event| match event.kind {
        EventKind::Switch { prev, .. } if !prev.is_idle() => {
            Some((trace.tasks()[prev.index()].comm.clone(), event.time_ns / US))
        }
        _ => None,
    });
    events.collect()
}

fn ends(config: &MachineConfig, lengths_ns: [u64; 2]) -> Vec<(String, u64)> {
    let tasks = workload(vec![
        pinned("a", 0, vec![run(lengths_ns[0])]),
        pinned("b", 1, vec![run(lengths_ns[1])]),
    ]);
    left(&simulate(config, &policy("probe"), &[], &tasks, 100 * MS).trace)
}

fn named(ends: &[(&str, u64)]) -> Vec<(String, u64)> {
    ends.iter().map(|(name, us)| ((*name).to_owned(), *us)).collect()
}

#[test]
fn short_computations_follow_each_other() {
    assert_eq!(ends(&emulated(2, &[]), [100 * US, 150 * US]), named(&[("a", 100), ("b", 250)]));
    assert_eq!(ends(&free_machine(2), [100 * US, 150 * US]), named(&[("a", 100), ("b", 150)]));
}

/// The timer of a CPU takes the turn from another one, for as long as the work lasts that it begins.
#[test]
fn a_timer_interrupt_takes_the_turn() {
    let tasks = workload(vec![
        pinned("a", 0, vec![sleep(10 * US), run(100 * US)]),
        pinned("b", 1, vec![sleep(50 * US), run(30 * US)]),
    ]);
    let trace = simulate(&emulated(2, &[]), &policy("probe"), &[], &tasks, 100 * MS).trace;
    assert_eq!(left(&trace), named(&[("a", 0), ("b", 0), ("b", 80), ("a", 140)]));
}

/// Another CPU's interrupt does not: the waker goes on until it sleeps. What activates the woken task is work of the
/// CPU that is idle.
#[test]
fn a_waker_goes_on() {
    let costs = [("wakeup_ns", 20 * US), ("wake_list_ns", 15 * US)];
    let mut tasks = workload(vec![
        pinned("a", 0, vec![sleep(10 * US), Op::Send(0), run(40 * US)]),
        pinned("b", 1, vec![Op::Receive(0, 1), run(30 * US)]),
    ]);
    tasks.queues = vec![Queue { name: "q".to_owned(), capacity: None, initial: 0, sync: false }];
    let trace = simulate(&emulated(2, &costs), &policy("probe"), &[], &tasks, 100 * MS).trace;
    let ends = left(&trace);
    let last = |name: &str| ends.iter().rev().find(|(other, _)| other == name).expect("it ran").1;
    // Woken at 10, sending from 30 to 35 and computing until 75; then the other CPU activates for 15.
    assert_eq!((last("a"), last("b")), (75, 120), "{ends:?}");
}

/// The clock is what a long computation watches: it needs its time, beside whatever, but for a pause and the
/// first look of another one.
#[test]
fn long_computations_end_at_their_time() {
    let ends = ends(&emulated(2, &[]), [9 * MS, 5 * MS]);
    let names: Vec<&str> = ends.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["b", "a"]);
    assert!(ends[0].1 - 5_000 <= 18 && ends[1].1 - 9_000 <= 18, "{ends:?}");
}

/// In its last 200 us the first takes turns with the 100 us of the other, each for its part of the time until the tick:
/// together they need what is left of both.
#[test]
fn the_last_part_of_a_long_computation_takes_turns() {
    let tasks = workload(vec![
        pinned("a", 0, vec![run(MS)]),
        pinned("b", 1, vec![sleep(850 * US), run(100 * US)]),
    ]);
    let trace = simulate(&emulated(2, &[]), &policy("probe"), &[], &tasks, 100 * MS).trace;
    let ends = left(&trace);
    assert_eq!(ends.iter().map(|(_, us)| *us).max(), Some(1_100), "{ends:?}");
    assert!(ends.iter().all(|(_, us)| *us <= 16 || *us > 950), "{ends:?}");
}

/// Beside an idle CPU nothing changes, whatever the work costs.
#[test]
fn a_single_busy_cpu_is_alone() {
    let costs = [
        ("context_switch_ns", 2 * US),
        ("wakeup_ns", 3 * US),
        ("timer_irq_ns", US),
        ("tick_ns", US),
    ];
    let program =
        vec![Op::Loop(None, vec![run(70 * US), sleep(130 * US), run(400 * US), sleep(30 * US)])];
    let tasks = workload(vec![pinned("a", 0, program.clone()), pinned("b", 0, program)]);
    let alone = |threads| {
        let mut config = emulated(2, &costs);
        config.cost.set("emulator_threads", threads).expect("the cost exists");
        lines(&simulate(&config, &policy("probe"), &[], &tasks, 50 * MS).trace, 50 * MS)
    };
    assert_eq!(alone(1), alone(0));
}

/// A sleeper on each of some CPUs, with a number of bursts.
fn sleepers(specs: &[(u64, u64)]) -> Workload {
    let tasks = specs.iter().enumerate().map(|(cpu, (run_us, sleep_us))| {
        let burst = vec![run(run_us * US), sleep(sleep_us * US)];
        pinned(&format!("s{cpu}"), cpu as u32, vec![Op::Loop(Some(20), burst)])
    });
    workload(tasks.collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    /// Work is conserved: each task gets at least what it computes, all end, and no more time is charged than each
    /// short computation waiting for one of each other CPU.
    #[test]
    fn work_is_conserved(specs in prop::collection::vec((1u64..200, 1u64..400), 2..5), threads in 1u64..4) {
        let count = specs.len() as u32;
        let mut config = emulated(count, &[]);
        config.cost.set("emulator_threads", threads).expect("the cost exists");
        let (end_ns, tasks) = (500 * MS, sleepers(&specs));
        let trace = simulate(&config, &policy("probe"), &[], &tasks, end_ns).trace;
        let all_us: u64 = specs.iter().map(|(run_us, _)| run_us).sum();
        let time = cpu_time(&trace, 0, end_ns);
        for (cpu, (run_us, _)) in specs.iter().enumerate() {
            let name = format!("s{cpu}");
            let task = trace.tasks().iter().position(|task| task.comm == name).expect("it ran");
            prop_assert!(time[task] >= 20 * run_us * US, "{} of {}", time[task], 20 * run_us * US);
            prop_assert!(time[task] <= 21 * all_us * US, "{} of {}", time[task], 21 * all_us * US);
            if threads >= u64::from(count) {
                prop_assert_eq!(time[task], 20 * run_us * US);
            }
        }
        let ended = trace.events().filter(|event| matches!(event.kind, EventKind::Exit { .. })).count();
        prop_assert_eq!(ended, specs.len());
        prop_assert_eq!(lines(&trace, end_ns), lines(&simulate(&config, &policy("probe"), &[], &tasks, end_ns).trace, end_ns));
    }
}
