//! Real-time tasks beside those of every scheduler, on a machine with costs.

use std::collections::BTreeMap;

use crate::rig::{MS, US};
use fairground_bpf::Object;
use fairground_machine::{CostModel, Engine, Machine, MachineConfig, Policy};
use fairground_trace::{EventKind, TaskId, Trace};
use fairground_workload::parse;

/// Two threads of cyclictest beside twice as many hogs as there are CPUs.
const CYCLICTEST: &str = r#"
format = 1
name = "cyclictest"
duration = "1s"

[[timer]]
name = "interval"
period = "1ms"

[[task]]
name = "cyclictest"
count = 2
policy = "fifo"
priority = 80
program = [{ loop = [{ timer = "interval" }, { run = "10us" }] }]

[[task]]
name = "hog"
count = 4
program = [{ run = "forever" }]

[[task]]
name = "sleeper"
count = 4
program = [{ loop = [{ run = "300us" }, { sleep = "700us" }] }]
"#;

/// Times from `sched_waking` to the switch of tasks of a name, ns.
fn latencies(trace: &Trace, name: &str) -> Vec<u64> {
    let is_of = |task: TaskId| {
        let comm = &trace.tasks()[task.index()].comm;
        comm == name || comm.starts_with(&format!("{name}/"))
    };
    let mut woken: BTreeMap<TaskId, u64> = BTreeMap::new();
    let mut latencies = Vec::new();
    for event in trace.events() {
        match event.kind {
            EventKind::Waking { task, .. } if is_of(task) => {
                woken.insert(task, event.time_ns);
            }
            EventKind::Switch { next, .. } => {
                latencies.extend(woken.remove(&next).map(|since_ns| event.time_ns - since_ns));
            }
            _ => {}
        }
    }
    latencies
}

/// A timer's interrupt, the wake-up, and a switch: whatever the scheduler does with its own tasks.
#[test]
fn a_real_time_task_is_on_a_cpu_within_microseconds_under_every_scheduler() {
    const BOUND_NS: u64 = 20 * US;
    let workload = parse("cyclictest.toml", CYCLICTEST).unwrap_or_else(|error| panic!("{error}"));
    for builtin in fairground_policies::all() {
        let object = Object::parse(builtin.name, builtin.object).expect("an object");
        let policy = Policy::load(&object, Engine::Jit).expect("it loads");
        let config = MachineConfig {
            cost: CostModel::preset("modern").expect("a preset"),
            hz: 1000,
            check: true,
            ..MachineConfig::new(2)
        };
        let mut machine = Machine::new(&config, &policy, &[], &workload).expect("it is made");
        machine.run_until(500 * MS).expect("it runs");
        let latencies = latencies(machine.trace(), "cyclictest");
        let worst = latencies.iter().max().copied().unwrap_or(0);
        assert!(latencies.len() >= 900, "{}: {} wake-ups", builtin.name, latencies.len());
        assert!(worst <= BOUND_NS, "{}: {worst} ns", builtin.name);
    }
}
