//! How a run with a lead-in begins: the runner on CPU 0 that forks the tasks and lets them go.

use crate::support::{
    MS, cpu_time, cpus, free_machine, mixed, policy, run, simulate, sleep, stays, task, workload,
};
use fairground_machine::{CostModel, Machine, MachineConfig};
use fairground_trace::{Event, EventKind, TaskId};
use fairground_workload::{Op, Timer};

/// As on a real kernel: the tasks exist before the run, forked one after the other, and begin with a wake-up: by the runner, in the order of
/// their birth, or by their own timer where their group starts later.
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
    let born = times(|kind| matches!(kind, EventKind::WakeupNew { .. }));
    assert_eq!(born, [10_050_000, 12_700_000, 15_350_000]);
    assert_eq!(times(|kind| matches!(kind, EventKind::Waking { .. })), [20 * MS, 20 * MS, 23 * MS]);
    // What they compute starts with the wake-up.
    let ran = cpu_time(&result.trace, 0, 20 * MS);
    assert_eq!(ran.iter().skip(1).sum::<u64>(), 0, "{ran:?}");
    // Whatever they do: under the checker's eyes.
    let mut config = MachineConfig::new(4);
    config.lead_in_ns = 20 * MS;
    simulate(&config, &policy("probe"), &[], &mixed(), 100 * MS);
    config.lead_in_ns = 11_000 * MS;
    let error = Machine::new(&config, &policy("probe"), &[], &tasks).expect_err("too long");
    assert!(error.to_string().contains("lead-in"), "{error}");
}

/// What a task writes for the first time after its fork it pays for once, before its first operation.
#[test]
fn a_task_of_a_lead_in_pays_for_its_first_pages() {
    let rounds = vec![Op::Loop(None, vec![run(MS), sleep(2 * MS)])];
    let tasks = workload(vec![task("sleeper", 1, rounds)]);
    let mut config = free_machine(1);
    config.lead_in_ns = 20 * MS;
    config.cost.set("first_pages_ns", 300_000).expect("a cost");
    let result = simulate(&config, &policy("probe"), &[], &tasks, 40 * MS);
    let stays = stays(&result.trace, "sleeper").into_iter();
    let stays: Vec<u64> =
        stays.filter(|(from, _)| *from >= 20 * MS).map(|(from, to)| to - from).collect();
    assert_eq!(stays[..3], [MS + 300_000, MS, MS]);
}

/// A periodic task looks at the clock after one of its first three pages, and its first period counts from there.
#[test]
fn the_first_period_of_a_lead_in_counts_from_a_look_at_the_clock() {
    let rounds = vec![Op::Loop(None, vec![Op::TimerWait(0, 10 * MS), run(MS)])];
    let mut tasks = workload(vec![task("periodic", 1, rounds)]);
    let timer =
        Timer { name: "tick".to_owned(), period_ns: 10 * MS, relative: false, shared: false };
    tasks.timers.push(timer);
    let mut config = free_machine(1);
    config.lead_in_ns = 20 * MS;
    config.cost.set("first_pages_ns", 300_000).expect("a cost");
    let result = simulate(&config, &policy("probe"), &[], &tasks, 60 * MS);
    let from: Vec<u64> =
        stays(&result.trace, "periodic").into_iter().map(|(from, _)| from).collect();
    let first = 20 * MS + 100_000;
    assert_eq!(
        from[from.len() - 4..],
        [20 * MS, first + 10 * MS, first + 20 * MS, first + 30 * MS]
    );
}

/// The runner that starts a workload is on CPU 0, and each task goes to the next CPU, from the first on: while it forks or wakes tasks that CPU is not idle, and who shall run there waits until it
/// is gone. It leaves no trace.
#[test]
fn the_runner_occupies_the_first_cpu() {
    let mut pinned = task("pinned", 1, vec![Op::RunForever]);
    pinned.cpus = Some(cpus(0, 0));
    let tasks = workload(vec![task("hog", 3, vec![Op::RunForever]), pinned]);
    let mut config = free_machine(2);
    config.lead_in_ns = 20 * MS;
    config.cost.wakeup_ns = 10_000;
    let result = simulate(&config, &policy("probe"), &[], &tasks, 40 * MS);
    let events: Vec<_> = result.trace.events().collect();
    let born = events.iter().filter_map(|event| match event.kind {
        EventKind::WakeupNew { target_cpu, .. } => Some((event.cpu, target_cpu)),
        _ => None,
    });
    assert_eq!(born.collect::<Vec<_>>(), [(0, 0), (0, 1), (0, 0), (0, 0)]);
    let woken: Vec<_> =
        events.iter().filter(|event| matches!(event.kind, EventKind::Wakeup { .. })).collect();
    let told: Vec<_> = woken.iter().map(|event| (event.cpu, event.time_ns)).collect();
    assert_eq!(told, [0, 10_000, 20_000, 30_000].map(|ns| (0, 20 * MS + ns)));
    let begins = |cpu: u32| {
        let to_task = |kind| matches!(kind, EventKind::Switch { next, .. } if next != TaskId::IDLE);
        let run = |event: &&&Event| event.cpu == cpu && event.time_ns >= 20 * MS;
        events
            .iter()
            .filter(|event| to_task(event.kind))
            .find(|event| run(&event))
            .map(|event| event.time_ns)
    };
    assert_eq!(begins(0), Some(20 * MS + 4 * 10_000), "when all wake-ups are paid for");
    assert!(begins(1) < begins(0), "{:?}", begins(1));
    assert!(result.trace.tasks().iter().all(|task| !task.comm.contains("init")));
}

/// After the last wake-up the runner goes to sleep, and pays for that before anybody else has its CPU.
#[test]
fn the_runner_goes_to_sleep() {
    let tasks = workload(vec![task("hog", 2, vec![Op::RunForever])]);
    let begins = |costs: &[(&str, u64)]| {
        let mut config = free_machine(1);
        config.lead_in_ns = 20 * MS;
        for (name, ns) in costs {
            config.cost.set(name, *ns).expect("a cost");
        }
        let result = simulate(&config, &policy("probe"), &[], &tasks, 40 * MS);
        let to_task = |kind| matches!(kind, EventKind::Switch { next, .. } if next != TaskId::IDLE);
        let mut events = result.trace.events().filter(|event| event.time_ns >= 20 * MS);
        events.find(|event| to_task(event.kind)).map(|event| event.time_ns)
    };
    assert_eq!(begins(&[("wakeup_ns", 10_000)]), Some(20 * MS + 20_000));
    let costs = [("wakeup_ns", 10_000), ("syscall_ns", 9_000), ("block_ns", 12_000)];
    assert_eq!(begins(&costs), Some(20 * MS + 20_000 + 21_000));
}

/// With a lead-in so short that tasks run while the runner still wakes others: who has a spin lock then keeps its CPU.
#[test]
fn the_runner_leaves_locks_alone() {
    let text = r#"
        format = 1
        name = "sections"
        duration = "1s"
        [locks.l]
        kind = "spin"
        [[task]]
        name = "worker"
        count = 4
        program = [{ lock = "l" }, { mark = "in" }, { run = "2ms" }, { mark = "out" }, { unlock = "l" }, { run = "forever" }]
        "#;
    let tasks = fairground_workload::parse("sections", text).expect("a workload");
    let mut config = free_machine(1);
    config.lead_in_ns = 1;
    config.cost.wakeup_ns = 100_000;
    config.cost.block_ns = 10_000;
    let set = [("preempt", "on"), ("direct", "off")];
    let result = simulate(&config, &policy("probe"), &set, &tasks, 200 * MS);
    let (mut inside, mut sections) = (false, 0);
    for event in result.trace.events() {
        match event.kind {
            EventKind::Mark { label, .. } => {
                inside = result.trace.label(label) == "in";
                sections += u32::from(inside);
            }
            EventKind::Switch { .. } => assert!(!inside, "at {} ns", event.time_ns),
            _ => {}
        }
    }
    assert_eq!(sections, 4);
}

/// To a scheduler that goes by loads over time the runner's process is what it computed: 1.65 ms for the anchor and for each task, and 0.28 ms for each
/// task later; a task, 0.95 ms until it is ready. All that is over before they are let go, but for the wake-ups, of which each costs 23.8 µs here.
#[test]
fn with_the_costs_of_a_recorded_kernel_the_runner_has_its_load() {
    let tasks = workload(vec![task("hog", 3, vec![Op::RunForever])]);
    // On one CPU, where nobody waits for a turn.
    let mut config = MachineConfig::new(1);
    config.cost = CostModel::preset("icount8-6.1-recorded").expect("a preset");
    config.lead_in_ns = 400 * MS;
    let result = simulate(&config, &policy("probe"), &[], &tasks, 500 * MS);
    let computed = |name: &str, from_ns, to_ns| {
        let stays = stays(&result.trace, name).into_iter();
        let inside = stays.filter(|(from, to)| *from >= from_ns && *to <= to_ns);
        inside.map(|(from, to)| to - from).sum::<u64>()
    };
    let runner_ns = computed("other/runner", 0, 400 * MS);
    assert!((4 * 1_650 + 3 * 280..4 * 1_650 + 2_100).contains(&(runner_ns / 1_000)), "{runner_ns}");
    let wakes_ns = computed("other/runner", 399 * MS, 500 * MS);
    assert!((80..200).contains(&(wakes_ns / 1_000)), "{wakes_ns}");
    let ready_ns = computed("hog/0", 0, 400 * MS);
    assert!((950..1_150).contains(&(ready_ns / 1_000)), "{ready_ns}");
}
