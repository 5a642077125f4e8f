//! `diagnose`, as a user calls it: a run is recorded, and the recording is diagnosed.

use crate::support::{Files, refusal, success};

/// Runs a workload, and diagnoses its trace.
fn diagnosis(run: &[&str], format: &[&str]) -> String {
    let files = Files::new();
    let trace = files.path("run.txt").display().to_string();
    success(&[&["run"], run, &["--quiet", "--trace", &trace]].concat());
    success(&[&["diagnose", &trace], format].concat()).replace(&trace, "run.txt")
}

/// Columns are as wide as their widest cell: blanks do not count.
fn says(text: &str, parts: &[&str]) {
    let plain = text.split_whitespace().collect::<Vec<_>>().join(" ");
    parts.iter().for_each(|part| assert!(plain.contains(part), "no {part:?} in:\n{text}"));
}

/// The number at the end of the first line of CSV that has this in it.
fn figure(csv: &str, part: &str) -> f64 {
    let line = csv.lines().find(|line| line.contains(part));
    let line = line.unwrap_or_else(|| panic!("no {part} in:\n{csv}"));
    // `run,of,task,metric,value,unit`
    line.rsplit(',').nth(1).and_then(|value| value.parse().ok()).expect("a number")
}

const SLICE: [&str; 10] = [
    "slice:16",
    "--sched",
    "cfs@2.6.27-sle11",
    "--cpus",
    "2",
    "--costs",
    "linux-2.6",
    "--duration",
    "4s",
    "--set",
];

const TEN_ON_EIGHT: [&str; 10] = [
    "hogs:10",
    "--topology",
    "8x1x1,nodes=1",
    "--hz",
    "1000",
    "--costs",
    "linux-2.6",
    "--duration",
    "4s",
    "--sched",
];

#[test]
fn slice_with_fair_sleepers_names_the_sleeper_its_effect_and_the_loss() {
    let on = [&SLICE[..], &["NEW_FAIR_SLEEPERS=on"]].concat();
    let text = diagnosis(&on, &[]);
    says(
        &text,
        &[
            "slices cut by a sleeper: `sleeper` wakes up and ends the slices of `worker`",
            "feature wake-up preemption",
            "the feature `NEW_FAIR_SLEEPERS` off",
            "fairground replay run.txt --sched cfs@2.6.27-sle11 --set NEW_FAIR_SLEEPERS=on,off",
        ],
    );
    let csv = diagnosis(&on, &["--format", "csv"]);
    let value = |what: &str| figure(&csv, &format!(",{what},value,"));
    assert!(csv.contains("\n,findings,1,rule,"), "{csv}");
    let cut_ns = value("\"length of a slice that was cut, mean\"");
    let whole_ns = value("\"length of a slice that no wake-up cut, mean\"");
    // The slices of `experiments/slice-2009.toml`, with and without the feature.
    assert!((0.9e6..1.1e6).contains(&cut_ns) && (11.3e6..12.8e6).contains(&whole_ns), "{csv}");
    let effect_percent = value("\"effect: a cut slice, of one without a cut\"");
    assert!((effect_percent - 100.0 * cut_ns / whole_ns).abs() < 0.01, "{csv}");
    assert_eq!(value("\"loss, of all CPU time\""), figure(&csv, ",findings,1,cpu_time,"));
    let text = diagnosis(&[&SLICE[..], &["NEW_FAIR_SLEEPERS=off"]].concat(), &[]);
    says(&text, &["Nothing found: 7 rules looked"]);
}

/// What the finding calls the loss is what the workers get more without the feature, within a fifth.
#[test]
fn the_loss_is_what_the_workers_get_without_the_feature() {
    let files = Files::new();
    let trace = files.path("run.txt").display().to_string();
    let workers = |value: &str| {
        let setting = format!("NEW_FAIR_SLEEPERS={value}");
        let run = [&SLICE[..], &[&setting]].concat();
        success(&[&["run"], &run[..], &["--quiet", "--trace", &trace]].concat());
        figure(&success(&["analyze", &trace, "--format", "csv"]), ",group,worker,cpu_share,")
    };
    let without = workers("off");
    let gain_percent = (without - workers("on")) / 2.0; // Two CPUs.
    let found = success(&["diagnose", &trace, "--format", "csv"]);
    let loss_percent = figure(&found, ",findings,1,cpu_time,");
    assert!((0.8..1.2).contains(&(loss_percent / gain_percent)), "{loss_percent} {gain_percent}");
}

/// The machine of `experiments/smp-fairness-2007.toml`.
#[test]
fn ten_on_eight_before_the_cure_names_the_frozen_imbalance() {
    let before = [&TEN_ON_EIGHT[..], &["cfs_2_6_23@2.6.23-rc1"]].concat();
    says(
        &diagnosis(&before, &[]),
        &[
            "frozen imbalance: hog/",
            "fair share of a CPU 80.00 %",
            "fairground analyze run.txt --per task",
        ],
    );
    let after = [&before[..], &["--set", "sched_load_scale_fuzz=512"]].concat();
    says(&diagnosis(&after, &[]), &["Nothing found: 7 rules looked"]);
}

#[test]
fn a_healthy_run_has_no_findings_in_any_format() {
    let run = [&TEN_ON_EIGHT[..], &["cfs@2.6.24"]].concat();
    says(
        &diagnosis(&run, &[]),
        &["Nothing found: 7 rules looked, and nothing is above a threshold."],
    );
    let json = diagnosis(&run, &["--format", "json"]);
    says(&json, &["Nothing found", "\"findings\"", "\"judged\""]);
}

#[test]
fn what_is_no_recording_is_refused() {
    let files = Files::new();
    let path = files.write("notes.txt", "not a recording\n");
    says(&refusal(&["diagnose", &path]), &["notes.txt", "no scheduling event"]);
    says(&refusal(&["diagnose", "nowhere.dat"]), &["nowhere.dat"]);
}
