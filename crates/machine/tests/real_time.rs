//! The real-time class above the scheduler: `kernel/sched/rt.c`, and what `kernel/sched/ext/ext.c` of 7.2 does when it
//! takes a CPU.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::support::{
    MS, cpu_time, cpus, free_machine, lines, policy, run, simulate, sleep, stays, task, workload,
};
use fairground_machine::{ExitKind, Machine, MachineConfig, Policy, RunResult};
use fairground_trace::{CallbackKind, EventKind, TaskId, TaskState, Trace};
use fairground_workload::{Op, SchedPolicy, TaskSpec, Workload};
use proptest::prelude::*;

fn fifo(name: &str, priority: u8, program: Vec<Op>) -> TaskSpec {
    TaskSpec { policy: SchedPolicy::Fifo(priority), ..task(name, 1, program) }
}

fn rr(name: &str, priority: u8, program: Vec<Op>) -> TaskSpec {
    TaskSpec { policy: SchedPolicy::Rr(priority), ..task(name, 1, program) }
}

fn hog(name: &str) -> TaskSpec {
    task(name, 1, vec![Op::RunForever])
}

fn on(cpu: u32, spec: TaskSpec) -> TaskSpec {
    TaskSpec { cpus: Some(cpus(cpu, cpu)), ..spec }
}

/// A task that sleeps a while and then computes.
fn late(after_ns: u64, length_ns: u64) -> Vec<Op> {
    vec![sleep(after_ns), run(length_ns)]
}

fn number(machine: &Machine, name: &str) -> u64 {
    machine.variable_field(name, 0, 8).expect("a variable of 8 bytes")
}

#[test]
fn a_real_time_task_takes_the_cpu_and_gives_it_back() {
    let w = workload(vec![hog("hog"), fifo("high", 50, late(MS / 2, MS / 4))]);
    let result = simulate(&free_machine(1), &policy("higher"), &[], &w, 2 * MS);
    insta::assert_snapshot!(lines(&result.trace, 2 * MS));
}

#[test]
fn the_scheduler_takes_back_what_waits_on_a_cpu_that_it_lost() {
    let w = workload(vec![hog("hog"), fifo("high", 50, late(MS / 2, MS / 4))]);
    let policy = policy("higher");
    for reenqueue in ["off", "on"] {
        let set = [fairground_machine::Setting::initial("reenqueue", reenqueue)];
        let mut machine = Machine::new(&free_machine(1), &policy, &set, &w).expect("it is made");
        machine.run_until(2 * MS).expect("it runs");
        let taken_back = 2 * u64::from(reenqueue == "on");
        assert_eq!((number(&machine, "released"), number(&machine, "acquired")), (2, 2));
        assert_eq!((number(&machine, "taker"), number(&machine, "taker_prio")), (1001, 49));
        let seen = ["taken_back", "came_back"].map(|name| number(&machine, name));
        assert_eq!(seen, [taken_back; 2]);
        machine.finish().expect("no rule is broken");
    }
}

#[test]
fn from_the_idle_task_nothing_is_taken_from_the_scheduler() {
    let w = workload(vec![fifo("high", 50, late(MS / 2, MS / 4))]);
    let policy = policy("higher");
    let mut machine = Machine::new(&free_machine(1), &policy, &[], &w).expect("it is made");
    machine.run_until(2 * MS).expect("it runs");
    assert_eq!((number(&machine, "released"), number(&machine, "acquired")), (0, 0));
}

#[test]
fn the_stopper_takes_a_cpu_from_the_scheduler() {
    let moves = vec![run(MS / 2), Op::SetAffinity(cpus(1, 1)), run(MS)];
    let w = workload(vec![TaskSpec { cpus: Some(cpus(0, 0)), ..task("moves", 1, moves) }]);
    let policy = policy("higher");
    let mut machine = Machine::new(&free_machine(2), &policy, &[], &w).expect("it is made");
    machine.run_until(2 * MS).expect("it runs");
    let seen = ["released", "stopped", "acquired"].map(|name| number(&machine, name));
    assert_eq!(seen, [0, 1, 1]);
}

#[test]
fn a_task_changes_its_class() {
    let to = |policy| Op::SetPolicy(policy);
    let program = vec![
        run(MS / 4),
        to(SchedPolicy::Fifo(10)),
        run(MS / 4),
        to(SchedPolicy::Rr(20)),
        Op::SetNice(5),
        run(MS / 4),
        to(SchedPolicy::Other),
        run(MS / 4),
    ];
    let w = workload(vec![task("changes", 1, program), hog("hog")]);
    let result = simulate(&free_machine(1), &policy("higher"), &[], &w, 10 * MS);
    insta::assert_snapshot!(lines(&result.trace, 10 * MS));
}

#[test]
fn higher_priorities_first_and_equals_in_the_order_of_their_arrival() {
    let w = workload(vec![
        fifo("a", 10, late(MS, 3 * MS)),
        fifo("b", 10, late(2 * MS, MS)),
        fifo("c", 10, late(2 * MS + 1, MS)),
        fifo("above", 20, late(3 * MS, MS)),
        fifo("below", 5, late(MS / 2, 2 * MS)),
        hog("hog"),
    ]);
    let result = simulate(&free_machine(1), &policy("minimal"), &[], &w, 20 * MS);
    let order: Vec<String> = ["a", "b", "c", "above", "below"]
        .iter()
        .map(|name| {
            let stays: Vec<String> = stays(&result.trace, name)
                .iter()
                .filter(|(from, to)| to > from)
                .map(|(from, to)| format!("{}–{}", from / 1000, to / 1000))
                .collect();
            format!("{name}: {}", stays.join(", "))
        })
        .collect();
    // A preempted task goes on before others of its priority.
    let expected = [
        "a: 1000–3000, 4000–5000",
        "b: 5000–6000",
        "c: 6000–7000",
        "above: 3000–4000",
        "below: 500–1000, 7000–8500",
    ];
    assert_eq!(order, expected);
}

#[test]
fn a_task_that_is_preempted_or_cannot_preempt_goes_to_a_cpu_that_runs_something_lower() {
    let w = workload(vec![
        on(0, hog("hog")),
        on(1, hog("hog")),
        fifo("low", 10, late(MS, 10 * MS)),
        on(0, fifo("high", 20, late(2 * MS, MS))),
        on(1, fifo("high", 20, late(5 * MS, MS))),
        fifo("lower", 5, late(7 * MS, MS)),
    ]);
    let result = simulate(&free_machine(2), &policy("minimal"), &[], &w, 20 * MS);
    let run = |name| {
        let all = stays(&result.trace, name);
        all.into_iter().filter(|(from, to)| to > from).collect::<Vec<_>>()
    };
    assert_eq!(run("low"), [(MS, 2 * MS), (2 * MS, 5 * MS), (5 * MS, 11 * MS)]);
    assert_eq!(run("lower"), [(7 * MS, 8 * MS)]);
}

#[test]
fn a_task_begins_and_wakes_up_only_where_it_may_run() {
    let program =
        vec![Op::SetAffinity(cpus(2, 3)), sleep(MS), Op::SetAffinity(cpus(0, 1)), run(MS)];
    let spec = fifo("t", 10, program);
    let w = workload(vec![TaskSpec { cpus: Some(cpus(1, 2)), ..spec }, hog("hog")]);
    let result = simulate(&free_machine(4), &policy("minimal"), &[], &w, 5 * MS);
    assert_eq!(result.exit.kind, ExitKind::Unregistered, "{}", result.exit);
}

#[test]
fn yield_lets_equals_run_and_no_lower_ones() {
    let polite = vec![sleep(MS), run(MS), Op::Yield, run(MS)];
    let w = workload(vec![
        fifo("a", 10, polite.clone()),
        fifo("b", 10, polite),
        fifo("below", 5, late(MS, MS)),
    ]);
    let result = simulate(&free_machine(1), &policy("minimal"), &[], &w, 10 * MS);
    let begins = |name| -> Vec<u64> {
        let all = stays(&result.trace, name);
        all.iter().filter(|(from, to)| to > from).map(|(from, _)| from / MS).collect()
    };
    assert_eq!([begins("a"), begins("b"), begins("below")], [vec![1, 3], vec![2, 4], vec![5]]);
}

#[test]
fn round_robin_shares_in_turns_of_100_ms() {
    let mut tasks: Vec<TaskSpec> =
        ["a", "b", "c"].iter().map(|name| rr(name, 10, vec![Op::RunForever])).collect();
    tasks.push(rr("low", 9, vec![Op::RunForever]));
    for hz in [100, 250, 1000] {
        let config = MachineConfig { hz, ..free_machine(1) };
        let w = workload(tasks.clone());
        let result = simulate(&config, &policy("minimal"), &[], &w, 900 * MS);
        let time = cpu_time(&result.trace, 0, 900 * MS);
        assert_eq!(time[1..], [300 * MS, 300 * MS, 300 * MS, 0], "HZ {hz}");
        let turns = stays(&result.trace, "b");
        assert!(turns.iter().all(|(from, to)| to - from == 100 * MS), "{turns:?}");
    }
}

/// By the second: what the scheduler's tasks get beside a real-time task that never stops.
#[test]
fn the_scheduler_keeps_a_twentieth_of_a_cpu_that_real_time_tasks_want() {
    let w = workload(vec![
        on(0, hog("hog")),
        on(1, hog("alone")),
        on(0, fifo("rt", 50, late(100 * MS, 100_000 * MS))),
    ]);
    let policy = policy("higher");
    let config = MachineConfig { hz: 1000, ..free_machine(2) };
    let result = simulate(&config, &policy, &[], &w, 6_000 * MS);
    assert_eq!(result.exit.kind, ExitKind::Unregistered, "{}", result.exit);
    let stays: Vec<(u64, u64)> = stays(&result.trace, "hog")
        .into_iter()
        .filter(|(from, to)| to - from > MS)
        .map(|(from, to)| (from / MS, to / MS))
        .collect();
    // It had its 50 ms in the first 100; the last moment is 950 ms behind these.
    let expected = [(0, 100), (1050, 1100), (2050, 2100), (3050, 3100), (4050, 4100), (5050, 5100)];
    assert_eq!(stays, expected);
}

#[test]
fn a_lone_task_of_round_robin_goes_on() {
    let w = workload(vec![rr("a", 10, vec![Op::RunForever]), rr("low", 9, vec![Op::RunForever])]);
    let result = simulate(&free_machine(1), &policy("minimal"), &[], &w, 500 * MS);
    assert_eq!(stays(&result.trace, "a").len(), 0, "it never leaves the CPU");
}

/// A machine with every rule of the class checked after each instant.
struct Watch<'a> {
    trace: &'a Trace,
    policies: BTreeMap<TaskId, u8>,
    running: Vec<TaskId>,
    waiting: Vec<TaskId>,
}

impl Watch<'_> {
    fn priority(&self, task: TaskId) -> u8 {
        self.policies.get(&task).copied().unwrap_or(0)
    }

    fn allows(&self, task: TaskId, cpu: u32) -> bool {
        let ranges = &self.trace.tasks()[task.index()].allowed_cpus;
        let ranges = ranges.as_ref();
        ranges.is_none_or(|ranges| ranges.iter().any(|(from, to)| (*from..=*to).contains(&cpu)))
    }

    /// No real-time task waits while a CPU that it may use runs something lower.
    fn check(&self, now_ns: u64) {
        for waiting in self.waiting.iter().filter(|task| self.priority(**task) > 0) {
            for (cpu, running) in (0..).zip(&self.running) {
                let lower = self.priority(*running) < self.priority(*waiting);
                assert!(
                    !(lower && self.allows(*waiting, cpu)),
                    "at {now_ns}: {waiting:?} waits, and CPU {cpu} runs {running:?}"
                );
            }
        }
    }

    fn event(&mut self, cpu: usize, kind: EventKind) {
        match kind {
            EventKind::Switch { prev, prev_state, next } => {
                self.running[cpu] = next;
                self.waiting.retain(|task| *task != next);
                if prev_state == TaskState::Runnable && !prev.is_idle() {
                    self.waiting.push(prev);
                }
            }
            EventKind::Wakeup { task, .. } | EventKind::WakeupNew { task, .. }
                if !self.running.contains(&task) && !self.waiting.contains(&task) =>
            {
                self.waiting.push(task);
            }
            EventKind::RtPrio { task, prio } => {
                self.policies.insert(task, prio.sched_priority().unwrap_or(0));
            }
            EventKind::Nice { task, .. } => {
                self.policies.remove(&task);
            }
            _ => {}
        }
    }
}

fn watch(result: &RunResult) {
    let trace = &result.trace;
    let known = |(id, task): (u32, &fairground_trace::TaskInfo)| {
        Some((TaskId(id), task.rt_prio?.sched_priority()?))
    };
    let mut watch = Watch {
        trace,
        policies: (0..).zip(trace.tasks()).filter_map(known).collect(),
        running: vec![TaskId::IDLE; trace.cpus as usize],
        waiting: Vec::new(),
    };
    let mut now_ns = 0;
    let mut is_lost = vec![false; trace.cpus as usize];
    for event in trace.events() {
        if event.time_ns > now_ns {
            watch.check(now_ns);
            now_ns = event.time_ns;
        }
        watch.event(event.cpu as usize, event.kind);
        let lost = &mut is_lost[event.cpu as usize];
        match event.kind {
            EventKind::Callback { kind: CallbackKind::CpuRelease, .. } => {
                assert!(!std::mem::replace(lost, true), "at {now_ns}: lost twice");
            }
            EventKind::Callback { kind: CallbackKind::CpuAcquire, .. } => {
                assert!(std::mem::take(lost), "at {now_ns}: got back, and was not lost");
            }
            EventKind::Callback { kind, task } if watch.priority(task) > 0 => {
                let is_of_all = matches!(kind, CallbackKind::InitTask | CallbackKind::ExitTask);
                let changes = matches!(
                    kind,
                    CallbackKind::Stopping
                        | CallbackKind::Quiescent
                        | CallbackKind::Enable
                        | CallbackKind::Disable
                        | CallbackKind::SetWeight
                        | CallbackKind::Runnable
                        | CallbackKind::Running
                );
                assert!(is_of_all || changes, "at {now_ns}: {kind:?} of a real-time task");
            }
            _ => {}
        }
    }
}

fn any_policy() -> impl Strategy<Value = SchedPolicy> {
    prop_oneof![
        1 => Just(SchedPolicy::Other),
        2 => (1_u8..6).prop_map(SchedPolicy::Fifo),
        1 => (1_u8..6).prop_map(SchedPolicy::Rr),
    ]
}

fn any_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (1_u64..500_000).prop_map(run),
        3 => (1_u64..2 * MS).prop_map(sleep),
        1 => Just(Op::Yield),
        1 => any_policy().prop_map(Op::SetPolicy),
        1 => (-5_i8..5).prop_map(Op::SetNice),
    ]
}

fn any_group(cpu_count: u32) -> impl Strategy<Value = TaskSpec> {
    let body = prop::collection::vec(any_op(), 1..6);
    let pinned = prop::option::weighted(0.3, 0..cpu_count);
    (body, any_policy(), pinned, 1_u32..3).prop_map(|(mut body, policy, pinned, count)| {
        body.extend([run(30_000), sleep(70_000)]);
        let program = vec![Op::Loop(None, body)];
        TaskSpec { policy, cpus: pinned.map(|cpu| cpus(cpu, cpu)), ..task("t", count, program) }
    })
}

fn any_case() -> impl Strategy<Value = (&'static str, Workload)> {
    prop_oneof![Just("1"), Just("2"), Just("4"), Just("1x2x2"), Just("2x2x1")].prop_flat_map(
        |shape| {
            let topology: fairground_machine::Topology = shape.parse().expect("well-formed");
            let groups = prop::collection::vec(any_group(topology.cpus()), 1..7);
            let all = groups.prop_map(|mut groups| {
                groups.push(task("hog", 2, vec![Op::RunForever]));
                workload(groups)
            });
            (Just(shape), all)
        },
    )
}

/// Compiled once.
fn higher() -> &'static Policy {
    static HIGHER: OnceLock<Policy> = OnceLock::new();
    HIGHER.get_or_init(|| policy("higher"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_real_time_task_waits_while_something_lower_runs((shape, workload) in any_case()) {
        let mut config = free_machine(1);
        config.topology = shape.parse().expect("well-formed");
        let policy = higher();
        let result = simulate(&config, policy, &[("reenqueue", "on")], &workload, 40 * MS);
        prop_assert_eq!(result.exit.kind, ExitKind::Unregistered, "{}", result.exit);
        watch(&result);
        let again = simulate(&config, policy, &[("reenqueue", "on")], &workload, 40 * MS);
        prop_assert_eq!(lines(&result.trace, u64::MAX), lines(&again.trace, u64::MAX));
    }
}
