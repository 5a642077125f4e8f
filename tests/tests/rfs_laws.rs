//! The laws of `rfs` (docs/laws/rfs.md) on workloads in the machine: exact sums, exact service, bounded spread,
//! placement.
//!
//! `rfs_sums.rs` has laws 1, 6, 13 and 14, `rfs_history.rs` what holds after every operation, `rfs_ms32.rs` law 11
//! (the 32-bit form), `policies/tests/arithmetic.rs` the arithmetic alone.

use crate::rig::rfs::{Member, Queue, SETS, inv, shift};
use crate::rig::{MS, Run, US, bench, diff};
use fairground_trace::{EventKind, TaskId};

fn queue(run: &Run, cpu: usize) -> Queue {
    Queue::read(|word| run.queue_u64(cpu, word))
}

/// Each runnable task's normalised time and nice value; the running task's from its queue.
fn runnable(run: &Run, queue: &Queue) -> Vec<(TaskId, u64, i8)> {
    let infos = run.machine.trace().tasks();
    let views =
        run.tasks().into_iter().filter_map(|(id, _, nice)| Some((id, run.machine.task(id)?, nice)));
    let of_task = views.filter(|(_, view, _)| view.runnable).map(|(id, view, nice)| {
        let is_current = infos[id.index()].pid == queue.curr_pid;
        (id, if is_current { queue.curr_time_norm } else { view.dsq_vtime }, nice)
    });
    of_task.collect()
}

fn members(tasks: &[(TaskId, u64, i8)]) -> Vec<Member> {
    tasks.iter().map(|t| (t.1, shift(t.2))).collect()
}

fn check_sums(run: &Run, cpu: usize, max_log2: u32) {
    let q = queue(run, cpu);
    let mut tasks = runnable(run, &q);
    // The scheduler itself records the queue whose sums contain it: the kernel moves a task only when it is picked.
    tasks.retain(|t| {
        run.machine.task_storage("task_ctx", t.0, 0).is_some_and(|word| word as u32 == cpu as u32)
    });
    q.check(&members(&tasks), max_log2).unwrap_or_else(|e| panic!("{e}"));
}

const MIXED: &str = "hogs:1:-5:0:5 + sleepers:2,run=300us,sleep=2ms + \
                     sleepers:1,run=1ms,sleep=40ms,nice=10 + \
                     sleepers:1,run=5ms,sleep=7ms,nice=-20";

#[test]
fn laws_02_03_sums_are_exact_at_every_look() {
    for (set, _, max_log2) in SETS {
        let mut run = bench(set).hz(1000).run(MIXED);
        let mut looks = 0;
        run.watch(1_500 * MS, |run| {
            check_sums(run, 0, max_log2);
            looks += 1;
        });
        assert!(
            looks > 20_000 && queue(&run, 0).rotations > 0,
            "{set}: {looks} looks, {:?}",
            queue(&run, 0)
        );
    }
    // A smaller bound, so that the base moves often.
    let mut run = bench("rfs@literal").hz(1000).set("max_timesum_log2", 40).run(MIXED);
    run.watch(1_500 * MS, |run| check_sums(run, 0, 40));
    assert!(queue(&run, 0).rotations > 100, "{:?}", queue(&run, 0));
}

/// The moves of other CPUs are added to a queue's sums at its own next step; until then the sums are the old ones.
#[test]
fn law_02_sums_are_exact_while_tasks_move() {
    for (set, _, max_log2) in SETS {
        let mut run = bench(set)
            .cpus(4)
            .hz(1000)
            .run("hogs:1 + sleepers:5,run=700us,sleep=900us + sleepers:3,run=3ms,sleep=5ms,nice=3");
        let mut settled = 0;
        run.watch(1_000 * MS, |run| {
            for cpu in 0..4 {
                let (moved, seen) = (run.queue_field(cpu, 168, 8), run.queue_field(cpu, 192, 8));
                if moved == seen {
                    check_sums(run, cpu, max_log2);
                    settled += usize::from(seen > 0);
                }
            }
        });
        let moves = run.machine.counters().migrations;
        assert!(
            moves > 100 && settled > 10_000,
            "{set}: {moves} moves, {settled} checks of a queue that lost tasks"
        );
    }
}

#[test]
fn law_04_service_is_accounted_exactly() {
    for (set, fraction_bits, _) in SETS {
        let mut run =
            bench(set).hz(250).run("hogs:1:-15:-5:0:5:19 + sleepers:3,run=33us,sleep=901us");
        run.until(300 * US);
        let hogs: Vec<_> = run.tasks().into_iter().filter(|t| t.1.starts_with("hog")).collect();
        let start: Vec<_> = hogs.iter().map(|h| run.task(h.0)).collect();
        run.until(5_000 * MS);
        for (hog, start) in hogs.iter().zip(&start) {
            // Key and CPU time are updated at the same times.
            let now = run.task(hog.0);
            let ran_ns = now.sum_exec_ns - start.sum_exec_ns;
            let advance = diff(now.dsq_vtime, start.dsq_vtime);
            assert_eq!(
                advance as u64,
                ran_ns * inv(hog.2, fraction_bits),
                "{set} nice {}: {ran_ns} ns",
                hog.2
            );
        }
        let q = queue(&run, 0);
        assert!(runnable(&run, &q).len() >= 5);
    }
}

#[test]
fn law_05_average_is_the_exact_mean() {
    for (set, ..) in SETS {
        let mut run = bench(set).hz(1000).run(MIXED);
        run.watch(600 * MS, |run| {
            let q = queue(run, 0);
            q.check_average(&members(&runnable(run, &q))).unwrap_or_else(|e| panic!("{set}: {e}"));
        });
    }
}

#[test]
fn law_07_wrapping_changes_no_decision() {
    for (set, ..) in SETS {
        // Events, and the base of CPU 0 at the end.
        let decisions = |start: u64| {
            let mut run = bench(set).cpus(2).hz(1000).set("time_norm_start", start).run(MIXED);
            run.until(2_000 * MS);
            (run.events(), queue(&run, 0).time_norm_base)
        };
        let (from_zero, moved) = decisions(0);
        let switches = from_zero.iter().filter(|e| matches!(e.kind, EventKind::Switch { .. }));
        assert!(switches.count() > 1000);
        assert!(moved > 1 << 34, "{set}: the times move by {moved}, past any of the starts");
        for start in [(1u64 << 63) - (1 << 34), u64::MAX - (1 << 34), u64::MAX - 1_000_000_000] {
            let (events, base) = decisions(start);
            assert!(events == from_zero, "{set}: from {start} another run than from 0");
            assert_eq!(base.wrapping_sub(start), moved);
        }
    }
}

/// The largest lead of a hog over another: (G + tick) * inv.
fn spread_bound(nices: &[i8], fraction_bits: u32, granularity_ns: u64, tick_ns: u64) -> u64 {
    let bounds = nices.iter().map(|n| (granularity_ns + tick_ns) * inv(*n, fraction_bits));
    bounds.max().expect("some task")
}

#[test]
fn laws_08_09_spread_is_bounded_and_no_error_grows() {
    for (set, fraction_bits, _) in SETS {
        for nices in [[-5i8, 0, 5], [-10, 0, 10], [0, 5, 19]] {
            let mut run =
                bench(set).hz(1000).run(&format!("hogs:1:{}:{}:{}", nices[0], nices[1], nices[2]));
            let bound = spread_bound(&nices, fraction_bits, 4 * MS, MS);
            run.until(2 * MS);
            run.step_ns = 500 * US;
            let mut bases: Vec<Vec<u64>> = Vec::new();
            let mut widest = 0;
            run.watch(20_000 * MS, |run| {
                let tasks = runnable(run, &queue(run, 0));
                let offsets: Vec<i64> = tasks.iter().map(|t| diff(t.1, tasks[0].1)).collect();
                let spread =
                    offsets.iter().max().expect("three") - offsets.iter().min().expect("three");
                assert!(spread as u64 <= bound, "law 9, {set} {nices:?}: {spread} of {bound}");
                widest = widest.max(spread as u64);
                bases.push(tasks.iter().map(|t| t.1).collect());
            });
            assert!(widest > bound / 10 * 9, "the bound is no empty one: {widest} of {bound}");
            // Law 8: over any interval the services differ by at most 2 D, however long it is.
            for interval in [1usize, 10, 100, 1000, 10_000, 39_000] {
                for from in (0..bases.len() - interval).step_by(257) {
                    let served: Vec<i64> = bases[from]
                        .iter()
                        .zip(&bases[from + interval])
                        .map(|(a, b)| diff(*b, *a))
                        .collect();
                    let apart =
                        served.iter().max().expect("three") - served.iter().min().expect("three");
                    assert!(
                        apart as u64 <= 2 * bound,
                        "law 8, {set} {nices:?}: {apart} over {interval} looks"
                    );
                }
            }
        }
    }
}

#[test]
fn law_10_wakeups_are_placed_at_the_bonus_or_kept() {
    for (set, fraction_bits, _) in SETS {
        let bonus = 10 * MS * inv(0, fraction_bits);
        // One hog: while the sleeper is away, the average is the hog's time.
        for (times, long) in [("run=1ms,sleep=800us", false), ("run=100us,sleep=200ms", true)] {
            let with_bonus = bench(set).hz(1000).set("bonus_ns", "10ms");
            let mut run = with_bonus.run(&format!("hogs:1 + sleepers:1,{times}"));
            run.until(100 * US);
            run.step_ns = 10 * US;
            let sleeper = run.named("sleeper")[0];
            let mut asleep = None;
            let mut seen = 0;
            run.watch(2_000 * MS, |run| {
                let view = run.task(sleeper);
                let Some((key, exec_ns)) = asleep else {
                    asleep = (!view.runnable).then_some((view.dsq_vtime, view.sum_exec_ns));
                    return;
                };
                if !view.runnable || view.sum_exec_ns != exec_ns {
                    asleep = (!view.runnable).then_some((view.dsq_vtime, view.sum_exec_ns));
                    return;
                }
                asleep = None;
                let hog = run.task(run.named("hog")[0]).dsq_vtime;
                if !long && diff(hog, key) < bonus as i64 {
                    assert_eq!(view.dsq_vtime, key, "{set}: a short sleep changes nothing");
                    seen += 1;
                } else if long {
                    // The hog's own time, published when it was preempted at this moment.
                    assert_eq!(
                        diff(hog, view.dsq_vtime),
                        bonus as i64,
                        "{set}: a long sleep earns the bonus"
                    );
                    seen += 1;
                }
            });
            assert!(seen >= if long { 8 } else { 100 }, "{set}, {times}: {seen} wake-ups seen");
        }
    }
}

#[test]
fn law_12_the_base_rotates_as_often_as_the_average_moves() {
    let mut run = bench("rfs@literal").hz(1000).set("max_timesum_log2", 40).run("hogs:1:-5:0:5");
    run.until(2 * MS);
    let before = queue(&run, 0);
    run.until(10_002 * MS);
    let after = queue(&run, 0);
    let moved = diff(after.time_norm_base, before.time_norm_base) as u64;
    assert_eq!(after.rotations - before.rotations, moved / after.time_norm_inc);
    // X * 2^S * m / time_sum_max, m within 1.42 of 1.
    let expected = 10e9 * 65536.0 / after.time_sum_max as f64;
    let rotations = (after.rotations - before.rotations) as f64;
    assert!(
        (1.0 / 1.42..=1.42).contains(&(rotations / expected)),
        "{rotations} rotations for {expected:.0}"
    );
}
