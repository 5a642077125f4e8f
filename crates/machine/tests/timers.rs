//! Sleeps that end at ticks: machines without high-resolution timers.

use crate::support::{
    MS, cpus, free_machine, name, policy, run, simulate, sleep, stays, task, workload,
};
use fairground_machine::{MachineConfig, SleepTimers};
use fairground_trace::{EventKind, TaskId, Trace};
use fairground_workload::{Op, Timer, Workload};

const US: u64 = 1_000;

fn machine(cpus: u32, hz: u32) -> MachineConfig {
    MachineConfig { timers: SleepTimers::Jiffies, hz, ..free_machine(cpus) }
}

/// When a task was woken, µs, and where.
fn wakings(trace: &Trace, who: &str) -> Vec<(u64, u32)> {
    let events = trace.events().filter_map(|event| match event.kind {
        EventKind::Waking { task, .. } if name(trace, task) == who => {
            Some((event.time_ns / US, event.cpu))
        }
        _ => None,
    });
    events.collect()
}

fn simulated(config: &MachineConfig, workload: &Workload, until_ns: u64) -> Trace {
    simulate(config, &policy("minimal"), &[], workload, until_ns).trace
}

/// A timer's interrupt wakes, whichever task the CPU runs.
#[test]
fn a_sleep_is_not_ended_by_the_task_that_runs() {
    let hog = task("hog", 1, vec![Op::RunForever]);
    let sleeper = task("sleeper", 1, vec![Op::Loop(None, vec![run(MS), sleep(3 * MS)])]);
    let workload = workload(vec![hog, sleeper]);
    for config in [machine(1, 250), free_machine(1)] {
        let trace = simulated(&config, &workload, 100 * MS);
        let wakers = trace.events().filter_map(|event| match event.kind {
            EventKind::Waking { waker, .. } => Some(waker),
            _ => None,
        });
        let wakers: Vec<TaskId> = wakers.collect();
        assert!(wakers.len() > 2 && wakers.iter().all(|waker| waker.is_idle()), "{wakers:?}");
    }
}

/// `hrtimer_run_queues`: at the first tick that finds the clock of the tick before it behind the expiry.
#[test]
fn a_sleep_ends_when_the_clock_of_the_previous_tick_is_past_it() {
    for (hz, length_ns, end_us) in [
        (1000, 900 * US - 1, 2_000),
        (1000, 900 * US, 3_000),
        (1000, MS, 3_000),
        (1000, 1_900 * US - 1, 3_000),
        (1000, 1_900 * US, 4_000),
        (250, 900 * US, 8_000),
        (250, 3_900 * US - 1, 8_000),
        (250, 4 * MS, 12_000),
        (100, 15 * MS, 30_000),
    ] {
        let sleeper = task("sleeper", 1, vec![run(100 * US), sleep(length_ns)]);
        let trace = simulated(&machine(1, hz), &workload(vec![sleeper]), 100 * MS);
        assert_eq!(wakings(&trace, "sleeper"), [(end_us, 0)], "{length_ns} ns at {hz} Hz");
    }
}

/// A timer that was armed for a time is compared with that clock, too.
#[test]
fn a_periodic_timer_expires_by_the_clock_of_the_previous_tick() {
    let program = vec![Op::Loop(None, vec![Op::TimerWait(0, 4 * MS)])];
    let mut workload = workload(vec![task("beat", 1, program)]);
    workload.timers = vec![Timer::new("beat", 4 * MS)];
    let trace = simulated(&machine(1, 1000), &workload, 20 * MS);
    let at: Vec<u64> = wakings(&trace, "beat").into_iter().map(|(at_us, _)| at_us).collect();
    assert!(at.len() > 2 && at.windows(2).all(|pair| pair[1] - pair[0] == 4_000), "{at:?}");
    assert!(at.iter().all(|at_us| at_us % 4_000 == 2_000), "{at:?}");
}

/// Two sleeps that end in one interrupt: the second is woken when the first one's wake-up is paid for; what the
/// interrupt itself costs comes behind both. So it does when the second may end only after the first has had its time,
/// in the slack, but before the look at the clock.
#[test]
fn an_interrupt_costs_its_own_part_behind_all_whom_it_wakes() {
    for apart_ns in [0, 50 * US, 52 * US, 53 * US] {
        let sleeper = |name, ns| task(name, 1, vec![run(US), sleep(ns), run(US)]);
        let tasks = vec![sleeper("first", 900 * US), sleeper("second", 900 * US + apart_ns)];
        let mut config = free_machine(1);
        for (name, ns) in
            [("timer_irq_ns", 6 * US), ("wakeup_ns", 20 * US), ("timer_slack_ns", 50 * US)]
        {
            config.cost.set(name, ns).expect("a cost");
        }
        let trace = simulated(&config, &workload(tasks), 5 * MS);
        let at = |who: &str| wakings(&trace, who)[0].0;
        let on = |who: &str| stays(&trace, who)[1].0 / US;
        let woken = at("first");
        // The second one's sleep begins 1 µs later.
        let together = apart_ns < 52 * US;
        assert_eq!(
            at("second") - woken,
            if together { 20 } else { apart_ns / US + 1 },
            "{apart_ns}"
        );
        let behind = if together { 20 + 20 + 6 } else { 20 + 6 };
        assert_eq!(on("first") - woken, behind, "{apart_ns}");
    }
}

/// A sleeper of 900 us wakes every second tick if it goes to sleep again at once, and every third if it runs for a
/// tenth of a tick first; with high-resolution timers, at its time.
#[test]
fn a_sleep_of_900_us_takes_two_ticks_or_three() {
    let sleeper = |run_us| {
        let program = vec![Op::Loop(None, vec![sleep(900 * US), run(run_us * US)])];
        workload(vec![task("sleeper", 1, program)])
    };
    let trace = simulated(&machine(1, 1000), &sleeper(10), 7 * MS);
    assert_eq!(wakings(&trace, "sleeper"), [(2_000, 0), (4_000, 0), (6_000, 0)]);
    let trace = simulated(&machine(1, 1000), &sleeper(100), 9 * MS);
    assert_eq!(wakings(&trace, "sleeper"), [(2_000, 0), (5_000, 0), (8_000, 0)]);
    let trace = simulated(&free_machine(1), &sleeper(10), 2 * MS);
    assert_eq!(wakings(&trace, "sleeper"), [(900, 0), (1_810, 0)]);
}

/// The tick of the CPU that armed the timer wakes the task, after what the tick does itself; on an idle CPU too.
#[test]
fn the_tick_of_the_sleeper_s_cpu_wakes_it() {
    let mut hog = task("hog", 1, vec![Op::RunForever]);
    hog.cpus = Some(cpus(0, 0));
    let mut busy = task("busy", 1, vec![sleep(MS)]);
    busy.cpus = Some(cpus(0, 0));
    let mut idle = task("idle", 1, vec![sleep(MS)]);
    idle.cpus = Some(cpus(1, 1));
    let mut config = machine(2, 1000);
    config.trace.ticks = true;
    let trace = simulated(&config, &workload(vec![busy, idle, hog]), 5 * MS);
    assert_eq!(wakings(&trace, "busy"), [(3_000, 0)]);
    assert_eq!(wakings(&trace, "idle"), [(3_000, 1)]);
    let at_3_ms: Vec<&str> = trace
        .events()
        .filter(|event| event.time_ns == 3 * MS)
        .filter_map(|event| match event.kind {
            EventKind::Tick { .. } => Some("tick"),
            EventKind::Waking { .. } => Some("waking"),
            _ => None,
        })
        .collect();
    assert_eq!(at_3_ms, ["tick", "waking", "waking"]);
}

/// The machine with costs of interrupts and slack, µs: timer 10, wake-up 20, tick 15, slack 50.
fn with_slack() -> MachineConfig {
    let mut config = free_machine(1);
    config.hz = 250;
    for (name, us) in
        [("timer_slack_ns", 50), ("timer_irq_ns", 10), ("wakeup_ns", 20), ("tick_ns", 15)]
    {
        config.cost.set(name, us * US).expect("the parameter exists");
    }
    config
}

fn sleeps(name: &str, length_ns: u64) -> fairground_workload::TaskSpec {
    task(name, 1, vec![sleep(length_ns)])
}

/// `hrtimer_interrupt`: the interrupt at the end of one sleep's slack also ends those whose slack has begun, one after
/// the other.
#[test]
fn sleeps_whose_slack_overlaps_end_in_one_interrupt() {
    let tasks = vec![sleeps("late", MS + 30 * US), sleeps("early", MS), sleeps("other", 2 * MS)];
    let trace = simulated(&with_slack(), &workload(tasks), 10 * MS);
    assert_eq!(wakings(&trace, "early"), [(1_050, 0)]);
    assert_eq!(wakings(&trace, "late"), [(1_070, 0)], "behind a wake-up");
    assert_eq!(wakings(&trace, "other"), [(2_050, 0)]);
    let back = trace.events().find_map(|event| match event.kind {
        EventKind::Switch { next, .. } if event.time_ns > MS && name(&trace, next) == "early" => {
            Some(event.time_ns / US)
        }
        _ => None,
    });
    assert_eq!(back, Some(1_100), "one interrupt and two wake-ups");
}

/// A sleep whose slack has begun ends with the tick, and pays for no interrupt.
#[test]
fn a_sleep_ends_with_the_tick() {
    let hog = task("hog", 1, vec![Op::RunForever]);
    let tasks = vec![sleeps("sleeper", 4 * MS - 20 * US), hog];
    let trace = simulated(&with_slack(), &workload(tasks), 10 * MS);
    assert_eq!(wakings(&trace, "sleeper"), [(4_015, 0)], "behind the tick");
}

/// A timer that is due while interrupts are off waits for their end.
#[test]
fn a_tick_that_comes_during_a_wake_up_waits_for_its_end() {
    let hog = task("hog", 1, vec![Op::RunForever]);
    let tasks = vec![sleeps("sleeper", 4 * MS - 60 * US), hog];
    let mut config = with_slack();
    config.trace.ticks = true;
    let trace = simulated(&config, &workload(tasks), 5 * MS);
    assert_eq!(wakings(&trace, "sleeper"), [(3_990, 0)]);
    let ticks: Vec<u64> = trace
        .events()
        .filter(|event| matches!(event.kind, EventKind::Tick { .. }))
        .map(|event| event.time_ns / US)
        .collect();
    assert_eq!(ticks, [4_010]);
}

/// From the call of the scheduler to the switch interrupts are off: a tick that falls there finds the next task on the
/// CPU.
#[test]
fn a_tick_that_comes_on_the_way_off_the_cpu_waits_for_the_switch() {
    let naps = task("naps", 1, vec![run(4 * MS - 10 * US), sleep(MS)]);
    let mut config = with_slack();
    config.cost.set("block_ns", 30 * US).expect("the parameter exists");
    config.trace.ticks = true;
    let trace = simulated(&config, &workload(vec![naps]), 5 * MS);
    let around: Vec<(u64, &str)> = trace
        .events()
        .filter(|event| event.time_ns > 3 * MS)
        .filter_map(|event| match event.kind {
            EventKind::Switch { .. } => Some((event.time_ns / US, "switch")),
            EventKind::Tick { .. } => Some((event.time_ns / US, "tick")),
            _ => None,
        })
        .take(1)
        .collect();
    assert_eq!(around, [(4_020, "switch")]);
}
