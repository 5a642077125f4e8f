//! Numbers over time agree with the figures that are computed from the same pass.

use fairground_analysis::{Analysis, Options, counters};
use fairground_trace::{Counter, CounterOf, Trace, read};

fn recorded() -> Trace {
    const FILE: &str = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../experiments/recordings/mixed-2cpu-whole.perf-sched.txt.gz"
    );
    let file = std::fs::read(FILE).expect("the recording is part of the repository");
    read("recording", &file[..]).expect("it is sound")
}

fn named<'a>(counters: &'a [Counter], name: &'a str) -> impl Iterator<Item = &'a Counter> {
    counters.iter().filter(move |counter| counter.name == name)
}

/// The depth of all queues, summed over time, is the time that all tasks waited in them: in a window before which
/// every CPU has said what it runs. (Until then a running task may be woken, and seems to wait.)
#[test]
fn depth_over_time_is_wait_time() {
    let trace = recorded();
    let quarter_ns = (trace.end_ns - trace.start_ns) / 4;
    let window = Some((trace.start_ns + quarter_ns, trace.end_ns));
    let options = Options { window, ..Options::default() };
    let analysis = Analysis::of(&trace, &options);
    let mut area = 0;
    let counters = counters(&trace, &options);
    for queue in named(&counters, "queue") {
        assert!(matches!(queue.of, CounterOf::Cpu(cpu) if cpu < trace.cpus));
        assert!(queue.points.iter().all(|(_, depth)| *depth >= 0));
        let ends = queue.points.iter().skip(1).map(|(time_ns, _)| *time_ns);
        for ((from_ns, depth), to_ns) in queue.points.iter().zip(ends.chain([analysis.end_ns])) {
            area += *depth as u64 * (to_ns - from_ns);
        }
    }
    // A task that was asked to wake waits too, but in no queue yet.
    let figures = analysis.tasks.iter().map(|task| &task.figures);
    let waited: u64 = figures.map(|figures| figures.wait_ns - figures.waking_ns).sum();
    assert!(waited > 0);
    assert_eq!(area, waited);
}

/// The extremes of a task's lag are the metric of that name.
#[test]
fn extremes_of_lag_are_the_metric() {
    let trace = recorded();
    let options = Options::default();
    let analysis = Analysis::of(&trace, &options);
    let counters = counters(&trace, &options);
    let mut drawn = 0;
    for task in &analysis.tasks {
        let of = CounterOf::Task(task.task);
        let Some(lag) = named(&counters, "lag").find(|counter| counter.of == of) else { continue };
        let values = || lag.points.iter().map(|(_, lag_ns)| *lag_ns);
        let (high, low) = (values().max().unwrap_or(0), values().min().unwrap_or(0));
        assert_eq!(high.max(0) as u64, task.figures.lag_max_ns, "{}", task.name);
        assert_eq!(low.min(0).unsigned_abs(), task.figures.lead_max_ns, "{}", task.name);
        drawn += 1;
    }
    assert!(drawn > 10, "{drawn} tasks");
}
