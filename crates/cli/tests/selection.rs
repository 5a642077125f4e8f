//! `--metrics` and `--tasks` choose the rows and columns of every table, in every form.

use serde_json::Value;

use crate::support::{Files, fairground, refusal, success};

const LOAD: [&str; 6] = ["hogs:2 + sleepers:1", "--cpus", "1", "--duration", "1s", "--quiet"];

fn run(command: &str, more: &[&str]) -> String {
    success(&[&[command], &LOAD[..], more].concat())
}

/// The rows of each table, by its id.
fn tables(json: &str) -> Vec<(String, Vec<Vec<String>>)> {
    let document: Value = serde_json::from_str(json).expect("JSON");
    let tables = document["tables"].as_array().expect("tables").iter();
    let texts = |values: &Value, of: &dyn Fn(&Value) -> String| -> Vec<String> {
        values.as_array().expect("an array").iter().map(of).collect()
    };
    let cell = |cell: &Value| cell.as_str().map_or_else(|| cell.to_string(), str::to_owned);
    tables
        .map(|table| {
            let name = |column: &Value| column["name"].as_str().expect("a name").to_owned();
            let heading = texts(&table["columns"], &name);
            let rows = table["rows"].as_array().expect("rows").iter();
            let rows = rows.map(|row| texts(row, &cell));
            (
                table["id"].as_str().expect("an id").to_owned(),
                [heading].into_iter().chain(rows).collect(),
            )
        })
        .collect()
}

#[test]
fn a_comparison_has_the_chosen_rows() {
    let chosen = ["--sched", "o1,cfs", "--metrics", "cpu_share,wait_time.max", "--tasks", "hog"];
    let json = run("compare", &[&chosen[..], &["--format", "json"]].concat());
    let [(id, rows)] = &tables(&json)[..] else { panic!("one table: {json}") };
    assert_eq!(id, "comparison");
    let names: Vec<_> = rows.iter().map(|row| (row[0].as_str(), row[1].as_str())).collect();
    assert_eq!(names, [("of", "metric"), ("hog", "cpu_share"), ("hog", "wait_time.max")]);
    let csv = run("compare", &[&chosen[..], &["--format", "csv"]].concat());
    assert_eq!(csv.lines().count(), 1 + 2 * 2, "{csv}");
    let text = run("compare", &chosen);
    assert!(
        text.contains("hog") && !text.contains(" sleeper ") && !text.contains("machine  "),
        "{text}"
    );
}

#[test]
fn columns_of_tasks_are_the_chosen_metrics() {
    let chosen = ["--sched", "cfs", "--per", "task", "--metrics", "wakeups,slice.p50"];
    let json = run("run", &[&chosen[..], &["--format", "json"]].concat());
    let all = tables(&json);
    let ids: Vec<&str> = all.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["machine", "tasks"], "the machine has wake-ups and slices, too");
    assert_eq!(all[1].1[0], ["task", "wakeups", "slice.p50"]);
    assert_eq!(all[1].1.len(), 1 + 3);
    // By the name of the group, of the task, or by its label.
    for (pattern, count) in [("s*", 1), ("hog", 2), ("hog/1", 1), ("*/1,sleeper", 2)] {
        let chosen = [&chosen[..], &["--tasks", pattern, "--format", "json"]].concat();
        let tasks = run("run", &chosen);
        let [(_, rows)] = &tables(&tasks)[..] else { panic!("one table: {tasks}") };
        assert_eq!(rows.len(), 1 + count, "{pattern}: {tasks}");
    }
    let machine = run("run", &[&chosen[..], &["--tasks", "machine", "--format", "json"]].concat());
    assert_eq!(tables(&machine)[0].0, "machine");
}

#[test]
fn intervals_keep_the_chosen_columns() {
    let chosen = ["--sched", "cfs", "--interval", "100ms", "--metrics", "slice.mean"];
    let json = run("run", &[&chosen[..], &["--format", "json"]].concat());
    let intervals = tables(&json).into_iter().find(|(id, _)| id == "intervals").expect("intervals");
    assert_eq!(intervals.1[0], ["from", "slice.mean", "changes"]);
}

#[test]
fn recordings_are_narrowed_as_well() {
    let files = Files::new();
    let recording = files.path("run.txt").display().to_string();
    run("run", &["--sched", "cfs", "--trace", &recording]);
    let chosen = ["--metrics", "switches", "--format", "csv"];
    for command in
        [&["analyze", &recording][..], &["replay", &recording, "--sched", "fifo", "--quiet"]]
    {
        let csv = success(&[command, &chosen].concat());
        let metrics = csv.lines().skip(1).map(|line| line.split(',').nth(3).expect("a metric"));
        assert!(metrics.clone().count() > 0, "{csv}");
        assert!(metrics.clone().all(|metric| metric.starts_with("switches")), "{csv}");
    }
}

#[test]
fn names_that_are_not_there_are_said() {
    let said = refusal(&[&["run"], &LOAD[..], &["--metrics", "cpu_shar"]].concat());
    assert!(said.contains("--metrics cpu_shar: ") && said.contains("`cpu_share`"), "{said}");
    let said = refusal(&[&["run"], &LOAD[..], &["--metrics", "switches", "--all"]].concat());
    assert!(said.contains("--all"), "{said}");
    let output = fairground(&[&["run"], &LOAD[..], &["--tasks", "hgo,sleeper"]].concat());
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let first = text.lines().next().expect("a line");
    assert!(first.contains("--tasks hgo: "), "{text}");
    assert!(text.contains("hog") && text.contains("sleeper"), "{text}");
}
