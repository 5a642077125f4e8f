//! Our workloads beside the programs that they model: Debian's hackbench, stress-ng and rt-app. Both run in one
//! deterministic guest with one CPU, on one kernel, with the same parameters, and are recorded with the same
//! instrument. They need QEMU, the kernel and Debian's packages.
//!
//! The tolerances were written down before the first run. docs/reports/benchmarks-2026-11-25.md
//! explains the differences.

use crate::beside::{LENGTH_S, SWITCH_OPS, Seen, Verdict, pair, run_ns, switches, wakeups};

/// Counts (wake-ups, switches) may differ by this factor: the order of two tasks decides many that follow.
const COUNT_FACTOR: f64 = 1.25;
/// Times may differ by this factor: our tasks interpret their programs, the others are compiled.
const TIME_FACTOR: f64 = 1.33;
/// Counts that the parameters decide (a wake-up each period) may differ by this factor.
const FIXED_FACTOR: f64 = 1.1;
/// Shares of CPU time may differ by this many percentage points.
const SHARE_POINTS: f64 = 5.0;

/// Senders, and receivers, of hackbench.
const FDS: usize = 20;
/// Messages of a run of hackbench: 20 senders, 20 receivers, 100 from each to each.
const MESSAGES: f64 = 40_000.0;

fn compare_hackbench(name: &'static str) {
    let Some((real, ours)) = pair(name) else { return };
    let printed = real.text.lines().find_map(|line| line.strip_prefix("Time: "));
    let real_s: f64 = printed.and_then(|text| text.trim().parse().ok()).expect("hackbench's time");
    assert!(real.text.contains("(== 40 tasks)"), "{}", real.text);
    assert!(real.text.contains("pass 100 messages of 100 bytes"), "{}", real.text);
    assert_eq!((real.tasks.len(), ours.tasks.len()), (1 + 2 * FDS, 1 + 2 * FDS), "tasks");
    let ours_s = ours.between_marks("hackbench start", "hackbench round");
    let counts = |seen: &Seen| (wakeups(&seen.tasks) / MESSAGES, switches(&seen.tasks) / MESSAGES);
    // The parent is the first; it creates all receivers, then all senders.
    let receivers = |seen: &Seen| seen.share(&seen.tasks[1..=FDS]);
    let mut verdict = Verdict::of(name);
    verdict.alike("seconds", real_s, ours_s, TIME_FACTOR);
    verdict.alike("wake-ups per message", counts(&real).0, counts(&ours).0, COUNT_FACTOR);
    verdict.alike("switches per message", counts(&real).1, counts(&ours).1, COUNT_FACTOR);
    verdict.points("receivers' CPU time", receivers(&real), receivers(&ours), SHARE_POINTS);
    verdict.say();
}

#[test]
fn hackbench_over_pipes_is_debians_hackbench() {
    compare_hackbench("hackbench-pipes");
}

#[test]
fn hackbench_over_sockets_is_debians_hackbench() {
    compare_hackbench("hackbench-sockets");
}

/// A writer and a reader of a pipe that holds one message: stress-ng's `--switch`, and the same as a file.
#[test]
fn a_pipe_that_holds_one_message_is_stress_ngs_switch() {
    let name = "switch";
    let Some((real, ours)) = pair(name) else { return };
    assert_eq!((real.tasks.len(), ours.tasks.len()), (2, 2), "tasks");
    let messages = f64::from(SWITCH_OPS);
    let time_us = |seen: &Seen| seen.busy_ns() / 1e3 / messages;
    let counts = |seen: &Seen| (wakeups(&seen.tasks) / messages, switches(&seen.tasks) / messages);
    let writer = |seen: &Seen| seen.share(&seen.tasks[..1]);
    let mut verdict = Verdict::of(name);
    verdict.alike("µs per message", time_us(&real), time_us(&ours), TIME_FACTOR);
    verdict.alike("wake-ups per message", counts(&real).0, counts(&ours).0, COUNT_FACTOR);
    verdict.alike("switches per message", counts(&real).1, counts(&ours).1, COUNT_FACTOR);
    verdict.points("the writer's CPU time", writer(&real), writer(&ours), SHARE_POINTS);
    verdict.say();
}

/// Three tasks that compute forever on two CPUs.
#[test]
fn hogs_share_as_stress_ngs_cpu_workers_do() {
    let name = "cpu";
    let Some((real, ours)) = pair(name) else { return };
    assert_eq!((real.tasks.len(), ours.tasks.len()), (3, 3), "tasks");
    let shares = |seen: &Seen| {
        let tasks = seen.tasks.iter().map(std::slice::from_ref);
        let mut shares: Vec<f64> = tasks.map(|task| seen.share(task)).collect();
        shares.sort_by(f64::total_cmp);
        shares
    };
    let rate = |seen: &Seen| switches(&seen.tasks) * 1e9 / run_ns(&seen.tasks);
    let mut verdict = Verdict::of(name);
    for (real, ours) in shares(&real).into_iter().zip(shares(&ours)) {
        verdict.points("of the CPU time, from the least", real, ours, SHARE_POINTS);
    }
    verdict.alike("switches per second of CPU time", rate(&real), rate(&ours), COUNT_FACTOR);
    verdict.say();
}

/// One file, read by rt-app and by us: a periodic task that resumes another one, one that sleeps, one that computes
/// forever.
#[test]
fn a_file_of_rt_app_does_what_rt_app_does_with_it() {
    let Some((real, ours)) = pair("rt-app") else { return };
    assert_eq!((real.tasks.len(), ours.tasks.len()), (4, 4), "tasks");
    let mut verdict = Verdict::of("rt-app");
    for group in ["decoder", "display", "effects", "hog"] {
        let (real, ours) = (real.group(group), ours.group(group));
        let share = |tasks: &[_]| run_ns(tasks) / (LENGTH_S * 10_000_000) as f64;
        verdict.points(&format!("{group}, CPU"), share(&real), share(&ours), SHARE_POINTS);
        if group != "hog" {
            let what = format!("{group}, wake-ups");
            verdict.alike(&what, wakeups(&real), wakeups(&ours), FIXED_FACTOR);
        }
        let what = format!("{group}, switches");
        verdict.alike(&what, switches(&real), switches(&ours), COUNT_FACTOR);
    }
    verdict.say();
}
