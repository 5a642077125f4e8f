//! The laws of `cfs` (docs/laws/cfs.md): vruntime, slices, placement and preemption.
//!
//! `policies/tests/arithmetic.rs` checks law 1 for all 40 nice values, `cfs_groups.rs` law 13.

use crate::rig::pair_cfs::CFS_CURR_PID_AT;
use crate::rig::{MS, Run, US, bench, diff, weight, workload};
use fairground_trace::{TaskId, TaskState};

/// Offsets of the fields of `struct cfs_queue` that the laws use.
const MIN_VRUNTIME: usize = 0;
const CURR_VRUNTIME: usize = 2;

fn min_vruntime(run: &Run, cpu: usize) -> u64 {
    run.queue_u64(cpu, MIN_VRUNTIME)
}

/// The current task's pid and vruntime, while there is one.
fn current(run: &Run, cpu: usize) -> Option<(u32, u64)> {
    let pid = run.queue_field(cpu, CFS_CURR_PID_AT, 4) as u32;
    (pid != 0).then(|| (pid, run.queue_u64(cpu, CURR_VRUNTIME)))
}

/// Slices of the tasks that were ended by preemption, after a start-up.
fn slice_lengths(run: &Run, tasks: &[TaskId], from_ns: u64) -> Vec<u64> {
    let slices = run.slices();
    let of_tasks = slices.iter().filter(|s| tasks.contains(&s.task) && s.start_ns >= from_ns);
    of_tasks.filter(|s| s.state == TaskState::Runnable).map(|s| s.ran_ns()).collect()
}

fn mean_ms(slices: &[u64]) -> f64 {
    assert!(slices.len() > 20, "only {} slices", slices.len());
    slices.iter().sum::<u64>() as f64 / slices.len() as f64 / 1e6
}

#[test]
fn law_01_weighted_vruntime() {
    for set in ["cfs@2.6.24", "cfs@6.1"] {
        for nice in [-20i8, -11, -5, 0, 5, 13, 19] {
            let mut run = bench(set).hz(1000).run(&format!("hogs:1,nice={nice}"));
            let hog = TaskId(1);
            let before = run.until(100 * MS).task(hog);
            let after = run.until(1100 * MS).task(hog);
            let ran_ns = after.sum_exec_ns - before.sum_exec_ns;
            assert_eq!(ran_ns, 1000 * MS);
            let advance = diff(after.dsq_vtime, before.dsq_vtime);
            let exact = (ran_ns * 1024 / weight(nice)) as i64;
            // 1000 ticks, each at most 1 ns and 2^-22 of it off.
            let bound = 1000 + (exact >> 22) + 1;
            assert!(
                (advance - exact).abs() <= bound,
                "{set} nice {nice}: {advance} ns for {exact}"
            );
        }
    }
}

/// A sleeper with credit is placed left of min_vruntime, and is still there while it runs: the bound holds for the
/// others.
#[test]
fn law_02_min_vruntime_is_monotone_and_not_past_the_current() {
    for (set, follows_current) in
        [("cfs@2.6.24", true), ("cfs@2.6.27-sle11", false), ("cfs@6.1", true)]
    {
        let mut run =
            bench(set).cpus(2).hz(250).run("hogs:5:0:5 + sleepers:6,run=70us,sleep=900us");
        let hogs = run.until(100 * US).named("hog");
        let pids: Vec<u32> =
            hogs.iter().map(|h| run.machine.trace().tasks()[h.index()].pid).collect();
        let mut last = [min_vruntime(&run, 0), min_vruntime(&run, 1)];
        let mut seen = 0;
        run.watch(800 * MS, |run| {
            for (cpu, last) in last.iter_mut().enumerate() {
                let min = min_vruntime(run, cpu);
                assert!(
                    diff(min, *last) >= 0,
                    "{set}: min_vruntime went back at {} ns",
                    run.machine.now_ns()
                );
                *last = min;
                if let Some((_, vruntime)) = current(run, cpu).filter(|(pid, _)| pids.contains(pid))
                {
                    seen += 1;
                    assert!(
                        !follows_current || diff(vruntime, min) >= 0,
                        "{set}: it passed the current task"
                    );
                }
            }
        });
        assert!(seen > 10_000, "{set}: a hog was current at {seen} looks only");
    }
}

/// Slices of equal hogs on one CPU: ideal length in ns, and the measured ones.
fn equal_hogs(
    set: &'static str,
    cpus: u32,
    hogs: u32,
    hz: u32,
    settings: &[(&str, u64)],
) -> Vec<u64> {
    let mut bench = bench(set).cpus(cpus).hz(hz);
    for (name, value) in settings {
        bench = bench.set(name, value);
    }
    let mut run = bench.run(&format!("hogs:{hogs},cpus=0"));
    run.until(3_000 * MS);
    let tasks = run.named("hog");
    assert_eq!(tasks.len(), hogs as usize);
    slice_lengths(&run, &tasks, 500 * MS)
}

#[test]
fn laws_03_04_slices_follow_the_period_and_end_at_the_next_tick() {
    // 2.6.24, one CPU: latency 20 ms, min_granularity 4 ms. From six hogs on the period grows.
    for (hogs, ideal_ns) in
        [(2, 10 * MS), (3, 6_666_666), (4, 5 * MS), (5, 4 * MS), (6, 4 * MS), (10, 4 * MS)]
    {
        check_slices("cfs@2.6.24", 1, hogs, ideal_ns);
    }
    // 6.1, eight CPUs, factor 4: latency 24 ms, min_granularity 3 ms.
    for (hogs, ideal_ns) in [(2, 12 * MS), (4, 6 * MS), (8, 3 * MS), (12, 3 * MS)] {
        check_slices("cfs@6.1", 8, hogs, ideal_ns);
    }
    // More than eight CPUs count as eight since 2.6.33, and did not before: 2.6.24 on 16 has a factor of 5.
    check_slices("cfs@6.1", 16, 8, 3 * MS);
    check_slices("cfs@2.6.24", 16, 5, 20 * MS);
}

fn check_slices(set: &'static str, cpus: u32, hogs: u32, ideal_ns: u64) {
    for hz in [250, 1000] {
        let tick_ns = 1_000_000_000 / u64::from(hz);
        let slices = equal_hogs(set, cpus, hogs, hz, &[]);
        assert!(slices.len() > 20, "{set} {hogs} hogs: {} slices", slices.len());
        for ran_ns in slices {
            assert!(
                ran_ns > ideal_ns && ran_ns <= ideal_ns + tick_ns,
                "{set}, {hogs} hogs, HZ {hz}: a slice of {ran_ns} ns, not within ({ideal_ns}, +{tick_ns}]"
            );
        }
    }
}

#[test]
fn law_05_a_new_task_starts_one_slice_to_the_right() {
    let place = |start_debit: &str| {
        let mut workload = workload("hogs:4 + hogs:1");
        workload.tasks[1].start_ns = Some(1_000_300_000);
        let bench = bench("cfs@2.6.24")
            .hz(1000)
            .set("sched_child_runs_first", "off")
            .set("START_DEBIT", start_debit);
        let mut run = bench.run_workload(&workload);
        run.until(1_000_300_000);
        let tasks = run.tasks();
        let newest = tasks.last().expect("five tasks").0;
        assert_eq!(newest, TaskId(5));
        diff(run.task(newest).dsq_vtime, min_vruntime(&run, 0))
    };
    // Latency 20 ms, five tasks of 1024: 20 ms * 1024 / 5120.
    assert_eq!(place("on"), 4 * MS as i64);
    assert_eq!(place("off"), 0);
}

/// A sleeper between two samples: its key and CPU time when it went to sleep.
#[derive(Clone, Copy)]
struct Asleep {
    vruntime: u64,
    sum_exec_ns: u64,
}

/// Watches wake-ups of the sleepers on CPU 0. Calls `check(vruntime before, vruntime after placement, min_vruntime at
/// the last sample of the sleep, min_vruntime after)` for each whose placement was seen before it ran; returns their
/// number.
fn watch_wakeups(run: &mut Run, until_ns: u64, mut check: impl FnMut(u64, u64, u64, u64)) -> usize {
    let sleepers = run.named("sleeper");
    let mut asleep: Vec<Option<Asleep>> = vec![None; sleepers.len()];
    let mut min_before = min_vruntime(run, 0);
    let mut seen = 0;
    run.step_ns = 10 * US;
    run.watch(until_ns, |run| {
        let min_now = min_vruntime(run, 0);
        for (sleeper, asleep) in sleepers.iter().zip(&mut asleep) {
            let view = run.task(*sleeper);
            if !view.runnable {
                *asleep = Some(Asleep { vruntime: view.dsq_vtime, sum_exec_ns: view.sum_exec_ns });
            } else if let Some(was) = asleep.take()
                && view.sum_exec_ns == was.sum_exec_ns
            {
                check(was.vruntime, view.dsq_vtime, min_before, min_now);
                seen += 1;
            }
        }
        min_before = min_now;
    });
    seen
}

#[test]
fn law_06_placement_of_sleepers_is_bounded_on_both_sides() {
    for (set, credit_ns) in [("cfs@2.6.24", 20 * MS), ("cfs@6.1", 3 * MS)] {
        let mut run = bench(set)
            .hz(250)
            .run("hogs:3 + sleepers:3,run=40us,sleep=1500us + sleepers:1,run=2ms,sleep=60ms");
        run.until(100 * US);
        let seen = watch_wakeups(&mut run, 1_000 * MS, |before, after, min_before, _| {
            assert!(diff(after, before) >= 0, "{set}: a sleep gained time");
            assert!(
                diff(after, min_before.wrapping_sub(credit_ns)) >= 0,
                "{set}: more credit than there is"
            );
        });
        assert!(seen > 500, "{set}: {seen} wake-ups seen");
    }
}

#[test]
fn law_07_a_short_sleep_changes_nothing() {
    for (set, credit_ns) in [("cfs@2.6.24", 20 * MS), ("cfs@6.1", 3 * MS)] {
        let mut run = bench(set).hz(1000).run("hogs:1 + sleepers:1,run=1ms,sleep=800us");
        run.until(100 * US);
        let (mut kept, mut pulled) = (0, 0);
        let seen = watch_wakeups(&mut run, 1_000 * MS, |before, after, min_before, min_now| {
            if diff(before, min_now.wrapping_sub(credit_ns)) >= 0 {
                assert_eq!(after, before, "{set}: its own vruntime was right of the limit");
                kept += 1;
            } else if diff(before, min_before.wrapping_sub(credit_ns)) < 0 {
                assert!(diff(after, before) > 0, "{set}: it was left of the limit");
                pulled += 1;
            }
        });
        assert!(seen > 300, "{set}: {seen} wake-ups seen");
        assert!(kept > 100, "{set}: {kept} of {seen} short sleeps, {pulled} long ones");
    }
}

/// Involuntary switches of one hog that shares a CPU with a task that wakes once after a long sleep. The wakee is
/// placed exactly `credit` = 20 ms behind the hog, which alone is at min_vruntime.
fn preemptions(wakeup_granularity_ns: u64) -> usize {
    let bench =
        bench("cfs@2.6.24").hz(100).set("sched_wakeup_granularity_ns", wakeup_granularity_ns);
    let mut run = bench.run("hogs:1 + sleepers:1,run=1us,sleep=95003us");
    run.until(1_000 * MS);
    let hog = run.named("hog");
    let tick_ns = 10 * MS;
    let slices = run.slices();
    let off_tick = |at_ns: u64| !at_ns.is_multiple_of(tick_ns);
    slices
        .iter()
        .filter(|s| hog.contains(&s.task) && s.state == TaskState::Runnable && off_tick(s.end_ns))
        .count()
}

#[test]
fn law_08_preemption_needs_more_than_the_granularity() {
    assert_eq!(preemptions(20 * MS), 0, "a difference of exactly the granularity does not preempt");
    assert!(preemptions(20 * MS - 1) >= 9, "one nanosecond more does, at each wake-up");
}

/// Eight hogs and a 1 kHz sleeper on CPU 0 of 2, so that the times are doubled.
const SYNDROME: &str = "hogs:8,cpus=0 + sleepers:1,run=20us,sleep=980us,cpus=0";

fn syndrome(set: &'static str, settings: &[(&str, &str)]) -> f64 {
    let mut bench = bench(set).cpus(2).hz(1000);
    for (name, value) in settings {
        bench = bench.set(name, value);
    }
    let mut run = bench.run(SYNDROME);
    run.until(4_000 * MS);
    mean_ms(&slice_lengths(&run, &run.named("hog"), 1_000 * MS))
}

#[test]
fn law_09_fair_sleepers_cut_the_slices_of_hogs() {
    for set in ["cfs@2.6.24", "cfs@2.6.27-sle11"] {
        let five_ms = [("sched_wakeup_granularity_ns", "5ms")];
        let on = syndrome(set, &five_ms);
        assert!((0.95..=1.05).contains(&on), "{set}, fair sleepers on: {on} ms");
        let off = syndrome(set, &[five_ms[0], ("FAIR_SLEEPERS", "off")]);
        assert!((8.0..=12.0).contains(&off), "{set}, fair sleepers off: {off} ms");
    }
}

/// The current task is up to a slice right of min_vruntime, so the granularity must exceed credit + slice to cure it
/// for good.
#[test]
fn law_10_the_syndrome_needs_more_credit_than_granularity() {
    // Credit 40 ms, 20 with GENTLE; slices up to 9 ms; granularity twice what is set.
    let gentle = ("GENTLE_FAIR_SLEEPERS", "on");
    let full = ("GENTLE_FAIR_SLEEPERS", "off");
    for (granularity, credit) in [("5ms", full), ("5ms", gentle), ("15ms", full)] {
        let short = syndrome("cfs@2.6.24", &[("sched_wakeup_granularity_ns", granularity), credit]);
        assert!(short < 1.2, "{granularity}, {credit:?}: {short} ms");
    }
    for (granularity, credit) in [("25ms", full), ("15ms", gentle)] {
        let long = syndrome("cfs@2.6.24", &[("sched_wakeup_granularity_ns", granularity), credit]);
        assert!(long > 7.0, "{granularity}, {credit:?}: {long} ms");
    }
}

#[test]
fn law_11_shares_follow_the_weights() {
    for set in ["cfs@2.6.24", "cfs@2.6.27-sle11", "cfs@6.1"] {
        let mut run = bench(set).hz(1000).run("hogs:1:-5:0:5");
        run.until(31_000 * MS);
        let time = run.cpu_time(1_000 * MS, 31_000 * MS);
        let share = |nice: i8| {
            let (id, ..) =
                run.tasks().into_iter().find(|t| t.2 == nice).expect("a hog of that nice value");
            time[&id] as f64 / 30e9 * 100.0
        };
        for (nice, ideal) in [(-5, 69.67), (0, 22.86), (5, 7.48)] {
            assert!(
                (share(nice) - ideal).abs() < 0.2,
                "{set}: nice {nice} got {:.2} %, not {ideal}",
                share(nice)
            );
        }
    }
}

#[test]
fn law_12_a_migration_keeps_the_distance_to_min_vruntime() {
    // Two hogs share CPU 0 while CPU 1 is busy: the balancer moves them; when that one ends, CPU 1 pulls.
    let mut workload = workload("hogs:2 + sleepers:1,run=300300us,sleep=9s,cpus=1");
    workload.tasks[0].start_ns = Some(MS);
    let mut run = bench("cfs@2.6.24").cpus(2).hz(1000).run_workload(&workload);
    let hogs = run.until(5 * MS).named("hog");
    let mut last: Vec<_> = hogs.iter().map(|h| run.task(*h)).collect();
    // The CPU whose queue holds a task. The kernel's record of it follows only when the task is picked.
    let home = |run: &Run, hog| {
        run.machine.task_storage("task_ctx", hog, 0).expect("the scheduler keeps it") as u32
            as usize
    };
    let mut homes: Vec<_> = hogs.iter().map(|h| home(&run, *h)).collect();
    let mut moves = 0;
    run.step_ns = 10 * US;
    let mut mins = [min_vruntime(&run, 0), min_vruntime(&run, 1)];
    run.watch(600 * MS, |run| {
        let now = [min_vruntime(run, 0), min_vruntime(run, 1)];
        for ((hog, last), was) in hogs.iter().zip(&mut last).zip(&mut homes) {
            let (view, is) = (run.task(*hog), home(run, *hog));
            if is != *was && view.sum_exec_ns == last.sum_exec_ns {
                moves += 1;
                let before = diff(last.dsq_vtime, mins[*was]);
                let after = diff(view.dsq_vtime, now[is]);
                // The clocks of both queues advance between two samples.
                assert!((before - after).abs() <= 20 * US as i64, "{before} ns became {after}");
            }
            (*last, *was) = (view, is);
        }
        mins = now;
    });
    assert!(moves >= 1, "no move was seen");
}

#[test]
fn law_14_hogs_stay_together() {
    for set in ["cfs@2.6.24", "cfs@6.1"] {
        for nices in ["3", "1:-5:0:5", "1:-10:0:10"] {
            let mut run = bench(set).hz(1000).run(&format!("hogs:{nices}"));
            let tasks = run.until(500 * MS).tasks();
            let load: u64 = tasks.iter().map(|t| weight(t.2)).sum();
            let (latency_ns, least_ns) =
                if set == "cfs@6.1" { (6 * MS, 750 * US) } else { (20 * MS, 0) };
            let bound = tasks.iter().map(|t| {
                let ideal_ns = (latency_ns * weight(t.2) / load).max(least_ns);
                (ideal_ns + MS) * 1024 / weight(t.2)
            });
            let bound = bound.max().expect("three tasks");
            run.watch(1_500 * MS, |run| {
                let keys: Vec<u64> = tasks.iter().map(|t| run.task(t.0).dsq_vtime).collect();
                let first = keys[0];
                let offsets = || keys.iter().map(|k| diff(*k, first));
                let spread = offsets().max().expect("three") - offsets().min().expect("three");
                assert!(spread as u64 <= bound, "{set} {nices}: spread {spread} ns of {bound}");
            });
        }
    }
}

#[test]
fn law_15_a_switch_counts_from_the_next_decision_on() {
    let at = 2_000 * MS;
    let bench = bench("cfs@2.6.27-sle11").cpus(2).hz(1000).at(at, "NEW_FAIR_SLEEPERS", "off");
    let mut run = bench.run(SYNDROME);
    run.until(4_000 * MS);
    let hogs = run.named("hog");
    let slices = run.slices();
    let within = |from_ns: u64, to_ns: u64| {
        let of_hogs = slices
            .iter()
            .filter(|s| hogs.contains(&s.task) && s.start_ns >= from_ns && s.end_ns <= to_ns);
        of_hogs.map(|s| s.ran_ns()).collect::<Vec<_>>()
    };
    assert!(mean_ms(&within(at - 1_000 * MS, at)) < 1.1);
    assert!(
        mean_ms(&within(at + 100 * MS, at + 1_100 * MS)) > 8.0,
        "within a second, without a restart"
    );

    // A length, too: from the next tick on.
    let bench = crate::rig::bench("cfs@2.6.24").hz(1000).at(at, "sched_latency_ns", "40ms").at(
        at,
        "sched_min_granularity_ns",
        "8ms",
    );
    let mut run = bench.run("hogs:2");
    run.until(4_000 * MS);
    let hogs = run.named("hog");
    let slices = run.slices();
    let longest = |from_ns: u64, to_ns: u64| {
        let within = slices
            .iter()
            .filter(|s| hogs.contains(&s.task) && s.start_ns >= from_ns && s.end_ns <= to_ns);
        within.map(|s| s.ran_ns()).max().expect("some slices")
    };
    assert_eq!(longest(500 * MS, at) / MS, 11, "10 ms, ended by the tick behind");
    assert_eq!(longest(at, 4_000 * MS) / MS, 21, "20 ms, ended by the tick behind");
}
