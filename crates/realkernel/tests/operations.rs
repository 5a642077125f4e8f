//! Operations of workloads as real processes: properties that hold on any kernel and under any load.

use std::collections::BTreeSet;

use crate::rig::{library, marks, ops, toml};

#[test]
fn every_task_makes_progress_and_none_gets_more_cpu_than_there_is() {
    let outcome = library("hogs:4 + sleepers:3").millis(1_500).run();
    assert_eq!(outcome.tasks.len(), 7);
    for task in &outcome.tasks {
        assert!(task.utime_us + task.stime_us > 0, "{task:?}");
        assert!(task.run_ns.is_none_or(|run_ns| run_ns > 0), "{task:?}");
    }
    let used_us: u64 = outcome.tasks.iter().map(|task| task.utime_us + task.stime_us).sum();
    let wall_us = (outcome.end_ns - outcome.start_ns) / 1_000;
    // Killed tasks exit within a tick or two of the end.
    let there_was_us = (wall_us + 20_000) * u64::from(outcome.kernel.cpus);
    assert!(used_us <= there_was_us, "{used_us} µs of {there_was_us}");
    assert!(ops(&outcome, "sleeper").iter().all(|ops| *ops > 0), "{outcome:?}");
    assert!(wall_us >= 1_500_000, "the whole duration");
}

#[test]
fn a_ping_pong_through_pipes_is_in_step() {
    let outcome = toml(
        r#"
        [[pipe]]
        name = "there"
        [[pipe]]
        name = "back"
        [[task]]
        name = "ping"
        program = [{ loop = [{ write = { pipe = "there", bytes = 1 } },
          { read = { pipe = "back", bytes = 1 } }, { mark = "ping" }] }]
        [[task]]
        name = "pong"
        program = [{ loop = [{ read = { pipe = "there", bytes = 1 } }, { mark = "pong" },
          { write = { pipe = "back", bytes = 1 } }] }]
        "#,
    )
    .millis(400)
    .run();
    let counts: Vec<usize> = ["ping", "pong"]
        .map(|label| outcome.marks.iter().filter(|mark| mark.label == label).count())
        .to_vec();
    assert!(counts[0] > 100 && counts[1] - counts[0] <= 1, "{counts:?}");
    let order: Vec<&str> = outcome.marks.iter().map(|mark| mark.label.as_str()).collect();
    assert!(order.chunks(2).all(|pair| pair[0] == "pong"), "one after the other");
}

#[test]
fn writers_of_a_full_pipe_block() {
    let outcome = toml(
        r#"
        [[pipe]]
        name = "p"
        capacity = 4096
        [[task]]
        name = "writer"
        program = [{ write = { pipe = "p", bytes = 100000 } }, { mark = "written" }]
        [[task]]
        name = "reader"
        program = [{ sleep = "50ms" }, { mark = "read" }, { loop = [{ read = { pipe = "p", bytes = 4000 } }] }]
        "#,
    )
    .millis(500)
    .run();
    let time = |label: &str| {
        outcome.marks.iter().find(|mark| mark.label == label).expect("marked").time_ns
    };
    assert!(time("written") > time("read"), "the writer had to wait for the reader");
    assert_eq!(ops(&outcome, "writer"), [2], "all of it went through");
}

#[test]
fn a_queue_loses_no_message() {
    let outcome = toml(
        r#"
        [[queue]]
        name = "q"
        capacity = 4
        initial = 2
        [[task]]
        name = "sender"
        count = 3
        program = [{ loop = [{ send = "q" }], times = 1000 }]
        [[task]]
        name = "receiver"
        count = 2
        program = [{ loop = [{ receive = { queue = "q", count = 10 } }], times = 150 }, { mark = "all" }]
        [[task]]
        name = "rest"
        program = [{ sleep = "700ms" }, { receive = { queue = "q", count = 2 } }, { mark = "rest" },
          { receive = { queue = "q", count = 1 } }]
        "#,
    )
    .millis(1_200)
    .run();
    assert_eq!(ops(&outcome, "sender"), [1_000; 3]);
    assert_eq!(ops(&outcome, "receiver"), [151; 2]);
    assert_eq!(ops(&outcome, "rest"), [3], "the two that lay in it at the start, and no third");
}

#[test]
fn a_signal_ends_a_sleep_and_only_interrupts_a_wait() {
    let outcome = toml(
        r#"
        [[queue]]
        name = "never"
        [[task]]
        name = "sleeper"
        program = [{ sleep = "100s" }, { mark = "woke" }, { receive = "never" }, { mark = "wrong" }]
        on_signal = [{ mark = "handled" }]
        [[task]]
        name = "deaf"
        program = [{ sleep = "100s" }, { mark = "woke" }, { receive = "never" }, { mark = "wrong" }]
        [[task]]
        name = "hog"
        program = [{ run = "forever" }]
        on_signal = [{ mark = "handled" }]
        [[task]]
        name = "killer"
        program = [{ loop = [{ sleep = "150ms" }, { signal = "sleeper" }, { signal = "deaf" },
          { signal = "hog" }], times = 3 }, { sleep = "100s" }, { send = "never" }]
        "#,
    )
    .millis(800)
    .run();
    let tid =
        |name: &str| outcome.tasks.iter().find(|task| task.name == name).expect("the task").tid;
    let seen = |name: &str, label: &str| {
        marks(&outcome).get(&(tid(name), label.to_owned())).map_or(0, Vec::len)
    };
    assert_eq!((seen("sleeper", "handled"), seen("hog", "handled")), (3, 3), "{:?}", outcome.marks);
    assert_eq!((seen("sleeper", "woke"), seen("deaf", "woke")), (1, 1));
    assert_eq!((seen("sleeper", "wrong"), seen("deaf", "wrong")), (0, 0));
    let first = outcome.marks.first().expect("a mark");
    assert!(first.time_ns - outcome.start_ns >= 150_000_000, "not before the first signal");
}

#[test]
fn forked_children_run_and_are_all_waited_for() {
    let outcome = toml(
        r#"
        [[task]]
        name = "root"
        program = [{ loop = [{ fork = "child" }, "wait", { mark = "reaped" }], times = 10 }]
        on_signal = [{ mark = "called" }]
        [[task]]
        name = "child"
        count = 3
        program = [{ run = "100us" }, { signal = "root" }, { fork = "grandchild" }]
        [[task]]
        name = "grandchild"
        program = [{ sleep = "20ms" }, { mark = "last" }]
        "#,
    )
    .millis(1_500)
    .run();
    let called = outcome.marks.iter().filter(|mark| mark.label == "called").count();
    assert_eq!(ops(&outcome, "root"), [30 + called as u64], "its program and its handler");
    assert_eq!(ops(&outcome, "child"), [3; 30]);
    assert_eq!(ops(&outcome, "grandchild"), [2; 30], "also those whose parents are gone");
    let names: BTreeSet<&str> = outcome.tasks.iter().map(|task| task.name.as_str()).collect();
    assert!(names.contains("child/29") && names.len() == 61 - 29, "{names:?}");
    assert!((1..=30).contains(&called), "signals that come together are one: {called}");
}

#[test]
fn a_timer_never_comes_early_and_is_not_stretched() {
    let outcome = toml(
        r#"
        [[timer]]
        name = "t"
        period = "5ms"
        [[task]]
        name = "periodic"
        program = [{ loop = [{ timer = "t" }, { mark = "tick" }] }]
        "#,
    )
    .millis(1_500)
    .run();
    let ticks: Vec<u64> = outcome.marks.iter().map(|mark| mark.time_ns).collect();
    assert!((30..=300).contains(&ticks.len()), "{} ticks of 300", ticks.len());
    let due_ns = |nth: usize| outcome.start_ns + (nth as u64 + 1) * 5_000_000;
    let late_ns: Vec<u64> = (0..).zip(&ticks).map(|(nth, time_ns)| time_ns - due_ns(nth)).collect();
    // Lateness does not accumulate: the period counts from the first wait, so that expiries after late ones are on
    // time.
    let half = late_ns.len() / 2;
    let least_ns = |late_ns: &[u64]| late_ns.iter().min().copied().expect("a tick");
    assert!(least_ns(&late_ns[half..]) < least_ns(&late_ns[..half]) + 5_000_000, "{late_ns:?}");
}

#[test]
fn a_shared_timer_gives_each_expiry_to_one_wait_and_busy_goes_by_the_clock() {
    let outcome = toml(
        r#"
        [[timer]]
        name = "t"
        period = "5ms"
        shared = true
        [[timer]]
        name = "lazy"
        period = "1ms"
        mode = "relative"
        [[task]]
        name = "pair"
        count = 2
        program = [{ timer_start = "t" }, { loop = [{ timer = "t" }, { mark = "tick" }], times = 20 }]
        [[task]]
        name = "clock"
        program = [
          { timer_start = "lazy" }, { mark = "from" }, { busy = "20ms" }, { mark = "to" },
          { timer = "lazy" }, { timer = { name = "lazy", period = "10ms" } }, { mark = "then" },
        ]
        "#,
    )
    .millis(1_500)
    .run();
    let at = |label: &str| -> Vec<u64> {
        let marks = outcome.marks.iter().filter(|mark| mark.label == label);
        marks.map(|mark| mark.time_ns).collect()
    };
    let ticks = at("tick");
    assert_eq!(ticks.len(), 40, "each of the two waited for 20");
    let last_ns = ticks.iter().max().copied().expect("a tick");
    assert!(last_ns >= outcome.start_ns + 40 * 5_000_000, "the fortieth expiry came early");
    let (from, to, then) = (at("from")[0], at("to")[0], at("then")[0]);
    assert!(to - from >= 20_000_000, "{} ns", to - from);
    assert!(then - to >= 10_000_000, "counted from the wait that came too late: {} ns", then - to);
}

#[test]
fn settings_of_a_task_take_effect() {
    let outcome = toml(
        r#"
        [[task]]
        name = "setter"
        nice = 5
        cpus = "0"
        program = [{ nice = 10 }, { slice = "3ms" }, { slice = "0s" }, { cpus = "0" }, "yield",
          { touch = 1048576 }, { loop = [{ mark = "done" }, "exit"], times = 2 }]
        "#,
    )
    .millis(300)
    .run();
    assert!(outcome.notes.iter().all(|note| !note.contains(" times ")), "{:?}", outcome.notes);
    assert_eq!(ops(&outcome, "setter"), [7], "the end is the last");
    let labels: Vec<&str> = outcome.marks.iter().map(|mark| mark.label.as_str()).collect();
    assert_eq!(labels, ["done"]);
}

#[test]
fn marks_count_up_for_each_task() {
    let outcome = library("slice:3,report=50ms").run();
    let all = marks(&outcome);
    assert!(!all.is_empty());
    for (who, values) in all {
        assert!(values.iter().enumerate().all(|(nth, value)| nth as u64 == *value), "{who:?}");
    }
}

#[test]
fn the_slice_program_reports_when_all_have_answered() {
    let outcome = library("slice:4,report=200ms").millis(1_500).run();
    let of = |group: &str| outcome.tasks.iter().filter(|task| task.name.starts_with(group)).count();
    assert_eq!((of("slice"), of("worker"), of("sleeper")), (1, 4, 1));
    let mut answered = BTreeSet::new();
    let mut reports = 0;
    for mark in &outcome.marks {
        match mark.label.as_str() {
            "answer" => {
                assert_eq!(mark.value, reports, "an answer to the report that is being made");
                assert!(answered.insert(mark.tid), "one answer each");
            }
            _ => {
                assert_eq!((mark.value, answered.len()), (reports, 4), "{:?}", outcome.marks);
                answered.clear();
                reports += 1;
            }
        }
    }
    assert!(reports >= 1, "{:?}", outcome.marks);
}

/// Law 3 of docs/laws/benchmarks.md: as many messages are read as are written, in every round.
#[test]
fn hackbench_reads_what_it_writes() {
    let outcome = library("hackbench:2,fds=4,loops=20,rounds=2").run();
    for group in 0..2 {
        // A round: ready, start, then 20 messages to each of 4, or 80 from all.
        assert_eq!(ops(&outcome, &format!("sender/g{group}")), [2 + 80; 8], "{:?}", outcome.notes);
        for fd in 0..4 {
            assert_eq!(ops(&outcome, &format!("receiver/g{group}-{fd}")), [2 + 80; 2]);
        }
    }
    let rounds = outcome.marks.iter().filter(|mark| mark.label == "hackbench round").count();
    assert_eq!(rounds, 2);
}

#[test]
fn a_storm_of_forks_leaves_accounts_of_all() {
    let outcome = library("forkstorm:2,children=2,run=20us").millis(600).run();
    let ended = ops(&outcome, "child").iter().filter(|ops| **ops == 1).count();
    let rounds: u64 = ops(&outcome, "forker").iter().map(|ops| ops / 2).sum();
    assert!(rounds >= 2, "{rounds} rounds");
    assert!(ended as u64 >= 2 * rounds, "{ended} children for {rounds} rounds of 2");
}

#[test]
fn a_thousand_tasks() {
    let outcome = library("sleepers:990,run=10us,sleep=100ms + hogs:10").millis(1_500).run();
    assert_eq!(outcome.tasks.len(), 1_000);
    let idle = ops(&outcome, "sleeper").iter().filter(|ops| **ops == 0).count();
    assert_eq!(idle, 0, "every sleeper got on");
    let tids: BTreeSet<u32> = outcome.tasks.iter().map(|task| task.tid).collect();
    assert_eq!(tids.len(), 1_000);
}

/// For each kind of lock: no two tasks hold it at the same time, and every task takes it as often as its program says.
#[test]
fn a_lock_lets_one_task_in_at_a_time() {
    for kind in ["mutex", "rt_mutex", "rt_spin", "spin"] {
        // A spin lock in user space works only with at most as many tasks as CPUs.
        let count = if kind == "spin" { 2 } else { 4 };
        let outcome = toml(&format!(
            r#"
            [locks.l]
            kind = "{kind}"
            [[task]]
            name = "worker"
            count = {count}
            program = [{{ loop = [{{ lock = "l" }}, {{ mark = "in" }}, {{ run = "5us" }},
              {{ mark = "out" }}, {{ unlock = "l" }}, {{ run = "2us" }}], times = 300 }}]
            "#
        ))
        .millis(1_500)
        .run();
        assert_eq!(ops(&outcome, "worker"), vec![1_800; count], "{kind}");
        let order: Vec<(&str, u32)> =
            outcome.marks.iter().map(|mark| (mark.label.as_str(), mark.tid)).collect();
        assert_eq!(order.len(), 600 * count, "{kind}");
        for pair in order.chunks(2) {
            assert!(matches!(pair, [("in", a), ("out", b)] if a == b), "{kind}: {pair:?}");
        }
    }
}

/// Readers share a lock, a writer excludes all others; all waiters of a condition wake; no task passes a barrier
/// before the last one arrives.
#[test]
fn readers_conditions_barriers_and_semaphores() {
    let outcome = toml(
        r#"
        [locks.rw]
        kind = "rwlock"
        [locks.m]
        kind = "mutex"
        [[condition]]
        name = "filled"
        [[barrier]]
        name = "round"
        count = 4
        [[semaphore]]
        name = "slots"
        initial = 2
        [[task]]
        name = "reader"
        count = 3
        program = [{ loop = [{ read_lock = "rw" }, { mark = "in" }, { run = "20us" }, { mark = "out" },
          { unlock = "rw" }, { barrier = "round" }, { mark = "passed" }], times = 100 }]
        [[task]]
        name = "writer"
        program = [{ loop = [{ write_lock = "rw" }, { mark = "alone" }, { run = "10us" },
          { mark = "done" }, { unlock = "rw" }, { barrier = "round" }, { mark = "passed" }], times = 100 }]
        [[task]]
        name = "waiter"
        count = 3
        program = [{ lock = "m" }, { wait = { cond = "filled", lock = "m" } }, { mark = "woken" },
          { unlock = "m" }, { sem_wait = "slots" }, { sem_post = "slots" }]
        [[task]]
        name = "notifier"
        program = [{ sleep = "200ms" }, { notify = "filled" }, { sleep = "100ms" }, { mark = "one" },
          { notify_all = "filled" }]
        "#,
    )
    .millis(1_500)
    .run();
    assert_eq!(ops(&outcome, "reader"), [700; 3]);
    assert_eq!(ops(&outcome, "writer"), [700]);
    assert_eq!(ops(&outcome, "waiter"), [6; 3]);
    let (mut inside, mut alone) = (0, false);
    let mut passed = 0_u32;
    let mut woken = Vec::new();
    for mark in &outcome.marks {
        match mark.label.as_str() {
            "in" => inside += 1,
            "out" => inside -= 1,
            "alone" => alone = true,
            "done" => alone = false,
            "passed" => passed += 1,
            label => woken.push(label),
        }
        assert!(!(alone && inside > 0), "a reader is inside beside the writer");
        // No task starts round n + 2 before all have left round n.
        assert!(matches!(mark.label.as_str(), "passed") || mark.value <= u64::from(passed / 4) + 1);
    }
    assert_eq!(woken, ["woken", "one", "woken", "woken"]);
}

/// A socket pair transfers all bytes in both directions, and blocks a writer whose buffer is full.
#[test]
fn sockets_carry_all_bytes_and_hold_back_writers() {
    let outcome = toml(
        r#"
        [sockets.chat]
        [sockets.full]
        buffer = 16384
        [[task]]
        name = "client"
        program = [{ loop = [{ write = { pipe = "chat/a", bytes = 100 } },
          { read = { pipe = "chat/b", bytes = 100 } }], times = 500 }]
        [[task]]
        name = "server"
        program = [{ loop = [{ read = { pipe = "chat/a", bytes = 100 } },
          { write = { pipe = "chat/b", bytes = 100 } }], times = 500 }]
        [[task]]
        name = "writer"
        program = [{ loop = [{ write = { pipe = "full/a", bytes = 100 } },
          { mark = "written" }], times = 200 }, { mark = "done" }]
        [[task]]
        name = "reader"
        program = [{ sleep = "200ms" }, { mark = "begins" },
          { loop = [{ read = { pipe = "full/a", bytes = 100 } }], times = 200 }]
        "#,
    )
    .millis(800)
    .run();
    assert_eq!((ops(&outcome, "client"), ops(&outcome, "server")), (vec![1_000], vec![1_000]));
    assert_eq!((ops(&outcome, "writer"), ops(&outcome, "reader")), (vec![401], vec![202]));
    let labels: Vec<&str> = outcome.marks.iter().map(|mark| mark.label.as_str()).collect();
    let begins = labels.iter().position(|label| *label == "begins").expect("it began");
    println!("{begins} messages of 100 bytes fill a buffer of 16,384");
    assert!((1..200).contains(&begins), "the writer had to wait: {begins}");
}

#[test]
fn a_device_that_a_real_kernel_lacks_is_rejected() {
    let bench = toml("[[task]]\nname = \"a\"\nprogram = [{ loop = [{ io = \"1ms\" }] }]\n");
    assert!(bench.error().contains("`io`"), "{}", bench.error());
}
