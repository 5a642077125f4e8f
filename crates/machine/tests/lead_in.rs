//! Runs with a lead-in: the tasks exist and sleep before the measurement, and begin with a wake-up.

use crate::support::{MS, cpu_time, free_machine, mixed, policy, run, simulate, task, workload};
use fairground_machine::{Machine, MachineConfig};
use fairground_trace::EventKind;
use fairground_workload::Op;

/// All tasks are made when the lead-in begins, and woken when their groups start.
#[test]
fn with_a_lead_in_tasks_begin_with_a_wake_up() {
    let mut late = task("late", 1, vec![run(MS)]);
    late.start_ns = Some(3 * MS);
    let tasks = workload(vec![task("hog", 2, vec![Op::RunForever]), late]);
    let mut config = free_machine(1);
    config.lead_in_ns = 20 * MS;
    let result = simulate(&config, &policy("probe"), &[], &tasks, 40 * MS);
    let times = |wanted: fn(&EventKind) -> bool| -> Vec<u64> {
        result.trace.events().filter(|e| wanted(&e.kind)).map(|e| e.time_ns).collect()
    };
    assert_eq!(times(|kind| matches!(kind, EventKind::WakeupNew { .. })), [0, 0, 0]);
    assert_eq!(times(|kind| matches!(kind, EventKind::Waking { .. })), [20 * MS, 20 * MS, 23 * MS]);
    // What they compute starts with the wake-up.
    let ran = cpu_time(&result.trace, 0, 20 * MS);
    assert_eq!(ran.iter().skip(1).sum::<u64>(), 0, "{ran:?}");
}

/// Whatever the tasks do, under the checker's eyes; and where the lead-in is over before they sleep.
#[test]
fn a_lead_in_of_any_length_loses_no_task() {
    let mut config = MachineConfig::new(4);
    config.check = true;
    for lead_in_ns in [1, 20 * MS] {
        config.lead_in_ns = lead_in_ns;
        simulate(&config, &policy("probe"), &[], &mixed(), 100 * MS);
    }
}

#[test]
fn a_lead_in_that_is_too_long_is_refused() {
    let tasks = workload(vec![task("hog", 2, vec![Op::RunForever])]);
    let config = MachineConfig { lead_in_ns: 11_000 * MS, ..free_machine(1) };
    let error = Machine::new(&config, &policy("probe"), &[], &tasks).expect_err("too long");
    assert!(error.to_string().contains("lead-in"), "{error}");
}
