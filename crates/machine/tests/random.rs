//! Random workloads on random machines under every scheduler: the simulator's own rules hold (they are checked after
//! every step), time is conserved, pinned tasks stay where they may run, and no scheduler is ejected.

use std::sync::OnceLock;

use crate::support::{MS, simulate};
use fairground_bpf::Object;
use fairground_machine::{CostModel, Engine, ExitKind, MachineConfig, Policy, Topology};
use fairground_trace::EventKind;
use fairground_workload::{
    Carrier, CpuList, Duration, Op, Pipe, Program, Queue, Role, SchedPolicy, TaskSpec, Timer,
    Workload,
};
use proptest::prelude::*;

/// Every scheduler of the project, and the fixture with every callback.
fn policies() -> &'static [Policy] {
    static POLICIES: OnceLock<Vec<Policy>> = OnceLock::new();
    POLICIES.get_or_init(|| {
        let load =
            |object: &Object| Policy::load(object, Engine::Jit).unwrap_or_else(|e| panic!("{e}"));
        let shipped = fairground_policies::all().iter();
        let mut all: Vec<Policy> = shipped
            .map(|p| load(&Object::parse(p.name, p.object).unwrap_or_else(|e| panic!("{e}"))))
            .collect();
        all.push(crate::support::policy("probe"));
        all.push(crate::support::policy("minimal"));
        all
    })
}

fn length(max_ns: u64) -> impl Strategy<Value = Duration> {
    (1..max_ns, 0..max_ns).prop_map(|(low, more)| Duration::Uniform { low, high: low + more })
}

/// One operation of a loop; each loop also computes, so that time passes.
fn op(cpus: u32) -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => length(300_000).prop_map(Op::Run),
        3 => length(2 * MS).prop_map(Op::Sleep),
        1 => Just(Op::TimerWait(0, 1_700_000)),
        1 => Just(Op::PipeWrite(0, 700)),
        1 => Just(Op::PipeRead(0, 4096)),
        1 => Just(Op::Send(0)),
        1 => Just(Op::Signal(Role::All(0))),
        1 => Just(Op::Yield),
        1 => (-10i8..15).prop_map(Op::SetNice),
        1 => any_policy().prop_map(Op::SetPolicy),
        1 => (0..cpus).prop_map(|cpu| Op::SetAffinity(CpuList(vec![(cpu, 64)]))),
    ]
}

/// Mostly the scheduler's own.
fn any_policy() -> impl Strategy<Value = SchedPolicy> {
    prop_oneof![
        6 => Just(SchedPolicy::Other),
        1 => (1_u8..4).prop_map(SchedPolicy::Fifo),
        1 => (1_u8..4).prop_map(SchedPolicy::Rr),
    ]
}

fn group(cpus: u32) -> impl Strategy<Value = TaskSpec> {
    let body = prop::collection::vec(op(cpus), 1..6);
    let pinned = prop::option::weighted(0.2, 0..cpus);
    (body, 1u32..4, (any_policy(), -5i8..10), pinned, 0..5 * MS, any::<bool>()).prop_map(
        |(mut body, count, (policy, nice), pinned, start_ns, forks)| {
            body.push(Op::Run(Duration::Fixed(50_000)));
            if forks {
                body.extend([Op::Fork(1), Op::WaitChildren]);
            }
            TaskSpec {
                policy,
                nice,
                cpus: pinned.map(|cpu| CpuList(vec![(cpu, cpu)])),
                on_signal: vec![Op::Mark("signal".to_owned()), Op::Run(Duration::Fixed(10_000))],
                ..TaskSpec::new("t", count, Some(start_ns), vec![Op::Loop(None, body)])
            }
        },
    )
}

fn spec(name: &str, start_ns: Option<u64>, program: Program) -> TaskSpec {
    TaskSpec {
        on_signal: vec![Op::Run(Duration::Fixed(1_000))],
        ..TaskSpec::new(name, 2, start_ns, program)
    }
}

fn workload(mut groups: Vec<TaskSpec>) -> Workload {
    let receiver = vec![Op::Loop(None, vec![Op::Receive(0, 1), Op::Run(Duration::Fixed(5_000))])];
    let mut tasks = vec![
        spec("hog", Some(0), vec![Op::RunForever]),
        spec(
            "child",
            None,
            vec![Op::Run(Duration::Fixed(80_000)), Op::Sleep(Duration::Fixed(30_000))],
        ),
        spec("receiver", Some(0), receiver),
    ];
    tasks.append(&mut groups);
    Workload {
        name: "random".to_owned(),
        tasks,
        pipes: vec![Pipe { name: "p".to_owned(), capacity: 4096, carrier: Carrier::Pipe }],
        queues: vec![Queue { capacity: Some(3), ..Queue::unlimited("q") }],
        timers: vec![Timer::new("t", 1_700_000)],
        ..Workload::default()
    }
}

fn machine() -> impl Strategy<Value = MachineConfig> {
    let shape = prop_oneof![Just("1"), Just("2"), Just("5"), Just("1x2x2"), Just("2x2x2")];
    let cost = prop_oneof![
        Just("zero"),
        Just("modern"),
        Just("linux-2.6"),
        Just("linux-6.1"),
        Just("linux-7.2-scx")
    ];
    (shape, cost, prop_oneof![Just(100u32), Just(250), Just(300), Just(1000)], any::<u64>())
        .prop_map(|(shape, cost, hz, seed)| {
            let topology: Topology = shape.parse().expect("the shape is well-formed");
            let mut config = MachineConfig::new(topology.cpus());
            config.topology = topology;
            config.cost = CostModel::preset(cost).expect("the preset exists");
            config.hz = hz;
            config.seed = seed;
            config.check = true;
            config
        })
}

fn case() -> impl Strategy<Value = (MachineConfig, Workload)> {
    machine().prop_flat_map(|config| {
        let groups = prop::collection::vec(group(config.cpus()), 1..5);
        (Just(config), groups.prop_map(workload))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_rules_hold_whatever_runs((config, workload) in case()) {
        const WINDOW_NS: u64 = 30 * MS;
        for policy in policies() {
            let result = simulate(&config, policy, &[], &workload, WINDOW_NS);
            prop_assert_eq!(result.exit.kind, ExitKind::Unregistered, "{}: {}", policy.name(), result.exit);
            let mut on_cpu = vec![None; config.cpus() as usize];
            for event in result.trace.events() {
                if let EventKind::Switch { prev, next, .. } = event.kind {
                    let slot = &mut on_cpu[event.cpu as usize];
                    prop_assert_eq!(slot.unwrap_or(fairground_trace::TaskId::IDLE), prev, "{}", policy.name());
                    *slot = Some(next);
                }
            }
            let idle = fairground_trace::TaskId::IDLE;
            let running: Vec<_> = on_cpu.iter().flatten().filter(|task| **task != idle).collect();
            let distinct: std::collections::BTreeSet<_> = running.iter().collect();
            prop_assert_eq!(running.len(), distinct.len(), "a task runs on one CPU at a time");
        }
    }
}
