//! When the run queue's clock is read: what a task is charged for a wake-up is not the time between its switches.

use crate::support::{MS, free_machine, policy, run, simulate, sleep, stays, task, workload};
use fairground_machine::{Machine, MachineConfig, Setting};
use fairground_trace::TaskId;
use fairground_workload::Op;

const US: u64 = 1_000;
const WAKEUP_NS: u64 = 20 * US;
const WAKEUP_CLOCK_NS: u64 = 12 * US;
const BLOCK_CLOCK_NS: u64 = 3 * US;

fn one_cpu(wakeup_clock_ns: u64) -> MachineConfig {
    let mut config = free_machine(1);
    for (name, value) in [
        ("wakeup_ns", WAKEUP_NS),
        ("wakeup_clock_ns", wakeup_clock_ns),
        ("context_switch_ns", 10 * US),
        ("block_ns", 5 * US),
        ("block_clock_ns", BLOCK_CLOCK_NS),
    ] {
        config.cost.set(name, value).expect("a cost");
    }
    config
}

/// A task that sleeps 1 ms and computes 50 us, alone or beside a hog that it preempts: how long it is on the CPU after that sleep, and what it is
/// charged for that, ns.
fn woken(wakeup_clock_ns: u64, beside_hog: bool) -> (u64, u64) {
    let mut tasks = vec![task("sleeper", 1, vec![sleep(MS), run(50 * US), sleep(100 * MS)])];
    if beside_hog {
        tasks.push(task("hog", 1, vec![Op::RunForever]));
    }
    let (config, settings) = (one_cpu(wakeup_clock_ns), [Setting::initial("preempt", "on")]);
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

/// A switch from the idle task goes by the reading of the wake-up that asked for it: the woken task is charged from then on.
#[test]
fn a_task_woken_on_an_idle_cpu_is_charged_from_its_wake_up() {
    let (stay_ns, charged_ns) = woken(WAKEUP_CLOCK_NS, false);
    assert_eq!(charged_ns, stay_ns + (WAKEUP_NS - WAKEUP_CLOCK_NS) - BLOCK_CLOCK_NS);
    let (stay_ns, charged_ns) = woken(WAKEUP_CLOCK_NS, true);
    assert_eq!(charged_ns, stay_ns - BLOCK_CLOCK_NS, "a switch that preempts reads it");
}

/// Of two loops the one goes back into the queue at the end of its turn, the other comes: what `dispatch`, `enqueue` and `running` read, ns.
fn readings(callback_ns: u64) -> [u64; 3] {
    let mut config = free_machine(1);
    config.cost.set("callback_ns", callback_ns).expect("a cost");
    let hogs = workload(vec![task("hog", 2, vec![Op::RunForever])]);
    let log = simulate(&config, &policy("reading"), &[], &hogs, 100 * MS).log;
    let said = |line: &String, what: &str| -> Option<u64> {
        line.strip_prefix(what).map(|ns| ns.trim().parse().expect("a number"))
    };
    log.windows(3)
        .filter_map(|pass| {
            let (dispatch, enqueue) = (said(&pass[0], "dispatch")?, said(&pass[1], "enqueue")?);
            Some([dispatch, enqueue, said(&pass[2], "running")?])
        })
        .next_back()
        .unwrap_or_else(|| panic!("no turn ended: {log:?}"))
}

/// `dispatch` lets go of the run queue's lock, and with it the queue's clock is out of date (`SCX_RQ_CLK_VALID`).
#[test]
fn from_dispatch_on_the_clock_is_read_anew() {
    let [dispatch, enqueue, running] = readings(1_000);
    assert_eq!((enqueue - dispatch, running - dispatch), (1_000, 2_000));
}

/// Where callbacks cost nothing the scheduler stands for one of the kernel's own.
#[test]
fn the_kernels_own_schedulers_go_by_the_clock_of_the_pass() {
    let [dispatch, enqueue, running] = readings(0);
    assert_eq!((enqueue, running), (dispatch, dispatch));
}
