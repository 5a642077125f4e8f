//! The choice of a CPU at a wake-up by loads over time (`policies/include/balance_wake.bpf.h`, `pelt.bpf.h`), on the
//! compiled schedulers in the simulated machine.

use crate::rig::{Bench, MS, Run, US, bench};
use fairground_trace::{Event, EventKind, TaskId, TaskState};

const SCHEDULERS: [&str; 2] = ["cfs@6.1", "eevdf"];

/// The load of a CPU in the scheduler's accounting, decayed to `now_ns`.
fn load_of_cpu(run: &Run, cpu: u64, now_ns: u64) -> f64 {
    let field = |name, at| run.machine.variable_field(name, cpu * 32 + at, 8).expect("a field");
    let left = field("cpu_pelt", 0) - field("cpu_removed", 0);
    let (sum, at) = (left as f64, field("cpu_pelt", 24));
    let units = (now_ns >> 10).saturating_sub(at);
    sum * 0.5f64.powf(units as f64 / 1024.0 / 32.0) / 47_742.0
}

/// The same from the recorded events, by its definition: the integral of the weight of the runnable tasks, a time t
/// ago counting 1/2^(t / 32 periods). One task of weight 1024, not new.
fn load_by_events(run: &Run, task: TaskId, now_ns: u64) -> f64 {
    let half_life_ns = 32.0 * 1_048_576.0;
    let part = |from: u64, to: u64| {
        let weight = |at: u64| 0.5f64.powf((now_ns - at) as f64 / half_life_ns);
        weight(to) - weight(from)
    };
    let (mut able_since, mut load) = (None, 0.0);
    for event in run.events() {
        match event.kind {
            EventKind::Wakeup { task: woken, .. } if woken == task => {
                able_since = Some(event.time_ns);
            }
            EventKind::Switch { prev, prev_state: TaskState::Sleeping, .. } if prev == task => {
                load += able_since.take().map_or(0.0, |since| part(since, event.time_ns));
            }
            _ => {}
        }
    }
    1024.0 * (load + able_since.map_or(0.0, |since| part(since, now_ns)))
}

fn migrations(bench: Bench, spec: &str, prefix: &str) -> usize {
    let mut run = bench.run(spec);
    run.until(1_000 * MS);
    let of = run.named(prefix);
    let moved =
        |event: &Event| matches!(event.kind, EventKind::Migrate { task, .. } if of.contains(&task));
    run.events().iter().filter(|event| moved(event)).count()
}

/// The load over time of a task that sleeps and computes follows its definition, on any CPU; within 3 %, as periods
/// are rounded.
#[test]
fn a_load_is_the_weighted_past() {
    for scheduler in SCHEDULERS {
        let mut run = bench(scheduler).cpus(2).run("sleepers:1,run=20ms,sleep=30ms");
        for step in 1..40u64 {
            let now_ns = 1_000 * MS + step * 7_321 * US;
            run.until(now_ns);
            let task = run.named("sleeper")[0];
            let able = run.machine.task(task).is_some_and(|task| task.runnable);
            if able {
                continue;
            }
            let told = load_of_cpu(&run, 0, now_ns) + load_of_cpu(&run, 1, now_ns);
            let meant = load_by_events(&run, task, now_ns);
            assert!((told - meant).abs() <= 0.03 * meant, "{scheduler}: {told} for {meant}");
        }
    }
}

/// A load moves with its task: after any migrations the loads of all CPUs together are those of the tasks.
#[test]
fn no_load_is_lost_or_made_by_migrations() {
    for scheduler in SCHEDULERS {
        let mut run = bench(scheduler).cpus(4).run("hogs:9");
        run.until(2_000 * MS);
        let at = |cpu: u64| {
            let field =
                |at| run.machine.variable_field("cpu_pelt", cpu * 32 + at, 8).expect("a field");
            let (sum, at) = (field(0) as f64, field(24));
            let weight = run.machine.variable_field("cpu_tasks", cpu * 16, 8).expect("a weight");
            let past = 0.5f64.powf((((2_000 * MS) >> 10) - at) as f64 / 1024.0 / 32.0);
            sum / 47_742.0 * past + weight as f64 * (1.0 - past)
        };
        let all: f64 = (0..4).map(at).sum();
        assert!((all - 9.0 * 1024.0).abs() <= 0.03 * 9.0 * 1024.0, "{scheduler}: {all}");
    }
}

/// As in the kernel (`cfs_rq->removed`) a CPU still counts the load of a task that slept there and woke up elsewhere
/// until its next update. A task on CPU 0 wakes light tasks that slept there and eight heavy ones that slept on CPU 1
/// alternately; the first light one takes the idle CPU 1. With the k-th heavy one CPU 0 has k of them, and CPU 1 seven
/// besides, for it still counts those that have left: seven come to CPU 0. By the actual loads, k < 1.08 * (8 - k), it
/// would be four. The waking task is a real-time one, which those that it wakes do not preempt.
#[test]
fn a_cpu_keeps_the_load_of_tasks_that_wake_up_elsewhere_for_a_moment() {
    let mut spec = "format = 1\nname = \"turns\"\nduration = \"1s\"\n".to_owned();
    let mut posts = String::new();
    for nth in 0..8 {
        for (name, nice, cpu) in [("light", 19, 0), ("heavy", -5, 1)] {
            spec.push_str(&format!(
                "[[semaphore]]\nname = \"{name}{nth}\"\ninitial = 0\n\
                 [[task]]\nname = \"{name}{nth}\"\nnice = {nice}\nprogram = [ {{ cpus = \"{cpu}\" }}, \
                 {{ cpus = \"0-1\" }}, {{ sem_wait = \"{name}{nth}\" }}, {{ run = \"forever\" }} ]\n"
            ));
            posts.push_str(&format!(", {{ sem_post = \"{name}{nth}\" }}"));
        }
    }
    spec.push_str(&format!(
        "[[task]]\nname = \"waker\"\ncpus = \"0\"\npolicy = \"fifo\"\npriority = 1\nprogram = [ {{ sleep = \"60ms\" }}{posts} ]\n"
    ));
    for scheduler in SCHEDULERS {
        let mut run = bench(scheduler).cpus(2).run_toml(&spec);
        run.until(61 * MS);
        let woken = |name: &str| {
            let task = run.named(name)[0];
            let on = |event: &Event| match event.kind {
                EventKind::Wakeup { task: woken, target_cpu } if woken == task => Some(target_cpu),
                _ => None,
            };
            run.events().iter().find_map(on).expect("it was woken")
        };
        assert_eq!(woken("light0"), 1, "{scheduler}");
        let drawn = (0..8).filter(|nth| woken(&format!("heavy{nth}")) == 0).count();
        assert!((6..=7).contains(&drawn), "{scheduler}: {drawn}");
    }
}

/// Readers are placed near their writers: many times as often as where only idle CPUs are chosen.
#[test]
fn readers_come_to_their_writers() {
    for scheduler in SCHEDULERS {
        let machine =
            || bench(scheduler).cpus(4).cost("syscall_ns", 10_000).cost("wakeup_ns", 20_000);
        let drawn = migrations(machine(), "hackbench:2", "receiver");
        let left =
            migrations(machine().set("rule_wake", "WAKE_NEAR_IDLE"), "hackbench:2", "receiver");
        assert!(drawn > 3 * left.max(10), "{scheduler}: {drawn} migrations, {left} without");
    }
}

/// No task waits behind another one while a CPU of the cache is idle.
#[test]
fn a_woken_task_takes_an_idle_cpu() {
    for scheduler in SCHEDULERS {
        let mut run = bench(scheduler).cpus(4).run("hogs:2 + sleepers:2,run=1ms,sleep=3ms");
        run.until(1_000 * MS);
        let sleepers = run.named("sleeper");
        let ran = run.cpu_time(100 * MS, 1_000 * MS);
        for sleeper in sleepers {
            let share = ran[&sleeper] as f64 / (900 * MS) as f64;
            assert!((share - 0.25).abs() < 0.01, "{scheduler}: {share}");
        }
    }
}

/// Tasks inherit how many different tasks they count as having woken (`wakee_flips`). A count from the first processes
/// of a system makes a server with many clients wide (`wake_wide`), so that it does not pull all of them to its CPU;
/// without one, clients that wake the same task all the time are never many.
#[test]
fn a_server_with_many_clients_leaves_them_where_they_are() {
    let moved = |flips: u32| {
        let bench = bench("cfs@6.1").cpus(2).hz(250).set("wakee_flips_at_start", flips);
        migrations(bench.like_a_kernel("linux-7.2", 0), "hackbench:1", "")
    };
    let [with, without] = [16, 0].map(moved);
    assert!(with * 2 < without, "{with} migrations, {without} without the count");
}
