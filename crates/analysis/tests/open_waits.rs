//! A task that waits when the trace ends has waited that long.

use crate::tape::{IDLE, MS, Tape};
use fairground_analysis::{Analysis, Live, NeverRan, Options};
use fairground_trace::{EventKind, TaskId};

fn analysed(tape: Tape, end_ns: u64) -> Analysis {
    Analysis::of(&tape.end(end_ns), &Options::simulated())
}

fn group_max(analysis: &Analysis, key: &str, name: &str) -> Option<f64> {
    let figures = &analysis.group(name).expect("a group of that name").figures;
    let metric = fairground_analysis::metric::group(key).expect("a metric of that key");
    (metric.read)(figures).map(fairground_analysis::metric::MetricValue::as_f64)
}

/// Two hogs; the second one is never picked.
fn starving() -> (Tape, [TaskId; 2]) {
    let mut tape = Tape::new(2);
    let (runs, waits) = (tape.task("hog/0"), tape.task("hog/1"));
    tape.start(0, runs, 0).preempt(4_000, 0, IDLE, runs).start(2 * MS, waits, 0);
    // A wake-up says that the trace has them.
    tape.wakeup(2 * MS, IDLE, 0);
    (tape, [runs, waits])
}

#[test]
fn a_task_that_never_ran_has_waited_until_the_end() {
    let (tape, [runs, waits]) = starving();
    let analysis = analysed(tape, 40_000 * MS);
    let hog = analysis.task(waits).expect("the second hog");
    assert_eq!((hog.has_run, hog.waiting_ns), (false, Some(39_998 * MS)));
    assert_eq!(hog.figures.waits.max_ns(), Some(39_998 * MS));
    assert_eq!((hog.figures.waits.count(), hog.figures.waits.censored), (0, 1));
    assert_eq!(hog.figures.wakeup_latency.max_ns(), None, "a first run is no wake-up");
    assert_eq!(group_max(&analysis, "wait_time.max", "hog"), Some(39_998e6));
    let never_ran =
        NeverRan { task: waits, pid: 102, name: "hog/1".into(), waiting_ns: 39_998 * MS };
    assert_eq!(analysis.never_ran(), [never_ran]);
    let other = analysis.task(runs).expect("the first hog");
    assert_eq!((other.has_run, other.waiting_ns), (true, None));
    assert_eq!(other.figures.waits.max_ns(), Some(4_000));
}

#[test]
fn those_that_wait_longest_come_first() {
    let mut tape = Tape::new(1);
    let tasks = ["late", "early", "asleep"].map(|name| tape.task(name));
    tape.start(1, tasks[1], 0).start(5, tasks[0], 0);
    let names = analysed(tape, 9).never_ran().into_iter().map(|task| (task.name, task.waiting_ns));
    assert_eq!(names.collect::<Vec<_>>(), [("early".to_owned(), 8), ("late".to_owned(), 4)]);
}

#[test]
fn an_open_latency_is_a_lower_bound() {
    let mut tape = Tape::new(1);
    let (hog, sleeper) = (tape.task("hog"), tape.task("sleeper"));
    tape.start(0, hog, 0).start(0, sleeper, 0).preempt(0, 0, IDLE, sleeper);
    tape.block(10, 0, sleeper, hog);
    tape.waking(20, sleeper, 0).wakeup(22, sleeper, 0).preempt(25, 0, hog, sleeper);
    tape.block(30, 0, sleeper, hog);
    tape.waking(40, sleeper, 0).wakeup(44, sleeper, 0);
    let analysis = analysed(tape, 1_040);
    let latency = &analysis.task(sleeper).expect("the sleeper").figures.wakeup_latency;
    assert_eq!((latency.values_ns(), latency.censored), ([5].as_slice(), 1));
    assert_eq!((latency.p99_ns(), latency.max_ns()), (Some(5), Some(1_000)));
    assert_eq!(analysis.machine.wakeup_latency.max_ns(), Some(1_000));
    assert!(analysis.never_ran().is_empty(), "it has run before");
}

#[test]
fn a_preempted_task_waits_since_it_was_preempted() {
    let mut tape = Tape::new(1);
    let (a, b) = (tape.task("a"), tape.task("b"));
    tape.start(0, a, 0).start(0, b, 0).preempt(0, 0, IDLE, a).preempt(100, 0, a, b);
    let analysis = analysed(tape, 1_000);
    let a = analysis.task(a).expect("the first task");
    assert_eq!((a.waiting_ns, a.figures.waits.max_ns()), (Some(900), Some(900)));
}

#[test]
fn a_wait_is_open_at_the_end_of_each_window() {
    let (tape, [_, waits]) = starving();
    let trace = tape.end(40_000 * MS);
    let window = Some((10_000 * MS, 30_000 * MS));
    let analysis = Analysis::of(&trace, &Options { window, ..Options::simulated() });
    assert_eq!(analysis.never_ran()[0].waiting_ns, 29_998 * MS, "with its whole length");

    let mut live = Live::new(&trace, &Options::simulated());
    trace.events().for_each(|event| live.take(&trace, &event));
    live.draw_line(&trace, 10_000 * MS);
    let recent = live.look(&trace, 11_000 * MS).recent;
    let waited = recent.task(waits).map(|task| task.figures.waits.max_ns());
    assert_eq!(waited, Some(Some(10_998 * MS)));
}

/// A task in the queue of the CPU may have run; one in another queue may have been there in between.
#[test]
fn what_was_lost_may_have_been_a_run() {
    let (mut tape, [_, waits]) = starving();
    tape.event(30 * MS, 0, EventKind::Lost { count: 9 });
    let analysis = analysed(tape, 40 * MS);
    assert_eq!(analysis.task(waits).and_then(|task| task.waiting_ns), None);
    assert_eq!(analysis.task(waits).map(|task| task.figures.unknown_ns), Some(10 * MS));
    assert_eq!(analysis.task(waits).map(|task| task.figures.waits.censored), Some(1));

    let (mut tape, [_, waits]) = starving();
    tape.event(30 * MS, 1, EventKind::Lost { count: 9 });
    let analysis = analysed(tape, 40 * MS);
    assert_eq!(analysis.task(waits).and_then(|task| task.waiting_ns), Some(10 * MS));
}

/// Events are missing from the loss up to the CPU's next switch.
#[test]
fn the_gap_ends_at_the_next_switch() {
    let (mut tape, [_, waits]) = starving();
    tape.event(20 * MS, 1, EventKind::Lost { count: 9 });
    tape.preempt(34 * MS, 1, IDLE, IDLE);
    let analysis = analysed(tape, 40 * MS);
    assert_eq!(analysis.task(waits).and_then(|task| task.waiting_ns), Some(6 * MS));
    assert_eq!(analysis.cpus[1].unknown_ns, 14 * MS);
}
