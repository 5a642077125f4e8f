//! The laws of `o1` (docs/laws/o1.md): slices, arrays, preemption, fork and exit. `o1_estimator.rs` has those of the
//! interactivity estimator.

use std::collections::BTreeMap;

use crate::rig::o1::{self, Member, set};
use crate::rig::{MS, Run, workload};
use fairground_trace::{Event, EventKind, TaskId, TaskState};

/// Slices in ms by nice value, as 2.6.22 has them at HZ 1000, 250 and 100.
const SLICES_MS: [(i32, [u64; 3]); 12] = [
    (-20, [800, 800, 800]),
    (-15, [700, 700, 700]),
    (-10, [600, 600, 600]),
    (-5, [500, 500, 500]),
    (-1, [420, 420, 420]),
    (0, [100, 100, 100]),
    (1, [95, 92, 90]),
    (5, [75, 72, 70]),
    (10, [50, 48, 50]),
    (15, [25, 24, 20]),
    (18, [10, 8, 10]),
    (19, [5, 4, 10]),
];

/// A new slice of every nice value, ms.
fn slices_ms(hz: u32) -> BTreeMap<i32, u64> {
    let nices: Vec<String> = (-20..20).map(|nice: i32| nice.to_string()).collect();
    let mut run = o1::bench().hz(hz).run(&format!("hogs:1:{}", nices.join(":")));
    run.until(1_000);
    let tasks = run.tasks();
    assert_eq!(tasks.len(), 40);
    let of = |id| u64::from(o1::task(&run, id).time_slice) * 1000 / u64::from(hz);
    tasks.into_iter().map(|(id, _, nice)| (i32::from(nice), of(id))).collect()
}

#[test]
fn law_01_slices_are_those_of_the_table() {
    for (column, hz) in [1000, 250, 100].into_iter().enumerate() {
        let slices = slices_ms(hz);
        for (nice, table) in SLICES_MS {
            assert_eq!(slices[&nice], table[column], "nice {nice} at HZ {hz}");
        }
        let least = (5 * u64::from(hz) / 1000).max(1) * 1000 / u64::from(hz);
        for (nice, slice) in &slices {
            assert!(*slice >= least, "nice {nice} at HZ {hz}: {slice} ms");
            assert!(*nice == 19 || slices[&(nice + 1)] <= *slice, "nice {nice} at HZ {hz}");
            assert_eq!(*slice, u64::from(o1::slice(*nice, hz)) * 1000 / u64::from(hz));
        }
    }
}

#[test]
fn law_02_from_nice_minus_20_to_19_is_a_factor_of_160_or_80() {
    let ratio = |hz| slices_ms(hz)[&-20] / slices_ms(hz)[&19];
    assert_eq!((ratio(1000), ratio(100)), (160, 80));
}

/// Slices of a task that were ended by preemption.
fn whole_slices(run: &Run, task: TaskId) -> Vec<(u64, u64)> {
    let own = |s: &&crate::rig::Slice| s.task == task && s.state == TaskState::Runnable;
    run.slices().iter().filter(own).map(|s| (s.start_ns, s.end_ns)).collect()
}

#[test]
fn law_05_the_bonus_spans_five_levels_on_both_sides() {
    // A sleeper with the full bonus of `nice`, a hog of `other`: whether the wake-ups preempt.
    let preempts = |nice: i32, other: i32| {
        let spec = format!("hogs:1,nice={other} + sleepers:1,nice={nice},run=50us,sleep=20350us");
        let mut run = o1::bench().hz(1000).run(&spec);
        run.until(1);
        let sleeper = run.named("sleeper")[0];
        let hog = run.named("hog")[0];
        run.step_ns = 500_000;
        run.watch(4_000 * MS, |run| set(run, sleeper, Member::SleepAvg, 1_000_000_000));
        assert!(run.slices().iter().filter(|s| s.task == sleeper).count() > 3);
        let off_tick = whole_slices(&run, hog).iter().filter(|(_, end)| end % MS != 0).count();
        off_tick > 5
    };
    assert!(!preempts(19, 0), "134 does not preempt 125");
    assert!(!preempts(0, -20), "115 does not preempt 105");
    assert!(!preempts(10, 0), "125 does not preempt 125");
    assert!(preempts(9, 0), "124 preempts 125");
    // So a hog is safe from every sleeper that is ten levels nicer, and from none that is nine.
    for hog in [-15, -10, -5, 0, 5] {
        assert!(!preempts(hog + 10, hog), "nice {} and {hog}", hog + 10);
        assert!(preempts(hog + 9, hog), "nice {} and {hog}", hog + 9);
    }
}

#[test]
fn law_06_two_hogs_take_slices_of_100_ms_exactly() {
    for hz in [1000, 250, 100] {
        let mut run = o1::bench().hz(hz).run("hogs:2");
        run.until(20_100 * MS);
        let time = run.cpu_time(100 * MS, 20_100 * MS);
        for hog in run.named("hog") {
            let lengths: Vec<u64> =
                whole_slices(&run, hog).iter().skip(1).map(|(s, e)| e - s).collect();
            assert!(lengths.len() > 90, "HZ {hz}: {} slices", lengths.len());
            assert!(lengths.iter().all(|ns| *ns == 100 * MS), "HZ {hz}: {lengths:?}");
            assert_eq!(time[&hog], 10_000 * MS, "HZ {hz}: half of the CPU");
        }
    }
}

#[test]
fn law_07_shares_are_those_of_the_slices() {
    for (better, worse, slices) in
        [(0, 10, [100, 50]), (0, 19, [100, 5]), (-20, 19, [800, 5]), (-1, 0, [420, 100])]
    {
        let mut run = o1::bench().hz(1000).run(&format!("hogs:1:{better}:{worse}"));
        let round = (slices[0] + slices[1]) * MS;
        // From the first swap on, whole rounds.
        let (from, to) = (round, round * 21);
        run.until(to);
        let time = run.cpu_time(from, to);
        for (id, _, nice) in run.tasks() {
            let slice = slices[usize::from(i32::from(nice) == worse)];
            assert_eq!(time[&id], 20 * slice * MS, "nice {nice} beside {better} and {worse}");
        }
    }
}

#[test]
fn law_08_a_hog_waits_for_the_slices_of_all_others() {
    for hogs in [3, 5, 9] {
        let mut run = o1::bench().hz(250).run(&format!("hogs:{hogs}"));
        run.until(8_000 * MS);
        for hog in run.named("hog") {
            let slices = whole_slices(&run, hog);
            assert!(slices.len() > 6);
            for pair in slices.windows(2).skip(1) {
                assert_eq!(pair[1].0 - pair[0].1, (hogs - 1) * 100 * MS, "{hogs} hogs");
            }
        }
    }
}

/// A parent that runs, forks a child, and continues; the child runs `child_ms` and exits, or computes forever when 0.
fn family(child_ms: u32) -> String {
    let child = if child_ms == 0 { "forever".to_owned() } else { format!("{child_ms}ms") };
    format!(
        r#"
        format = 1
        name = "family"
        duration = "20s"
        [[task]]
        name = "shell"
        program = [{{ run = "50500us" }}, {{ fork = "child" }}, {{ run = "forever" }}]
        [[task]]
        name = "child"
        program = [{{ run = "{child}" }}]
        "#
    )
}

/// Runs up to the fork, with this rest of the parent's slice, and past it.
fn forked(slice: u32, child_ms: u32, bonus: Option<u64>) -> (Run, TaskId, TaskId) {
    let mut run = o1::bench().hz(1000).run_toml(&family(child_ms));
    run.until(50 * MS + 400_000);
    let parent = run.named("shell")[0];
    set(&mut run, parent, Member::TimeSlice, u64::from(slice));
    if let Some(bonus) = bonus {
        set(&mut run, parent, Member::SleepAvg, bonus * 100 * MS + 100 * MS - 1);
    }
    run.until(50 * MS + 500_000);
    let child = run.named("child")[0];
    (run, parent, child)
}

#[test]
fn law_12_a_fork_shares_the_slice_out() {
    for (before, parents, childs) in [(100, 50, 50), (5, 2, 3), (99, 49, 50), (2, 1, 1), (3, 1, 2)]
    {
        let (run, parent, child) = forked(before, 0, None);
        let slices = (o1::task(&run, parent).time_slice, o1::task(&run, child).time_slice);
        assert_eq!(slices, (parents, childs), "of {before} ticks");
        assert_eq!(o1::current(&run, 0), Some(child), "the child runs first");
        assert!(o1::is_active(&run, parent), "the parent is next");
    }
    // The last tick goes to the child; the parent's slice is over at once.
    let (run, parent, child) = forked(1, 0, None);
    assert_eq!(o1::task(&run, child).time_slice, 1);
    assert_eq!(o1::task(&run, parent).time_slice, 100, "a new one");
    assert_eq!(o1::queue(&run, 0).active, 1, "both have expired, and the arrays were swapped");
    assert_eq!(o1::current(&run, 0), Some(child), "the child stands before the parent there, too");
}

#[test]
fn law_13_a_child_loses_a_point_of_bonus() {
    for (bonus, childs) in
        [(0, 0), (1, 0), (2, 1), (3, 2), (4, 3), (5, 4), (6, 5), (7, 6), (8, 7), (9, 8), (10, 9)]
    {
        let (run, parent, child) = forked(100, 0, Some(bonus));
        let points = |id| o1::task(&run, id).sleep_avg_ns;
        // It has run for 50.5 ms up to here, which is charged when the child takes the CPU.
        let left = (bonus * 100 * MS).saturating_sub(50_500_000 / bonus.max(1));
        assert_eq!(points(parent), left, "the parent keeps {bonus}, and no fraction");
        assert_eq!(points(child), childs * 100 * MS, "the child of {bonus}");
    }
}

#[test]
fn law_14_a_child_that_dies_gives_its_slice_back() {
    // 60 ticks: 30 each. The child dies after 10 ticks; the parent has its 30 and the other 20.
    let (mut run, parent, _) = forked(60, 10, None);
    run.until(60 * MS + 900_000);
    assert_eq!(o1::task(&run, parent).time_slice, 30 + 20);
    // Never more than a whole slice.
    let (mut run, parent, _) = forked(60, 10, None);
    set(&mut run, parent, Member::TimeSlice, 95);
    run.until(60 * MS + 900_000);
    assert_eq!(o1::task(&run, parent).time_slice, 100);
    // A child that lived longer than its first slice gives nothing: 5 ticks each, the child ends in the second slice.
    let (mut run, parent, child) = forked(10, 50, None);
    run.until(104 * MS);
    assert_eq!(o1::current(&run, 0), Some(child));
    set(&mut run, parent, Member::TimeSlice, 40);
    run.until(105 * MS + 900_000);
    assert_eq!((o1::current(&run, 0), o1::task(&run, parent).time_slice), (Some(parent), 40));
}

#[test]
fn law_15_interactive_tasks_starve_the_expired_for_a_second_each_and_a_tick() {
    for hogs in [1, 3] {
        let mut run =
            o1::bench().hz(1000).run(&format!("hogs:{hogs} + sleepers:1,run=90s,sleep=1s"));
        run.until(500_000);
        let sleeper = run.named("sleeper")[0];
        let (mut first, mut expired_at) = (0, 0);
        run.step_ns = MS;
        // Between two ticks: the sleeper, once it runs, has the full bonus and the last tick of a slice.
        run.watch(6_000 * MS, |run| {
            let expired = o1::queue(run, 0).expired_timestamp;
            if o1::current(run, 0) == Some(sleeper) {
                if first == 0 {
                    first = expired;
                } else if expired != first && expired_at == 0 {
                    expired_at = run.machine.now_ns() / MS;
                    assert_eq!(expired, 0, "the arrays were swapped");
                }
                set(run, sleeper, Member::SleepAvg, 1_000_000_000);
                set(run, sleeper, Member::TimeSlice, 1);
            }
        });
        assert_eq!(first, 100, "{hogs} hogs: the first one expired then");
        let limit = 1000 * (hogs + 1);
        assert_eq!(
            expired_at,
            first + limit + 1,
            "{hogs} hogs: at the first tick behind the limit"
        );
    }
}

#[test]
fn law_16_who_is_nicer_than_an_expired_task_expires_with_it() {
    for (nice, stays) in [(0, true), (1, false), (5, false)] {
        let mut run = o1::bench().hz(1000).run(&format!("hogs:2 + hogs:1,nice={nice}"));
        let last = run.until(500_000).tasks()[2].0;
        // The two tasks of nice 0 have used up their slices; the last one, rated interactive, is about to.
        run.until(200 * MS + 500_000);
        let before = o1::queue(&run, 0);
        assert_eq!((before.best_expired_prio, o1::current(&run, 0)), (120, Some(last)));
        set(&mut run, last, Member::SleepAvg, 1_000_000_000);
        set(&mut run, last, Member::TimeSlice, 1);
        run.until(201 * MS + 500_000);
        let swapped = o1::queue(&run, 0).active != before.active;
        assert_eq!(!swapped, stays, "nice {nice}: it stays in the active array");
    }
}

#[test]
fn law_17_between_two_swaps_every_task_gets_one_slice() {
    for hz in [1000, 250] {
        let nices = [-7, 0, 3, 11, 19];
        let list = nices.map(|n| n.to_string()).join(":");
        let mut run = o1::bench().hz(hz).run(&format!("hogs:1:{list}"));
        run.until(1);
        let tasks = run.tasks();
        let tick_ns = 1_000_000_000 / u64::from(hz);
        run.step_ns = tick_ns;
        let mut array = o1::queue(&run, 0).active;
        let mut last: Option<Vec<u64>> = None;
        let mut swaps = 0;
        run.watch(10_000 * MS, |run| {
            let now = o1::queue(run, 0).active;
            if now == array {
                return;
            }
            array = now;
            let ran: Vec<u64> = tasks.iter().map(|t| run.task(t.0).sum_exec_ns).collect();
            if let Some(last) = last.replace(ran.clone()) {
                for ((ran, before), (_, _, nice)) in ran.iter().zip(last).zip(&tasks) {
                    let slice_ns = u64::from(o1::slice(i32::from(*nice), hz)) * tick_ns;
                    assert_eq!(ran - before, slice_ns, "nice {nice} at HZ {hz}");
                }
                swaps += 1;
            }
        });
        assert!(swaps >= 10, "HZ {hz}: {swaps} rounds");
    }
}

#[test]
fn law_18_a_wake_up_preempts_when_its_prio_is_better_by_one() {
    // The sleep of 20.35 ms lifts sleep_avg to one ns below a bonus point, or to it.
    let preempts = |start_ns: u64| {
        let mut run = o1::bench().hz(1000).run("hogs:1 + sleepers:1,run=50us,sleep=20350us");
        run.until(1);
        let (hog, sleeper) = (run.named("hog")[0], run.named("sleeper")[0]);
        run.watch(120 * MS, |_| {});
        let mut asleep = false;
        run.watch(400 * MS, |run| {
            let now = !run.task(sleeper).runnable;
            if now && !asleep {
                set(run, sleeper, Member::SleepAvg, start_ns);
            }
            asleep = now;
        });
        whole_slices(&run, hog).iter().filter(|(_, end)| *end > 150 * MS && end % MS != 0).count()
    };
    assert_eq!(preempts(100 * MS - 20_350_001), 0, "equal: bonus 0, prio 125");
    assert!(preempts(100 * MS - 20_350_000) > 3, "better by one: bonus 1, prio 124");
}

/// The number of a writer's slices that end where it wakes its reader, which has the better priority. A hog keeps the
/// second CPU from taking either.
fn ended_by_own_wakeup(write: &str, read: &str) -> usize {
    let workload = format!(
        r#"
        format = 1
        name = "pair"
        duration = "10s"
        [[pipe]]
        name = "pipe"
        [[queue]]
        name = "queue"
        [[task]]
        name = "hog"
        nice = -20
        cpus = "1"
        program = [{{ run = "forever" }}]
        [[task]]
        name = "writer"
        program = [{{ loop = [{{ run = "100us" }}, {write}, {{ run = "2ms" }}, {{ sleep = "5ms" }}] }}]
        [[task]]
        name = "reader"
        program = [{{ loop = [{read}, {{ run = "50us" }}] }}]
        "#
    );
    let mut run = o1::bench().hz(1000).cpus(2).run_toml(&workload);
    run.until(1);
    let (writer, reader) = (run.named("writer")[0], run.named("reader")[0]);
    run.watch(2_000 * MS, |run| {
        set(run, reader, Member::SleepAvg, 1_000_000_000);
        set(run, writer, Member::SleepAvg, 0);
    });
    let of_reader = |e: &Event| matches!(e.kind, EventKind::Wakeup { task, .. } if task == reader);
    assert!(run.events().iter().filter(|e| of_reader(e)).count() > 200);
    whole_slices(&run, writer).iter().filter(|(start, end)| end - start == 100_000).count()
}

#[test]
fn law_18_a_synchronous_wake_up_on_the_wakers_cpu_does_not_preempt() {
    let sync = ended_by_own_wakeup(r#"{ write = "pipe" }"#, r#"{ read = "pipe" }"#);
    assert_eq!(sync, 0, "a pipe's wake-up is synchronous: the writer goes on");
    let plain = ended_by_own_wakeup(r#"{ send = "queue" }"#, r#"{ receive = "queue" }"#);
    assert!(plain > 200, "a message's is not: {plain}");
}

#[test]
fn law_19_three_hogs_on_two_cpus_stay_at_50_50_100() {
    let mut run = o1::bench().hz(1000).cpus(2).run_workload(&workload("hogs:3"));
    run.until(30_000 * MS);
    let time = run.cpu_time(1_000 * MS, 30_000 * MS);
    let mut shares: Vec<u64> = run.named("hog").iter().map(|id| time[id] / (290 * MS)).collect();
    shares.sort_unstable();
    for (share, expected) in shares.iter().zip([50, 50, 100]) {
        assert!(share.abs_diff(expected) <= 1, "{shares:?} %");
    }
    let moves = |e: &Event| matches!(e.kind, EventKind::Migrate { .. }) && e.time_ns > 1_000 * MS;
    assert_eq!(run.events().iter().filter(|e| moves(e)).count(), 0, "no task moves");
}
