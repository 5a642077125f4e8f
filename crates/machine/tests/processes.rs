//! What it costs to make a process, to be one, to end and to be waited for, piece by piece, and what else that sets to work.

use crate::support::{MS, free_machine, name, policy, run, simulate, sleep, task, workload};
use fairground_machine::MachineConfig;
use fairground_trace::{CallbackKind, EventKind, TaskId, TaskState, Trace};
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

/// The child may run when its parent has paid for making it, and the parent hears of its end when the child has paid for that.
/// What the parent pays for going on, and for having waited, comes when it runs the next time.
#[test]
fn each_piece_is_paid_where_a_kernel_spends_it() {
    let config = machine(&[
        ("fork_ns", 100 * US),
        ("fork_return_ns", 10 * US),
        ("child_ns", 50 * US),
        ("exit_ns", 200 * US),
        ("reap_ns", 5 * US),
    ]);
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
    // 100 + 10, then the child's 50 + 20 + 200, then the parent's 5.
    assert_eq!(left("parent"), [110, 385]);
    assert_eq!(left("child"), [380]);
    assert_eq!(times(trace, "parent", woken), [380]);
}

/// With `exit_move_ns` a process leaves its autogroup so long before its parent hears of its end, and asks for a scheduling pass there. In all it
/// pays as much as without.
#[test]
fn a_process_that_ends_asks_for_a_pass_before_its_parent_hears() {
    let seen = |move_ns: u64| {
        let mut config = machine(&[("exit_ns", 200 * US), ("exit_move_ns", move_ns)]);
        config.trace.callbacks = true;
        let result = simulate(&config, &policy("probe"), &[], &family(1, 20 * US), 2 * MS);
        let trace = result.trace;
        let restored = times(&trace, "child", |kind| match kind {
            EventKind::Callback { kind: CallbackKind::Runnable, task } => Some(*task),
            _ => None,
        });
        (restored, times(&trace, "parent", woken))
    };
    assert_eq!(seen(0), (vec![0], vec![220]));
    assert_eq!(seen(30 * US), (vec![0, 190], vec![220]));
    assert_eq!(seen(500 * US), (vec![0, 20], vec![220]), "no longer than all of it");
}

/// `waitpid` returns once for each child: a parent that waits for three is woken by each that ends while it waits.
#[test]
fn a_waiting_parent_is_woken_by_each_child_that_ends() {
    let mut config = machine(&[("reap_ns", 5 * US)]);
    config.trace.callbacks = false;
    let mut child = task("child", 1, vec![run(MS)]);
    child.start_ns = None;
    let mut late = task("late", 2, vec![sleep(5 * MS), run(MS)]);
    late.start_ns = None;
    let parent = task("parent", 1, vec![Op::Fork(1), Op::Fork(2), Op::WaitChildren]);
    let w = workload(vec![parent, child, late]);
    let result = simulate(&config, &policy("probe"), &[], &w, 20 * MS);
    // At 1 ms the first child, at 7 ms and 8 ms the others; but the last ends before the parent, in the queue behind it, has run.
    assert_eq!(times(&result.trace, "parent", woken), [1_000, 7_000]);
    let ended = times(&result.trace, "parent", |kind| match kind {
        EventKind::Exit { task } => Some(*task),
        _ => None,
    });
    assert_eq!(ended, [8_010]);
}

/// How long a task that wakes up waits beside a parent that is making a process for 5 ms, us: at most a stretch.
#[test]
fn a_fork_makes_room_after_each_stretch() {
    let waits = |stretch_ns: u64| {
        let config = machine(&[("fork_ns", 5 * MS), ("fork_stretch_ns", stretch_ns)]);
        let mut w = family(1, MS);
        w.tasks[0].start_ns = Some(100 * US);
        w.tasks.push(task("nap", 1, vec![sleep(MS / 2), run(MS / 4)]));
        let set = [("preempt", "on"), ("direct", "off")];
        let result = simulate(&config, &policy("probe"), &set, &w, 9 * MS);
        let came = times(&result.trace, "nap", |kind| match kind {
            EventKind::Switch { next, .. } => Some(*next),
            _ => None,
        });
        came[1] - 500
    };
    assert_eq!(waits(0), 0);
    assert_eq!(waits(300 * US), 200);
    assert_eq!(waits(50 * MS), 4_600);
}

/// RCU's thread wakes up at the two ticks after a process came or went, and is not there where nothing forks or it costs nothing.
#[test]
fn the_thread_of_rcu_wakes_up_at_two_ticks() {
    let threads = |config: &MachineConfig, w: &Workload| {
        let set = [("preempt", "on"), ("direct", "off")];
        let result = simulate(config, &policy("probe"), &set, w, 60 * MS);
        times(&result.trace, "other", woken)
    };
    let mut config = machine(&[("rcu_ns", 30 * US)]);
    config.hz = 250;
    config.trace.callbacks = false;
    // Forked at 0, ended at 9 ms.
    assert_eq!(threads(&config, &family(1, 9 * MS)), [4_000, 8_000, 12_000, 16_000]);
    assert_eq!(threads(&config, &workload(vec![task("hog", 1, vec![Op::RunForever])])), []);
    config.cost.set("rcu_ns", 0).expect("a cost");
    assert_eq!(threads(&config, &family(1, 9 * MS)), []);
}

/// The kernel's own threads: a worker of each CPU and one of none once in a second, and `kcompactd` every 512 ms. All wake up in ticks.
#[test]
fn housekeeping_wakes_up_on_each_cpu() {
    let mut config = machine(&[("housekeeping_ns", 7 * US)]);
    config.topology = fairground_machine::Topology::flat(2);
    config.lead_in_ns = 400 * MS;
    let hogs = workload(vec![task("hog", 3, vec![Op::RunForever])]);
    let result = simulate(&config, &policy("probe"), &[], &hogs, 2_400 * MS);
    let named = |name: &str| {
        let task = result.trace.tasks().iter().position(|task| task.comm.as_str() == name);
        TaskId(task.unwrap_or_else(|| panic!("a thread {name}")) as u32)
    };
    let woken = |name: &str| -> Vec<(u64, u32)> {
        let thread = named(name);
        let at = |event: fairground_trace::Event| match event.kind {
            EventKind::Wakeup { task, target_cpu } if task == thread => {
                Some(((event.time_ns + 500_000) / MS, target_cpu))
            }
            _ => None,
        };
        let since = result.trace.events().filter(|event| event.time_ns >= 400 * MS);
        since
            .filter_map(|event| {
                let woken = at(event)?;
                assert_eq!(event.time_ns * u64::from(config.hz) % 1_000_000_000, 0, "{name}");
                Some(woken)
            })
            .collect()
    };
    // Whoever has the CPU may keep it for a slice, and the next sleep begins later.
    let within = |name: &str, cpu: Option<u32>, times: &[u64]| {
        let woken = woken(name);
        assert_eq!(woken.len(), times.len(), "{name}: {woken:?}");
        for ((ms, on), due) in woken.iter().zip(times) {
            assert!(
                (*due..=due + 20).contains(ms) && cpu.is_none_or(|cpu| cpu == *on),
                "{woken:?}"
            );
        }
    };
    within("other/kworker/0", Some(0), &[960, 1960]);
    within("other/kworker/1", Some(1), &[960, 1960]);
    within("other/kworker/u", None, &[860, 2140]);
    within("other/kcompactd0", None, &[708, 1220, 1732, 2244]);
    config.cost.set("housekeeping_ns", 0).expect("a cost");
    let without = simulate(&config, &policy("probe"), &[], &hogs, 2_400 * MS);
    assert!(without.trace.tasks().iter().all(|task| !task.comm.starts_with("other/")));
}
