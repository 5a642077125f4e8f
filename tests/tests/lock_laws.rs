//! The laws of locks (docs/laws/locks.md), on the simulated machine under several schedulers.

use std::collections::BTreeMap;

use crate::rig::{MS, US, bench};
use fairground_analysis::{Analysis, Options};
use fairground_machine::{MachineError, RunResult};
use fairground_trace::{EventKind, TaskId, TaskState};
use fairground_workload::{LockKind, LockModel, Op, Workload, parse};

const KINDS: [&str; 4] = ["mutex", "spin", "rt_mutex", "rt_spin"];
const SCHEDULERS: [&str; 4] = ["fifo", "o1", "cfs@2.6.24", "eevdf"];

/// Tasks that loop: work, take the lock, write a mark, hold it, release it.
fn sections(kind: &str, tasks: u32, times: &str, (work, hold): (&str, &str)) -> Workload {
    let text = format!(
        r#"
        format = 1
        name = "sections"
        duration = "1s"
        [locks.l]
        kind = "{kind}"
        [[task]]
        name = "worker"
        count = {tasks}
        program = [{{ loop = [{{ run = "{work}" }}, {{ lock = "l" }}, {{ mark = "in" }},
          {{ run = "{hold}" }}, {{ mark = "out" }}, {{ unlock = "l" }}]{times} }}]
        "#
    );
    parse("sections", &text).unwrap_or_else(|e| panic!("{e}"))
}

fn finish(run: crate::rig::Run) -> RunResult {
    run.machine.finish().unwrap_or_else(|e| panic!("{e}"))
}

/// The marks in order of time: text and task.
fn marks(result: &RunResult) -> Vec<(String, TaskId, u64)> {
    let marks = result.trace.events().filter_map(|event| match event.kind {
        EventKind::Mark { task, label, .. } => {
            Some((result.trace.label(label).to_owned(), task, event.time_ns))
        }
        _ => None,
    });
    marks.collect()
}

/// Mutual exclusion, and no lost wake-up: two tasks never hold the lock at the same time, and every one gets it as
/// often as it asks.
#[test]
fn one_task_is_inside_and_each_gets_through() {
    for kind in KINDS {
        for scheduler in SCHEDULERS {
            for (cpus, costs) in [(1, "modern"), (2, "modern"), (4, "zero")] {
                let workload = sections(kind, 9, ", times = 60", ("3us..90us", "1us..40us"));
                let mut run = bench(scheduler)
                    .like_a_kernel(costs, 0)
                    .cpus(cpus)
                    .hz(1000)
                    .run_workload(&workload);
                run.until(400 * MS);
                let who = format!("{kind} {scheduler} {cpus}");
                assert_eq!(run.machine.living_tasks(), Vec::<String>::new(), "{who}");
                let marks = marks(&finish(run));
                assert_eq!(marks.len(), 2 * 9 * 60, "{who}");
                for pair in marks.chunks(2) {
                    assert!(pair[0].0 == "in" && pair[1].0 == "out", "{who}: {pair:?}");
                    assert_eq!(pair[0].1, pair[1].1, "{who}");
                }
            }
        }
    }
}

/// A task that holds a spin lock, or spins for one, is not preempted; one that holds a sleeping lock is.
#[test]
fn only_a_spin_lock_keeps_its_cpu() {
    let left = |kind: &str| {
        let mut workload = sections(kind, 3, "", ("100us", "9ms"));
        workload.tasks.push(fairground_workload::TaskSpec {
            policy: fairground_workload::SchedPolicy::Other,
            name: "hog".to_owned(),
            nice: -5,
            program: vec![Op::RunForever],
            ..workload.tasks[0].clone()
        });
        let mut run = bench("cfs@2.6.24").cpus(2).hz(1000).run_workload(&workload);
        run.until(400 * MS);
        let result = finish(run);
        let mut inside = BTreeMap::new();
        let mut waits = BTreeMap::new();
        let mut left = 0;
        for event in result.trace.events() {
            match event.kind {
                EventKind::Mark { task, label, .. } => {
                    inside.insert(task, result.trace.label(label) == "in");
                }
                EventKind::ContentionBegin { task, .. } => {
                    waits.insert(task, true);
                }
                EventKind::ContentionEnd { task, .. } => {
                    waits.insert(task, false);
                }
                EventKind::Switch { prev, prev_state: TaskState::Runnable, .. } => {
                    let at = |map: &BTreeMap<TaskId, bool>| map.get(&prev) == Some(&true);
                    left += u32::from(at(&inside) || at(&waits));
                }
                _ => {}
            }
        }
        left
    };
    assert_eq!(left("spin"), 0);
    for kind in ["mutex", "rt_mutex", "rt_spin"] {
        assert!(left(kind) > 0, "{kind}: {}", left(kind));
    }
}

/// Conservation: the CPU time of a task that spins is its work and the time that it waited, nothing else.
#[test]
fn spinning_time_and_work_are_the_cpu_time() {
    let workload = sections("spin", 4, ", times = 200", ("7us..30us", "5us..20us"));
    let alone = sections("spin", 1, ", times = 200", ("7us..30us", "5us..20us"));
    let mut run = bench("fifo").cpus(4).run_workload(&workload);
    run.until(100 * MS);
    let result = finish(run);
    let analysis = Analysis::of(&result.trace, &Options::simulated());
    let mut begun = BTreeMap::new();
    let mut waited = BTreeMap::<TaskId, u64>::new();
    for event in result.trace.events() {
        match event.kind {
            EventKind::ContentionBegin { task, .. } => {
                begun.insert(task, event.time_ns);
            }
            EventKind::ContentionEnd { task, .. } => {
                *waited.entry(task).or_default() += event.time_ns - begun[&task];
            }
            _ => {}
        }
    }
    assert!(waited.values().sum::<u64>() > MS, "they did wait: {waited:?}");
    // The first task without others gives the work: the same draws.
    let mut run = bench("fifo").cpus(1).run_workload(&alone);
    run.until(100 * MS);
    let work = Analysis::of(&finish(run).trace, &Options::simulated());
    let task = |analysis: &Analysis, name: &str| {
        analysis.tasks_named(name).next().expect("the task").figures.run_ns
    };
    let first = result.trace.tasks().iter().position(|task| task.comm == "worker/0").expect("it");
    let spun_ns = waited.get(&TaskId(first as u32)).copied().unwrap_or(0);
    assert_eq!(task(&analysis, "worker/0"), task(&work, "worker") + spun_ns);
}

/// First come, first served: spinning waiters get the lock in the order in which they began to wait; sleeping ones of
/// an rt_mutex too, whatever their nice values are: all are equal to `__waiter_prio`.
#[test]
fn waiters_are_served_in_the_order_of_coming() {
    for kind in ["spin", "rt_mutex"] {
        for scheduler in SCHEDULERS {
            let mut workload = sections(kind, 6, ", times = 50", ("1us..50us", "1us..30us"));
            let mut others = workload.tasks[0].clone();
            (others.name, others.nice) = ("other".to_owned(), 15);
            workload.tasks.push(others);
            let mut run =
                bench(scheduler).like_a_kernel("modern", 0).cpus(4).run_workload(&workload);
            run.until(500 * MS);
            let result = finish(run);
            let (mut queue, mut served) = (Vec::new(), 0);
            for event in result.trace.events() {
                match event.kind {
                    EventKind::ContentionBegin { task, .. } if !queue.contains(&task) => {
                        queue.push(task);
                    }
                    EventKind::ContentionEnd { task, .. } => {
                        assert_eq!(queue.remove(0), task, "{kind} {scheduler}");
                        served += 1;
                    }
                    _ => {}
                }
            }
            assert!(served > 100 && queue.is_empty(), "{kind} {scheduler}: {served}");
        }
    }
}

/// A task that holds an rt_mutex inherits nothing from tasks of its own class that a scheduler would see: beside a
/// hog, a task at nice 19 for which one at nice −20 waits is as slow as one without a waiter.
#[test]
fn inheritance_among_equals_gives_no_cpu_time() {
    let held_ns = |waiter: &str| {
        let text = format!(
            r#"
            format = 1
            name = "pi"
            duration = "1s"
            [locks.l]
            kind = "rt_mutex"
            [[task]]
            name = "holder"
            nice = 19
            program = [{{ lock = "l" }}, {{ mark = "in" }}, {{ run = "5ms" }}, {{ mark = "out" }}, {{ unlock = "l" }}]
            [[task]]
            name = "waiter"
            nice = -20
            start = "1us"
            program = [{waiter}]
            [[task]]
            name = "hog"
            program = [{{ run = "forever" }}]
            "#
        );
        let mut run = bench("cfs@2.6.24").cpus(1).hz(1000).run_toml(&text);
        run.until(900 * MS);
        let marks = marks(&finish(run));
        marks[1].2 - marks[0].2
    };
    let with = held_ns(r#"{ lock = "l" }, { unlock = "l" }"#);
    let without = held_ns(r#"{ sleep = "1us" }"#);
    assert!(without > 100 * MS, "a fair share is 15 of 1039: {without}");
    assert!(with.abs_diff(without) < 20 * MS, "{with} {without}");
}

/// Laws 3, 4, 6 and 7: with spin locks no CPU is idle once there are as many tasks; throughput stays below what lock
/// and CPUs allow; with sleeping locks a hand-over costs a switch and a wake-up, and CPUs are idle; without costs both
/// models agree; a task alone sees no difference.
#[test]
fn sleeping_locks_let_cpus_rest_and_spinning_ones_do_not() {
    let (work_us, hold_us, end) = (8, 2, 50 * MS);
    let measure_with = |model: LockModel, tasks: u32, costs: &'static str, adaptive: bool| {
        let mut workload = sections("spin", tasks, "", ("8us", "2us"));
        workload.locks[0].adaptive = adaptive;
        workload.set_lock_model(model);
        let mut run = bench("fifo").like_a_kernel(costs, 0).cpus(4).run_workload(&workload);
        run.until(end);
        let result = finish(run);
        let analysis = Analysis::of(&result.trace, &Options::simulated());
        let sections = marks(&result).len() as f64 / 2.0;
        let idle = analysis.machine.idle_ns as f64 / (4 * end) as f64;
        (sections / (end as f64 / 1000.0), idle)
    };
    // As in the -rt kernels of 2006: no task spins.
    let measure = |model, tasks, costs| measure_with(model, tasks, costs, false);
    for tasks in [4, 16] {
        let (per_us, idle) = measure(LockModel::Spin, tasks, "modern");
        assert!(idle < 0.01, "{tasks}: {idle}");
        assert!(per_us <= (4.0_f64 / f64::from(work_us + hold_us)).min(1.0 / f64::from(hold_us)));
        let (rt_per_us, rt_idle) = measure(LockModel::Rt, tasks, "modern");
        assert!(rt_per_us < per_us, "{tasks}: {rt_per_us} {per_us}");
        assert!(rt_idle > idle + 0.02, "{tasks}: {rt_idle}");
        // Spinning on a running owner recovers a part of it.
        let (adaptive_per_us, _) = measure_with(LockModel::Rt, tasks, "modern", true);
        assert!(adaptive_per_us > rt_per_us, "{tasks}: {adaptive_per_us} {rt_per_us}");
    }
    let (spin, _) = measure(LockModel::Spin, 4, "zero");
    let (rt, _) = measure(LockModel::Rt, 4, "zero");
    assert!((spin / rt - 1.0).abs() < 0.02, "{spin} {rt}");
    assert_eq!(measure(LockModel::Spin, 1, "modern"), measure(LockModel::Rt, 1, "modern"));
}

/// The first waiter of an adaptive lock spins while the owner runs, which saves the switches.
#[test]
fn an_adaptive_waiter_spins_while_the_owner_runs() {
    let switches = |adaptive: bool| {
        let mut workload = sections("rt_mutex", 2, ", times = 500", ("2us", "2us"));
        workload.locks[0].adaptive = adaptive;
        let mut run = bench("fifo").like_a_kernel("modern", 0).cpus(2).run_workload(&workload);
        run.until(100 * MS);
        assert!(run.machine.living_tasks().is_empty());
        finish(run).counters.switches
    };
    assert!(switches(true) < 20, "{}", switches(true));
    assert!(switches(false) > 500, "{}", switches(false));
    // The owner is preempted repeatedly: a task that spins on it goes to sleep, and all tasks get the lock.
    let workload = sections("rt_mutex", 12, ", times = 100", ("30us", "200us..900us"));
    let mut run =
        bench("cfs@2.6.24").like_a_kernel("modern", 0).cpus(3).hz(1000).run_workload(&workload);
    run.until(2_000 * MS);
    assert_eq!(run.machine.living_tasks(), Vec::<String>::new());
}

/// A cycle of locks ends the run with an error that names the tasks and locks.
#[test]
fn a_deadlock_is_named() {
    let text = r#"
        format = 1
        name = "circle"
        duration = "1s"
        [locks.a]
        kind = "mutex"
        [locks.b]
        kind = "spin"
        [[task]]
        name = "left"
        program = [{ run = "50us" }, { lock = "a" }, { run = "1ms" }, { lock = "b" }, { unlock = "b" },
          { unlock = "a" }]
        [[task]]
        name = "right"
        program = [{ run = "60us" }, { lock = "a" }, { lock = "b" }, { run = "1ms" }, { unlock = "b" },
          { unlock = "a" }]
        "#;
    let mut workload = parse("circle", text).expect("in one order it is good");
    let right = &mut workload.tasks[1].program;
    (right[1], right[2], right[4], right[5]) = (
        Op::Lock(1),
        Op::Run(fairground_workload::Duration::Fixed(US)),
        Op::Lock(0),
        Op::Unlock(0),
    );
    assert!(fairground_workload::check(&workload).is_err(), "the check sees it before");
    workload.locks[1].kind = LockKind::RtMutex;
    let mut run = bench("eevdf").cpus(2).run_workload(&workload);
    let error = run.machine.run_until(100 * MS).expect_err("they wait for each other");
    let MachineError::Workload(message) = error else { panic!("{error}") };
    assert!(message.contains("`left` waits for the lock `b`, which `right` has"), "{message}");
    assert!(message.contains("`right` waits for the lock `a`, which `left` has"), "{message}");
}

/// Readers share, writers do not, no task is forgotten, and no reader overtakes a waiting writer.
#[test]
fn readers_share_and_writers_do_not() {
    let text = r#"
        format = 1
        name = "rw"
        duration = "1s"
        [locks.l]
        kind = "rwlock"
        [[task]]
        name = "reader"
        count = 5
        program = [{ loop = [{ run = "1us..40us" }, { read_lock = "l" }, { mark = "in" },
          { run = "5us..40us" }, { mark = "out" }, { unlock = "l" }], times = 80 }]
        [[task]]
        name = "writer"
        count = 2
        program = [{ loop = [{ run = "1us..90us" }, { write_lock = "l" }, { mark = "alone" },
          { run = "5us..20us" }, { mark = "done" }, { unlock = "l" }], times = 80 }]
        "#;
    for scheduler in SCHEDULERS {
        let mut run = bench(scheduler).like_a_kernel("modern", 0).cpus(4).run_toml(text);
        run.until(500 * MS);
        assert_eq!(run.machine.living_tasks(), Vec::<String>::new(), "{scheduler}");
        let (mut inside, mut most, mut alone, mut entries) = (0, 0, 0, 0);
        for (label, _, _) in marks(&finish(run)) {
            match label.as_str() {
                "in" => inside += 1,
                "out" => inside -= 1,
                "alone" => alone += 1,
                _ => alone -= 1,
            }
            most = most.max(inside);
            entries += 1;
            assert!(alone == 0 || (alone == 1 && inside == 0), "{scheduler}: {alone} {inside}");
        }
        assert_eq!(entries, 2 * 7 * 80);
        assert!(most > 1, "{scheduler}: readers share");
    }
}

/// A barrier opens with the last task; a notification wakes one task, a broadcast all; consumers receive what one
/// producer posts.
#[test]
fn barriers_conditions_and_semaphores_keep_count() {
    let text = r#"
        format = 1
        name = "meetings"
        duration = "1s"
        [locks.m]
        kind = "mutex"
        [[condition]]
        name = "filled"
        [[barrier]]
        name = "round"
        count = 5
        [[semaphore]]
        name = "slots"
        [[task]]
        name = "walker"
        count = 5
        program = [{ loop = [{ run = "1us..900us" }, { mark = "come" }, { barrier = "round" },
          { mark = "go" }], times = 40 }]
        on_signal = [{ run = "10us" }]
        [[task]]
        name = "disturber"
        program = [{ loop = [{ sleep = "300us" }, { signal = "walker" }], times = 50 }]
        [[task]]
        name = "waiter"
        count = 4
        program = [{ lock = "m" }, { wait = { cond = "filled", lock = "m" } }, { mark = "woken" }, { unlock = "m" }]
        [[task]]
        name = "notifier"
        program = [{ sleep = "20ms" }, { notify = "filled" }, { sleep = "20ms" }, { mark = "one" },
          { notify_all = "filled" }]
        [[task]]
        name = "producer"
        program = [{ loop = [{ run = "30us" }, { sem_post = "slots" }], times = 90 }]
        [[task]]
        name = "consumer"
        count = 3
        program = [{ loop = [{ sem_wait = "slots" }, { run = "10us" }, { mark = "eaten" }], times = 30 }]
        "#;
    for scheduler in SCHEDULERS {
        let mut run = bench(scheduler).like_a_kernel("modern", 0).cpus(2).hz(1000).run_toml(text);
        run.until(900 * MS);
        assert_eq!(run.machine.living_tasks(), Vec::<String>::new(), "{scheduler}");
        let (mut come, mut gone, mut eaten) = (0, 0, 0);
        let mut woken = Vec::new();
        for (label, _, _) in marks(&finish(run)) {
            match label.as_str() {
                "come" => come += 1,
                "go" => {
                    gone += 1;
                    assert!(come / 5 >= (gone + 4) / 5, "{scheduler}: {come} came, {gone} left");
                }
                "eaten" => eaten += 1,
                _ => woken.push(label),
            }
        }
        assert_eq!((come, gone, eaten), (200, 200, 90), "{scheduler}");
        assert_eq!(woken, ["woken", "one", "woken", "woken", "woken"], "{scheduler}");
    }
}

/// The device serves one request after the other: four tasks with requests of 5 ms complete 200 a second together,
/// asleep in state D, and a signal waits until the request is served.
#[test]
fn the_device_serves_one_after_the_other() {
    let text = r#"
        format = 1
        name = "io"
        duration = "1s"
        [[task]]
        name = "reader"
        count = 4
        program = [{ loop = [{ io = "5ms" }, { mark = "served" }, { run = "100us" }] }]
        on_signal = [{ mark = "handled" }]
        [[task]]
        name = "disturber"
        program = [{ sleep = "22ms" }, { signal = "reader/0" }]
        "#;
    let mut run = bench("cfs@2.6.24").cpus(2).hz(1000).run_toml(text);
    run.until(999 * MS);
    let result = finish(run);
    let marks = marks(&result);
    let served: Vec<u64> =
        marks.iter().filter(|mark| mark.0 == "served").map(|mark| mark.2).collect();
    assert!(served.iter().zip(1..).all(|(time_ns, n)| *time_ns == n * 5 * MS), "{served:?}");
    assert_eq!(served.len(), 199);
    let handled = marks.iter().position(|mark| mark.0 == "handled").expect("handled");
    let (_, task, time_ns) = marks[handled];
    // The request that was under way at 22 ms is served first, at one of the next four multiples of 5 ms.
    assert!(time_ns > 22 * MS && time_ns <= 40 * MS && time_ns.is_multiple_of(5 * MS), "{time_ns}");
    assert_eq!(marks[handled + 1], ("served".to_owned(), task, time_ns));
    let slept = |state| {
        let left =
            |kind| matches!(kind, EventKind::Switch { prev_state, .. } if prev_state == state);
        result.trace.events().filter(|event| left(event.kind)).count()
    };
    assert!(slept(TaskState::Uninterruptible) >= 199 && slept(TaskState::Sleeping) <= 2);
}
