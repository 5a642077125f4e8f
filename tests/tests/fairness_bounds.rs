//! The unfairness of each scheduler: the bound that follows from its rules, and that it holds.
//!
//! Hogs on one CPU, all runnable all the time, are compared pair by pair. Each scheduler measures service in a unit of
//! its own, in which equal tasks are served alike: `unit(nice)` of run time is one of it. With n the service of a task
//! in that unit since the start, n(a) - n(b) of two tasks may move within a width that does not grow with time,
//! whatever else runs on the CPU. A scheduler without a bound here fails the test.

use crate::rig::rfs::inv;
use crate::rig::sd::slots;
use crate::rig::{MS, Run, bench, weight};

const TICK_NS: f64 = MS as f64;
const CPUS: u32 = 8;
/// 1 + log2 of 8 CPUs: the factor on times that grow with the number of CPUs.
const FACTOR: f64 = 4.0;

/// What a scheduler promises to hogs of one CPU.
struct Promise {
    /// Run time of a task that is one unit of its service, ns.
    unit_ns: fn(i8) -> f64,
    /// The width within which n(a) - n(b) stays, units: from the nice values of all hogs of the CPU, those of the two
    /// tasks, and the largest service of one of the two so far.
    width: fn(&[i8], i8, i8, f64) -> f64,
}

/// What late ticks add up to, in units: a slice of `slice_ns` ends up to one tick late, and nothing makes up for it
/// over `served` of them.
fn late(slice_ns: f64, served: f64) -> f64 {
    served * TICK_NS / slice_ns
}

/// `o1` (docs/laws/o1.md, law 17): between two swaps of the arrays each hog runs for exactly its slice. An interval is
/// whole epochs and a part of one at each end, in which a task is served between none and one slice: two epochs at
/// most between any two. For hogs without the credit of a launcher that slept.
const O1: Promise = Promise {
    unit_ns: |nice| {
        let base = if nice < 0 { 20.0 } else { 5.0 };
        (base * f64::from(20 - i32::from(nice))).max(5.0) * MS as f64
    },
    width: |_, _, _, _| 2.0,
};

/// `sd` (docs/laws/sd.md, law 1): an epoch serves each hog slots * quota, plus or minus a tick for each slot. As
/// above, and the time beyond a quota until the tick adds up.
const SD: Promise = Promise {
    unit_ns: |nice| slots(nice) as f64 * 8.0 * FACTOR * MS as f64,
    width: |_, _, _, served| 2.0 + late(8.0 * FACTOR * MS as f64, served),
};

/// `cfs` (docs/laws/cfs.md, law 14): vruntimes of hogs are at most max((ideal + tick) * 1024 / w) apart. Their
/// difference, n(a) - n(b), therefore moves within twice that. 6.1: ideal is the weight's part of 6 ms * f, at least
/// 0.75 ms * f.
const CFS: Promise = Promise {
    unit_ns: |nice| weight(nice) as f64 / 1024.0,
    width: |nices, _, _, _| {
        let load: f64 = nices.iter().map(|n| weight(*n) as f64).sum();
        let apart = nices.iter().map(|n| {
            let ideal_ns = (6e6 * FACTOR * weight(*n) as f64 / load).max(0.75e6 * FACTOR);
            (ideal_ns + TICK_NS) * 1024.0 / weight(*n) as f64
        });
        2.0 * apart.fold(0.0, f64::max)
    },
};

/// `rfs` (docs/laws/rfs.md, law 8): |inv_a * run_a - inv_b * run_b| <= 2 D over any interval, D = max((G + tick) *
/// inv).
const RFS: Promise = Promise {
    unit_ns: |nice| 1.0 / inv(nice, 24) as f64,
    width: |nices, _, _, _| {
        let spread = nices.iter().map(|n| (4e6 * FACTOR + TICK_NS) * inv(*n, 24) as f64);
        2.0 * spread.fold(0.0, f64::max)
    },
};

/// `cfs_2_6_23` (docs/laws/cfs_2_6_23.md, law 8): wait_runtime is due time less run time, clamped to +-runtime_limit
/// (latency * factor); a wait of up to twice the limit is booked when it ends. So it moves within 4 limits, for either
/// task. What the clamp cuts off is lost: see [`lost_ns`].
const CFS_2_6_23: Promise = Promise {
    unit_ns: |nice| weight(nice) as f64 / 1024.0,
    width: |_, a, b, _| {
        let limits_ns = 4.0 * 20e6 * FACTOR + TICK_NS;
        limits_ns * (1024.0 / weight(a) as f64 + 1024.0 / weight(b) as f64)
    },
};

/// `eevdf` (docs/laws/eevdf.md, law 8): -(r + tick) < lag < r + tick, r the slice. Run time is due time less lag.
const EEVDF: Promise = Promise {
    unit_ns: |nice| weight(nice) as f64 / 1024.0,
    width: |_, a, b, _| {
        // 6.18: base_slice is 0.7 ms * factor.
        let lag_ns = 0.7e6 * FACTOR + TICK_NS;
        2.0 * lag_ns * (1024.0 / weight(a) as f64 + 1024.0 / weight(b) as f64)
    },
};

/// `fifo`: tasks of a queue run for 20 ms in order, whatever their nice values; between two slices of one there is
/// just one of another. The time from the end of a slice to the next tick adds up.
const FIFO: Promise = Promise {
    unit_ns: |_| 20.0 * MS as f64,
    width: |_, _, _, served| 2.0 + late(20.0 * MS as f64, served),
};

fn promise(policy: &str) -> Promise {
    match policy {
        "o1" => O1,
        "sd" => SD,
        "cfs" => CFS,
        "rfs" => RFS,
        "cfs_2_6_23" => CFS_2_6_23,
        "eevdf" => EEVDF,
        "fifo" => FIFO,
        other => panic!("{other} has no bound on its unfairness: derive one and state it here"),
    }
}

/// The time that `cfs_2_6_23` has cut off or taken from hogs for sleepers on a CPU so far, ns: its own counts
/// (`clamped_ns`, `bonus_paid_ns`).
fn lost_ns(run: &Run, policy: &str, cpu: usize) -> f64 {
    if policy != "cfs_2_6_23" {
        return 0.0;
    }
    let queue = crate::rig::cfs2623::queue(run, cpu);
    queue.clamped_ns.unsigned_abs() as f64 + queue.bonus_paid_ns as f64
}

/// Mixes for one CPU: hogs, and other tasks.
const MIXES: [(&[i8], &str); 7] = [
    (&[0, 0], ""),
    (&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0], ""),
    (&[-20, -10, 0, 10, 19], ""),
    (&[-5, 0, 5], ""),
    (&[0, 10, 19], ""),
    (&[0, 0, 5], " + sleepers:3,run=300us,sleep=2ms,cpus=3"),
    (
        &[-5, 0, 5, 10],
        " + sleepers:1,run=30ms,sleep=70ms,cpus=3 + sleepers:2,run=100us,sleep=900us,nice=-5,cpus=3",
    ),
];

/// The largest movement of n(a) - n(b) as a part of the allowed width, and its tasks.
fn widest(policy: &'static str, nices: &[i8], others: &str) -> (f64, String) {
    let promise = promise(policy);
    let hogs: Vec<String> = nices.iter().map(|n| format!("hogs:1,nice={n},cpus=3")).collect();
    let bench = if policy == "o1" { crate::rig::o1::bench() } else { bench(policy) };
    let mut run = bench.cpus(CPUS).hz(1000).run(&format!("{}{others}", hogs.join(" + ")));
    run.until(3_000 * MS);
    run.step_ns = 50 * MS;
    let hogs: Vec<_> = run.tasks().into_iter().filter(|t| t.1.starts_with("hog")).collect();
    assert_eq!(hogs.len(), nices.len());
    let start: Vec<u64> = hogs.iter().map(|h| run.task(h.0).sum_exec_ns).collect();
    let lost_at_start = lost_ns(&run, policy, 3);
    let pairs = (0..hogs.len()).flat_map(|a| (0..a).map(move |b| (a, b))).collect::<Vec<_>>();
    let mut range = vec![(0f64, 0f64); pairs.len()];
    let mut served = vec![0f64; hogs.len()];
    run.watch(15_000 * MS, |run| {
        for (i, hog) in hogs.iter().enumerate() {
            let ran_ns = run.task(hog.0).sum_exec_ns - start[i];
            served[i] = ran_ns as f64 / (promise.unit_ns)(hog.2);
        }
        for (range, (a, b)) in range.iter_mut().zip(&pairs) {
            let apart = served[*a] - served[*b];
            *range = (range.0.min(apart), range.1.max(apart));
        }
    });
    let lost_ns = lost_ns(&run, policy, 3) - lost_at_start;
    let mut worst = (0f64, String::new());
    for (range, (a, b)) in range.iter().zip(&pairs) {
        let (a, b) = (*a, *b);
        let unit = |i: usize| (promise.unit_ns)(hogs[i].2);
        // A sample is up to a tick behind the run time.
        let looks = TICK_NS / unit(a) + TICK_NS / unit(b);
        let lost = lost_ns / unit(a) + lost_ns / unit(b);
        let width =
            (promise.width)(nices, hogs[a].2, hogs[b].2, served[a].max(served[b])) + looks + lost;
        let part = (range.1 - range.0) / width;
        if part >= worst.0 {
            worst = (part, format!("nice {} and {}: {range:?} of {width}", hogs[a].2, hogs[b].2));
        }
    }
    worst
}

#[test]
fn hogs_of_a_cpu_are_served_within_the_bound_of_each_scheduler() {
    for policy in fairground_policies::all() {
        let mut nearest = 0f64;
        for (nices, others) in MIXES {
            let (part, who) = widest(policy.name, nices, others);
            println!("{:12} {part:.3} {nices:?}{others}: {who}", policy.name);
            assert!(part <= 1.0, "{}, {nices:?}{others}: {who}", policy.name);
            nearest = nearest.max(part);
        }
        assert!(nearest > 0.02, "{}: no empty bound: {nearest} of it", policy.name);
    }
}

/// Ten hogs on eight CPUs with a queue each. If no queue has two tasks more than another (the balancer's aim), each
/// has one or two, and a task runs at least half the time. `balance_laws.rs` tests the rest (docs/laws/balancing.md,
/// law 5).
#[test]
fn ten_hogs_on_eight_cpus_have_half_a_cpu_at_least() {
    for policy in fairground_policies::all() {
        let mut run = bench(policy.name).cpus(CPUS).hz(1000).run("hogs:10");
        run.until(2_000 * MS);
        let hogs = run.named("hog");
        let start: Vec<u64> = hogs.iter().map(|h| run.task(*h).sum_exec_ns).collect();
        let seconds = 8;
        run.until((2 + seconds) * 1_000 * MS);
        let (unit, promise) = (100.0, promise(policy.name));
        let width_ns = (promise.width)(&[0, 0], 0, 0, unit) * (promise.unit_ns)(0);
        for (hog, start) in hogs.iter().zip(&start) {
            let ran_ns = (run.task(*hog).sum_exec_ns - start) as f64;
            let least_ns = seconds as f64 * 0.5e9 - width_ns;
            assert!(ran_ns >= least_ns, "{}: {hog:?} ran {ran_ns} ns of {least_ns}", policy.name);
        }
        let all: u64 = hogs.iter().zip(&start).map(|(h, s)| run.task(*h).sum_exec_ns - s).sum();
        let window_ns = seconds * 1_000 * MS * u64::from(CPUS);
        assert!(all + u64::from(CPUS) * 2 * MS >= window_ns, "{}: no CPU was idle", policy.name);
    }
}
