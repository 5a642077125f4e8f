//! CPUs that come and go.

use std::collections::BTreeMap;

use crate::support::{
    MS, cpu_time, cpus, free_machine, lines, mixed, object, policy, run, sleep, task, workload,
};
use fairground_bpf::Object;
use fairground_machine::{
    CostModel, Engine, ExitKind, Invariant, Machine, MachineConfig, MachineError, Policy,
    RunResult, Setting,
};
use fairground_trace::{EventKind, Trace};
use fairground_workload::{Op, SchedPolicy, Workload};

/// `cpu.N.online` at times in ms.
fn changes(list: &[(u64, u32, &str)]) -> Vec<Setting> {
    let change = |(ms, cpu, value): &(u64, u32, &str)| {
        Setting::at(ms * MS, &format!("cpu.{cpu}.online"), value)
    };
    list.iter().map(change).collect()
}

fn result(
    config: &MachineConfig,
    policy: &Policy,
    settings: &[Setting],
    workload: &Workload,
    until_ns: u64,
) -> RunResult {
    let machine = Machine::new(config, policy, settings, workload);
    let mut machine = machine.unwrap_or_else(|e| panic!("{e}"));
    machine.run_until(until_ns).unwrap_or_else(|e| panic!("{e}"));
    machine.finish().unwrap_or_else(|e| panic!("{e}"))
}

/// When each CPU was offline, ns, by what the trace says of the changes.
fn offline(trace: &Trace, end_ns: u64) -> BTreeMap<u32, Vec<(u64, u64)>> {
    let mut spans: BTreeMap<u32, Vec<(u64, u64)>> = BTreeMap::new();
    for event in trace.events() {
        let EventKind::Param { label } = event.kind else { continue };
        let Some((cpu, value)) =
            trace.label(label).strip_prefix("cpu.").and_then(|rest| rest.split_once(".online="))
        else {
            continue;
        };
        let spans = spans.entry(cpu.parse().expect("a number")).or_default();
        match value {
            "off" => spans.push((event.time_ns, end_ns)),
            _ => spans.last_mut().expect("it was offline").1 = event.time_ns,
        }
    }
    spans
}

/// Nothing runs on a CPU that is offline.
fn check_offline(trace: &Trace, end_ns: u64) -> u64 {
    let offline = offline(trace, end_ns);
    for event in trace.events() {
        if let EventKind::Switch { next, .. } = event.kind
            && !next.is_idle()
            && let Some(spans) = offline.get(&event.cpu)
        {
            let is_within = |(from, to): &(u64, u64)| *from < event.time_ns && event.time_ns < *to;
            assert!(!spans.iter().any(is_within), "CPU {} at {}", event.cpu, event.time_ns);
        }
    }
    offline.values().flatten().map(|(from, to)| to - from).sum()
}

/// What happens to the tasks of a CPU that goes, and when it comes back: one that runs, one that waits, one whose only
/// CPU it is and one that sleeps there.
#[test]
fn the_tasks_of_a_cpu_that_goes_move() {
    let mut pinned = task("pinned", 1, vec![Op::RunForever]);
    pinned.cpus = Some(cpus(1, 1));
    let mut asleep = task("asleep", 1, vec![Op::Loop(None, vec![sleep(4 * MS), run(MS / 10)])]);
    asleep.cpus = Some(cpus(1, 1));
    let tasks = workload(vec![pinned, asleep, task("hog", 2, vec![Op::RunForever])]);
    let settings = changes(&[(5, 1, "off"), (14, 1, "on")]);
    let result = result(&free_machine(2), &policy("hotplug"), &settings, &tasks, 20 * MS);
    assert_eq!(result.exit.kind, ExitKind::Unregistered, "{}", result.exit);
    insta::assert_snapshot!(lines(&result.trace, 18 * MS));
}

#[test]
fn time_adds_up_and_nothing_runs_on_a_cpu_that_is_offline() {
    let settings = changes(&[
        (10, 3, "off"),
        (20, 1, "off"),
        (20, 2, "off"),
        (30, 1, "on"),
        (40, 3, "on"),
        (41, 3, "off"),
        (41, 3, "on"),
        (90, 2, "on"),
        (120, 1, "off"),
    ]);
    for cost in ["zero", "modern", "linux-2.6"] {
        for name in ["hotplug", "probe"] {
            let mut config = free_machine(4);
            config.cost = CostModel::preset(cost).expect("the preset exists");
            let result = result(&config, &policy(name), &settings, &mixed(), 200 * MS);
            if name == "probe" {
                assert_eq!(
                    result.exit.kind,
                    ExitKind::UnregisteredByKernel,
                    "{cost}: {}",
                    result.exit
                );
                continue;
            }
            assert_eq!(result.exit.kind, ExitKind::Unregistered, "{cost}: {}", result.exit);
            let away_ns = check_offline(&result.trace, 200 * MS);
            assert!(away_ns.abs_diff(190 * MS) < MS, "{cost}: {away_ns}");
            let time = cpu_time(&result.trace, 0, 200 * MS);
            assert_eq!(time.iter().sum::<u64>(), 4 * 200 * MS, "{cost}");
            assert!(
                time[0] >= away_ns,
                "{cost}: the idle task has the time of the CPUs that are offline"
            );
        }
    }
}

/// A scheduler without the callbacks has to leave, with the code by which its loader attaches it again.
#[test]
fn without_callbacks_the_scheduler_leaves() {
    for (settings, word) in [
        (changes(&[(7, 1, "off")]), "offline"),
        (
            [vec![Setting::initial("cpu.1.online", "off")], changes(&[(7, 1, "on")])].concat(),
            "online",
        ),
    ] {
        let tasks = workload(vec![task("hog", 4, vec![Op::RunForever])]);
        let result = result(&free_machine(2), &policy("minimal"), &settings, &tasks, 20 * MS);
        assert_eq!(result.exit.kind, ExitKind::UnregisteredByKernel);
        assert_eq!(result.exit.code, 1 << 48 | 1 << 32);
        assert_eq!(result.exit.message, format!("cpu 1 going {word}, exiting scheduler"));
        assert_eq!(result.exit.time_ns / MS, 7);
    }
}

#[test]
fn a_change_to_what_is_already_so_is_none() {
    let tasks = workload(vec![task("hog", 4, vec![Op::RunForever])]);
    let settings = changes(&[(3, 1, "on"), (4, 0, "on")]);
    let result = result(&free_machine(2), &policy("minimal"), &settings, &tasks, 20 * MS);
    assert_eq!(result.exit.kind, ExitKind::Unregistered, "{}", result.exit);
}

#[test]
fn a_loader_that_opened_the_object_before_a_change_attaches_in_vain() {
    let minimal = object("minimal");
    let with_seq = |seq: u64| -> Object {
        let mut minimal = minimal.clone();
        minimal.set_ops_member("hotplug_seq", seq).expect("a member");
        minimal
    };
    let tasks = workload(vec![task("hog", 4, vec![Op::RunForever])]);
    let off = [Setting::initial("cpu.1.online", "off")];
    for (seq, settings, stays) in
        [(2, &off[..0], true), (2, &off[..], false), (3, &off[..], true), (0, &off[..], true)]
    {
        let policy = Policy::load(&with_seq(seq), Engine::Jit).expect("it loads");
        let result = result(&free_machine(2), &policy, settings, &tasks, 20 * MS);
        assert_eq!(result.exit.kind == ExitKind::Unregistered, stays, "{seq}: {}", result.exit);
        if !stays {
            assert_eq!(result.exit.code, 1 << 48 | 1 << 32);
            assert_eq!(result.exit.message, "expected hotplug seq 2 did not match actual 3");
        }
    }
}

/// A CPU that a scheduler names and that is offline is no error: another one is taken.
#[test]
fn a_chosen_cpu_that_is_offline_is_replaced() {
    let tasks = workload(vec![task("t", 4, vec![Op::Loop(None, vec![run(MS), sleep(MS)])])]);
    let mut settings = vec![Setting::initial("to_last", "on")];
    settings.extend(changes(&[(10, 3, "off"), (30, 3, "on")]));
    let result = result(&free_machine(4), &policy("hotplug"), &settings, &tasks, 50 * MS);
    assert_eq!(result.exit.kind, ExitKind::Unregistered, "{}", result.exit);
    assert!(result.counters.select_cpu_fallbacks > 10);
    check_offline(&result.trace, 50 * MS);
}

/// Real-time tasks go, too, and the server of the CPU stops.
#[test]
fn real_time_tasks_move() {
    let mut fifo = task("fifo", 2, vec![Op::Loop(None, vec![run(2 * MS), sleep(MS)])]);
    fifo.policy = SchedPolicy::Fifo(10);
    let tasks = workload(vec![fifo, task("hog", 3, vec![Op::RunForever])]);
    let settings = changes(&[(7, 1, "off"), (9, 1, "on"), (20, 1, "off")]);
    let result = result(&free_machine(2), &policy("hotplug"), &settings, &tasks, 3_000 * MS);
    assert_eq!(result.exit.kind, ExitKind::Unregistered, "{}", result.exit);
    check_offline(&result.trace, 3_000 * MS);
    let time = cpu_time(&result.trace, 0, 3_000 * MS);
    assert!(time[1..].iter().all(|ns| *ns > 0), "{time:?}");
}

/// The checker sees a CPU that lies idle for too long, and not one that is offline.
#[test]
fn a_cpu_that_is_offline_conserves_no_work() {
    let tasks = workload(vec![task("hog", 4, vec![Op::RunForever])]);
    let run = |settings: &[Setting]| {
        let config = MachineConfig { idle_bound_ns: Some(5 * MS), ..free_machine(2) };
        let mut machine =
            Machine::new(&config, &policy("hotplug"), settings, &tasks).expect("a machine");
        machine.run_until(100 * MS)
    };
    run(&changes(&[(10, 1, "off")])).expect("it is not there");
    // Its queue is empty when it is back, and nothing pulls.
    let error = run(&changes(&[(10, 1, "off"), (50, 1, "on")])).expect_err("it is idle");
    let MachineError::Invariant(violation) = error else { panic!("{error}") };
    assert_eq!(violation.invariant, Invariant::WorkConservation);
    assert!(violation.time_ns > 55 * MS, "{violation}");
}

#[test]
fn what_cannot_be_is_refused() {
    let tasks = workload(vec![task("hog", 1, vec![Op::RunForever])]);
    let error = |name: &str, value: &str| {
        let settings = [Setting::at(MS, name, value)];
        let machine = Machine::new(&free_machine(2), &policy("minimal"), &settings, &tasks);
        machine.expect_err("it is refused").to_string()
    };
    assert!(error("cpu.0.online", "off").contains("CPU 0 cannot go offline, as on x86"));
    assert!(error("cpu.2.online", "off").contains("has no CPU `2`; it has 2, from 0 to 1"));
    assert!(error("cpu.x.online", "off").contains("has no CPU `x`"));
    assert!(error("cpu.1.online", "away").contains("`on` or `off`"));
    assert!(error("cpu.1.onlin", "off").contains("`cpu.N.online=off`"));
}
