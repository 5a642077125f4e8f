//! `analyze` of recordings as text.

use std::fmt::Write;

use crate::support::{Files, success};

/// The value in the line of CSV of this observation (`of,task,metric`); empty where it was not measured.
fn value<'a>(csv: &'a str, observation: &str) -> &'a str {
    // `run,of,task,metric,value,unit`
    let line = csv.lines().find(|line| line.contains(&format!(",{observation},")));
    let line = line.unwrap_or_else(|| panic!("no {observation} in:\n{csv}"));
    line.rsplit(',').nth(1).expect("a value")
}

fn number(csv: &str, observation: &str) -> f64 {
    value(csv, observation).parse().expect("a number")
}

/// In each of 50 rounds of 2.5 ms, A wakes B by this event and is preempted by it 1 ms later; B runs 0.5 ms and blocks.
fn rounds(wake: Option<&str>) -> String {
    let switch = |us: u32, by: &str, prev: &str, next: &str| {
        format!("  {by} [000] d..2 100.{us:06}: sched_switch: {prev} ==> {next}\n")
    };
    let mut text = switch(
        0,
        "<idle>-0",
        "prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R",
        "next_comm=A next_pid=10 next_prio=120",
    );
    for from_us in (0..50).map(|n| n * 2_500) {
        if let Some(wake) = wake {
            let us = from_us + 1_000;
            let woken = "comm=B pid=11 prio=120 target_cpu=000";
            writeln!(text, "  A-10 [000] d..2 100.{us:06}: {wake}: {woken}").expect("a String");
        }
        text += &switch(
            from_us + 2_000,
            "A-10",
            "prev_comm=A prev_pid=10 prev_prio=120 prev_state=R",
            "next_comm=B next_pid=11 next_prio=120",
        );
        text += &switch(
            from_us + 2_500,
            "B-11",
            "prev_comm=B prev_pid=11 prev_prio=120 prev_state=S",
            "next_comm=A next_pid=10 next_prio=120",
        );
    }
    text
}

#[test]
fn wake_ups_are_counted_by_either_event() {
    let files = Files::new();
    for wake in ["sched_waking", "sched_wakeup"] {
        let file = files.write("rounds.txt", rounds(Some(wake)));
        let all = ["--per", "task", "--all", "--interval", "1s", "--format", "csv", "--quiet"];
        let csv = success(&[&["analyze", &file], &all[..]].concat());
        assert_eq!(number(&csv, "machine,,wakeups.rate"), 400.0, "{wake}");
        assert_eq!(number(&csv, "machine,,wakeups"), 50.0, "{wake}");
        assert_eq!(number(&csv, "machine,,wakeup_latency.count"), 50.0, "{wake}");
        assert_eq!(number(&csv, "task,B,wakeups"), 50.0, "{wake}");
        assert_eq!(number(&csv, "task,A,wakeups"), 0.0, "{wake}");
        let is_interval =
            |line: &str| line.contains(",interval,") && line.ends_with(",wakeups,50,");
        assert!(csv.lines().any(is_interval), "no count of the interval:\n{csv}");
    }
}

#[test]
fn wake_ups_that_were_not_recorded_are_not_measured() {
    let files = Files::new();
    let file = files.write("rounds.txt", rounds(None));
    let csv = success(&["analyze", &file, "--per", "task", "--format", "csv", "--quiet"]);
    for observation in ["machine,,wakeups.rate", "task,A,wakeups", "task,B,wakeups"] {
        assert_eq!(value(&csv, observation), "", "{observation} in:\n{csv}");
    }
    let text = success(&["analyze", &file, "--per", "task", "--quiet"]);
    let rate = text.lines().find(|line| line.contains("wakeups.rate")).expect("a row");
    assert!(rate.contains("not measured"), "{rate}");
}
