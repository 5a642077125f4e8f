//! lmbench's `lat_ctx` as a workload: the figures follow from the machine's costs in the way that the benchmark
//! defines.

use fairground_analysis::ring::RingReport;
use fairground_bpf::Object;
use fairground_machine::{CostModel, Engine, Machine, MachineConfig, Policy};
use fairground_workload::from_spec;

/// Runs a ring under `fifo` with given costs.
fn ring(spec: &str, costs: &[(&str, u64)]) -> RingReport {
    let object = Object::parse("fifo", fairground_policies::get("fifo").expect("fifo").object);
    let policy = Policy::load(&object.expect("it parses"), Engine::Jit).expect("it loads");
    let mut config = MachineConfig::new(1);
    config.cost = CostModel::preset("zero").expect("a preset");
    for (name, value) in costs {
        config.cost.set(name, *value).expect("a cost");
    }
    let workload = from_spec(spec).expect("a workload of the library");
    let mut machine = Machine::new(&config, &policy, &[], &workload).expect("a machine");
    machine.run_until(50_000_000).expect("it runs");
    RingReport::of(&machine.finish().expect("it ends").trace).expect("a ring")
}

const COSTS: [(&str, u64); 6] = [
    ("context_switch_ns", 1_000),
    ("wakeup_ns", 500),
    ("syscall_ns", 200),
    ("cache_bytes", 65_536),
    ("line_hit_ps", 1_000),
    ("line_miss_ps", 10_000),
];

/// Law 2 of docs/laws/benchmarks.md: as many switches a round as there are processes, and a positive result.
#[test]
fn a_round_has_as_many_switches_as_members() {
    for members in [2, 3, 8, 16] {
        let report = ring(&format!("lat_ctx:{members}"), &COSTS);
        assert_eq!(report.members, members);
        assert_eq!(report.switches, Some(report.rounds * members), "{members} members");
        // Reads and writes are in the overhead, so the difference is one switch and one wake-up.
        assert_eq!(report.overhead_ns, members * 2 * 200);
        assert!((report.switch_us() - 1.5).abs() < 0.001, "{}", report.switch_us());
    }
}

/// The figure grows once the processes' memory together is more than the cache holds.
#[test]
fn what_the_cache_cannot_hold_is_in_the_figure() {
    let switch_us = |members: u64, size_kb: u64| {
        ring(&format!("lat_ctx:{members},size_kb={size_kb}"), &COSTS).switch_us()
    };
    assert!((switch_us(2, 16) - 1.5).abs() < 0.001, "32 KiB of 64 fit");
    assert!((switch_us(4, 16) - 1.5).abs() < 0.001, "64 KiB of 64 fit");
    // Every line is fetched again: 9 ns more for each of 256.
    let beyond = switch_us(8, 16);
    assert!((beyond - (1.5 + 256.0 * 0.009)).abs() < 0.01, "{beyond}");
    let sizes = [0, 16, 24, 32, 48].map(|size_kb| switch_us(4, size_kb));
    assert!(sizes.is_sorted(), "{sizes:?}");
}
