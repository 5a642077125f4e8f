//! What a recording does not contain is not judged.

use crate::tape::{MS, Tape};
use fairground_analysis::diagnose::{Diagnosis, Rule};
use fairground_analysis::metric::{self, Value};
use fairground_analysis::{Analysis, Options};
use fairground_trace::Trace;

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
    let measured = |key: String, value: Option<Value>| value.map(|value| (key, value));
    let machine: Vec<_> = metric::MACHINE
        .iter()
        .filter_map(|metric| measured(metric.key(), (metric.read)(&analysis.machine)))
        .collect();
    let zero = |key: &str| (key.to_owned(), Value::Int(0));
    let wanted = [
        ("wakeups".to_owned(), Value::Int(40)),
        ("wakeups.rate".to_owned(), Value::Float(10.0)),
        zero("migrations"),
        ("migrations.rate".to_owned(), Value::Float(0.0)),
        zero("marks"),
        ("marks.rate".to_owned(), Value::Float(0.0)),
    ];
    assert_eq!(machine, wanted);
    let task = &analysis.group("task0").expect("a group").figures;
    let tasks: Vec<_> = metric::GROUP
        .iter()
        .filter_map(|metric| measured(metric.key(), (metric.read)(task)))
        .collect();
    let wanted = [
        zero("marks"),
        ("marks.rate".to_owned(), Value::Float(0.0)),
        zero("migrations"),
        ("wakeups".to_owned(), Value::Int(8)),
    ];
    assert_eq!(tasks, wanted);
    assert_eq!((analysis.never_ran(), analysis.series), (vec![], None));
    assert!(analysis.irregularities.no_switches);
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
