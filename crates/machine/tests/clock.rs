//! When the run queue's clock is read: what a task is charged for a wake-up is not the time between its switches.

mod support;

use fairground_machine::{Machine, MachineConfig, Setting};
use fairground_trace::TaskId;
use fairground_workload::Op;
use support::{MS, free_machine, policy, run, sleep, stays, task, workload};

const US: u64 = 1_000;
const WAKEUP_NS: u64 = 20 * US;
const WAKEUP_CLOCK_NS: u64 = 12 * US;
const BLOCK_CLOCK_NS: u64 = 3 * US;

fn one_cpu(woken_clock_kinds: u64) -> MachineConfig {
    let mut config = free_machine(1);
    for (name, value) in [
        ("wakeup_ns", WAKEUP_NS),
        ("wakeup_clock_ns", WAKEUP_CLOCK_NS),
        ("context_switch_ns", 10 * US),
        ("block_ns", 5 * US),
        ("block_clock_ns", BLOCK_CLOCK_NS),
        ("woken_clock_kinds", woken_clock_kinds),
    ] {
        config.cost.set(name, value).expect("a cost");
    }
    config
}

/// A task that sleeps 1 ms and computes 50 us, alone or beside a hog that it preempts: how long it is on the CPU after that sleep, and what it is
/// charged for that, ns.
fn woken(woken_clock_kinds: u64, beside_hog: bool) -> (u64, u64) {
    let mut tasks = vec![task("sleeper", 1, vec![sleep(MS), run(50 * US), sleep(100 * MS)])];
    if beside_hog {
        tasks.push(task("hog", 1, vec![Op::RunForever]));
    }
    let (config, settings) = (one_cpu(woken_clock_kinds), [Setting::initial("preempt", "on")]);
    let mut machine = Machine::new(&config, &policy("probe"), &settings, &workload(tasks))
        .unwrap_or_else(|e| panic!("{e}"));
    let mut charged_ns = |until_ns| {
        machine.run_until(until_ns).unwrap_or_else(|e| panic!("{e}"));
        machine.task(TaskId(1)).expect("the sleeper").sum_exec_ns
    };
    let before_ns = charged_ns(MS - 100 * US);
    let charged_ns = charged_ns(3 * MS) - before_ns;
    let result = machine.finish().unwrap_or_else(|e| panic!("{e}"));
    let (from_ns, to_ns) = stays(&result.trace, "sleeper")[1];
    (to_ns - from_ns, charged_ns)
}

/// The switch that takes a task to sleep has read the clock a little before, so the next task is charged that.
#[test]
fn a_task_that_sleeps_is_charged_to_the_reading_before_it() {
    for beside_hog in [false, true] {
        let (stay_ns, charged_ns) = woken(0, beside_hog);
        assert_eq!(stay_ns, 10 * US + 50 * US + 5 * US);
        assert_eq!(charged_ns, stay_ns - BLOCK_CLOCK_NS, "beside a hog: {beside_hog}");
    }
}

/// A switch that a wake-up asked for goes by that wake-up's reading: the woken task is charged from then on, though another one, or nobody,
/// was still on the CPU.
#[test]
fn a_woken_task_is_charged_from_the_reading_of_its_wake_up() {
    for (kinds, beside_hog, earlier) in [
        (0, false, false),
        (1, false, true),
        (2, false, true),
        (0, true, false),
        (1, true, false),
        (2, true, true),
    ] {
        let (stay_ns, charged_ns) = woken(kinds, beside_hog);
        let earlier_ns = if earlier { WAKEUP_NS - WAKEUP_CLOCK_NS } else { 0 };
        assert_eq!(
            charged_ns,
            stay_ns + earlier_ns - BLOCK_CLOCK_NS,
            "{kinds} kinds, beside a hog: {beside_hog}"
        );
    }
}
