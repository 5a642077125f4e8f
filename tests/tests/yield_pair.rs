//! Two tasks that only call `sched_yield`: which of them gives way, and what a scheduler's program executes for it.

use fairground_bpf::Object;
use fairground_machine::{CostModel, Engine, Machine, MachineConfig, Path, Policy, TraceOptions};
use fairground_trace::EventKind;
use fairground_workload::from_spec;

/// Switches between tasks, and the program's instructions per switch.
fn run(scheduler: &str, workload: &str) -> (u64, u64) {
    let source = fairground_policies::get(scheduler).expect("a built-in scheduler");
    let object = Object::parse(scheduler, source.object).expect("it parses");
    let policy = Policy::load(&object, Engine::Jit).expect("it loads");
    let mut config = MachineConfig::new(1);
    config.cost = CostModel::preset("linux-2.6").expect("a preset of that name");
    config.trace = TraceOptions { callbacks: false, ticks: false, calls: false };
    let workload = from_spec(workload).expect("a workload");
    let mut machine = Machine::new(&config, &policy, &[], &workload).expect("a machine");
    machine.run_until(200_000_000).expect("it runs");
    let result = machine.finish().expect("it ends");
    let switches = result.trace.events().filter(|event| {
        matches!(event.kind, EventKind::Switch { prev, next, .. } if !prev.is_idle() && !next.is_idle())
    });
    let cost = result.counters.path(Path::Switch);
    (switches.count() as u64, cost.insns / cost.times.max(1))
}

#[test]
fn a_pair_gives_way_and_a_lone_task_does_not() {
    for policy in fairground_policies::all() {
        let (switches, insns) = run(policy.name, "yieldpair");
        assert!(switches > 1_000, "{}: {switches} switches", policy.name);
        assert!(insns > 0, "{}", policy.name);
        let (switches, _) = run(policy.name, "yieldpair:1");
        assert!(switches <= 1, "{}: alone, {switches} switches", policy.name);
    }
}
