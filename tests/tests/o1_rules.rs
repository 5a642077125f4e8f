//! Rules of `o1` beyond its numbered laws: batch tasks, yield, renice.

use crate::rig::o1;
use crate::rig::{MS, Run, bench};
use fairground_trace::{TaskId, TaskState};

/// Slices of a task that were ended by preemption: start and end.
fn whole_slices(run: &Run, task: TaskId) -> Vec<(u64, u64)> {
    let own = |s: &&crate::rig::Slice| s.task == task && s.state == TaskState::Runnable;
    run.slices().iter().filter(own).map(|s| (s.start_ns, s.end_ns)).collect()
}

/// SCHED_BATCH. No operation of a workload sets a policy, so the test writes it.
#[test]
fn a_batch_task_earns_nothing_and_waits_in_the_expired_array() {
    let mut run = o1::bench().hz(1000).run("hogs:2 + sleepers:1,run=50us,sleep=20350us");
    run.until(210 * MS);
    let (hogs, sleeper) = (run.named("hog"), run.named("sleeper")[0]);
    run.until(211 * MS);
    assert!(
        !run.task(sleeper).runnable || o1::current(&run, 0) != Some(sleeper),
        "it does not run"
    );
    assert!(run.machine.set_task_policy(sleeper, 3), "SCHED_BATCH");
    // From its next wake-up on.
    run.until(700 * MS);
    let mut waits = 0;
    run.watch(3_000 * MS, |run| {
        let task = o1::task(run, sleeper);
        assert_eq!(task.sleep_avg_ns, 0);
        if run.task(sleeper).runnable && o1::current(run, 0) != Some(sleeper) {
            waits += 1;
        }
    });
    assert!(waits > 1_000, "it waits for the hogs' slices");
    for hog in hogs {
        let slices = whole_slices(&run, hog);
        let off_tick = slices.iter().filter(|(_, end)| *end > 700 * MS && end % MS != 0);
        assert_eq!(off_tick.count(), 0, "it preempts no task");
    }
}

/// sched_yield goes to the tail of the expired array, and keeps the slice.
#[test]
fn a_yield_goes_to_the_expired_array() {
    let workload = r#"
        format = 1
        name = "yield"
        duration = "10s"
        [[task]]
        name = "polite"
        nice = -5
        program = [{ loop = [{ run = "1500us" }, "yield"] }]
        [[task]]
        name = "hog"
        count = 2
        program = [{ run = "forever" }]
        "#;
    let mut run = o1::bench().hz(1000).run_toml(workload);
    run.until(10_000 * MS);
    let polite = run.named("polite")[0];
    let slices = whole_slices(&run, polite);
    assert!(slices.len() > 20);
    for pair in slices.windows(2) {
        assert_eq!(pair[0].1 - pair[0].0, 1_500_000, "until it yields");
        let others = pair[1].0 - pair[0].1;
        assert!(others.abs_diff(200 * MS) <= MS, "both hogs use up their slices: {others} ns");
    }
}

/// set_user_nice, with a new slice from the next expiry on.
#[test]
fn a_renice_counts_at_once_for_the_priority() {
    let workload = r#"
        format = 1
        name = "renice"
        duration = "10s"
        [[task]]
        name = "hog"
        count = 2
        program = [{ run = "30300us" }, { nice = 10 }, { run = "forever" }]
        "#;
    let mut run = o1::bench().hz(1000).run_toml(workload);
    run.until(30_300_000 - 1);
    let first = o1::current(&run, 0).expect("a hog runs");
    run.until(30_400_000);
    let reniced = o1::task(&run, first);
    assert_eq!((reniced.static_prio, reniced.prio, reniced.weight), (130, 135, 64));
    assert_ne!(o1::current(&run, 0), Some(first), "the other one is better now");
    assert_eq!(reniced.time_slice, 70, "what is left of the old slice");
}

/// The example of the scheduler's own description: a task that was rated interactive may compute for seconds.
#[test]
fn an_interactive_task_that_begins_to_compute_keeps_the_cpu() {
    let workload = r#"
        format = 1
        name = "example"
        duration = "20s"
        [[task]]
        name = "hog"
        count = 2
        program = [{ run = "forever" }]
        [[task]]
        name = "sleeper"
        program = [
          { loop = [{ run = "1ms" }, { sleep = "9ms" }], times = 200 },
          { mark = "computes" },
          { run = "forever" },
        ]
        "#;
    let mut run = o1::bench().hz(1000).run_toml(workload);
    run.until(15_000 * MS);
    let sleeper = run.named("sleeper")[0];
    let marks =
        |e: &fairground_trace::Event| matches!(e.kind, fairground_trace::EventKind::Mark { .. });
    let from = run.events().into_iter().find(|e| marks(e)).expect("it begins to compute").time_ns;
    let hogs_next = run
        .slices()
        .into_iter()
        .find(|s| s.task != sleeper && s.start_ns > from)
        .expect("hogs run");
    let alone_ms = (hogs_next.start_ns - from) / MS;
    assert!((2_300..2_600).contains(&alone_ms), "{alone_ms} ms");
}

/// The launcher has slept for a second in all: its child starts one point lower, and loses that by running.
#[test]
fn a_task_starts_with_what_its_launcher_slept() {
    for (rule, points) in [("on", 9), ("off", 0)] {
        let mut run = bench("o1").hz(1000).set("rule_launcher_slept", rule).run("hogs:1");
        run.until(1);
        let hog = o1::task(&run, run.named("hog")[0]);
        assert_eq!(hog.sleep_avg_ns, points * 100 * MS, "{rule}");
        assert_eq!(u64::from(hog.prio), 125 - points, "{rule}");
    }
}

/// Hogs that slept before: nice 0 stays interactive for 0.9 + 0.8 + 0.7 s of CPU time, in pieces of 10, 20 and 40 ms.
const RESTED: &str = r#"
    format = 1
    name = "rested"
    duration = "8s"
    [[task]]
    name = "hog"
    count = 2
    program = [{ sleep = "400ms" }, { run = "forever" }]
    [[task]]
    name = "nice"
    nice = 5
    program = [{ sleep = "400ms" }, { run = "forever" }]
    "#;

#[test]
fn rested_hogs_alternate_in_pieces_of_a_slice() {
    let mut run = bench("o1").hz(1000).run_toml(RESTED);
    run.until(8_000 * MS);
    let hog = run.named("hog")[0];
    let lengths_ms: Vec<u64> =
        whole_slices(&run, hog).iter().map(|(start, end)| (end - start) / MS).collect();
    let count = |ms: u64| lengths_ms.iter().filter(|length| length.abs_diff(ms) <= 1).count();
    // Of a slice of 100 ms: ten pieces of 10, five of 20, or one of 40 and the rest, too short to be split again.
    assert!(count(10).abs_diff(90) <= 4, "{lengths_ms:?}");
    assert!(count(20).abs_diff(40) <= 8, "{lengths_ms:?}");
    assert!(count(40) >= 6 && count(40).abs_diff(count(60)) <= 1, "{lengths_ms:?}");
    assert!(count(100) >= 8, "then whole slices: {lengths_ms:?}");
}

#[test]
fn rested_hogs_keep_a_nicer_one_waiting_for_a_second_each() {
    let mut run = bench("o1").hz(1000).run_toml(RESTED);
    run.until(8_400 * MS);
    let nice = run.named("nice")[0];
    let first_ms = whole_slices(&run, nice)[0].0 / MS;
    // The first slices end after 200 ms; from then on the starvation limit counts, 1 s for each of three.
    assert!((3_500..3_900).contains(&first_ms), "{first_ms} ms");
    // Hogs that slept less would leave it 75 of 275 ms.
    let ran_ms = run.cpu_time(400 * MS, 8_400 * MS)[&nice] / MS;
    assert!((8 * 100..8 * 120).contains(&ran_ms), "{ran_ms} ms of 8 s");
}
