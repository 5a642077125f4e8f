//! The order of callbacks: golden texts, to be read beside `kernel/sched/ext.c` of Linux 6.12.

use crate::support::{
    MS, cpus, free_machine, lines, policy, run, simulate, sleep, task, texts, workload,
};
use fairground_workload::{Op, Role};

#[test]
fn a_task_runs_sleeps_and_exits() {
    let w = workload(vec![task("a", 1, vec![run(MS / 2), sleep(MS / 2), run(MS / 2)])]);
    let result = simulate(&free_machine(1), &policy("probe"), &[], &w, 10 * MS);
    insta::assert_snapshot!(lines(&result.trace, 10 * MS));
    insta::assert_snapshot!(texts(&result.log).join("\n").trim(), @"exit kind 64 code 0:");
}

#[test]
fn two_tasks_share_a_cpu_by_slices() {
    let w = workload(vec![task("a", 1, vec![Op::RunForever]), task("b", 1, vec![Op::RunForever])]);
    let result = simulate(&free_machine(1), &policy("probe"), &[], &w, 10 * MS);
    insta::assert_snapshot!(lines(&result.trace, 7 * MS));
}

#[test]
fn a_lone_task_keeps_the_cpu_and_its_slice_is_filled_up() {
    let w = workload(vec![task("a", 1, vec![Op::RunForever])]);
    let result = simulate(&free_machine(1), &policy("probe"), &[], &w, 50 * MS);
    insta::assert_snapshot!(lines(&result.trace, 24 * MS));
    assert_eq!(result.counters.switches, 1);
}

#[test]
fn a_waking_task_preempts() {
    let w = workload(vec![
        task("nap", 1, vec![sleep(MS / 2), run(MS / 4), sleep(MS / 4)]),
        task("hog", 1, vec![Op::RunForever]),
    ]);
    let set = [("preempt", "on"), ("direct", "off")];
    let result = simulate(&free_machine(1), &policy("probe"), &set, &w, 2 * MS);
    insta::assert_snapshot!(lines(&result.trace, 2 * MS));
}

#[test]
fn a_fork_and_the_wait_for_it() {
    let mut child = task("child", 1, vec![run(MS)]);
    child.start_ns = None;
    let w = workload(vec![
        task("parent", 1, vec![Op::Fork(1), run(MS / 2), Op::WaitChildren, run(MS)]),
        child,
    ]);
    let result = simulate(&free_machine(2), &policy("probe"), &[], &w, 3 * MS);
    insta::assert_snapshot!(lines(&result.trace, 3 * MS));
}

#[test]
fn yield_goes_to_the_end() {
    let w = workload(vec![
        task("a", 1, vec![run(1000), Op::Yield, run(1000)]),
        task("b", 1, vec![run(1000), Op::Yield, run(1000)]),
    ]);
    let result = simulate(&free_machine(1), &policy("probe"), &[], &w, MS);
    insta::assert_snapshot!(lines(&result.trace, MS));
}

#[test]
fn a_nice_value_changes_while_the_task_runs() {
    let w = workload(vec![task("a", 1, vec![run(1000), Op::SetNice(5), run(1000)])]);
    let result = simulate(&free_machine(1), &policy("probe"), &[], &w, MS);
    insta::assert_snapshot!(lines(&result.trace, MS));
}

#[test]
fn affinity_takes_a_running_task_away() {
    let w = workload(vec![task("a", 1, vec![run(1000), Op::SetAffinity(cpus(1, 1)), run(1000)])]);
    let result = simulate(&free_machine(2), &policy("probe"), &[], &w, MS);
    insta::assert_snapshot!(lines(&result.trace, MS));
    assert_eq!(result.counters.affinity_moves, 1);
}

#[test]
fn a_signal_interrupts_a_running_task_on_another_cpu() {
    let mut hog = task("hog", 1, vec![Op::RunForever]);
    hog.on_signal = vec![Op::Mark("caught".to_owned()), run(1000)];
    let w = workload(vec![
        hog,
        task("boss", 1, vec![sleep(1000), Op::Signal(Role::All(0)), run(1000)]),
    ]);
    let mut config = free_machine(2);
    config.cost.ipi_ns = 700;
    let result = simulate(&config, &policy("probe"), &[], &w, MS / 2);
    insta::assert_snapshot!(lines(&result.trace, MS / 2));
}

#[test]
fn without_callbacks_the_core_does_it_all() {
    let w = workload(vec![task("a", 3, vec![run(30 * MS), sleep(MS), run(MS)])]);
    let result = simulate(&free_machine(2), &policy("minimal"), &[], &w, 100 * MS);
    insta::assert_snapshot!(lines(&result.trace, 100 * MS));
}
