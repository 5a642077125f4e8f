//! What the machine does as a whole: queues, kicks, costs, settings, determinism.

use crate::support::{
    MS, cpu_time, cpus, free_machine, mixed, object, policy, run, simulate, sleep, task, texts,
    workload,
};
use fairground_machine::{CostModel, Engine, ExitKind, Machine, MachineConfig, Policy, Setting};
use fairground_trace::{CallbackKind, EventKind, TaskId};
use fairground_workload::{Carrier, Op, Pipe, Role, Workload};

#[test]
fn no_time_is_lost_and_no_task_runs_off_its_mask() {
    for cost in ["zero", "modern", "linux-2.6"] {
        let mut config = free_machine(4);
        config.cost = CostModel::preset(cost).expect("the preset exists");
        let result = simulate(&config, &policy("probe"), &[], &mixed(), 200 * MS);
        assert_eq!(result.exit.kind, ExitKind::Unregistered, "{cost}: {}", result.exit);
        let total: u64 = cpu_time(&result.trace, 0, 200 * MS).iter().sum();
        assert_eq!(total, 4 * 200 * MS, "{cost}");
        let named = |task: TaskId| crate::support::name(&result.trace, task).starts_with("pinned");
        for event in result.trace.events() {
            if let EventKind::Switch { next, .. } = event.kind {
                assert!(!named(next) || (1..=2).contains(&event.cpu), "{cost}: CPU {}", event.cpu);
            }
        }
        let counters = &result.counters;
        assert!(counters.affinity_moves > 40 && counters.wakeups > 200, "{cost}: {counters:?}");
    }
}

/// `trace_sched_switch` stands behind the decision: the task that leaves has the CPU until then. The callbacks of one
/// pass are all called at its beginning.
#[test]
fn a_switch_is_written_when_its_decision_is_paid_for() {
    let mut config = free_machine(1);
    config.cost.set("policy_insn_ps", 1_000_000).expect("the parameter exists");
    let hogs = workload(vec![task("hog", 3, vec![Op::RunForever])]);
    let trace = simulate(&config, &policy("probe"), &[], &hogs, 200 * MS).trace;
    let (mut decided_ns, mut late) = (0, 0);
    for event in trace.events() {
        match event.kind {
            EventKind::Callback { kind: CallbackKind::Running, .. } => decided_ns = event.time_ns,
            // At time 0 the hogs come, and hurry the first switch on.
            EventKind::Switch { .. } if decided_ns > 0 => {
                assert_eq!(event.time_ns, decided_ns + 1_000 * u64::from(event.insns));
                late += usize::from(event.insns > 0);
            }
            _ => {}
        }
    }
    assert!(late > 5, "{late}");
}

/// Each callback is paid for, and each kfunc that has a price, where the program's instructions are: here before the
/// switch.
#[test]
fn callbacks_and_kfuncs_cost_time() {
    let hogs = workload(vec![task("hog", 3, vec![Op::RunForever])]);
    let switches = |call_ns: u64| {
        let mut config = free_machine(1);
        config.cost.call_ns = call_ns;
        let trace = simulate(&config, &policy("probe"), &[], &hogs, 200 * MS).trace;
        let (mut callbacks, mut enqueues, mut since_ns, mut seen) = (0, 0, 0, Vec::new());
        for event in trace.events() {
            match event.kind {
                EventKind::Callback { kind, .. } => {
                    if std::mem::replace(&mut since_ns, event.time_ns) != event.time_ns {
                        (callbacks, enqueues) = (0, 0);
                    }
                    callbacks += 1;
                    enqueues += u64::from(kind == CallbackKind::Enqueue);
                }
                // At time 0 the hogs come.
                EventKind::Switch { .. } if since_ns > 0 => {
                    seen.push((event.time_ns - since_ns, callbacks, enqueues));
                }
                _ => {}
            }
        }
        assert!(seen.len() > 5, "{call_ns}: {seen:?}");
        seen
    };
    for (late_ns, callbacks, enqueues) in switches(1_000) {
        // A task that has to make room is inserted anew; the task that comes is moved from the one queue.
        assert_eq!(late_ns, 1_000 * (callbacks + enqueues + 1));
    }
    assert!(switches(0).iter().all(|(late_ns, ..)| *late_ns == 0));
}

/// The global queue, which a scheduler without callbacks uses, hands pinned tasks to their CPUs only.
#[test]
fn the_global_queue_respects_affinity() {
    let mut pinned = task("pinned", 3, vec![Op::Loop(None, vec![run(MS), sleep(MS / 2)])]);
    pinned.cpus = Some(cpus(1, 1));
    let w = workload(vec![pinned, task("hog", 2, vec![Op::RunForever])]);
    let result = simulate(&free_machine(2), &policy("minimal"), &[], &w, 500 * MS);
    assert_eq!(result.exit.kind, ExitKind::Unregistered, "{}", result.exit);
    for event in result.trace.events() {
        if let EventKind::Switch { next, .. } = event.kind {
            assert!(
                !crate::support::name(&result.trace, next).starts_with("pinned") || event.cpu == 1
            );
        }
    }
}

#[test]
fn both_engines_and_every_repetition_give_the_same_bytes() {
    let object = object("probe");
    let run_with = |engine| {
        let policy = Policy::load(&object, engine).unwrap_or_else(|e| panic!("{e}"));
        let mut config = free_machine(4);
        config.cost = CostModel::default();
        simulate(&config, &policy, &[("preempt", "on")], &mixed(), 100 * MS)
    };
    let (a, b, c) = (run_with(Engine::Jit), run_with(Engine::Jit), run_with(Engine::Interpreter));
    assert!(a.trace.len() > 5_000, "{}", a.trace.len());
    for other in [b, c] {
        assert!(a.trace.events().eq(other.trace.events()));
        assert_eq!((&a.counters, &a.exit), (&other.counters, &other.exit));
    }
}

#[test]
fn a_run_in_pieces_is_the_same_run() {
    let (config, policy, w) = (free_machine(4), policy("probe"), mixed());
    let whole = simulate(&config, &policy, &[], &w, 50 * MS);
    let mut machine = Machine::new(&config, &policy, &[], &w).unwrap();
    for until in (0..=50 * MS).step_by(777_777) {
        machine.run_until(until).unwrap();
        assert_eq!(machine.now_ns(), until);
    }
    machine.run_until(50 * MS).unwrap();
    let pieces = machine.finish().unwrap();
    assert!(whole.trace.events().eq(pieces.trace.events()));
}

#[test]
fn slices_end_at_ticks() {
    let w = workload(vec![task("a", 1, vec![Op::RunForever]), task("b", 1, vec![Op::RunForever])]);
    for (hz, slice_ns, turn_ns) in
        [(1000, "3ms", 3 * MS), (250, "3ms", 4 * MS), (100, "3ms", 10 * MS)]
    {
        let mut config = free_machine(1);
        config.hz = hz;
        config.trace.callbacks = false;
        let result = simulate(&config, &policy("probe"), &[("slice_ns", slice_ns)], &w, 400 * MS);
        let switches: Vec<u64> = result
            .trace
            .events()
            .filter(|e| matches!(e.kind, EventKind::Switch { .. }))
            .map(|e| e.time_ns)
            .collect();
        assert!(switches.windows(2).all(|pair| pair[1] - pair[0] == turn_ns), "{hz}: {switches:?}");
    }
}

#[test]
fn costs_are_charged_to_the_cpu_where_they_happen() {
    let w = workload(vec![task("a", 1, vec![Op::Loop(None, vec![run(100_000), sleep(900_000)])])]);
    let mut config = free_machine(1);
    config.cost.context_switch_ns = 1_000;
    config.cost.timer_irq_ns = 200;
    config.cost.wakeup_ns = 300;
    config.cost.idle_exit_ns = 50;
    let result = simulate(&config, &policy("probe"), &[], &w, 10 * MS);
    let switches: Vec<(u64, bool)> = result
        .trace
        .events()
        .filter_map(|e| match e.kind {
            EventKind::Switch { next, .. } => Some((e.time_ns, next.is_idle())),
            _ => None,
        })
        .collect();
    // In at 0, out after the switch's cost and the burst; the next timer comes 900 us after that, and the switch after
    // the idle state is left, the interrupt handled and the task woken.
    assert_eq!(switches[..4], [(0, false), (101_000, true), (1_001_550, false), (1_102_550, true)]);
}

#[test]
fn the_schedulers_instructions_cost_time() {
    let w = workload(vec![task("a", 2, vec![Op::Loop(None, vec![run(100_000), sleep(400_000)])])]);
    let mut config = free_machine(1);
    config.cost.policy_insn_ps = 1_000_000;
    let result = simulate(&config, &policy("probe"), &[], &w, 50 * MS);
    let mut at = result.trace.events().filter(|e| matches!(e.kind, EventKind::Switch { .. }));
    let first = at.next().expect("there are switches");
    assert!(first.insns > 5, "{first:?}");
    let second = at.next().expect("there are switches");
    assert!(second.time_ns >= 100_000 + u64::from(first.insns) * 1_000, "{first:?} {second:?}");
}

#[test]
fn a_kick_with_preempt_ends_the_slice_and_one_without_does_not() {
    let w = workload(vec![
        task("nap", 1, vec![sleep(MS / 2), Op::RunForever]),
        task("hog", 1, vec![Op::RunForever]),
    ]);
    let config = free_machine(1);
    let hog_left = |set: &[(&str, &str)]| {
        let result = simulate(&config, &policy("probe"), set, &w, 10 * MS);
        let left = result.trace.events().find(|e| match e.kind {
            EventKind::Switch { prev, .. } => {
                crate::support::name(&result.trace, prev) == "hog" && e.time_ns >= MS / 2
            }
            _ => false,
        });
        left.expect("the hog is switched out").time_ns
    };
    let base = [("direct", "off"), ("slice_ns", "3ms")];
    assert_eq!(hog_left(&base), 3 * MS);
    assert_eq!(hog_left(&[&base[..], &[("kick_flags", "2")]].concat()), MS / 2);
    assert_eq!(hog_left(&[&base[..], &[("kick_flags", "0x8000000000000000")]].concat()), 3 * MS);
    assert_eq!(hog_left(&[&base[..], &[("kick_flags", "1")]].concat()), 3 * MS);
    assert_eq!(
        hog_left(&[&base[..], &[("to_local", "on"), ("enq_flags_more", "0x100000000")]].concat()),
        MS / 2
    );
    assert_eq!(
        hog_left(&[&base[..], &[("to_local", "on"), ("enq_flags_more", "16")]].concat()),
        3 * MS
    );
}

#[test]
fn an_idle_kick_wakes_an_idle_cpu_after_the_interrupt() {
    let mut pinned = task("nap", 1, vec![sleep(MS / 2), Op::RunForever]);
    pinned.cpus = Some(cpus(0, 0));
    let w = workload(vec![pinned, task("hog", 1, vec![Op::RunForever])]);
    let mut config = free_machine(2);
    config.cost.ipi_ns = 700;
    config.cost.idle_exit_ns = 40;
    let set = [("direct", "off"), ("kick_flags", "1"), ("kick_cpu", "1")];
    let result = simulate(&config, &policy("probe"), &set, &w, 2 * MS);
    // The nap is queued for CPU 0, where the hog runs; the kick has CPU 1 look into the shared queue, where it may not
    // run. At time 0 each CPU goes idle.
    let looked = result.trace.events().find(|e| e.cpu == 1 && e.time_ns > 0);
    let looked = looked.expect("CPU 1 does something");
    assert_eq!(looked.time_ns, MS / 2 + 740, "{looked:?}");
    assert_eq!(result.counters.ipis, 1);
}

#[test]
fn settings_apply_at_the_start_and_during_the_run() {
    let w = workload(vec![task("a", 1, vec![Op::RunForever]), task("b", 1, vec![Op::RunForever])]);
    let settings = [Setting::initial("slice_ns", "2ms"), Setting::at(10 * MS, "slice_ns", "5ms")];
    let mut machine = Machine::new(&free_machine(1), &policy("probe"), &settings, &w).unwrap();
    machine.run_until(40 * MS).unwrap();
    let result = machine.finish().unwrap();
    let times: Vec<u64> = result
        .trace
        .events()
        .filter(|e| matches!(e.kind, EventKind::Switch { .. }))
        .map(|e| e.time_ns / MS)
        .collect();
    assert_eq!(times, [0, 2, 4, 6, 8, 10, 12, 17, 22, 27, 32, 37]);
    assert!(result.trace.events().any(|e| e.time_ns == 10 * MS
        && matches!(e.kind, EventKind::Param { label } if result.trace.label(label) == "slice_ns=5ms")));
}

#[test]
fn what_cannot_be_set_or_simulated_is_refused() {
    let (policy, w) = (policy("probe"), workload(vec![task("a", 1, vec![Op::RunForever])]));
    let error = |config: &MachineConfig, setting: &[Setting], w: &Workload| {
        Machine::new(config, &policy, setting, w).expect_err("it is refused").to_string()
    };
    let config = free_machine(2);
    assert_eq!(
        error(&config, &[Setting::initial("slize_ns", "1")], &w),
        "the scheduler `probe` has no variable `slize_ns`; did you mean `slice_ns`?"
    );
    assert!(
        error(&config, &[Setting::initial("direct", "perhaps")], &w).contains("give `on` or `off`")
    );
    assert!(error(&config, &[Setting::initial("fault", "BOGUS")], &w).contains("`BOGUS_DSQ`"));
    assert!(error(&free_machine(0), &[], &w).contains("0 CPUs"));
    assert!(error(&free_machine(2000), &[], &w).contains("1 to 1024"));
    let mut nowhere = task("a", 1, vec![Op::RunForever]);
    nowhere.cpus = Some(cpus(5, 9));
    assert!(error(&config, &[], &workload(vec![nowhere])).contains("does not have"));
}

#[test]
fn objects_that_are_no_schedulers_are_refused() {
    let error = Policy::load(&object("plain"), Engine::Jit).expect_err("no scheduler").to_string();
    assert!(error.contains("no `struct sched_ext_ops`"), "{error}");
    let policy = Policy::load(&object("unknown"), Engine::Jit).expect("it is looked at later");
    let obstacles = policy.obstacles();
    assert_eq!(obstacles.len(), 1, "{obstacles:?}");
    assert!(obstacles[0].reason.contains("scx_bpf_make_coffee"), "{obstacles:?}");
}

#[test]
fn a_workload_that_takes_no_time_is_an_error_not_a_hang() {
    let w = workload(vec![task("spin", 1, vec![Op::Loop(None, vec![Op::Mark("x".to_owned())])])]);
    let mut machine = Machine::new(&free_machine(1), &policy("probe"), &[], &w).unwrap();
    let error = machine.run_until(MS).expect_err("it never ends").to_string();
    assert!(error.contains("takes no time"), "{error}");
}

#[test]
fn tasks_come_and_go_without_end() {
    let mut child = task("child", 20, vec![run(10_000)]);
    child.start_ns = None;
    let w = workload(vec![
        task("parent", 1, vec![Op::Loop(Some(200), vec![Op::Fork(1), Op::WaitChildren])]),
        child,
    ]);
    let mut config = free_machine(4);
    config.max_tasks = 64;
    config.trace.callbacks = false;
    let result = simulate(&config, &policy("probe"), &[], &w, 1_000 * MS);
    assert_eq!(result.trace.tasks().len(), 1 + 1 + 200 * 20);
    assert_eq!(result.exit.kind, ExitKind::Unregistered, "{}", result.exit);
}

#[test]
fn a_program_learns_of_the_kernel_that_it_runs_on() {
    let mut nice = task("nice", 1, vec![sleep(50 * MS), run(MS)]);
    nice.nice = -5;
    nice.cpus = Some(cpus(1, 1));
    let policy = policy("config");
    for hz in [100, 250] {
        let mut config = free_machine(3);
        config.hz = hz;
        let result = simulate(&config, &policy, &[], &workload(vec![nice.clone()]), 100 * MS);
        let log = texts(&result.log);
        assert_eq!(log[0], format!("HZ {hz} version 70200 CPUs 3"));
        assert_eq!(log[1..3], ["nice pid 1000 prio 115", "weight 305 cpus 1 now 0"]);
        assert_eq!(log[5], "weight 305 cpus 1 now 50000000");
        assert_eq!(log[6], format!("jiffies {} on CPU 1", 50 * hz / 1000));
    }
}

/// The client wakes the server and then calls for sleep, which it reaches 10 us later: by then the server has answered.
#[test]
fn a_wake_up_before_the_task_sleeps_is_not_lost() {
    let on = |name, cpu, body| {
        let mut spec = task(name, 1, vec![Op::Loop(None, body)]);
        spec.cpus = Some(cpus(cpu, cpu));
        spec
    };
    let mut w = workload(vec![
        on("server", 0, vec![Op::PipeRead(0, 1), Op::PipeWrite(1, 1)]),
        on("client", 1, vec![Op::PipeWrite(0, 1), Op::PipeRead(1, 1), run(1_000)]),
    ]);
    w.pipes = vec![
        Pipe { name: "request".to_owned(), capacity: 4096, carrier: Carrier::Pipe },
        Pipe { name: "answer".to_owned(), capacity: 4096, carrier: Carrier::Pipe },
    ];
    let mut config = free_machine(2);
    config.cost.wakeup_ns = 10_000;
    let result = simulate(&config, &policy("probe"), &[], &w, 10 * MS);
    let spared = result.counters.wakeups - result.counters.callbacks(CallbackKind::Runnable);
    assert!(spared > 300, "woken before they slept: {spared}");
    assert!(result.counters.wakeups > 500, "{}", result.counters.wakeups);
}

/// The interrupt that tells another CPU of a wake-up leaves when the wake-up is paid for.
#[test]
fn a_reschedule_interrupt_follows_the_work_that_leads_to_it() {
    let mut sleeper = task("sleeper", 1, vec![sleep(100 * MS), Op::RunForever]);
    sleeper.cpus = Some(cpus(1, 1));
    let mut waker = task("waker", 1, vec![run(MS), Op::Signal(Role::All(0)), Op::RunForever]);
    waker.cpus = Some(cpus(0, 0));
    let mut config = free_machine(2);
    for (name, ns) in [("wakeup_ns", 5_000), ("ipi_ns", 700), ("idle_exit_ns", 30)] {
        config.cost.set(name, ns).expect("a cost of that name");
    }
    let result = simulate(&config, &policy("probe"), &[], &workload(vec![sleeper, waker]), 10 * MS);
    let waking = result.trace.events().find(|e| matches!(e.kind, EventKind::Waking { .. }));
    let waking_ns = waking.expect("a wake-up").time_ns;
    let woken = result.trace.events().find(|e| {
        e.time_ns > waking_ns && e.cpu == 1 && matches!(e.kind, EventKind::Switch { .. })
    });
    assert_eq!(woken.expect("it runs").time_ns - waking_ns, 5_000 + 700 + 30);
}
