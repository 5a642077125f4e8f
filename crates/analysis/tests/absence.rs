//! What a recording does not contain is not judged.

use crate::tape::{IDLE, MS, Tape};
use fairground_analysis::diagnose::{Diagnosis, Rule};
use fairground_analysis::metric::{self, MetricValue};
use fairground_analysis::{Analysis, Options};
use fairground_trace::{EventKind, Trace};

const SECONDS: u64 = 1_000 * MS;

/// Five tasks wake up again and again, and no switch tells what they do.
fn wakeups_alone() -> Trace {
    let mut tape = Tape::new(2);
    let tasks: Vec<_> = (0..5).map(|n| tape.task(&format!("task{n}"))).collect();
    for (n, from_ns) in (0..40).map(|n| (n, n * SECONDS / 10)) {
        tape.wakeup(from_ns, tasks[n as usize % 5], n as u32 % 2);
    }
    tape.end(4 * SECONDS)
}

#[test]
fn without_switches_only_wake_ups_are_measured() {
    let options = Options { interval_ns: Some(SECONDS), ..Options::default() };
    let analysis = Analysis::of(&wakeups_alone(), &options);
    let measured = |key: String, value: Option<MetricValue>| value.map(|value| (key, value));
    let machine: Vec<_> = metric::MACHINE
        .iter()
        .filter_map(|metric| measured(metric.key(), (metric.read)(&analysis.machine)))
        .collect();
    let zero = |key: &str| (key.to_owned(), MetricValue::Int(0));
    let wanted = [
        ("wakeups".to_owned(), MetricValue::Int(40)),
        ("wakeups.rate".to_owned(), MetricValue::Float(10.0)),
        zero("marks"),
        ("marks.rate".to_owned(), MetricValue::Float(0.0)),
    ];
    assert_eq!(machine, wanted);
    let task = &analysis.group("task0").expect("a group").figures;
    let tasks: Vec<_> = metric::GROUP
        .iter()
        .filter_map(|metric| measured(metric.key(), (metric.read)(task)))
        .collect();
    let wanted = [
        zero("marks"),
        ("marks.rate".to_owned(), MetricValue::Float(0.0)),
        ("wakeups".to_owned(), MetricValue::Int(8)),
    ];
    assert_eq!(tasks, wanted);
    assert_eq!((analysis.never_ran(), analysis.series), (vec![], None));
    assert!(analysis.irregularities.no_switches);
}

/// Kinds of events that a recording without switches lacks were not recorded: none of them is shown as 0.
#[test]
fn without_switches_what_is_lacking_is_not_zero() {
    let counts = |trace: &Trace| {
        let analysis = Analysis::of(trace, &Options::default());
        let figures = &analysis.groups[0].figures;
        let machine = (analysis.machine.wakeups, analysis.machine.migrations);
        assert_eq!((figures.wakeups, figures.migrations), machine);
        machine
    };
    let mut charged = Tape::new(2);
    let hog = charged.task("hog");
    charged.event(MS, 0, EventKind::Charge { task: hog, runtime_ns: MS });
    assert_eq!(counts(&charged.end(SECONDS)), (None, None));
    let mut moved = Tape::new(2);
    let hog = moved.task("hog");
    moved.event(MS, 0, EventKind::Migrate { task: hog, from_cpu: 0, to_cpu: 1 });
    assert_eq!(counts(&moved.end(SECONDS)), (None, Some(1)));
}

/// Where events were lost it is said how much is not known.
#[test]
fn the_time_that_is_not_known_behind_a_loss() {
    let mut tape = Tape::new(1);
    let task = tape.task("x");
    tape.preempt(0, 0, IDLE, task);
    tape.event(MS, 0, EventKind::Lost { count: 7 });
    tape.trace.loss.lost_events = 7;
    tape.block(4 * MS, 0, task, IDLE);
    let analysis = Analysis::of(&tape.end(4 * MS), &Options::default());
    assert_eq!(analysis.irregularities.unknown_ppm, 750_000);
}

#[test]
fn without_switches_no_rule_judges() {
    let diagnosis = Diagnosis::of(&wakeups_alone());
    assert_eq!(diagnosis.findings, []);
    let rules: Vec<Rule> = diagnosis.not_judged.iter().map(|(rule, _)| *rule).collect();
    assert_eq!(rules, Rule::ALL);
    assert!(diagnosis.not_judged.iter().all(|(_, why)| why.contains("no sched_switch")));
}

/// A simulation of nothing had no switches, and that is a measurement.
#[test]
fn a_run_that_starts_idle_has_measured_its_zeros() {
    let trace = Tape::new(1).end(SECONDS);
    let analysis = Analysis::of(&trace, &Options { starts_idle: true, ..Options::default() });
    assert_eq!(analysis.machine.of_switches(analysis.machine.switches), Some(0));
    assert_eq!(analysis.machine.idle_ns, SECONDS);
}
