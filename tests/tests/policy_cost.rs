//! The instructions of a scheduler's programs are counted per callback, and agree with the trace.

use fairground_machine::{Counters, Machine, MachineConfig, Path, TraceOptions};
use fairground_trace::{EventKind, Trace};
use fairground_workload::from_spec;

use crate::rig::{MS, bench, compiled};

fn run(scheduler: &str, cpus: u32, workload: &str) -> (Counters, Trace) {
    let policy = &compiled(scheduler).policy;
    let mut config = MachineConfig::new(cpus);
    config.trace = TraceOptions { callbacks: false, ticks: true, calls: false };
    let workload = from_spec(workload).expect("a workload");
    let mut machine = Machine::new(&config, policy, &[], &workload).expect("a machine");
    machine.run_until(500_000_000).expect("it runs");
    let result = machine.finish().expect("it ends");
    (result.counters, result.trace)
}

#[test]
fn paths_agree_with_the_trace() {
    for policy in fairground_policies::all() {
        let (counters, trace) = run(policy.name, 2, "hogs:3+sleepers:4");
        let sum = |of: fn(&EventKind) -> bool| {
            let events = trace.events().filter(|event| of(&event.kind));
            events.fold((0, 0), |(times, insns), e| (times + 1, insns + u64::from(e.insns)))
        };
        let expected = [
            (Path::Switch, sum(|kind| matches!(kind, EventKind::Switch { .. }))),
            (Path::Tick, sum(|kind| matches!(kind, EventKind::Tick { .. }))),
            (
                Path::Wakeup,
                sum(|k| matches!(k, EventKind::Wakeup { .. } | EventKind::WakeupNew { .. })),
            ),
        ];
        for (path, (times, insns)) in expected {
            let cost = counters.path(path);
            assert_eq!((cost.times, cost.insns), (times, insns), "{} {path:?}", policy.name);
            assert!(times > 10, "{} {path:?}: only {times}", policy.name);
            assert!(cost.insns_max * times >= insns, "{} {path:?}", policy.name);
        }
        let counted: u64 = Path::ALL.iter().map(|path| counters.path(*path).insns).sum();
        assert!(counted <= counters.insns, "{}", policy.name);
    }
}

/// The divisions that are known from the sources: `fifo` has none; the slice of `cfs` is one at each tick beside
/// others; `rfs` promises a tick without any (docs/laws/rfs.md, law 13). On one CPU: the load balancer divides.
#[test]
fn divisions_are_where_the_sources_have_them() {
    let divisions = |scheduler: &str, path: Path| {
        let cost = run(scheduler, 1, "hogs:3+sleepers:4").0.path(path);
        (cost.divisions, cost.divisions_max)
    };
    for path in Path::ALL {
        assert_eq!(divisions("fifo", path), (0, 0), "{path:?}");
    }
    assert!(divisions("cfs", Path::Tick).1 >= 1);
    assert_eq!(divisions("rfs", Path::Tick), (0, 0));
}

/// The most instructions that a scheduler executes for a context switch of lmbench's ring of two processes on one CPU.
/// Measured on clang 19; the bounds leave room for a rule, not for a second look-up.
const PER_SWITCH: [(&str, u64); 9] = [
    ("fifo", 10),
    ("o1", 180),
    ("cfs@2.6.24", 240),
    ("cfs@2.6.27", 300),
    ("cfs", 275),
    ("cfs_2_6_23", 330),
    ("rfs", 200),
    ("sd", 145),
    ("eevdf", 350),
];

#[test]
fn a_switch_stays_light() {
    for (scheduler, most) in PER_SWITCH {
        let mut run = bench(scheduler).like_a_kernel("modern", 0).hz(250).run("lat_ctx:2");
        run.until(100 * MS);
        let cost = run.machine.counters().path(Path::Switch);
        assert!(cost.times > 10_000, "{scheduler}: {} switches", cost.times);
        let per_switch = cost.insns as f64 / cost.times as f64;
        assert!(
            cost.insns <= most * cost.times,
            "{scheduler}: {per_switch:.1} instructions a switch, {most} allowed"
        );
    }
}
