//! `analyze` of recordings as text.

use std::fmt::Write;

use serde_json::Value;

use crate::support::{Files, refusal, success};

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
    let all = ["analyze", &file, "--per", "task", "--metrics", "wakeups*", "--format", "csv"];
    let csv = success(&[&all[..], &["--quiet"]].concat());
    for observation in ["machine,,wakeups.rate", "task,A,wakeups", "task,B,wakeups"] {
        assert_eq!(value(&csv, observation), "", "{observation} in:\n{csv}");
    }
    let text = success(&["analyze", &file, "--per", "task", "--quiet"]);
    let rate = text.lines().find(|line| line.contains("wakeups.rate")).expect("a row");
    assert!(rate.contains("not measured"), "{rate}");
}

/// Two threads of one name: the first one runs for 30 ms, the second one for 10 ms.
const BINDERS: &str = "\
          <idle>-0     [000] d..2 1.000000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=Binder next_pid=101 next_prio=120
          Binder-101   [000] d..2 1.030000: sched_switch: prev_comm=Binder prev_pid=101 prev_prio=120 prev_state=R ==> next_comm=Binder next_pid=102 next_prio=120
          Binder-102   [000] d..2 1.040000: sched_switch: prev_comm=Binder prev_pid=102 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
";

#[test]
fn tasks_of_one_name_are_told_apart_by_their_pids() {
    let files = Files::new();
    let file = files.write("pids.txt", BINDERS);
    let per_task = ["analyze", &file, "--per", "task", "--all", "--quiet"];
    let text = success(&per_task);
    let json = success(&[&per_task[..], &["--format", "json"]].concat());
    let csv = success(&[&per_task[..], &["--format", "csv"]].concat());
    let document: Value = serde_json::from_str(&json).expect("JSON");
    let tables = document["tables"].as_array().expect("tables");
    for (id, column, name) in [("tasks", 2, ""), ("task_metrics", 2, "cpu_share")] {
        let table = tables.iter().find(|table| table["id"] == id).expect("a table of tasks");
        let rows = table["rows"].as_array().expect("rows");
        let is_wanted = |row: &&Value| name.is_empty() || row[1] == name;
        let shares: Vec<(&str, f64)> = rows
            .iter()
            .filter(is_wanted)
            .map(|row| {
                let share = &row[column];
                let share = share.as_f64().or_else(|| share["value"].as_f64());
                (row[0].as_str().expect("a name"), share.expect("a share"))
            })
            .collect();
        assert_eq!(shares, [("Binder[101]", 75.0), ("Binder[102]", 25.0)], "{id}");
    }
    for (label, share) in [("Binder[101]", 75.0), ("Binder[102]", 25.0)] {
        assert!(text.lines().any(|line| line.trim_start().starts_with(label)), "{text}");
        assert_eq!(number(&csv, &format!("task,{label},cpu_share")), share);
    }
}

#[test]
fn a_name_that_one_task_has_stands_alone() {
    let files = Files::new();
    let file = files.write("rounds.txt", rounds(Some("sched_wakeup")));
    let csv = success(&["analyze", &file, "--per", "task", "--format", "csv", "--quiet"]);
    assert!(csv.contains(",task,A,") && !csv.contains('['), "{csv}");
}

/// The command that was recorded has a row with all that it started, and so has what `--tree` names.
#[test]
fn a_recorded_command_has_a_row() {
    let files = Files::new();
    let rounds = rounds(Some("sched_wakeup"));
    let csv = |file: &str, options: &[&str]| {
        success(&[&["analyze", file, "--format", "csv", "--quiet"][..], options].concat())
    };
    let plain = files.write("plain.txt", &rounds);
    let shares = csv(&plain, &[]);
    assert!(!shares.contains(",tree,"), "{shares}");
    let share = |group: &str| value(&shares, &format!("group,{group},cpu_share")).to_owned();
    assert_eq!(value(&csv(&plain, &["--tree", "B"]), "tree,B,cpu_share"), share("B"));
    assert!(
        refusal(&["analyze", &plain, "--tree", "C"]).contains("no task has the name or pid `C`")
    );
    let head = "# tracer: nop\n# fairground: origin command_pid 10\n";
    let recorded = files.write("recorded.txt", format!("{head}{rounds}"));
    assert_eq!(value(&csv(&recorded, &[]), "tree,command,cpu_share"), share("A"));
    let fork = "  A-10 [000] d..2 100.000000: sched_process_fork: comm=A pid=10 child_comm=B child_pid=11\n";
    let forked = csv(&files.write("forked.txt", format!("{head}{fork}{rounds}")), &[]);
    assert_eq!(value(&forked, "tree,command,tasks"), "2");
}

/// A report of the recordings of a host and its guest: each apart, by its name.
#[test]
fn of_two_machines_each_is_read_apart() {
    let files = Files::new();
    let line = |file: &str, task: &str, fields: &str| {
        format!("{file:>10} {task:>16} [000] 100.00{fields} [120]\n")
    };
    let report = [
        "  host.dat: cpus=1\n guest.dat: cpus=1\n".to_owned(),
        line("host.dat:", "<idle>-0", "0000: sched_switch: swapper/0:0 [120] R ==> qemu:500"),
        line("guest.dat:", "<idle>-0", "0010: sched_switch: swapper/0:0 [120] R ==> app:500"),
        line("guest.dat:", "app-500", "4000: sched_switch: app:500 [120] S ==> swapper/0:0"),
        line("host.dat:", "qemu-500", "9000: sched_switch: qemu:500 [120] S ==> swapper/0:0"),
    ];
    let report = files.write("report.txt", report.concat());
    let of = |options: &[&str]| success(&[&["analyze", &report][..], options].concat());
    let first = of(&[]);
    assert!(first.contains(" qemu ") && !first.contains(" app "), "{first}");
    assert!(first.contains("--machine guest.dat"), "{first}");
    let guest = of(&["--machine", "guest.dat"]);
    assert!(guest.contains(" app ") && !guest.contains(" qemu "), "{guest}");
    let said = refusal(&["analyze", &report, "--machine", "guest"]);
    assert!(said.contains("host.dat, guest.dat"), "{said}");
    for refused in [
        &["contention", "hogs:2", "--machine", "host.dat"][..],
        &["contention", "--machine", "host.dat"],
        &["compare", "hogs:2", "--machine", "host.dat"],
    ] {
        assert!(refusal(refused).contains("--machine"), "{refused:?}");
    }
}
