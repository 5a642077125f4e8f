//! Virtual CPUs that execute in turns on one thread (`turn_ns`): what then goes on one after the other, and what does not.

use crate::support::{MS, cpus, free_machine, policy, run, simulate, sleep, stays, task, workload};
use fairground_machine::{CostModel, MachineConfig};
use fairground_trace::EventKind;
use fairground_workload::{Carrier, Op, Pipe, TaskSpec, Workload};

const US: u64 = 1_000;

fn turns(cpus: u32) -> MachineConfig {
    let mut config = free_machine(cpus);
    config.cost.turn_ns = 200 * US;
    config
}

/// A group of one task that stays on a CPU.
fn on(name: &str, cpu: u32, program: Vec<Op>) -> TaskSpec {
    let mut spec = task(name, 1, program);
    spec.cpus = Some(cpus(cpu, cpu));
    spec
}

fn two_sleepers() -> Workload {
    let program = || vec![sleep(MS), run(50 * US), sleep(100 * MS)];
    workload(vec![on("a", 0, program()), on("b", 1, program())])
}

/// Two tasks that wake up at once on two CPUs: the second one's CPU sees its timer when the first has come to rest.
#[test]
fn short_work_on_two_cpus_goes_on_one_after_the_other() {
    let at_once = simulate(&free_machine(2), &policy("probe"), &[], &two_sleepers(), 3 * MS);
    for name in ["a", "b"] {
        assert_eq!(stays(&at_once.trace, name)[1], (MS, MS + 50 * US), "{name}");
    }
    let in_turns = simulate(&turns(2), &policy("probe"), &[], &two_sleepers(), 3 * MS);
    assert_eq!(stays(&in_turns.trace, "a")[1], (MS, MS + 50 * US));
    assert_eq!(stays(&in_turns.trace, "b")[1], (MS + 50 * US, MS + 100 * US));
}

/// A timer takes the turn from a CPU that executes, and a new round begins with the lowest number: who has a higher one loses the turn and
/// is charged the time until it has it again; who has a lower one goes on, and the timer is seen when it has come to rest.
#[test]
fn a_timer_takes_the_turn_away() {
    let short_and_long = |short_cpu, long_cpu| {
        let w = workload(vec![
            on("long", long_cpu, vec![sleep(MS), run(150 * US), sleep(100 * MS)]),
            on("short", short_cpu, vec![sleep(MS + 40 * US), run(10 * US), sleep(100 * MS)]),
        ]);
        let result = simulate(&turns(2), &policy("probe"), &[], &w, 3 * MS);
        (stays(&result.trace, "short")[1], stays(&result.trace, "long")[1])
    };
    let short = (MS + 40 * US, MS + 50 * US);
    assert_eq!(short_and_long(0, 1), (short, (MS, MS + 160 * US)));
    let short = (MS + 150 * US, MS + 160 * US);
    assert_eq!(short_and_long(1, 0), (short, (MS, MS + 150 * US)));
}

/// Two sleeps that end at once, one of them beside a hog. The first interrupt sets its CPU's timer for the next sleep; the other CPU's has expired, too, and is
/// not set, so that is the next timer of all and the other CPU has its turn: at the end of the interrupt, or, where that leaves it to the
/// switch that it asks for, shortly before that switch is over.
#[test]
fn setting_the_next_timer_of_all_costs_the_turn() {
    let sleeper = |name, cpu, start_us: u64, sleep_us: u64| {
        let mut spec = on(name, cpu, vec![sleep(sleep_us * US), run(50 * US), sleep(100 * MS)]);
        spec.start_ns = Some(start_us * US);
        spec
    };
    // Each begins alone, so that the sleeps of `a` and `b` end at once. The third one's end is the first CPU's next timer.
    let w = workload(vec![
        sleeper("a", 0, 0, 1_000),
        sleeper("b", 1, 500, 500),
        sleeper("later", 0, 200, 2_000),
        on("hog", 0, vec![Op::RunForever]),
    ]);
    let second_woken_ns = |timer_set_ns| {
        let mut config = turns(2);
        for (name, ns) in
            [("wakeup_ns", 20 * US), ("context_switch_ns", 10 * US), ("timer_set_ns", timer_set_ns)]
        {
            config.cost.set(name, ns).expect("a cost");
        }
        let result = simulate(&config, &policy("probe"), &[("preempt", "on")], &w, 3 * MS);
        let trace = &result.trace;
        let woken = trace.events().filter_map(|event| match event.kind {
            EventKind::Waking { task, .. } => {
                Some((crate::support::name(trace, task), event.time_ns))
            }
            _ => None,
        });
        let woken: Vec<(&str, u64)> = woken.collect();
        assert_eq!((woken[0].0, woken[1].0), ("a", "b"));
        woken[1].1 - woken[0].1
    };
    assert_eq!(second_woken_ns(0), 20 * US);
    assert_eq!(second_woken_ns(3 * US), 20 * US + 10 * US - 3 * US);
}

/// A long computation gives its turn away all the time: one beside hogs takes as long as it would alone, though it needs turns for
/// the ticks in it and for its end; and a sleeper beside them waits for 2 µs of each of them now and then.
#[test]
fn long_computations_delay_nobody_much() {
    let sleeper = || on("sleeper", 0, vec![Op::Loop(None, vec![run(50 * US), sleep(MS)])]);
    let hog = |cpu| on("hog", cpu, vec![Op::RunForever]);
    let mut config = turns(4);
    config.cost.set("context_switch_ns", 10_000).expect("a cost");
    config.cost.set("wakeup_ns", 20_000).expect("a cost");
    let alone = simulate(&config, &policy("probe"), &[], &workload(vec![sleeper()]), 20 * MS);
    let alone = stays(&alone.trace, "sleeper");
    assert!(alone.len() > 15 && alone.iter().all(|(from, to)| to - from == 60 * US), "{alone:?}");
    let beside = workload(vec![sleeper(), hog(1), hog(2), hog(3)]);
    let beside = simulate(&config, &policy("probe"), &[], &beside, 20 * MS);
    let beside: Vec<u64> =
        stays(&beside.trace, "sleeper").iter().map(|(from, to)| to - from).collect();
    assert!(beside.len() > 15 && beside.iter().all(|ns| *ns >= 60 * US), "{beside:?}");
    let (none, most) = (60 * US, 60 * US + 3 * 2 * US);
    let within = beside.iter().filter(|ns| (none..=most).contains(*ns)).count();
    assert!(within * 10 >= beside.len() * 9, "{beside:?}");

    let long = workload(vec![on("long", 0, vec![sleep(MS), run(5 * MS), sleep(MS)]), hog(1)]);
    let mut config = turns(2);
    config.cost.set("tick_ns", 25_000).expect("a cost");
    let result = simulate(&config, &policy("probe"), &[], &long, 10 * MS);
    let (from, to) = stays(&result.trace, "long")[1];
    let ticks_ns = (to / MS - from / MS) * 25 * US;
    let took_ns = to - from - 5 * MS - ticks_ns;
    assert!(took_ns <= 60 * US, "{took_ns}");
}

/// A timer expires while both CPUs compute, which begins a round: the second CPU sees its own when the first has had its 2 us, or what is left of
/// them where the timer has stopped that one; the first CPU sees its own at once. So of two like sleepers the second one's rounds are longer.
#[test]
fn a_timer_of_the_second_cpu_waits_for_what_the_first_computes() {
    let woken_late_ns = |cpu: u32| {
        let sleeper = vec![Op::Loop(None, vec![run(10 * US), sleep(MS)])];
        let hogs = |cpu| on("hog", cpu, vec![Op::RunForever]);
        let w = workload(vec![on("sleeper", cpu, sleeper), hogs(0), hogs(1)]);
        let result = simulate(&turns(2), &policy("probe"), &[("preempt", "on")], &w, 400 * MS);
        let stays = stays(&result.trace, "sleeper");
        let woken = result.trace.events().filter(|e| matches!(e.kind, EventKind::Waking { .. }));
        let slept = stays.iter().zip(woken).map(|(stay, woken)| woken.time_ns - stay.1 - MS);
        let slept: Vec<u64> = slept.collect();
        assert!(slept.len() > 300 && slept.iter().all(|late_ns| *late_ns <= 2 * US), "{slept:?}");
        slept.iter().sum::<u64>() / slept.len() as u64
    };
    assert_eq!(woken_late_ns(0), 0);
    let mean_ns = woken_late_ns(1);
    assert!(
        (1_300..1_700).contains(&mean_ns),
        "half of the times 2 us, else 1 us on average: {mean_ns}"
    );
}

/// One that wakes a task on another CPU goes on until it sleeps itself; then comes the other CPU.
#[test]
fn a_waker_goes_on_until_it_sleeps() {
    let mut w = workload(vec![
        on("ping", 0, vec![Op::Loop(None, vec![Op::PipeWrite(0, 1), Op::PipeRead(1, 1)])]),
        on("pong", 1, vec![Op::Loop(None, vec![Op::PipeRead(0, 1), Op::PipeWrite(1, 1)])]),
    ]);
    for name in ["there", "back"] {
        w.pipes.push(Pipe { name: name.to_owned(), capacity: 4096, carrier: Carrier::Pipe });
    }
    let hop_ns = |mut config: MachineConfig, enqueues: &str| {
        for (name, ns) in [("syscall_ns", 10_000), ("wakeup_ns", 20_000), ("block_ns", 5_000)] {
            config.cost.set(name, ns).expect("a cost");
        }
        config.cost.set(enqueues, 7_000).expect("a cost");
        let result = simulate(&config, &policy("probe"), &[], &w, 10 * MS);
        let mut wakings = result.trace.events().filter_map(|event| match event.kind {
            EventKind::Waking { .. } => Some(event.time_ns),
            _ => None,
        });
        let (_, then_ns) = (wakings.nth(5), wakings.next().expect("wake-ups"));
        wakings.next().expect("wake-ups") - then_ns
    };
    // Woken, told, the write of the woken one: the waker's way into sleep goes on at the same time.
    // Who puts the woken one into the queue makes no difference to that.
    for enqueues in ["enqueue_remote_ns", "wake_list_ns"] {
        assert_eq!(hop_ns(free_machine(2), enqueues), 20_000 + 7_000 + 10_000);
        // The waker's read and its way into sleep come first.
        assert_eq!(hop_ns(turns(2), enqueues), 20_000 + 10_000 + 5_000 + 7_000 + 10_000);
    }
}

/// A task that is woken for another CPU, which is idle, is in no queue until that CPU has its turn: the waker cannot take it, which goes idle first.
#[test]
fn a_task_on_a_wake_list_cannot_be_pulled() {
    let mut woken = task("woken", 1, vec![Op::Receive(0, 1), run(MS)]);
    woken.cpus = Some(cpus(1, 1));
    let waker = on("waker", 0, vec![run(300 * US), Op::Send(0), run(20 * US)]);
    let mut w = workload(vec![woken, waker]);
    w.queues.push(fairground_workload::Queue {
        name: "call".to_owned(),
        capacity: None,
        initial: 0,
    });
    let enqueued_on = |name: &str| {
        let mut config = turns(2);
        config.cost.set(name, 7_000).expect("a cost");
        config.cost.set("wakeup_ns", 20_000).expect("a cost");
        let result = simulate(&config, &policy("probe"), &[], &w, 5 * MS);
        let mut wakeups = result.trace.events().filter_map(|event| match event.kind {
            EventKind::Wakeup { target_cpu: 1, .. } => Some(event.cpu),
            _ => None,
        });
        wakeups.next_back().expect("a wake-up")
    };
    assert_eq!([enqueued_on("enqueue_remote_ns"), enqueued_on("wake_list_ns")], [0, 1]);
}

/// Letting others come first after a few operations is what the runner's tasks do in a guest. The kernel's threads do not: RCU's is back asleep after
/// its own time, however much the other CPU has to do in the kernel.
#[test]
fn the_kernel_s_threads_keep_their_turns() {
    let mut child = task("child", 2, vec![run(300 * US)]);
    child.start_ns = None;
    let rounds = vec![Op::Loop(None, vec![Op::Fork(1), Op::WaitChildren])];
    let w = workload(vec![task("parent", 2, rounds), child]);
    let mut config = turns(2);
    for (name, us) in [("fork_ns", 1_000), ("exit_ns", 2_000), ("rcu_ns", 30), ("syscall_ns", 10)] {
        config.cost.set(name, us * US).expect("a cost");
    }
    let result = simulate(&config, &policy("probe"), &[("preempt", "on")], &w, 400 * MS);
    let stays = stays(&result.trace, "other/rcu_preempt");
    let long = stays.iter().filter(|(from, to)| to - from > 100 * US).count();
    assert!(stays.len() > 50 && long * 20 < stays.len(), "{long} of {}", stays.len());
}

/// One CPU has nobody to take turns with.
#[test]
fn on_one_cpu_nothing_changes() {
    let program = || vec![Op::Loop(None, vec![run(70 * US), sleep(300 * US)])];
    let w = workload(vec![task("a", 3, program()), task("hog", 2, vec![Op::RunForever])]);
    let with = |turn_ns| {
        let mut config = MachineConfig::new(1);
        config.cost = CostModel::preset("icount8-6.1-recorded").expect("a preset");
        config.cost.turn_ns = turn_ns;
        let result = simulate(&config, &policy("probe"), &[], &w, 50 * MS);
        result.trace.events().collect::<Vec<_>>()
    };
    assert_eq!(with(200 * US), with(0));
}

/// Everything that a machine can be asked for, under the checker's eyes, and twice the same.
#[test]
fn whatever_happens_the_books_are_right() {
    let mut child = task("child", 3, vec![run(300 * US)]);
    child.start_ns = None;
    let w = workload(vec![
        task("hog", 3, vec![Op::RunForever]),
        task("sleeper", 6, vec![Op::Loop(None, vec![run(40 * US), sleep(200 * US)])]),
        task("parent", 2, vec![Op::Loop(None, vec![sleep(2 * MS), Op::Fork(3), Op::WaitChildren])]),
        child,
        task("polite", 2, vec![Op::Loop(None, vec![run(50 * US), Op::Yield])]),
        task(
            "mover",
            1,
            vec![Op::Loop(
                None,
                vec![
                    run(400 * US),
                    Op::SetAffinity(cpus(0, 0)),
                    sleep(MS),
                    Op::SetAffinity(cpus(1, 3)),
                ],
            )],
        ),
    ]);
    let once = || {
        let mut config = turns(4);
        let turn_ns = config.cost.turn_ns;
        config.cost = CostModel::preset("icount8-6.1-recorded").expect("a preset");
        assert_eq!(config.cost.turn_ns, turn_ns);
        config.lead_in_ns = 5 * MS;
        let result = simulate(&config, &policy("probe"), &[], &w, 200 * MS);
        result.trace.events().collect::<Vec<_>>()
    };
    let first = once();
    assert!(first.len() > 2_000, "{}", first.len());
    assert_eq!(first, once());
}
