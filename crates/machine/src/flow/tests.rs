//! The core alone: a scheduler without any callback.

mod ends;
mod faults;

use fairground_bpf::{Engine, Image, Linked};
use fairground_trace::{EventKind, Trace};
use fairground_workload::{CpuList, Duration, Op, Program, Role, TaskSpec, Workload};

use crate::policy::{OpsTable, environment};
use crate::{CostModel, ExitKind, KernelAbi, Machine, MachineConfig, Policy, RunResult};

const MS: u64 = 1_000_000;

fn core_only() -> Policy {
    let image = Image::from_linked(
        "core",
        Linked::default(),
        &environment(KernelAbi::NEWEST),
        Engine::Interpreter,
    );
    Policy {
        abi: KernelAbi::NEWEST,
        name: "core".to_owned(),
        image: image.expect("an empty program links"),
        ops: OpsTable::empty(),
        globals: Vec::new(),
        types: Default::default(),
        constants: Vec::new(),
        reads_sched_info: false,
        setup: crate::setup::Prepared::default(),
        tracing: Default::default(),
        hz: None,
        topology: Vec::new(),
    }
}

fn task(name: &str, count: u32, program: Program) -> TaskSpec {
    let on_signal = vec![Op::Mark("signalled".to_owned())];
    TaskSpec { on_signal, ..TaskSpec::new(name, count, Some(0), program) }
}

fn workload(tasks: Vec<TaskSpec>) -> Workload {
    Workload { name: "test".to_owned(), tasks, ..Workload::default() }
}

fn run(ns: u64) -> Op {
    Op::Run(Duration::Fixed(ns))
}

fn sleep(ns: u64) -> Op {
    Op::Sleep(Duration::Fixed(ns))
}

fn simulate(cpus: u32, cost: &str, tasks: Vec<TaskSpec>, until_ns: u64) -> RunResult {
    let mut config = MachineConfig::new(cpus);
    config.cost = CostModel::preset(cost).expect("the preset exists");
    config.check = true;
    let mut machine = Machine::new(&config, &core_only(), &[], &workload(tasks)).unwrap();
    machine.run_until(until_ns).unwrap();
    machine.finish().unwrap()
}

fn switches(trace: &Trace) -> Vec<(u64, u32, u32, u32)> {
    trace
        .events()
        .filter_map(|e| match e.kind {
            EventKind::Switch { prev, next, .. } => Some((e.time_ns, e.cpu, prev.0, next.0)),
            _ => None,
        })
        .collect()
}

#[test]
fn slices_of_20_ms_in_turns_from_the_global_queue() {
    let result = simulate(1, "zero", vec![task("hog", 3, vec![Op::RunForever])], 100 * MS);
    assert_eq!(
        switches(&result.trace),
        [
            (0, 0, 0, 1),
            (20 * MS, 0, 1, 2),
            (40 * MS, 0, 2, 3),
            (60 * MS, 0, 3, 1),
            (80 * MS, 0, 1, 2),
            (100 * MS, 0, 2, 3)
        ]
    );
    assert_eq!(result.exit.kind, ExitKind::Unregistered);
}

#[test]
fn sleepers_find_idle_cpus() {
    let body = vec![Op::Loop(None, vec![run(MS), sleep(MS)])];
    let result = simulate(4, "modern", vec![task("nap", 4, body)], 200 * MS);
    assert!(result.counters.wakeups > 300, "{:?}", result.counters);
    assert_eq!(result.counters.migrations, 0, "each finds the CPU where it ran idle");
}

#[test]
fn everything_at_once_breaks_no_rule() {
    let mut child = task("child", 3, vec![run(100_000)]);
    child.start_ns = None;
    let mut pinned = task("pinned", 2, vec![Op::Loop(None, vec![run(200_000), sleep(300_000)])]);
    pinned.cpus = Some(CpuList(vec![(1, 1)]));
    for (cpus, cost) in [(1, "zero"), (2, "zero"), (2, "modern"), (5, "linux-2.6")] {
        let mut tasks = vec![
            task("hog", 2, vec![Op::RunForever]),
            child.clone(),
            task("parent", 1, vec![Op::Loop(None, vec![sleep(MS), Op::Fork(1), Op::WaitChildren])]),
            task("boss", 1, vec![Op::Loop(None, vec![sleep(2 * MS), Op::Signal(Role::All(0))])]),
            task("polite", 2, vec![Op::Loop(None, vec![run(10_000), Op::Yield])]),
        ];
        let there = |low, high| Op::SetAffinity(CpuList(vec![(low, high)]));
        let steps = vec![
            run(MS / 2),
            there(0, 0),
            run(MS / 2),
            Op::SetNice(5),
            there(0, 9),
            Op::SetNice(0),
        ];
        tasks.push(task("mover", 1, vec![Op::Loop(None, steps)]));
        if cpus > 1 {
            tasks.push(pinned.clone());
        }
        let result = simulate(cpus, cost, tasks, 300 * MS);
        assert_eq!(result.exit.kind, ExitKind::Unregistered, "{cost}: {}", result.exit);
        let marks = result.trace.events().filter(|e| matches!(e.kind, EventKind::Mark { .. }));
        assert!(marks.count() >= 4, "{cpus} {cost}: the hogs answer signals");
    }
}
