//! The laws of the interactivity estimator of `o1` (docs/laws/o1.md): what sleep earns, what running costs, which tasks
//! are rated interactive.

use crate::rig::o1::{self, Member, set};
use crate::rig::{MS, Run};
use fairground_trace::TaskId;
use proptest::prelude::{ProptestConfig, proptest};
use proptest::{prop_assert, prop_assert_eq};

const SECOND: u64 = 1_000 * MS;

/// Two hogs of one nice value on a CPU, up to a time between two ticks; the second waits in the active array.
fn two_hogs(nice: i32) -> (Run, TaskId) {
    let mut run = o1::bench().hz(1000).run(&format!("hogs:2,nice={nice}"));
    run.until(500_000);
    let current = o1::current(&run, 0).expect("one of them runs");
    (run, current)
}

/// Priority, and whether they stay in the active array, of tasks whose slice ends with this sleep_avg, one after the
/// other.
fn slice_ends(nice: i32, sleep_avgs_ns: &[u64]) -> Vec<(u32, bool)> {
    let (mut run, _) = two_hogs(nice);
    let end = |sleep_avg_ns: &u64| {
        let before = o1::queue(&run, 0).active;
        let task = o1::current(&run, 0).expect("one of them runs");
        set(&mut run, task, Member::SleepAvg, *sleep_avg_ns);
        set(&mut run, task, Member::TimeSlice, 1);
        let now = run.machine.now_ns();
        run.until(now + MS);
        let after = o1::task(&run, task);
        (after.prio, after.array == before)
    };
    sleep_avgs_ns.iter().map(end).collect()
}

#[test]
fn law_03_who_is_rated_interactive() {
    let bonus_needed =
        [(-20, 2), (-16, 3), (-12, 4), (-8, 5), (-4, 6), (0, 7), (4, 8), (8, 9), (12, 10)];
    for nice in -20..20 {
        let needed =
            bonus_needed.iter().rev().find(|(from, _)| *from <= nice).expect("from -20 on").1;
        if nice >= 16 {
            assert!(!slice_ends(nice, &[SECOND])[0].1, "nice {nice} is never interactive");
            continue;
        }
        assert_eq!(needed, 5 + o1::delta(nice), "the table and the formula");
        let threshold = needed as u64 * 100 * MS;
        let ends = slice_ends(nice, &[threshold, threshold - 1]);
        assert!(ends[0].1, "nice {nice} with {threshold} ns");
        assert!(!ends[1].1, "nice {nice} with a ns less");
    }
}

#[test]
fn law_04_priorities_follow_sleep_avg() {
    for bonus in 0..=10 {
        let (least, most) = (bonus * 100 * MS, (bonus * 100 * MS + 100 * MS - 1).min(SECOND));
        for (prio, _) in slice_ends(0, &[most, least]) {
            assert_eq!(u64::from(prio), 125 - bonus, "{least} to {most} ns");
        }
    }
    let prios = |nice| slice_ends(nice, &[SECOND, 0]).into_iter().map(|(prio, _)| prio);
    assert!(prios(-20).eq([100, 105]), "clamped from 95");
    assert!(prios(19).eq([134, 139]), "clamped from 144");
}

/// A task that sleeps for ten seconds and then computes, beside a hog that it does not preempt.
fn long_sleeper(nice: i32) -> String {
    format!(
        r#"
        format = 1
        name = "long-sleeper"
        duration = "20s"
        [[task]]
        name = "hog"
        nice = -20
        start = "1s"
        program = [{{ run = "forever" }}]
        [[task]]
        name = "sleeper"
        nice = {nice}
        program = [{{ sleep = "10s" }}, {{ run = "forever" }}]
        "#
    )
}

#[test]
fn law_09_one_long_sleep_makes_a_task_just_interactive() {
    for (nice, ceiling_ms, prio) in
        [(-20, 299, 103), (-10, 499, 111), (0, 799, 118), (10, 999, 126)]
    {
        let mut run = o1::bench().hz(1000).run_toml(&long_sleeper(nice));
        run.until(10_000 * MS - 1);
        let sleeper = run.named("sleeper")[0];
        assert_eq!(o1::task(&run, sleeper).sleep_avg_ns, 0);
        run.until(10_000 * MS);
        let woken = o1::task(&run, sleeper);
        assert_eq!((woken.sleep_avg_ns, woken.prio), (ceiling_ms * MS, prio), "nice {nice}");
    }
    // It waits for the hog's slice to end, and that wait earns nothing: it has slept as a non-interactive task.
    let mut run = o1::bench().hz(1000).run_toml(&long_sleeper(0));
    run.until(10_000 * MS);
    let sleeper = run.named("sleeper")[0];
    assert_eq!(o1::task(&run, sleeper).sleep_type, o1::NONINTERACTIVE);
    while o1::current(&run, 0) != Some(sleeper) {
        let next = run.machine.now_ns() + MS;
        run.until(next);
        assert!(next < 12_000 * MS, "the hog's slice is 800 ms");
    }
    assert!(run.machine.now_ns() > 10_050 * MS, "it has waited");
    let picked = o1::task(&run, sleeper);
    assert_eq!((picked.sleep_avg_ns, picked.sleep_type), (799 * MS, o1::NORMAL));
}

/// A reader that waits for a pipe nearly all of the time, on a machine of two CPUs.
fn reader_of_a_pipe(rule: &str) -> u64 {
    let workload = r#"
        format = 1
        name = "pipe"
        duration = "20s"
        [[pipe]]
        name = "data"
        [[task]]
        name = "writer"
        program = [{ loop = [{ sleep = "20ms" }, { run = "1ms" }, { write = "data" }] }]
        [[task]]
        name = "reader"
        program = [{ loop = [{ read = "data" }, { run = "100us" }] }]
        "#;
    let bench = o1::bench().hz(1000).cpus(2).set("rule_sync_sleep_noninteractive", rule);
    let mut run = bench.run_toml(workload);
    run.until(1);
    let reader = run.named("reader")[0];
    let mut most = 0;
    run.step_ns = MS;
    run.watch(5 * SECOND, |run| most = most.max(o1::task(run, reader).sleep_avg_ns));
    most
}

#[test]
fn law_10_sleeps_at_pipes_and_disks_stop_at_the_ceiling() {
    let most = reader_of_a_pipe("on");
    assert!(most <= 799 * MS && most > 700 * MS, "{most} ns");
    assert_eq!(reader_of_a_pipe("off"), SECOND, "as for any other sleep");

    // A disk: the machine has none, so the state is set while the task sleeps.
    let mut run = o1::bench().hz(1000).run("sleepers:1,run=100us,sleep=20ms");
    run.until(1);
    let sleeper = run.named("sleeper")[0];
    let mut most = 0;
    run.step_ns = MS;
    run.watch(5 * SECOND, |run| {
        if !run.task(sleeper).runnable {
            set(run, sleeper, Member::SleepType, u64::from(o1::NONINTERACTIVE));
        }
        most = most.max(o1::task(run, sleeper).sleep_avg_ns);
    });
    assert!(most <= 799 * MS && most > 700 * MS, "{most} ns");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    /// Law 11: running for `ran` with bonus b lowers sleep_avg by ran / max(b, 1), whatever the nice value. Shorter
    /// than the shortest slice, at the end of which it would be charged with the bonus of that time.
    #[test]
    fn law_11_running_costs_by_the_bonus(sleep_avg in 0..=SECOND, ran in 2..=9 * MS, nice in -20..15_i32) {
        let spec = format!("sleepers:1,run={ran}ns,sleep=5s,nice={nice}");
        let mut run = o1::bench().hz(1000).run(&spec);
        run.until(1);
        let task = run.named("sleeper")[0];
        set(&mut run, task, Member::SleepAvg, sleep_avg);
        run.until(ran + MS);
        prop_assert!(!run.task(task).runnable, "it sleeps again");
        let bonus = (sleep_avg / (100 * MS)).max(1);
        prop_assert_eq!(o1::task(&run, task).sleep_avg_ns, sleep_avg.saturating_sub(ran / bonus));
    }
}

/// Waiting for a CPU counts as sleep: all of it after a wake-up by an interrupt, 38/128 of it after one by a task.
#[test]
fn waiting_after_a_wake_up_earns_by_who_woke_the_task() {
    let by = |program: &str| {
        let workload = format!(
            r#"
            format = 1
            name = "wait"
            duration = "20s"
            [[queue]]
            name = "messages"
            [[task]]
            name = "hog"
            nice = -20
            program = [{{ sleep = "9500us" }}, {{ run = "500us" }}, {{ send = "messages" }}, {{ run = "forever" }}]
            [[task]]
            name = "waiter"
            program = [{program}, {{ run = "forever" }}]
            "#
        );
        let mut run = o1::bench().hz(1000).run_toml(&workload);
        run.until(10 * MS + 10_000);
        let waiter = run.named("waiter")[0];
        let woken = o1::task(&run, waiter);
        assert_eq!(woken.sleep_avg_ns, 10 * MS);
        while o1::current(&run, 0) != Some(waiter) {
            let next = run.machine.now_ns() + 100_000;
            run.until(next);
            assert!(next < 2 * SECOND, "the hog's slice is 800 ms");
        }
        let picked = o1::task(&run, waiter);
        (woken.sleep_type, picked.sleep_avg_ns - 10 * MS, picked.timestamp_ns - woken.timestamp_ns)
    };
    let (kind, earned, waited) = by(r#"{ sleep = "10ms" }"#);
    assert_eq!((kind, earned), (o1::INTERRUPTED, waited));
    let (kind, earned, waited) = by(r#"{ receive = "messages" }"#);
    assert_eq!((kind, earned), (o1::INTERACTIVE, waited * 38 / 128));
    assert!(waited > 700 * MS);
}
