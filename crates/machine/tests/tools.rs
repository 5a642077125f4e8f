//! Kfuncs at work in a program: iteration, moves, timers, masks, the last task of a CPU.

use crate::support::{MS, free_machine, lines, policy, simulate, task, texts, workload};
use fairground_machine::{ExitKind, Machine, PrintedLine, Setting};
use fairground_workload::Op;

fn hogs(n: u32) -> fairground_workload::Workload {
    workload(vec![task("hog", n, vec![Op::RunForever])])
}

#[test]
fn iteration_goes_both_ways_and_moves_what_it_meets() {
    let policy = policy("tools");
    let log = |reverse| {
        let set = [("reverse", reverse)];
        let result = simulate(&free_machine(1), &policy, &set, &hogs(4), 30 * MS);
        assert_eq!(result.exit.kind, ExitKind::Unregistered, "{}", result.exit);
        result.log
    };
    // The first hog runs at once. The others wait, younger ones before older ones.
    let said = |log: &[PrintedLine]| -> Vec<String> {
        let of_loop = |l: &&str| l.starts_with("meets") || l.starts_with("head");
        texts(log).into_iter().filter(of_loop).map(str::to_owned).collect()
    };
    assert_eq!(log("off")[0].text, "queues 0 0 -17");
    let forward =
        ["head 1000", "meets 1000", "head 1003", "meets 1003", "meets 1002", "meets 1001"];
    assert_eq!(said(&log("off")), forward);
    let backward =
        ["head 1000", "meets 1000", "head 1003", "meets 1001", "meets 1002", "meets 1003"];
    assert_eq!(said(&log("on")), backward);
}

#[test]
fn a_timer_fires_on_its_cpu_at_its_time() {
    let result = simulate(&free_machine(3), &policy("tools"), &[], &hogs(2), 30 * MS);
    let mut timers = texts(&result.log);
    timers.retain(|line| line.starts_with("timer"));
    assert_eq!(
        timers,
        [
            "timer at 700000: 0 waiting, 1 CPUs idle",
            "timer at 1400000: 0 waiting, 1 CPUs idle",
            "timer at 2100000: 0 waiting, 1 CPUs idle"
        ]
    );
}

#[test]
fn the_last_task_of_a_cpu_is_passed_to_enqueue() {
    let result = simulate(&free_machine(1), &policy("last"), &[], &hogs(1), 10 * MS);
    assert_eq!(result.exit.kind, ExitKind::Unregistered, "{}", result.exit);
    assert_eq!(texts(&result.log), ["last at 3000000", "last at 6000000", "last at 9000000"]);
    assert_eq!(result.log[1].to_string(), "[000] 0.006000: last at 6000000");
    insta::assert_snapshot!(lines(&result.trace, 4 * MS));
}

/// A scheduler that asked for the last task and does not dispatch it leaves the CPU idle, and the task stalls.
#[test]
fn a_last_task_that_is_not_dispatched_waits() {
    let mut config = free_machine(1);
    config.watchdog_ns = 100 * MS;
    let result = simulate(&config, &policy("last"), &[("keep", "off")], &hogs(1), 1_000 * MS);
    assert_eq!(result.exit.kind, ExitKind::ErrorStall);
    assert_eq!(result.exit.message, "hog[1000] failed to run for 0.147s");
}

/// While its run queue is locked, a CPU is kicked for when it will be idle: `scx_kick_cpu` cannot look whether it is.
#[test]
fn a_last_task_gets_its_cpu_back_by_a_kick_of_the_idle_cpu() {
    let set = [("keep", "off"), ("kick", "on")];
    let result = simulate(&free_machine(1), &policy("last"), &set, &hogs(1), 10 * MS);
    assert_eq!(texts(&result.log), ["last at 3000000", "last at 6000000", "last at 9000000"]);
}

/// The first process and the kernel's threads are found by pid, and are in the root of the control groups.
#[test]
fn a_program_finds_the_first_process_and_the_kernels_threads() {
    let config = free_machine(2);
    let load = hogs(2);
    let settings: [Setting; 0] = [];
    let mut machine = Machine::new(&config, &policy("residents"), &settings, &load).expect("loads");
    machine.run_until(10 * MS).expect("runs");
    let log = [
        "0 none",
        "1 on 0, thread 0",
        "2 on 0, thread 1",
        "3 on 0, thread 1",
        "4 on 0, thread 1",
        "5 on 0, thread 1",
        "6 on 1, thread 1",
        "7 on 1, thread 1",
        "8 on 1, thread 1",
        "9 none",
    ];
    assert_eq!(texts(machine.log()), log);
    assert_eq!(machine.variable_field("wrong", 0, 8), Some(0));
}
