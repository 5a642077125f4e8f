//! What a scheduler must not do, and how that ends: kind, code and message are the kernel's.

use crate::support::{MS, cpus, free_machine, policy, run, simulate, sleep, task, texts, workload};
use fairground_machine::{Exit, ExitKind, Policy};
use fairground_workload::{Op, TaskSpec};

fn two_hogs() -> Vec<TaskSpec> {
    vec![task("a", 1, vec![Op::RunForever]), task("b", 1, vec![Op::RunForever])]
}

fn exit_of(policy: &Policy, set: &[(&str, &str)], tasks: Vec<TaskSpec>) -> Exit {
    simulate(&free_machine(2), policy, set, &workload(tasks), 5_000 * MS).exit
}

#[test]
fn forbidden_acts_are_errors_with_the_kernels_words() {
    let probe = policy("probe");
    for (fault, message) in [
        ("BOGUS_DSQ", "non-existent DSQ 0x63 for a[1000]"),
        ("DOUBLE_DISPATCH", "a[1000] already direct-dispatched"),
        ("VTIME_LOCAL", "cannot use vtime ordering for built-in DSQs"),
        ("KICK_FLAGS", "PREEMPT/WAIT cannot be used with SCX_KICK_IDLE"),
        ("BAD_CPU", "invalid CPU 4711 from ops.select_cpu()"),
        ("WRONG_LOCAL_CPU_NUMBER", "invalid CPU 77 in SCX_DSQ_LOCAL_ON dispatch verdict"),
        ("DISPATCH_IN_TICK", "kfunc with mask 0x6 called from an operation only allowing 0x10"),
        ("FAIL_INIT", "ops.init() failed (-22)"),
        ("FAIL_INIT_TASK", "ops.init_task() failed (-12) for a[1000]"),
        ("MIXED_QUEUE", "DSQ ID 0x0000000000000007 already had FIFO-enqueued tasks"),
    ] {
        // Three tasks on two CPUs: one of them has to go through enqueue.
        let mut tasks = two_hogs();
        tasks.push(task("c", 2, vec![Op::RunForever]));
        let direct = if matches!(fault, "DISPATCH_IN_TICK" | "MIXED_QUEUE") { "on" } else { "off" };
        let direct = if fault == "BAD_CPU" { "on" } else { direct };
        let exit = exit_of(&probe, &[("fault", fault), ("direct", direct)], tasks);
        assert_eq!((exit.kind, exit.code), (ExitKind::Error, 0), "{fault}: {exit}");
        assert_eq!(exit.message, message, "{fault}");
        assert_eq!(exit.reason, "runtime error");
        assert!(exit.time_ns <= 20 * MS, "{fault}: {}", exit.time_ns);
    }
}

#[test]
fn dispatching_another_task_from_enqueue_is_an_error() {
    let tasks = vec![
        task("a", 1, vec![Op::RunForever]),
        task("b", 1, vec![sleep(MS), Op::RunForever]),
        task("c", 1, vec![sleep(2 * MS), Op::RunForever]),
    ];
    let exit = exit_of(&policy("probe"), &[("fault", "OTHER_TASK")], tasks);
    assert_eq!(
        (exit.kind, exit.message.as_str()),
        (ExitKind::Error, "scheduling for c[1002] but trying to direct-dispatch a[1000]")
    );
}

#[test]
fn a_queue_in_use_is_not_destroyed() {
    let mut tasks = two_hogs();
    tasks.push(task("c", 2, vec![Op::RunForever]));
    let exit = exit_of(&policy("probe"), &[("fault", "DESTROY_IN_USE")], tasks);
    assert_eq!(exit.message, "attempting to destroy in-use dsq 0x0000000000000007 (nr=2)");
}

#[test]
fn the_scheduler_says_why_it_leaves() {
    let probe = policy("probe");
    let exit = exit_of(&probe, &[("fault", "REPORT_ERROR"), ("direct", "off")], two_hogs());
    assert_eq!((exit.kind, exit.code), (ExitKind::ErrorBpf, 0));
    assert_eq!(exit.message, "task 1000 is not welcome");
    let exit = exit_of(&probe, &[("fault", "LEAVE"), ("direct", "off")], two_hogs());
    assert_eq!((exit.kind, exit.code), (ExitKind::UnregisteredByBpf, 42));
    assert_eq!(
        exit.to_string(),
        "unregistered from BPF (SCX_EXIT_UNREG_BPF), code 0x2a: task 1000 is not welcome"
    );
}

#[test]
fn its_exit_callback_hears_of_it() {
    let config = free_machine(1);
    let set = [("fault", "LEAVE"), ("direct", "off")];
    let result = simulate(&config, &policy("probe"), &set, &workload(two_hogs()), 10 * MS);
    assert_eq!(texts(&result.log), ["exit kind 65 code 42: task 1000 is not welcome"]);
}

#[test]
fn a_forgotten_task_is_a_stall() {
    let exit = exit_of(&policy("probe"), &[("fault", "FORGET"), ("direct", "off")], two_hogs());
    assert_eq!(exit.kind, ExitKind::ErrorStall);
    assert_eq!(exit.message, "a[1000] failed to run for 3.000s");
    assert_eq!(
        exit.time_ns,
        3_000 * MS,
        "the third look, every half of 2 s, is the first after more than 2 s"
    );
}

#[test]
fn a_dispatch_loop_that_leads_nowhere_is_a_stall_and_no_hang() {
    let exit =
        exit_of(&policy("probe"), &[("fault", "LOOP_DISPATCH"), ("direct", "off")], two_hogs());
    assert_eq!(exit.kind, ExitKind::ErrorStall, "{exit}");
}

#[test]
fn traps_of_the_program_end_its_time_in_charge() {
    let probe = policy("probe");
    let exit = exit_of(&probe, &[("fault", "ENDLESS"), ("direct", "off")], two_hogs());
    assert_eq!(exit.kind, ExitKind::Error);
    assert!(
        exit.message.starts_with("ops.enqueue(): more than 10000000 instructions in one call"),
        "{exit}"
    );
    let exit = exit_of(&probe, &[("fault", "NULL_LOAD"), ("direct", "off")], two_hogs());
    assert!(exit.message.starts_with("ops.enqueue(): load through a NULL pointer"), "{exit}");
}

/// A task that is bound to CPU 0 and that the scheduler sends to CPU 1 stays where it may run.
#[test]
fn a_pinned_task_is_not_dispatched_elsewhere() {
    let mut pinned = task("a", 1, vec![run(MS), sleep(MS), run(MS)]);
    pinned.cpus = Some(cpus(0, 0));
    let result = simulate(
        &free_machine(2),
        &policy("probe"),
        &[("fault", "WRONG_CPU"), ("direct", "off")],
        &workload(vec![pinned]),
        100 * MS,
    );
    assert_eq!(result.exit.kind, ExitKind::Error);
    assert_eq!(result.exit.message, "SCX_DSQ_LOCAL[_ON] target CPU 1 not allowed for a[1000]");
}
