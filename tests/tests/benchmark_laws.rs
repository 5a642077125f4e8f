//! The laws of the benchmark library (docs/laws/benchmarks.md), on the simulated machine.

use crate::rig::{MS, bench};
use fairground_analysis::{Analysis, Options};
use fairground_trace::{EventKind, Trace};

/// One CPU of a machine with costs, for a time.
fn trace(scheduler: &'static str, workload: &str, duration_ms: u64) -> Trace {
    let mut run = bench(scheduler).like_a_kernel("modern", 0).cpus(1).hz(1000).run(workload);
    run.until(duration_ms * MS);
    run.machine.trace().clone()
}

fn marks(trace: &Trace, text: &str) -> u64 {
    let of_text = |kind: EventKind| match kind {
        EventKind::Mark { label, .. } => trace.label(label) == text,
        _ => false,
    };
    trace.events().filter(|event| of_text(event.kind)).count() as u64
}

/// Law 4: single bytes make more than 100,000 switches a second where a wake-up preempts at once, and blocks of 64 KB,
/// the size of the pipe, make few.
#[test]
fn single_bytes_are_switches_where_wake_ups_preempt() {
    let rate = |spec: &str| {
        let trace = trace("rfs", spec, 200);
        Analysis::of(&trace, &Options::simulated()).machine.switches * 5
    };
    let (bytes, blocks) = (rate("pipe-chain:dd"), rate("pipe-chain:dd,bs=65536,zero=100us"));
    assert!(bytes > 100_000, "{bytes} switches a second");
    assert!(blocks * 10 < bytes, "{blocks} beside {bytes}");
}

/// Reads of the terminal for each 50 blocks, in thousandths: alone, and beside a hog.
fn reads(scheduler: &'static str) -> [u64; 2] {
    ["pipe-chain:xterm", "pipe-chain:xterm + hogs:1"].map(|spec| {
        let trace = trace(scheduler, spec, 1000);
        let blocks = marks(&trace, "50 blocks");
        assert!(blocks > 0, "{scheduler}: nothing was written");
        marks(&trace, "read") * 1000 / blocks
    })
}

/// Law 5: a terminal that has to wait for its CPU finds more to read and draws less often, under the fair schedulers.
#[test]
fn beside_a_hog_the_terminal_draws_less_often() {
    for scheduler in ["cfs@2.6.24", "cfs@6.1", "eevdf"] {
        let [alone, beside] = reads(scheduler);
        assert!(beside <= alone + alone / 20, "{scheduler}: {beside} beside {alone}");
    }
}

/// Under O(1) the terminal is rated interactive beside the hog, and runs for nearly every byte. The published run on
/// Debian's 2.6.21 was slower beside the hog, too.
#[test]
fn under_o1_the_terminal_draws_more_often_beside_a_hog() {
    let [alone, beside] = reads("o1");
    assert!(beside > 2 * alone, "{beside} beside {alone}");
}

/// Law 8: the rate of workers that sleep 200 us and compute at least 250 us is bounded.
#[test]
fn requests_are_no_quicker_than_their_work() {
    for scheduler in ["cfs@6.1", "eevdf", "fifo"] {
        let trace = trace(scheduler, "schbench:4", 500);
        let requests = marks(&trace, "request");
        assert!(requests > 0 && requests <= 500 * 1000 / 250, "{scheduler}: {requests}");
    }
}

/// Every benchmark of the library, small, and the mark by which it counts.
const BENCHMARKS: [(&str, &str); 14] = [
    ("slice:4,report=50ms", "answer"),
    ("fairtest:2", ""),
    ("massive_intr:6,start=5ms", "round"),
    ("lat_ctx:4", ""),
    ("hackbench:1,fds=5,loops=5", "hackbench round"),
    ("hackbench:1,fds=5,loops=5,over=sockets", "hackbench round"),
    ("pipe-chain:dd", "1024 writes"),
    ("pipe-chain:xterm", "read"),
    ("audio:2", "audio period"),
    ("drag", "frame"),
    ("netperf-stream", "1 MiB"),
    ("volano:1,users=6", "100 messages"),
    ("aim7:6", "job"),
    ("dbench:6", "1 MiB"),
];

/// Every benchmark makes progress under every scheduler. Under O(1) it may begin when all tasks of a CPU have had their
/// slices of 100 ms.
#[test]
fn every_benchmark_runs_under_every_scheduler() {
    for policy in fairground_policies::all() {
        for (spec, mark) in BENCHMARKS {
            let mut run = bench(policy.name).like_a_kernel("modern", 0).cpus(2).hz(1000).run(spec);
            run.until(if policy.name == "o1" { 1_500 * MS } else { 250 * MS });
            let trace = run.machine.trace();
            let switches = Analysis::of(trace, &Options::simulated()).machine.switches;
            let headway = if mark.is_empty() { switches } else { marks(trace, mark) };
            assert!(headway > 0, "{spec} under {}", policy.name);
        }
    }
}

/// Law 9: a generator read from an rt-app file, alone and beside a hog on its CPU. The period of its wake-ups is off
/// by less than 1 %, its run time per period by less than 5 %.
#[test]
fn a_periodic_generator_keeps_its_period_and_its_load() {
    const PERIODS: u64 = 100;
    for (beside, scheduler) in [("", "cfs@6.1"), ("", "eevdf"), (HOG, "cfs@6.1"), (HOG, "eevdf")] {
        let text = format!(
            r#"{{ "tasks": {{ {beside} "generator": {{ "priority": -5, "cpus": [0], "run": 2500,
                "timer": {{ "ref": "unique", "period": 10000, "mode": "absolute" }} }} }},
                "global": {{ "duration": 2 }} }}"#
        );
        let read = fairground_workload::parse_rt_app("law.json", &text).expect("it is right");
        let bench = bench(scheduler).like_a_kernel("modern", 0).cpus(1).hz(1000);
        let mut run = bench.run_workload(&read.workload);
        run.until((PERIODS + 1) * 10 * MS);
        let task = run.named("generator")[0];
        let (mut wakes, mut ran_ns, mut since_ns) = (Vec::new(), 0, None);
        for event in run.machine.trace().events() {
            match event.kind {
                EventKind::Wakeup { task: woken, .. } if woken == task => wakes.push(event.time_ns),
                EventKind::Switch { next, .. } if next == task => since_ns = Some(event.time_ns),
                EventKind::Switch { prev, .. } if prev == task => {
                    ran_ns += since_ns.take().map_or(0, |since_ns| event.time_ns - since_ns);
                }
                _ => {}
            }
        }
        let periods = wakes.len() as u64 - 1;
        let period_ns = (wakes[wakes.len() - 1] - wakes[0]) / periods;
        assert!(periods >= PERIODS - 2, "{scheduler}, {beside}: {periods} periods");
        assert!(period_ns.abs_diff(10 * MS) < MS / 10, "{scheduler}, {beside}: {period_ns} ns");
        let each_ns = ran_ns / wakes.len() as u64;
        assert!(
            each_ns.abs_diff(2_500_000) < 125_000,
            "{scheduler}, {beside}: {each_ns} ns a period"
        );
    }
}

/// The competitor of the generator.
const HOG: &str = r#""hog": { "cpus": [0], "run": 100000 },"#;

/// Law 10: a message to the room reaches each other user once. At most what was sent is received, by all but the
/// sender; the difference is in transit.
#[test]
fn no_task_receives_what_was_not_sent() {
    let spec = "volano:1,users=4";
    let trace = trace("cfs@6.1", spec, 400);
    let heard = marks(&trace, "100 messages") * 100;
    // A server task that forwards a message takes the room's lock once.
    let forwards = Analysis::of(&trace, &Options::simulated());
    let served: u64 = forwards
        .tasks
        .iter()
        .filter(|task| task.name.starts_with("server-receive"))
        .map(|task| task.figures.run_ns)
        .sum();
    // Each takes 5 us, and 1 us for each of the three others.
    assert!(heard > 0 && heard <= served / 8_000 * 3 + 3, "{heard} heard of {}", served / 8_000);
}
