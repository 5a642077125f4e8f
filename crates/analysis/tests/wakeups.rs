//! Wake-ups are counted by the event that a recording has, and are not measured where it has none.

use crate::tape::{IDLE, MS, Tape};
use fairground_analysis::metric::{self, MetricValue};
use fairground_analysis::{Analysis, Interval, Options};
use fairground_trace::{EventKind, TaskId, Trace};

const ROUNDS: u64 = 50;
const WAKER: TaskId = TaskId(1);
const WOKEN: TaskId = TaskId(2);

/// In each round of 2.5 ms one task wakes another one, which runs 1 ms later, for 0.5 ms, and blocks.
fn recording(has_waking: bool, has_wakeup: bool) -> Trace {
    let mut tape = Tape::new(1);
    assert_eq!((tape.task("waker"), tape.task("woken")), (WAKER, WOKEN));
    tape.preempt(0, 0, IDLE, WAKER);
    for from_ns in (0..ROUNDS).map(|n| n * 5 * MS / 2) {
        if has_waking {
            let waking = EventKind::Waking { task: WOKEN, waker: WAKER, target_cpu: 0 };
            tape.event(from_ns + MS, 0, waking);
        }
        if has_wakeup {
            tape.wakeup(from_ns + MS, WOKEN, 0);
        }
        tape.preempt(from_ns + 2 * MS, 0, WAKER, WOKEN);
        tape.block(from_ns + 5 * MS / 2, 0, WOKEN, WAKER);
    }
    tape.end(ROUNDS * 5 * MS / 2)
}

fn analyzed(trace: &Trace, window: Option<(u64, u64)>) -> Analysis {
    let interval_ns = Some(10 * MS);
    Analysis::of(trace, &Options { window, interval_ns, ..Options::default() })
}

/// Of a metric of the machine.
fn value(analysis: &Analysis, key: &str) -> Option<f64> {
    let metric = metric::MACHINE.iter().find(|metric| metric.key() == key);
    (metric.expect("a metric").read)(&analysis.machine).map(MetricValue::as_f64)
}

fn of_task(analysis: &Analysis, task: TaskId) -> Option<u64> {
    analysis.task(task).expect("a task of the trace").figures.wakeups
}

fn intervals(analysis: &Analysis) -> &[Interval] {
    &analysis.series.as_ref().expect("intervals were asked for").intervals
}

#[test]
fn each_wake_up_counts_once_whichever_event_shows_it() {
    for (has_waking, has_wakeup) in [(true, false), (false, true), (true, true)] {
        let analysis = analyzed(&recording(has_waking, has_wakeup), None);
        let which = format!("waking {has_waking}, wakeup {has_wakeup}");
        assert_eq!(analysis.machine.wakeups, Some(ROUNDS), "{which}");
        assert_eq!(value(&analysis, "wakeups.rate"), Some(400.0), "{which}");
        assert_eq!(analysis.machine.wakeup_latency.count(), ROUNDS, "{which}");
        assert_eq!(of_task(&analysis, WOKEN), Some(ROUNDS), "{which}");
        assert_eq!(of_task(&analysis, WAKER), Some(0), "{which}");
        let group = analysis.group("woken").expect("a group");
        assert_eq!(group.figures.wakeups, Some(ROUNDS), "{which}");
        let sum: Option<u64> = intervals(&analysis).iter().map(|i| i.wakeups).sum();
        assert_eq!(sum, Some(ROUNDS), "{which}");
    }
}

#[test]
fn a_window_counts_its_own_wake_ups() {
    for (has_waking, has_wakeup) in [(true, false), (false, true)] {
        let window = Some((25 * MS, 50 * MS));
        let analysis = analyzed(&recording(has_waking, has_wakeup), window);
        assert_eq!(analysis.machine.wakeups, Some(10));
        assert_eq!(of_task(&analysis, WOKEN), Some(10));
    }
}

#[test]
fn without_events_of_wake_ups_they_are_not_measured() {
    let analysis = analyzed(&recording(false, false), None);
    assert_eq!(analysis.irregularities.missed_wakeups, ROUNDS - 1);
    assert_eq!(analysis.machine.wakeups, None);
    assert_eq!((value(&analysis, "wakeups"), value(&analysis, "wakeups.rate")), (None, None));
    assert!(analysis.tasks.iter().all(|task| task.figures.wakeups.is_none()));
    assert!(analysis.groups.iter().all(|group| group.figures.wakeups.is_none()));
    assert!(intervals(&analysis).iter().all(|interval| interval.wakeups.is_none()));
}

#[test]
fn where_no_task_comes_back_from_a_block_none_was_woken() {
    let mut tape = Tape::new(1);
    let (a, b) = (tape.task("a"), tape.task("b"));
    tape.preempt(0, 0, IDLE, a).preempt(MS, 0, a, b).block(2 * MS, 0, b, a);
    let analysis = analyzed(&tape.end(3 * MS), None);
    assert_eq!(analysis.machine.wakeups, Some(0));
    assert!(analysis.tasks.iter().all(|task| task.figures.wakeups == Some(0)));
}

/// Each task is seen for the first time when it comes onto a CPU that idled.
#[test]
fn where_tasks_end_the_idling_of_a_cpu_something_woke_them() {
    let mut tape = Tape::new(1);
    let (a, b) = (tape.task("a"), tape.task("b"));
    tape.preempt(0, 0, IDLE, a).block(MS, 0, a, IDLE).preempt(2 * MS, 0, IDLE, b);
    let analysis = analyzed(&tape.end(3 * MS), None);
    assert_eq!((analysis.irregularities.missed_wakeups, analysis.machine.wakeups), (0, None));
}

/// A task is asked to wake while it runs, leaves its CPU, and is asked again.
fn woken_early(second_ns: Option<u64>, has_wakeups: bool) -> Analysis {
    let mut tape = Tape::new(2);
    let (tick, front) = (tape.task("tick"), tape.task("front"));
    tape.preempt(0, 1, IDLE, front).preempt(MS, 0, IDLE, tick);
    let waking = EventKind::Waking { task: tick, waker: front, target_cpu: 0 };
    tape.event(MS + 100_000, 1, waking).block(MS + 300_000, 0, tick, IDLE);
    if let Some(second_ns) = second_ns {
        tape.waking(second_ns, tick, 0);
    }
    if has_wakeups {
        tape.wakeup(second_ns.unwrap_or(MS + 300_000) + 5_000, tick, 0);
    }
    tape.preempt(17 * MS + 40_000, 0, IDLE, tick).block(18 * MS, 0, tick, IDLE);
    Analysis::of(&tape.end(19 * MS), &Options::default())
}

/// The first request ended no sleep: the kernel would have sent no second one.
#[test]
fn a_request_to_a_running_task_that_is_repeated_began_no_wait() {
    for has_wakeups in [false, true] {
        let analysis = woken_early(Some(17 * MS), has_wakeups);
        let figures = &analysis.task(TaskId(1)).expect("the task").figures;
        assert_eq!(figures.wakeup_latency.values_ns(), [40_000], "{has_wakeups}");
        assert_eq!(
            (figures.wait_ns, figures.sleep_ns),
            (40_000, 16 * MS + 700_000),
            "{has_wakeups}"
        );
        assert!(analysis.machine.idle_while_waiting_ns <= 40_000, "{has_wakeups}");
    }
}

#[test]
fn a_request_to_a_running_task_that_is_not_repeated_begins_its_wait_when_it_leaves() {
    for has_wakeups in [false, true] {
        let analysis = woken_early(None, has_wakeups);
        let figures = &analysis.task(TaskId(1)).expect("the task").figures;
        assert_eq!(figures.wait_ns, 15 * MS + 740_000, "{has_wakeups}");
        assert_eq!(
            figures.wakeup_latency.values_ns(),
            [15 * MS + 940_000],
            "from the request: {has_wakeups}"
        );
    }
}
