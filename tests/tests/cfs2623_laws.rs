//! The laws of `cfs_2_6_23` (docs/laws/cfs_2_6_23.md): the fair clock, what tasks are owed, the sleepers' bonus,
//! slices, fork and yield. `policies/tests/arithmetic.rs` has laws 1 and 2, which concern the arithmetic alone.

use crate::rig::callbacks::{Callbacks, load};
use crate::rig::cfs2623::{Queue, booked, owed, queue};
use crate::rig::{MS, Run, US, bench, diff, weight};
use fairground_trace::{TaskId, TaskState};

/// The sets whose arithmetic and weight table are those of the release.
const SETS: [&str; 3] = ["cfs_2_6_23@2.6.23-rc3", "cfs_2_6_23@2.6.23-rc6", "cfs_2_6_23@2.6.23"];

fn slice_lengths(run: &Run, from_ns: u64) -> Vec<u64> {
    let slices = run.slices();
    let ended = slices.iter().filter(|s| s.start_ns >= from_ns && s.state == TaskState::Runnable);
    ended.map(|s| s.ran_ns()).collect()
}

fn mean(slices: &[u64]) -> f64 {
    assert!(slices.len() > 20, "only {} slices", slices.len());
    slices.iter().sum::<u64>() as f64 / slices.len() as f64
}

#[test]
fn law_03_alone_a_task_is_owed_nothing() {
    for set in SETS {
        for nice in [-20i8, -10, -5, 0, 5, 19] {
            let mut run = bench(set).hz(1000).run(&format!("hogs:1,nice={nice}"));
            let hog = TaskId(1);
            run.until(100 * MS);
            let (from, owed_before) = (queue(&run, 0), owed(&run, hog, nice));
            run.until(1_100 * MS);
            let (to, owed_after) = (queue(&run, 0), owed(&run, hog, nice));
            assert_eq!(to.exec_clock - from.exec_clock, 1_000 * MS, "{set} nice {nice}");
            // 1000 updates. Each loses what law 2 says of d = 1 ms: 1 ns and 2^-22, and 2^15 / 1024 ns of the clock.
            let change = (owed_after - owed_before).abs();
            assert!(change <= 1_000 * (1 + 33), "{set} nice {nice}: owed {change} ns more or less");
            let exact = (1_000 * MS * 1024 / weight(nice)) as i64;
            let advance = diff(to.fair_clock, from.fair_clock);
            let bound = 1_000 * (1 + (1 << 15) / weight(nice).max(1) as i64) + (exact >> 22) + 1;
            assert!(
                (advance - exact).abs() <= bound,
                "{set} nice {nice}: {advance} ns, not {exact}"
            );
        }
    }
}

/// Two hogs: while A runs, its key moves right by its run time. The distance must exceed latency/2 - latency/4 = 5 ms:
/// the first switch comes then. Afterwards a slice begins 5 ms left of the other key and ends 5 ms right of it: 10 ms.
#[test]
fn law_04_two_hogs_alternate_by_half_the_latency() {
    for set in ["cfs_2_6_23@2.6.23-rc6", "cfs_2_6_23@2.6.23"] {
        let mut run = bench(set).hz(1000).run("hogs:2");
        run.until(20_000 * MS);
        let slices = slice_lengths(&run, MS);
        for ran_ns in slices.iter().skip(4) {
            assert!((10 * MS..=11 * MS).contains(ran_ns), "{set}: a slice of {ran_ns} ns");
        }
        let time = run.cpu_time(0, 20_000 * MS);
        for share in time.values() {
            assert!(share.abs_diff(10_000 * MS) <= 11 * MS, "{set}: {time:?}");
        }
    }
}

#[test]
fn law_05_slices_of_equal_hogs_are_latency_over_n_down_to_the_least() {
    for (hogs, ideal_ns) in [(2u64, 10 * MS), (4, 5 * MS), (5, 4 * MS), (10, 2 * MS), (15, 2 * MS)]
    {
        let mut run = bench("cfs_2_6_23").hz(1000).run(&format!("hogs:{hogs}"));
        run.until(10_000 * MS);
        let mean_ns = mean(&slice_lengths(&run, 500 * MS));
        // A slice ends at the tick at or after the due time.
        let bounds = ideal_ns as f64..=(ideal_ns + MS + 100 * US) as f64;
        assert!(bounds.contains(&mean_ns), "{hogs} hogs: {mean_ns} ns, ideal {ideal_ns}");
    }
}

#[test]
fn law_06_shares_follow_the_weights() {
    for set in SETS {
        for (spec, shares) in [
            ("hogs:1:0:5", &[(0i8, 75.35), (5, 24.65)][..]),
            ("hogs:1:-5:0:5", &[(-5, 69.67), (0, 22.86), (5, 7.48)]),
        ] {
            let mut run = bench(set).hz(1000).run(spec);
            run.until(31_000 * MS);
            let time = run.cpu_time(1_000 * MS, 31_000 * MS);
            for (nice, ideal) in shares {
                let tasks = run.tasks();
                let (id, ..) =
                    tasks.iter().find(|t| t.2 == *nice).expect("a hog of that nice value");
                let share = time[id] as f64 / 30e9 * 100.0;
                assert!(
                    (share - ideal).abs() < 1.0,
                    "{set} {spec}: nice {nice} got {share:.2} %, not {ideal}"
                );
            }
        }
    }
}

#[test]
fn law_07_what_tasks_are_owed_is_conserved() {
    for set in SETS {
        let hogs = "hogs:2:0:5:-5";
        let mut run = bench(set).hz(1000).run(hogs);
        let tasks = run.until(500 * MS).tasks();
        let sum = |run: &Run| tasks.iter().map(|t| owed(run, t.0, t.2)).sum::<i64>();
        let (before, clamped) = (sum(&run), queue(&run, 0).clamped_ns);
        run.until(2_500 * MS);
        let lost = queue(&run, 0).clamped_ns - clamped;
        // 2000 ticks and as many switches at most; n + 1 scalings each, of 1 ns and the 16-bit shift: 2^15 / load, * w
        // / 1024.
        let updates = 4_000;
        let bound = updates * (tasks.len() as i64 + 1) * 34;
        let change = sum(&run) - before + lost;
        assert!(change.abs() <= bound, "{set}: the sum moved by {change} ns, at most {bound}");
    }
}

#[test]
fn law_08_no_task_is_owed_more_than_the_limit() {
    for (set, limit_ns) in [
        ("cfs_2_6_23@2.6.23-rc1", 8 * MS as i64), // 4 * 2 ticks of 1 ms
        ("cfs_2_6_23@2.6.23-rc3", 8 * MS as i64),
        ("cfs_2_6_23@2.6.23", 20 * MS as i64),
    ] {
        let mut run = bench(set).hz(1000).run(
            "hogs:2:0:5:-10 + sleepers:3,run=700us,sleep=9ms + sleepers:1,run=1ms,sleep=250ms",
        );
        run.until(100 * US);
        let mut most = 0;
        run.watch(1_000 * MS, |run| {
            for (id, ..) in run.tasks() {
                let owed = booked(run, id);
                assert!(owed.abs() <= limit_ns, "{set}: {owed} ns at {} ns", run.machine.now_ns());
                most = most.max(owed.abs());
            }
        });
        assert_eq!(most, limit_ns, "{set}: the bound is reached");
    }
}

#[test]
fn law_09_the_bonus_is_what_was_granted_and_not_yet_paid() {
    for set in ["cfs_2_6_23@2.6.23-rc1", "cfs_2_6_23@2.6.23-rc3", "cfs_2_6_23@2.6.23"] {
        let mut run = bench(set).hz(1000).run(
            "hogs:3:0:5 + sleepers:3,run=300us,sleep=4ms + sleepers:1,run=2ms,sleep=30ms,nice=-5",
        );
        let mut paid = 0;
        run.watch(1_500 * MS, |run| {
            let q = queue(run, 0);
            assert!(q.sleeper_bonus as i64 >= 0, "{set}");
            assert_eq!(q.bonus_granted_ns, q.bonus_paid_ns + q.sleeper_bonus, "{set}");
            paid = q.bonus_paid_ns;
        });
        assert!(paid > 50 * MS, "{set}: only {paid} ns were ever paid");
    }
}

fn one_cpu(settings: &[(&str, u64)]) -> Callbacks {
    Callbacks::new(&load("cfs_2_6_23"), settings)
}

fn books(c: &Callbacks) -> Queue {
    Queue::read(|word| c.word("cpu_queues", word))
}

/// Wakes `nice` tasks and lets them alternate for a while.
fn hogs(c: &mut Callbacks, nices: &[i8]) -> Vec<crate::rig::callbacks::Task> {
    let tasks: Vec<_> = nices.iter().map(|nice| c.task(*nice)).collect();
    for task in &tasks {
        c.wake(*task);
        c.schedule();
    }
    for _ in 0..200 {
        c.pass(MS);
        if c.tick() {
            c.schedule();
        }
    }
    tasks
}

#[test]
fn law_10_a_long_sleeper_comes_back_one_limit_to_the_left() {
    let mut c = one_cpu(&[]);
    let sleeper = c.task(0);
    c.wake(sleeper);
    c.schedule();
    c.pass(100 * US);
    c.sleep();
    hogs(&mut c, &[0, 0, 0]);
    let kicks = c.kicks();
    c.wake(sleeper);
    let q = books(&c);
    assert_eq!(c.storage(sleeper, 0), 20 * MS, "the limit is the latency on one CPU");
    assert_eq!(diff(q.fair_clock, c.dsq_vtime(sleeper)), 20 * MS as i64);
    assert!(
        diff(q.curr_key, c.dsq_vtime(sleeper)) > MS as i64,
        "further left than the granularity"
    );
    assert_eq!(c.kicks(), kicks + 1, "it preempts");
    assert_eq!(c.schedule(), Some(sleeper));
    // Without the feature it is where it went to sleep: owed almost nothing.
    let mut c = one_cpu(&[("FAIR_SLEEPERS", 0)]);
    let sleeper = c.task(0);
    c.wake(sleeper);
    c.schedule();
    c.pass(100 * US);
    c.sleep();
    hogs(&mut c, &[0, 0, 0]);
    c.wake(sleeper);
    assert_eq!(c.storage(sleeper, 0), 0, "alone it owed nothing");
    assert_eq!(books(&c).sleeper_bonus, 0);
}

#[test]
fn law_11_a_child_is_left_of_its_parent_and_runs_once() {
    for nice in [0, 5, -5] {
        let mut c = one_cpu(&[]);
        hogs(&mut c, &[nice, 0]);
        let parent = c.current().expect("one runs");
        let child = c.task(0);
        c.restore(child);
        // Two tasks before it: 20/2 - 20/4 = 5 ms, and by the weight of the current one.
        let q = books(&c);
        let before = diff(q.curr_key, c.dsq_vtime(child));
        let parent_nice = if c.nice(parent) == nice { nice } else { 0 };
        let gran = match parent_nice {
            0 => 5 * MS,
            5 => (5 * MS * 335) >> 10,
            _ => (5 * MS * 1_376_151) >> 22,
        };
        assert_eq!(before, gran as i64 + 1, "nice {parent_nice}");
        assert_eq!(c.storage(child, 0) as i64, -(5 * MS as i64) / 2, "the start debit");
        assert_eq!(c.schedule(), Some(child), "it runs first");
        // Its debt counts from its first tick on: then it is behind all others.
        c.pass(MS);
        c.tick();
        let q = books(&c);
        assert!(diff(q.curr_key, q.fair_clock) > 0, "right of the clock");
    }
    // Otherwise a plain enqueue: at the fair clock.
    let mut c = one_cpu(&[("sched_child_runs_first", 0)]);
    hogs(&mut c, &[0, 0]);
    let child = c.task(0);
    c.restore(child);
    assert_eq!(c.dsq_vtime(child), books(&c).fair_clock);
    assert_eq!(c.storage(child, 0), 0);
}

#[test]
fn law_12_compat_yield_goes_behind_all_others() {
    let mut c = one_cpu(&[("sched_compat_yield", 1)]);
    let tasks = hogs(&mut c, &[0, 0, 0, 5]);
    for _ in 0..50 {
        let caller = c.current().expect("one runs");
        c.pass(100 * US);
        c.yield_now();
        let key = books(&c).curr_key;
        let others = tasks.iter().filter(|t| **t != caller);
        assert!(others.clone().all(|t| diff(key, c.dsq_vtime(*t)) > 0), "the last key");
        assert_ne!(c.schedule(), Some(caller));
    }
    // Without it: its key follows from its accounting, so a caller that is still the first continues.
    let mut c = one_cpu(&[]);
    hogs(&mut c, &[0, 0, 0]);
    let caller = c.current().expect("one runs");
    c.pass(10 * US);
    c.yield_now();
    let q = books(&c);
    assert_eq!(diff(q.fair_clock, q.curr_key), q.curr_wait_runtime);
    let first = c.waiting().iter().all(|t| diff(q.curr_key, c.dsq_vtime(*t)) < 0);
    assert_eq!(c.schedule() == Some(caller), first);
}

#[test]
fn law_13_the_times_grow_with_the_number_of_cpus() {
    for (cpus, factor) in [(1, 1), (2, 2), (3, 2), (4, 3), (8, 4), (16, 5), (32, 5)] {
        let mut run = bench("cfs_2_6_23").cpus(cpus).hz(1000).run("hogs:2,cpus=0");
        run.until(6_000 * MS);
        let mean_ns = mean(&slice_lengths(&run, 500 * MS));
        // Half of the latency: 20 ms times the factor, at most 100 ms (32 CPUs have a factor of 6).
        let ideal_ns = (10 * MS * factor) as f64;
        assert!((ideal_ns..=ideal_ns + 1.1e6).contains(&mean_ns), "{cpus} CPUs: {mean_ns} ns");
    }
}

/// Shares of equal hogs in % of a CPU, sorted, over 12 s after a start-up.
fn shares(set: &'static str, hogs: usize, cpus: u32) -> Vec<f64> {
    let mut run = bench(set).cpus(cpus).hz(1000).run(&format!("hogs:{hogs}"));
    run.until(14_000 * MS);
    let time = run.cpu_time(2_000 * MS, 14_000 * MS);
    let mut shares: Vec<f64> = time.values().map(|ns| *ns as f64 / 12e9 * 100.0).collect();
    shares.sort_by(f64::total_cmp);
    assert_eq!(shares.len(), hogs);
    let sum: f64 = shares.iter().sum();
    assert!((sum - f64::from(cpus) * 100.0).abs() < 0.1, "{set}: no CPU is idle: {shares:?}");
    shares
}

#[test]
fn law_14_ten_hogs_on_eight_cpus_freeze_in_rc1_and_rotate_later() {
    let frozen = shares("cfs_2_6_23@2.6.23-rc1", 10, 8);
    assert!(frozen[..4].iter().all(|s| (49.0..51.0).contains(s)), "{frozen:?}");
    assert!(frozen[4..].iter().all(|s| *s > 99.0), "{frozen:?}");
    for set in ["cfs_2_6_23@2.6.23-rc3", "cfs_2_6_23@2.6.23-rc6", "cfs_2_6_23@2.6.23"] {
        let moving = shares(set, 10, 8);
        assert!(moving.iter().all(|s| (70.0..=90.0).contains(s)), "{set}: {moving:?}");
    }
    for set in ["cfs_2_6_23@2.6.23-rc1", "cfs_2_6_23@2.6.23-rc3", "cfs_2_6_23@2.6.23"] {
        let three = shares(set, 3, 2);
        assert!(three.iter().all(|s| (60.0..=73.0).contains(s)), "{set}: {three:?}");
    }
}
