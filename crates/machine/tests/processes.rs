//! What it costs to make a process, to be one, to end and to be waited for, piece by piece.

use crate::support::{
    MS, free_machine, name, object, policy, run, simulate, sleep, task, workload,
};
use fairground_machine::{Engine, MachineConfig, Policy};
use fairground_trace::{EventKind, TaskId, TaskState, Trace};
use fairground_workload::{Op, Workload};

const US: u64 = 1_000;

/// One CPU where nothing costs anything but these.
fn machine(costs: &[(&str, u64)]) -> MachineConfig {
    let mut config = free_machine(1);
    for (name, value) in costs {
        config.cost.set(name, *value).expect("a cost of that name");
    }
    config
}

/// A parent that makes so many children and waits for them.
fn family(children: u32, run_ns: u64) -> Workload {
    let mut child = task("child", children, vec![run(run_ns)]);
    child.start_ns = None;
    workload(vec![task("parent", 1, vec![Op::Fork(1), Op::WaitChildren]), child])
}

/// When something happened to tasks of a name, us.
fn times(trace: &Trace, of: &str, picks: impl Fn(&EventKind) -> Option<TaskId>) -> Vec<u64> {
    let events = trace.events().filter(|event| {
        picks(&event.kind).is_some_and(|task| name(trace, task).split('/').next() == Some(of))
    });
    events.map(|event| event.time_ns / US).collect()
}

fn woken(kind: &EventKind) -> Option<TaskId> {
    match kind {
        EventKind::Waking { task, .. } => Some(*task),
        _ => None,
    }
}

/// The child may run when its parent has paid for making it, and the parent hears of its end when the child has paid
/// for that.
#[test]
fn each_piece_is_paid_where_a_kernel_spends_it() {
    let config = machine(&[("fork_ns", 100 * US), ("exit_ns", 200 * US)]);
    let result = simulate(&config, &policy("probe"), &[], &family(1, 20 * US), 2 * MS);
    let trace = &result.trace;
    let made = times(trace, "child", |kind| match kind {
        EventKind::WakeupNew { task, .. } => Some(*task),
        _ => None,
    });
    assert_eq!(made, [100]);
    let left = |task: &str| {
        times(trace, task, |kind| match kind {
            EventKind::Switch { prev, prev_state, .. } if *prev_state != TaskState::Runnable => {
                Some(*prev)
            }
            _ => None,
        })
    };
    // 100 of the fork, then the child's 20 + 200.
    assert_eq!(left("parent"), [100, 320]);
    assert_eq!(left("child"), [320]);
    assert_eq!(times(trace, "parent", woken), [320]);
}

/// `waitpid` returns once for each child: a parent that waits for three is woken by each that ends while it waits.
#[test]
fn a_waiting_parent_is_woken_by_each_child_that_ends() {
    let mut config = machine(&[]);
    config.trace.callbacks = false;
    let mut child = task("child", 1, vec![run(MS)]);
    child.start_ns = None;
    let mut late = task("late", 2, vec![sleep(5 * MS), run(MS)]);
    late.start_ns = None;
    let parent = task("parent", 1, vec![Op::Fork(1), Op::Fork(2), Op::WaitChildren]);
    let w = workload(vec![parent, child, late]);
    let result = simulate(&config, &policy("probe"), &[], &w, 20 * MS);
    // At 1 ms the first child, at 7 ms and 8 ms the others; but the last ends before the parent, in the queue behind
    // it, has run.
    assert_eq!(times(&result.trace, "parent", woken), [1_000, 7_000]);
    let ended = times(&result.trace, "parent", |kind| match kind {
        EventKind::Exit { task } => Some(*task),
        _ => None,
    });
    assert_eq!(ended, [8_000]);
}

/// 70,400 masks in the storage of 1,100 tasks, one after the other; 65,536 may exist at a time.
#[test]
fn what_the_storage_of_a_task_owns_goes_with_it() {
    let masks = Policy::load(&object("masks"), Engine::Jit).unwrap_or_else(|e| panic!("{e}"));
    let pair = Op::Loop(Some(1_100), vec![Op::Fork(1), Op::WaitChildren]);
    let mut child = task("child", 1, vec![run(US)]);
    child.start_ns = None;
    let load = workload(vec![task("parent", 1, vec![pair]), child]);
    let result = simulate(&machine(&[]), &masks, &[], &load, 10_000 * MS);
    assert!(!result.exit.kind.is_error(), "{}", result.exit);
    let ended = result.trace.events().filter(|e| matches!(e.kind, EventKind::Exit { .. })).count();
    assert_eq!(ended, 1_101);
}
