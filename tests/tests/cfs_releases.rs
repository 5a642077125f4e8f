//! `cfs` by release: every row of the tables of parameters, placement and granularity in which two releases differ,
//! seen in what tasks get, and not only in the value of a variable.

use crate::rig::pair_cfs::CFS_CURR_PID_AT;
use crate::rig::{Bench, MS, Run, US, bench, diff, weight, workload};
use fairground_bpf::Object;
use fairground_trace::{EventKind, TaskId, TaskState};

/// The parameter sets, oldest first.
const SETS: [&str; 11] = [
    "2.6.24",
    "2.6.25",
    "2.6.26",
    "2.6.27",
    "2.6.27-sle11",
    "2.6.28",
    "2.6.30",
    "2.6.32",
    "2.6.36",
    "6.1",
    "6.5",
];

fn of(set: &str) -> Bench {
    let name: &'static str = Box::leak(format!("cfs@{set}").into_boxed_str());
    bench(name)
}

/// Position in time: `at_least(set, "2.6.32")`.
fn at_least(set: &str, release: &str) -> bool {
    let place = |name: &str| SETS.iter().position(|s| *s == name).expect("a set");
    place(set) >= place(release)
}

/// Latency, minimum granularity, wake-up granularity, µs: the table of docs/laws/cfs.md.
fn times_us(set: &str) -> (u64, u64, u64) {
    match set {
        "2.6.24" | "2.6.26" => (20_000, 4_000, 10_000),
        "2.6.32" => (5_000, 1_000, 1_000),
        "2.6.36" | "6.1" | "6.5" => (6_000, 750, 1_000),
        _ => (20_000, 4_000, 5_000),
    }
}

fn has_hrtick(set: &str) -> bool {
    ["2.6.25", "2.6.26", "2.6.27"].contains(&set)
}

#[test]
fn every_set_has_every_row() {
    let builtin = fairground_policies::get("cfs").expect("cfs");
    let object = Object::parse("cfs", builtin.object).expect("it parses");
    let mut rows = 0;
    for global in object.globals() {
        let named: Vec<&str> = global
            .tags
            .iter()
            .filter_map(|tag| tag.strip_prefix("set:")?.split('=').next())
            .collect();
        if named.is_empty() {
            continue;
        }
        rows += 1;
        let missing: Vec<_> = SETS.iter().filter(|set| !named.contains(set)).collect();
        assert!(missing.is_empty(), "{} has no value for {missing:?}", global.name);
        assert_eq!(named.len(), SETS.len(), "{}: {named:?}", global.name);
    }
    assert!(rows > 40, "{rows} rows");
}

#[test]
fn times_are_those_of_the_release() {
    for set in SETS {
        let mut run = of(set).run("hogs:1");
        run.until(MS);
        let word = |name: &str| {
            let bytes = run.machine.variable(name).expect("a tunable");
            u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
        };
        let (latency, least, wakeup) = times_us(set);
        assert_eq!(word("sched_latency_ns"), latency * US, "{set}");
        assert_eq!(word("sched_min_granularity_ns"), least * US, "{set}");
        assert_eq!(word("sched_wakeup_granularity_ns"), wakeup * US, "{set}");
    }
}

/// Slices of hogs that ended because another had to run, without the first half second.
fn slice_lengths(run: &Run) -> Vec<u64> {
    let slices = run.slices();
    let whole = slices.iter().filter(|s| s.start_ns > 500 * MS && s.state == TaskState::Runnable);
    whole.map(|s| s.ran_ns()).collect()
}

/// Length of a slice without ticks: latency / hogs, or the least granularity when there are many.
fn ideal_ns(set: &str, hogs: u64, factor: u64) -> u64 {
    let (latency, least, _) = times_us(set);
    let (latency, least) = (latency * US * factor, least * US * factor);
    if hogs <= latency.div_ceil(least) {
        return latency / hogs;
    }
    // 2.6.24 stretches the latency; the same where it is a multiple of the least granularity.
    least
}

#[test]
fn slices_follow_the_release_and_its_timer() {
    for set in SETS {
        // 16 CPUs: a factor of 5, or (2.6.33) that of 8.
        for (cpus, factor) in [(1, 1), (16, if at_least(set, "2.6.36") { 4 } else { 5 })] {
            for hogs in if cpus == 1 { [3, 12].as_slice() } else { &[3] } {
                let mut run = of(set).cpus(cpus).hz(1000).run(&format!("hogs:{hogs},cpus=0"));
                run.until(1_000 * MS);
                let ideal_ns = ideal_ns(set, *hogs, factor);
                let slices = slice_lengths(&run);
                assert!(slices.len() > 10, "{set}: {} slices", slices.len());
                for ran_ns in slices {
                    let by_timer = ran_ns.abs_diff(ideal_ns) <= 2;
                    let by_tick = ran_ns > ideal_ns && ran_ns <= ideal_ns + MS;
                    let right = if has_hrtick(set) { by_timer } else { by_tick };
                    assert!(right, "{set} {cpus} CPUs {hogs} hogs: {ran_ns}, ideal {ideal_ns}");
                }
            }
        }
    }
}

#[test]
fn double_tick_lets_the_tick_end_slices_too() {
    // Slices of 10 ms are made shorter in mid-slice: the timer is armed already, so only a tick can know.
    const AT_NS: u64 = 1_005_500_000;
    let rest = |double: &str| {
        let bench = of("2.6.27").hz(1000).set("DOUBLE_TICK", double);
        let bench = bench.at(AT_NS, "sched_latency_ns", "4ms");
        let mut run = bench.at(AT_NS, "sched_min_granularity_ns", "2ms").run("hogs:2");
        run.until(1_030 * MS);
        let slices = run.slices();
        let around = slices.iter().find(|s| s.start_ns <= AT_NS && s.end_ns > AT_NS);
        around.expect("a slice at the change").end_ns - AT_NS
    };
    assert!(rest("on") <= MS, "{} ns", rest("on"));
    assert!(rest("off") > 2 * MS, "{} ns", rest("off"));
}

/// Where a sleeper of this nice value is placed after a long sleep beside one hog: ns left of min_vruntime.
fn credit(bench: Bench, nice: i8) -> i64 {
    let spec = format!("hogs:1 + sleepers:1,run=30us,sleep=120300us,nice={nice}");
    let mut run = bench.hz(1000).run(&spec);
    let sleeper = run.until(MS).named("sleeper")[0];
    run.until(300 * MS);
    assert!(!run.task(sleeper).runnable);
    run.step_ns = 10 * US;
    let mut placed = None;
    while placed.is_none() && run.machine.now_ns() < 500 * MS {
        let until_ns = run.machine.now_ns() + MS;
        run.watch(until_ns, |run| {
            let view = run.task(sleeper);
            if placed.is_none() && view.runnable {
                placed = Some(diff(run.queue_u64(0, 0), view.dsq_vtime));
            }
        });
    }
    placed.expect("it woke up")
}

#[test]
fn the_credit_of_sleepers_follows_the_release() {
    for set in SETS {
        for nice in [0i8, 5] {
            let virtual_ns = |ns: u64| ns * 1024 / weight(nice);
            let expected = match set {
                "2.6.24" | "2.6.25" | "2.6.26" | "2.6.30" => 20 * MS,
                // Times the queue's weight over its own.
                "2.6.27" | "2.6.27-sle11" => 20 * MS * (1024 + weight(nice)) / weight(nice),
                "2.6.28" => virtual_ns(20 * MS),
                "2.6.32" => 5 * MS / 2,
                _ => 3 * MS,
            };
            let bench = || of(set).set("rule_min_vruntime", "MIN_AT_UPDATE");
            let placed = credit(bench(), nice);
            // It is seen up to 10 µs late.
            assert!((placed - expected as i64).abs() < 25 * US as i64, "{set} {nice}: {placed}");
            let without = credit(bench().set("FAIR_SLEEPERS", "off"), nice);
            assert_eq!(without / (25 * US as i64), 0, "{set} {nice}");
        }
    }
}

/// Until 2.6.27 min_vruntime follows the tree alone (2.6.25), so beside a lone hog it stands still and a sleeper is
/// placed as far behind as it has slept.
#[test]
fn the_clock_of_a_lone_task_stands_still_from_2_6_25_to_2_6_27() {
    for set in SETS {
        let behind = credit(of(set), 0) > 90 * MS as i64;
        assert_eq!(behind, at_least(set, "2.6.25") && !at_least(set, "2.6.28"), "{set}");
    }
}

/// Whether a task that wakes 95 ms after its last slice, `credit` behind a lone hog, preempts it.
fn preempts(bench: Bench, hog: i8, sleeper: i8, granularity_ns: u64) -> bool {
    let bench = bench.hz(10).set("sched_wakeup_granularity_ns", granularity_ns);
    let bench = bench.set("HRTICK", "off").set("rule_min_vruntime", "MIN_AT_UPDATE");
    let mut run =
        bench.run(&format!("hogs:1,nice={hog} + sleepers:1,run=1us,sleep=195003us,nice={sleeper}"));
    run.until(1_300 * MS);
    let early = run.slices().into_iter().filter(|s| {
        s.state == TaskState::Runnable && s.task == TaskId(1) && s.end_ns % (100 * MS) != 0
    });
    early.count() > 3
}

#[test]
fn the_granularity_follows_the_release() {
    let w = weight;
    for set in SETS {
        for (hog, sleeper) in [(5i8, 0i8), (-5, 0), (0, 5)] {
            let load = w(hog) + w(sleeper);
            let normalized = |ns: u64| ns * 1024 / w(sleeper);
            let (credit, numerator, denominator) = match set {
                "2.6.24" | "2.6.25" => (20 * MS, 1024, w(hog)),
                "2.6.26" => (20 * MS, 1024, w(hog).max(1024)),
                "2.6.27" | "2.6.27-sle11" => (20 * MS * load / w(sleeper), load, w(hog).max(1024)),
                "2.6.28" => (normalized(20 * MS), 1024, w(hog).max(1024)),
                "2.6.30" => (20 * MS, 1024, w(sleeper)),
                "2.6.32" => (5 * MS / 2, 1024, w(sleeper)),
                _ => (3 * MS, 1024, w(sleeper)),
            };
            let limit_ns = credit * denominator / numerator;
            let margin_ns = 200 + (limit_ns >> 18);
            // A hog that has run long leaves nothing of an adaptive granularity.
            let bench = || of(set).set("ADAPTIVE_GRAN", "off");
            let place = format!("{set}: hog {hog}, sleeper {sleeper}, limit {limit_ns}");
            assert!(preempts(bench(), hog, sleeper, limit_ns - margin_ns), "{place}: below");
            assert!(!preempts(bench(), hog, sleeper, limit_ns + margin_ns), "{place}: above");
        }
    }
}

/// 2.6.30 to 2.6.33: what the current task has run counts against it.
#[test]
fn an_adaptive_granularity_shrinks_while_the_current_task_runs() {
    for set in SETS {
        let shrinks = preempts(of(set), 0, 0, 100 * MS);
        // min(2 * avg_wakeup * tasks - ran, 100 ms): nothing is left after 195 ms only if the average fell, too.
        let adaptive = preempts(of(set).set("ADAPTIVE_GRAN", "on"), 0, 0, 30 * MS);
        assert!(!shrinks, "{set}: 100 ms are more than any credit");
        assert!(adaptive, "{set}: two tasks, 2 * 30 ms * 2 are less than 195 ms");
        let of_release = preempts(of(set), 0, 0, 45 * MS);
        assert_eq!(of_release, ["2.6.30", "2.6.32"].contains(&set), "{set}");
    }
}

/// The task that runs after a hog that a sleeper has preempted: the hog itself, as a fraction.
fn goes_on(bench: Bench, hogs: u32) -> f64 {
    let bench = bench.hz(250).set("HRTICK", "off");
    let mut run = bench.run(&format!("hogs:{hogs} + sleepers:1,run=20us,sleep=980us"));
    run.until(500 * MS);
    let (slices, sleeper) = (run.slices(), run.named("sleeper")[0]);
    let around = slices.windows(3).filter(|three| three[1].task == sleeper);
    let all = around.clone().count();
    let same = around.filter(|three| three[0].task == three[2].task).count();
    assert!(all > 100, "{all} slices of the sleeper");
    same as f64 / all as f64
}

#[test]
fn the_last_buddy_follows_the_release() {
    for set in SETS {
        // Compared with the order alone.
        let by_buddy = |hogs: u32| {
            goes_on(of(set), hogs) - goes_on(of(set).set("LAST_BUDDY", "off"), hogs) > 0.2
        };
        assert_eq!(by_buddy(3), ["2.6.28", "2.6.30"].contains(&set), "{set}, four tasks");
        assert_eq!(by_buddy(9), at_least(set, "2.6.28"), "{set}, ten tasks");
    }
}

/// Two hogs and two sleepers that do not preempt: the last one woken is next (2.6.26 to 2.6.31), not the leftmost.
#[test]
fn the_next_buddy_follows_the_release() {
    for set in SETS {
        let bench = of(set).hz(100).set("WAKEUP_PREEMPTION", "off").set("HRTICK", "off");
        let bench = bench.set("FAIR_SLEEPERS", "off").set("sched_wakeup_granularity_ns", "50ms");
        let mut run =
            bench.run("hogs:2 + sleepers:1,run=2ms,sleep=23ms + sleepers:1,run=2ms,sleep=29ms");
        run.until(2_000 * MS);
        let sleepers = run.named("sleeper");
        let (mut last_woken, mut first, mut others) = (None, 0, 0);
        for event in run.events() {
            match event.kind {
                EventKind::Wakeup { task, .. } => last_woken = Some(task),
                EventKind::Switch { next, .. } if !next.is_idle() => {
                    if let Some(woken) = last_woken.take() {
                        if next == woken {
                            first += 1;
                        } else if sleepers.contains(&woken) {
                            others += 1;
                        }
                    }
                }
                _ => {}
            }
        }
        let always = others * 10 < first;
        // 2.6.27: only within a slice of the last task that was picked in order; these come later.
        let implicit = ["2.6.26", "2.6.28", "2.6.30"].contains(&set);
        assert_eq!(always, implicit, "{set}: {first} times next, {others} times not");
    }
}

#[test]
fn a_child_runs_first_until_2_6_31() {
    for set in SETS {
        let distances = (0..6).map(|k| {
            let fork_ns = 1_000_300_000 + k * 1_700_000;
            let mut workload = workload("hogs:4 + hogs:1");
            workload.tasks[1].start_ns = Some(fork_ns);
            let mut run = of(set).hz(1000).run_workload(&workload);
            run.until(fork_ns - 1);
            let parent = run.queue_field(0, CFS_CURR_PID_AT, 4) as u32;
            run.until(fork_ns);
            let tasks = run.tasks();
            let pid_of = |id: TaskId| run.machine.trace().tasks()[id.index()].pid;
            let (parent, ..) = tasks.iter().find(|t| pid_of(t.0) == parent).expect("a task ran");
            diff(run.task(TaskId(5)).dsq_vtime, run.task(*parent).dsq_vtime)
        });
        let distances: Vec<i64> = distances.collect();
        if at_least(set, "2.6.32") {
            assert!(distances.iter().all(|d| *d >= 0), "{set}: {distances:?}");
            assert!(distances.iter().any(|d| *d > 0), "{set}: {distances:?}");
        } else {
            assert!(distances.iter().all(|d| *d <= 0), "{set}: {distances:?}");
            assert!(distances.iter().any(|d| *d < 0), "{set}: {distances:?}");
        }
    }
}

/// vruntime per ns of two equal hogs: 1, but 2 where the queue's weight counts (2.6.27).
#[test]
fn vruntime_is_scaled_by_the_queue_in_2_6_27_alone() {
    for set in SETS {
        let mut run = of(set).hz(1000).run("hogs:2");
        let before = run.until(500 * MS).task(TaskId(1));
        let after = run.until(1_500 * MS).task(TaskId(1));
        let rate = diff(after.dsq_vtime, before.dsq_vtime) as f64
            / (after.sum_exec_ns - before.sum_exec_ns) as f64;
        let expected = if set.starts_with("2.6.27") { 2.0 } else { 1.0 };
        assert!((rate - expected).abs() < 0.01, "{set}: {rate}");
    }
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

/// A yield does nothing until 2.6.38 (the caller stays leftmost), unless sched_compat_yield is on; then it skips once.
#[test]
fn a_yield_follows_the_release() {
    for set in SETS {
        let shortest = |compat: &str| {
            let bench = of(set).hz(1000).set("sched_compat_yield", compat).set("HRTICK", "off");
            let mut run = bench.run_toml(POLITE);
            run.until(1_000 * MS);
            let slices = run.slices();
            let own = slices.iter().filter(|s| {
                s.task == TaskId(1) && s.start_ns > 100 * MS && s.state == TaskState::Runnable
            });
            own.map(|s| s.ran_ns()).min().expect("some slices")
        };
        assert_eq!(shortest("on"), 100 * US, "{set}: behind the rightmost at once");
        // The caller is leftmost up to the hog's vruntime.
        assert!(shortest("off") > 900 * US, "{set}: {} ns", shortest("off"));
    }
}
