//! The historical `slice` program's own figures, out of hand-made traces.

use crate::tape::{IDLE, MS, Tape};
use fairground_analysis::slice_report::{ANSWER, REPORT, SliceReports, UserTime};
use fairground_trace::{EventKind, TaskId, Trace};

/// One worker of a report: CPU time in µs, and in how many slices it had it.
type Worker = (u64, u64);

/// One CPU; in each report each worker runs `switches + 1` times, is preempted `switches` times and answers in its last
/// stretch.
fn recording(reports: &[Vec<Worker>], toggle_before: Option<usize>) -> Trace {
    let mut tape = Tape::new(1);
    let parent = tape.task("slice");
    let workers: Vec<TaskId> =
        (0..reports[0].len()).map(|n| tape.task(&format!("worker/{n}"))).collect();
    tape.start(0, parent, 0);
    let (mut now_ns, mut running) = (0, IDLE);
    for (n, report) in reports.iter().enumerate() {
        if toggle_before == Some(n) {
            tape.param(now_ns, "fair_sleepers=0");
        }
        for (worker, (utime_us, switches)) in workers.iter().zip(report) {
            // Out and in again at one instant ends a slice and leaves the time to the worker.
            for _ in 0..*switches {
                tape.preempt(now_ns, 0, running, *worker).preempt(now_ns, 0, *worker, IDLE);
                running = IDLE;
            }
            tape.preempt(now_ns, 0, running, *worker);
            now_ns += utime_us * 1_000;
            tape.mark(now_ns, 0, *worker, ANSWER);
            tape.block(now_ns, 0, *worker, parent);
            running = parent;
        }
        tape.mark(now_ns, 0, parent, REPORT);
    }
    tape.end(now_ns)
}

#[test]
fn a_third_is_five_of_sixteen_workers_with_a_whole_millisecond() {
    // 5 workers have slices of 1.2 ms and 11 of 0.9 ms; 104 slices each, about 125 ms in a report of a second on 2
    // CPUs.
    let mut workers = vec![(124_800, 104); 5];
    workers.extend([(93_600, 104); 11]);
    let reports = SliceReports::of(&recording(&[workers], None), UserTime::Exact);
    let report = &reports.reports[0];
    assert_eq!(report.program_slice_ms(), Some(0.3125), "5/16: the mail's 0.31");
    let sum_us = 5 * 124_800 + 11 * 93_600;
    assert_eq!(report.true_slice_ms(), Some(0.001 * f64::from(sum_us) / (16.0 * 104.0)));
    assert_eq!(report.program_utime_us(), Some(f64::from(sum_us) / 16.0));
    assert_eq!(report.line().as_deref(), Some("avg slice:  0.31 utime: 103350.000000"));
    assert!(report.start_up);
}

#[test]
fn each_addition_truncates_in_the_way_of_the_c_program() {
    // long avg = 0; avg += 1.9 → 1; avg += 2.9 → 3; avg += 0.999 → 3: mean 1.0, where the true mean of the
    // three is 1.93.
    let workers = vec![(1_900, 1), (2_900, 1), (999, 1)];
    let reports = SliceReports::of(&recording(&[workers], None), UserTime::Exact);
    assert_eq!(reports.reports[0].program_slice_ms(), Some(1.0));
    assert_eq!(reports.reports[0].worker_mean_slice_ms(), Some((1.9 + 2.9 + 0.999) / 3.0));
}

#[test]
fn a_worker_without_switches_counts_as_one_switch() {
    let reports =
        SliceReports::of(&recording(&[vec![(7_500, 0), (2_500, 1)]], None), UserTime::Exact);
    let report = &reports.reports[0];
    assert_eq!(report.answers[0].nivcsw, 0);
    assert_eq!(report.program_slice_ms(), Some((7.0 + 2.0) / 2.0));
    assert_eq!(report.true_slice_ms(), Some(10.0), "one switch in 10 ms");
}

#[test]
fn the_longer_interval_is_not_a_gain() {
    // One worker has the CPU all the time; the second report takes 10 % longer, so utime does too.
    let trace = recording(
        &[vec![(1_000_000, 100)], vec![(1_000_000, 100)], vec![(1_100_000, 100)]],
        Some(2),
    );
    let reports = SliceReports::of(&trace, UserTime::Exact);
    let [first, second, third] = reports.reports.as_slice() else { panic!("three reports") };
    assert_eq!((first.start_up, second.start_up), (true, false));
    assert_eq!((second.period_ns, third.period_ns), (1_000 * MS, 1_100 * MS));
    assert_eq!(third.program_utime_us(), Some(1_100_000.0));
    assert_eq!(third.utime_us_per_s(), Some(1_000_000.0));
    assert_eq!(third.params, ["fair_sleepers=0"]);
    for (report, slice_ms) in [(second, 10.0), (third, 11.0)] {
        assert!(!report.start_up);
        assert_eq!(report.program_slice_ms(), Some(slice_ms));
        assert_eq!(report.true_slice_ms(), Some(slice_ms));
        assert_eq!(report.utime_us_per_s(), Some(1_000_000.0));
    }
}

#[test]
fn cpu_time_is_rounded_down_to_us_as_getrusage_does() {
    let mut tape = Tape::new(1);
    let (parent, worker) = (tape.task("slice"), tape.task("worker"));
    tape.preempt(0, 0, IDLE, worker);
    tape.mark(1_999, 0, worker, ANSWER).mark(3_001, 0, worker, ANSWER);
    tape.mark(3_001, 0, parent, REPORT).mark(4_000, 0, worker, ANSWER);
    let reports = SliceReports::of(&tape.end(5_000), UserTime::Exact);
    let utime: Vec<u64> = reports.reports[0].answers.iter().map(|a| a.utime_us).collect();
    assert_eq!(utime, [1, 2], "1.999 and 3.001 µs in all are 1 and 3");
    assert_eq!(reports.unreported_answers, 1);
    assert_eq!(reports.reports[0].true_slice_ms(), None);
}

#[test]
fn a_kernel_that_samples_sees_only_what_runs_at_ticks() {
    // A tick every 4 ms finds the worker twice; it ran 5 ms in all, 2 ms of it between two ticks.
    let mut tape = Tape::new(1);
    let (parent, worker) = (tape.task("slice"), tape.task("worker"));
    tape.preempt(0, 0, IDLE, worker);
    tape.event(0, 0, EventKind::Tick { task: worker }).preempt(2 * MS, 0, worker, IDLE).preempt(
        3 * MS,
        0,
        IDLE,
        worker,
    );
    tape.event(4 * MS, 0, EventKind::Tick { task: worker }).mark(6 * MS, 0, worker, ANSWER).mark(
        6 * MS,
        0,
        parent,
        REPORT,
    );
    let trace = tape.end(6 * MS);
    let reports = SliceReports::of(&trace, UserTime::Ticks { tick_ns: 4 * MS });
    assert_eq!(reports.reports[0].program_utime_us(), Some(8_000.0));
    assert_eq!(reports.reports[0].true_slice_ms(), Some(5.0), "the true slice is not sampled");
    let exact = SliceReports::of(&trace, UserTime::Exact);
    assert_eq!(exact.reports[0].program_utime_us(), Some(5_000.0));
}

#[test]
fn a_trace_without_marks_has_no_reports() {
    let reports = SliceReports::of(&Tape::new(1).end(100), UserTime::Exact);
    assert!(reports.reports.is_empty());
}
