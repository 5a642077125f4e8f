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

/// Nothing can be found in time of which nothing is known.
#[test]
fn a_recording_with_a_gap_says_how_much_is_not_known() {
    let files = Files::new();
    let text = "\
 x-3 [000] d..2 1.000000: sched_switch: x:3 [120] S ==> y:4 [120]
CPU:0 [LOST 9000 EVENTS]
 x-3 [000] d..2 3.000000: sched_switch: x:3 [120] S ==> y:4 [120]
 y-4 [000] d..2 3.500000: sched_switch: y:4 [120] S ==> x:3 [120]
";
    let file = files.write("gap.txt", text);
    let said = success(&["diagnose", &file, "--wide"]);
    says(
        &said,
        &[
            "nothing is above a threshold; what ran is not known for 80.00 % of the CPU time.",
            "gap.txt: what ran is not known for 80.00 % of the CPU time",
        ],
    );
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

/// Runs two hogs on one CPU under a scheduler, beside other tasks, and writes the recording.
fn hogs(files: &Files, name: &str, more: &str, sched: &[&str]) -> String {
    let trace = files.path(name).display().to_string();
    let workload = format!("hogs:2{more}");
    let run = ["run", &workload, "--cpus", "1", "--duration", "5s", "--quiet", "--trace", &trace];
    success(&[&run[..], sched].concat());
    trace
}

/// First come, first served, with slices of a second.
const STARVING: [&str; 4] = ["--sched", "fifo", "--set", "slice_ns=1s"];

#[test]
fn of_two_recordings_it_says_what_is_new_gone_or_the_same() {
    let files = Files::new();
    let fair = hogs(&files, "fair.txt", "", &["--sched", "cfs"]);
    let starving = hogs(&files, "starving.txt", "", &STARVING);
    let new = success(&["diagnose", &fair, &starving]);
    says(
        &new,
        &[
            "new: a waiter starves: hog/1, hog/0",
            "new: a hog that never yields",
            "scheduler before cfs, scheduler after fifo",
        ],
    );
    let gone = success(&["diagnose", &starving, &fair]);
    says(&gone, &["nothing new: 2 findings are gone", "gone starved", "gone hog"]);
    let same = success(&["diagnose", &starving, &starving]);
    says(&same, &["nothing new: 0 findings are gone", "same starved", "same hog"]);
    let none = success(&["diagnose", &fair, &fair]);
    for word in ["starved", "hog"] {
        assert!(!none.contains(word), "{none}");
    }
}

#[test]
fn a_tree_has_the_findings_about_its_tasks_alone() {
    let files = Files::new();
    let trace = hogs(&files, "starving.txt", " + sleepers:1", &STARVING);
    let of = |options: &[&str]| success(&[&["diagnose", &trace][..], options].concat());
    let whole = of(&[]);
    says(&whole, &["a hog that never yields: hog/"]);
    says(&of(&["--tree", "hog"]), &["a hog that never yields: hog/", "tasks asked for 2"]);
    let sleeper = of(&["--tree", "sleeper"]);
    says(&sleeper, &["tasks asked for 1", "1 finding about other tasks only: --all shows them"]);
    assert!(!sleeper.contains("a hog that never yields"), "{sleeper}");
    says(&of(&["--tree", "sleeper", "--all"]), &["a hog that never yields: hog/"]);
    let changed = success(&["diagnose", &trace, &trace, "--tree", "sleeper"]);
    assert!(!changed.contains("a hog that never yields"), "{changed}");
    says(&refusal(&["diagnose", &trace, "--tree", "cc"]), &["no task has the name or pid `cc`"]);
    // The recorded command is the tree where none is named.
    let text = std::fs::read_to_string(&trace).expect("text");
    let pid = text.lines().find_map(|line| line.split("sleeper-").nth(1)?.split(' ').next());
    let mark = format!("# fairground: origin command_pid {}\n", pid.expect("it ran").trim());
    let at = text.find("# fairground: origin ").expect("our own text");
    let marked = files.write("marked.txt", [&text[..at], &mark, &text[at..]].concat());
    let command = success(&["diagnose", &marked]);
    says(&command, &["tasks asked for 1"]);
    assert!(!command.contains("a hog that never yields"), "{command}");
}
