//! Rules of `cfs` beyond its numbered laws: weights in slices, in the placement of children and in the wake-up
//! granularity; picks other than the leftmost task; the effect of each switch.

use crate::rig::pair_cfs::CFS_CURR_PID_AT;
use crate::rig::{Bench, MS, Run, US, bench, diff, weight, workload};
use fairground_trace::{EventKind, TaskId, TaskState};

/// Slices of a task that were ended by preemption, after a start-up.
fn slice_lengths(run: &Run, task: TaskId, from_ns: u64) -> Vec<u64> {
    let slices = run.slices();
    let own = slices.iter().filter(|s| s.task == task && s.start_ns >= from_ns);
    let slices: Vec<u64> =
        own.filter(|s| s.state == TaskState::Runnable).map(|s| s.ran_ns()).collect();
    assert!(slices.len() > 20, "only {} slices of {task:?}", slices.len());
    slices
}

/// The lengths that occur, shortest first.
fn lengths(run: &Run, task: TaskId) -> Vec<u64> {
    let mut lengths = slice_lengths(run, task, 500 * MS);
    lengths.sort_unstable();
    lengths.dedup();
    lengths
}

/// `rule_repick_starts_slice`: a task that is still leftmost at the end of a slice starts another whole one, until
/// 3.14.
#[test]
fn slices_follow_the_weights_and_restart() {
    for set in ["cfs@2.6.24", "cfs@2.6.27-sle11"] {
        let run_with = |anew: &str| {
            let mut run =
                bench(set).hz(1000).set("rule_repick_starts_slice", anew).run("hogs:1:-5:0:5");
            run.until(4_000 * MS);
            run
        };
        let run = run_with("on");
        let load: u64 = [-5, 0, 5].map(weight).iter().sum();
        for (task, _, nice) in run.tasks() {
            // 20 ms * weight / load, ended by the following tick.
            let slice_ns = (20 * MS * weight(nice) / load / MS + 1) * MS;
            let whole = lengths(&run, task).iter().all(|ran_ns| ran_ns % slice_ns == 0);
            assert!(whole, "{set} nice {nice}: {:?}, not whole slices", lengths(&run, task));
            assert_eq!(lengths(&run, task)[0], slice_ns, "{set} nice {nice}");
        }
        assert!(lengths(&run, TaskId(1)).contains(&(28 * MS)), "{set}: two slices on end");
        assert!(!lengths(&run_with("off"), TaskId(1)).contains(&(28 * MS)), "{set}: never");
    }
}

#[test]
fn the_period_grows_when_one_task_more_does_not_fit() {
    // ceil(10 ms / 4 ms) = 3 tasks fit; four have 4 ms each.
    for (hogs, slice_ns) in [(2, 6 * MS), (3, 4 * MS), (4, 5 * MS)] {
        let bench = bench("cfs@2.6.27-sle11").hz(1000);
        let bench = bench.set("sched_latency_ns", "10ms").set("sched_min_granularity_ns", "4ms");
        let mut run = bench.run(&format!("hogs:{hogs}"));
        run.until(2_000 * MS);
        assert_eq!(lengths(&run, TaskId(1)), [slice_ns], "{hogs} hogs");
    }
}

#[test]
fn a_slice_is_never_shorter_than_the_least_granularity() {
    // nice 10 has 6 ms * 110 / 1134 = 0.58 ms of the period; the minimum is 0.75 ms.
    for (base_slice, slice_ns) in [("on", 800 * US), ("off", 600 * US)] {
        let mut run = bench("cfs@6.1").hz(10_000).set("BASE_SLICE", base_slice).run("hogs:1:0:10");
        run.until(4_000 * MS);
        assert_eq!(lengths(&run, TaskId(2)), [slice_ns], "BASE_SLICE {base_slice}");
    }
}

/// A sleeper that must not preempt, but is further behind than a slice: the next tick lets it run (2.6.32).
#[test]
fn a_tick_ends_a_slice_early_for_a_task_a_slice_behind() {
    let shortest = |checks: &str| {
        let bench = bench("cfs@6.1").hz(10_000).set("WAKEUP_PREEMPTION", "off");
        let mut run = bench
            .set("rule_tick_checks_vruntime", checks)
            .run("hogs:3 + sleepers:1,run=20us,sleep=40ms");
        run.until(8_000 * MS);
        let hogs = run.named("hog");
        let of_hogs = hogs.iter().flat_map(|hog| slice_lengths(&run, *hog, 500 * MS));
        of_hogs.min().expect("some slices")
    };
    // Four tasks: 1.5 ms each. Not before the minimum granularity, 0.75 ms, is over.
    let early = shortest("on");
    assert!((750 * US..=850 * US).contains(&early), "{early} ns");
    let whole = shortest("off");
    assert!(whole > 1_500 * US, "{whole} ns");
}

/// Starts four hogs, then a fifth task; returns the run one ns before, and passes it to the caller.
fn before_fork(bench: Bench, nice: i8) -> (Run, u64) {
    const FORK_NS: u64 = 1_000_300_000;
    let mut workload = workload(&format!("hogs:4 + hogs:1,nice={nice}"));
    workload.tasks[1].start_ns = Some(FORK_NS);
    let mut run = bench.run_workload(&workload);
    run.until(FORK_NS - 1);
    (run, FORK_NS)
}

#[test]
fn the_debit_of_a_new_task_is_its_virtual_slice() {
    for (set, latency_ns) in [("cfs@2.6.24", 20 * MS), ("cfs@6.1", 6 * MS)] {
        for nice in [-15i8, -5, 0, 3, 5] {
            let bench = bench(set).hz(1000).set("sched_child_runs_first", "off");
            let (mut run, fork_ns) = before_fork(bench.set("BASE_SLICE", "off"), nice);
            run.until(fork_ns);
            let load = 4 * 1024 + weight(nice);
            // A slice of latency * weight / load, times 1024 / weight: at most a few ns of rounding, amplified.
            let debit = (latency_ns * 1024 / load) as i64;
            let placed = diff(run.task(TaskId(5)).dsq_vtime, run.queue_u64(0, 0));
            let bound = 2 + 1024 / weight(nice) as i64 + (debit >> 22);
            assert!((placed - debit).abs() <= bound, "{set} nice {nice}: {placed} ns, not {debit}");
        }
    }
}

#[test]
fn a_child_that_runs_first_swaps_places_with_its_parent() {
    for first in [true, false] {
        let value = if first { "on" } else { "off" };
        let bench = bench("cfs@6.1").hz(1000).set("sched_child_runs_first", value);
        let (mut run, fork_ns) = before_fork(bench, 0);
        let parent = run.queue_field(0, CFS_CURR_PID_AT, 4) as u32;
        run.until(fork_ns);
        let pid_of = |task: TaskId| run.machine.trace().tasks()[task.index()].pid;
        let (parent, ..) = run
            .tasks()
            .into_iter()
            .find(|task| pid_of(task.0) == parent)
            .expect("a task was current");
        let at_fork: Vec<_> =
            run.events().into_iter().filter(|event| event.time_ns == fork_ns).collect();
        let switched = at_fork.iter().any(|event| {
            matches!(event.kind, EventKind::Switch { prev, next, .. } if prev == parent && next == TaskId(5))
        });
        assert_eq!(switched, first, "{at_fork:?}");
        if first {
            let (child, parent) = (run.task(TaskId(5)).dsq_vtime, run.task(parent).dsq_vtime);
            // Five tasks share 6 ms: they are 1.2 ms apart.
            assert_eq!(diff(parent, child), 1_200 * US as i64);
        }
    }
}

/// Whether a task that wakes up after a long sleep, `credit` behind a hog that is alone, preempts it between two ticks.
fn preempts(bench: Bench, hog: i8, sleeper: i8, granularity_ns: u64) -> bool {
    let bench = bench.hz(100).set("sched_wakeup_granularity_ns", granularity_ns);
    let mut run =
        bench.run(&format!("hogs:1,nice={hog} + sleepers:1,run=1us,sleep=95003us,nice={sleeper}"));
    run.until(1_000 * MS);
    let slices = run.slices();
    let early = slices.iter().filter(|slice| {
        let by_another = slice.state == TaskState::Runnable && slice.task == TaskId(1);
        by_another && slice.start_ns > 100 * MS && slice.end_ns % (10 * MS) != 0
    });
    match early.count() {
        0 => false,
        7.. => true,
        few => panic!("{few} of some nine wake-ups preempted"),
    }
}

#[test]
fn the_granularity_is_scaled_by_the_weight_that_the_rule_names() {
    // Set, rule, ASYM_GRAN, nice of the hog and the sleeper; the credit, and by what weights the granularity is
    // multiplied.
    let (old, new) = (("cfs@2.6.24", 20 * MS), ("cfs@6.1", 3 * MS));
    let w = weight;
    let cases = [
        (old, "GRAN_CURR", "on", 5, 0, (1024, w(5))),
        (old, "GRAN_CURR", "on", -5, 0, (1024, w(-5))),
        (old, "GRAN_CURR", "on", 0, -5, (1, 1)),
        (old, "GRAN_HEAVY_CURR", "on", 5, 0, (1, 1)),
        (old, "GRAN_HEAVY_CURR", "on", -5, 0, (1024, w(-5))),
        (old, "GRAN_HEAVY_CURR", "off", 5, 0, (1024, w(5))),
        (old, "GRAN_QUEUE", "on", 0, 0, (2048, 1024)),
        (old, "GRAN_QUEUE", "on", 5, 0, (1024 + w(5), 1024)),
        (old, "GRAN_QUEUE", "off", 5, 0, (1024 + w(5), w(5))),
        (new, "GRAN_WAKEE", "on", 0, 5, (1024, w(5))),
        (new, "GRAN_WAKEE", "on", 0, -5, (1024, w(-5))),
        (new, "GRAN_WAKEE", "on", -5, 0, (1, 1)),
        (new, "GRAN_WAKEE", "off", 0, 5, (1, 1)),
    ];
    for ((set, credit_ns), rule, asym, hog, sleeper, (numerator, denominator)) in cases {
        let limit_ns = credit_ns * denominator / numerator;
        // 2^-22 of it, and a ns or two of rounding.
        let margin_ns = 8 + (limit_ns >> 20);
        let bench = || bench(set).set("rule_gran", rule).set("ASYM_GRAN", asym);
        let place = format!("{set} {rule} ASYM_GRAN {asym}, nice {hog} and {sleeper}");
        assert!(preempts(bench(), hog, sleeper, limit_ns - margin_ns), "{place}: below {limit_ns}");
        assert!(
            !preempts(bench(), hog, sleeper, limit_ns + margin_ns),
            "{place}: above {limit_ns}"
        );
    }
}

/// The current task's time counts up to the wake-up, not up to the last tick.
#[test]
fn a_wake_up_sees_what_the_current_task_has_run() {
    for set in ["cfs@2.6.24", "cfs@2.6.27-sle11", "cfs@6.1"] {
        let mut run = bench(set).hz(1).run("hogs:1 + sleepers:1,run=1us,sleep=50ms");
        run.until(3_900 * MS);
        let slices = slice_lengths(&run, TaskId(1), 1_100 * MS);
        let at_once = slices.iter().all(|ran_ns| *ran_ns == 50 * MS);
        assert!(at_once, "{set}: ticks are a second apart, {slices:?}");
    }
}

/// Two sleepers that wake up at the same time beside a hog, a hundred times.
const WOKEN_TOGETHER: &str = r#"
format = 1
name = "woken-together"
duration = "2s"
timer = [{ name = "round", period = "20100us" }]

[[task]]
name = "hog"
start = "1ms"
program = [{ run = "forever" }]

[[task]]
name = "sleeper"
count = 2
program = [{ loop = [{ timer = "round" }, { run = "100us" }] }]
"#;

/// `test_tsk_need_resched`: the second of two tasks that wake up before the CPU has chosen does not become the next
/// buddy.
#[test]
fn of_two_tasks_woken_together_the_first_runs_first() {
    let mut run = bench("cfs@6.1").hz(250).run_toml(WOKEN_TOGETHER);
    run.until(2_000 * MS);
    let (mut woken, mut together) = (Vec::new(), 0);
    for event in run.events().into_iter().filter(|event| event.time_ns > 10 * MS) {
        match event.kind {
            EventKind::Wakeup { task, .. } => woken.push(task),
            EventKind::Switch { next, .. } => {
                if woken.len() == 2 {
                    assert_eq!(next, woken[0], "{} ns", event.time_ns);
                    together += 1;
                }
                woken.clear();
            }
            _ => {}
        }
    }
    assert!(together > 90, "{together} times");
}

/// How often a hog that a sleeper preempted continues afterwards, as a fraction. The sleeper wakes up several times
/// within the minimum granularity, 1.5 ms: a hog that has used that up does not continue.
fn goes_on(last_buddy: &str, hogs: u32) -> f64 {
    let bench = bench("cfs@6.1").hz(250).set("LAST_BUDDY", last_buddy);
    let mut run = bench.run(&format!("hogs:{hogs} + sleepers:1,run=20us,sleep=430us"));
    run.until(2_000 * MS);
    let (slices, sleeper) = (run.slices(), run.named("sleeper")[0]);
    let around = slices.windows(3).filter(|three| three[1].task == sleeper);
    let (mut all, mut same) = (0, 0);
    for three in around {
        all += 1;
        same += u32::from(three[0].task == three[2].task);
    }
    assert!(all > 1_000, "{all} slices of the sleeper");
    f64::from(same) / f64::from(all)
}

#[test]
fn the_last_buddy_goes_on_where_tasks_are_many() {
    // Latency / minimum granularity = 8: that many tasks must be runnable, the sleeper included.
    assert!(goes_on("on", 7) > 0.6, "{}", goes_on("on", 7));
    assert!(goes_on("off", 7) < 0.4, "{}", goes_on("off", 7));
    assert!(goes_on("on", 6) < 0.1, "{}", goes_on("on", 6));
}

const POLITE: &str = r#"
format = 1
name = "polite"
duration = "2s"

[[task]]
name = "polite"
program = [{ loop = [{ run = "100us" }, "yield"] }]

[[task]]
name = "hog"
program = [{ run = "forever" }]
"#;

/// A yield gives the CPU to the second from the left, unless that one is right of it by more than the granularity.
#[test]
fn a_yield_skips_once_the_other_is_near_enough() {
    for (skips, slice_ns) in [("on", 3 * MS), ("off", 4 * MS)] {
        let mut run = bench("cfs@6.1").hz(1000).set("rule_yield_skips", skips).run_toml(POLITE);
        run.until(2_000 * MS);
        assert_eq!(lengths(&run, TaskId(1)), [slice_ns], "skips {skips}");
    }
    // sched_compat_yield: behind the rightmost, each time.
    let mut run = bench("cfs@2.6.24").hz(1000).set("sched_compat_yield", "on").run_toml(POLITE);
    run.until(2_000 * MS);
    assert_eq!(lengths(&run, TaskId(1)), [100 * US]);
}

/// The percentage of the switches between two tasks that wake each other through pipes that were forced by a wake-up.
fn forced(clock_stands: &str) -> usize {
    let run = bench("cfs@6.1").hz(250).set("rule_clock_stands", clock_stands);
    let mut run = run.like_a_kernel("linux-6.1", 20 * MS).run("pipe");
    run.until(2_000 * MS);
    let (mut all, mut forced) = (0, 0);
    for event in run.machine.trace().events().filter(|event| event.time_ns >= 500 * MS) {
        if let EventKind::Switch { prev, prev_state, .. } = event.kind
            && prev != TaskId::IDLE
        {
            all += 1;
            forced += usize::from(prev_state == TaskState::Runnable);
        }
    }
    assert!(all > 10_000, "{all} switches");
    forced * 100 / all
}

/// `rq_clock_skip_update`: the time from a wake-up through the scheduler is charged to the preempting task, which so
/// falls behind no further, and the two settle into alternating, as on Linux 6.1. Charged to the preempted task, it
/// keeps that one ahead indefinitely.
#[test]
fn tasks_that_wake_each_other_settle_into_alternating() {
    assert_eq!(forced("on"), 0);
    assert!(forced("off") > 40, "{} %", forced("off"));
}
