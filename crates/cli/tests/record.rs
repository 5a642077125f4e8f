//! `record` and `convert`, as a user calls them. Recording needs root and tracefs; where they are missing, the
//! message is checked instead.

use std::process::Command;

use crate::support::{Files, refusal, success};

const BINARY: &str = env!("CARGO_BIN_EXE_fairground");

fn says(text: &str, parts: &[&str]) {
    parts.iter().for_each(|part| assert!(text.contains(part), "no {part:?} in:\n{text}"));
}

/// Records a small load; `None`, and why, where this machine cannot.
fn record(output: &str, command: &[&str]) -> Option<String> {
    let all = [&["record", "-o", output, "--"], command].concat();
    let output = Command::new(BINARY).args(all).output().expect("the program");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() {
        return Some(said);
    }
    says(&said, &["help: ", "root"]);
    println!("skipped: {said}");
    None
}

const LOAD: [&str; 3] =
    ["sh", "-c", "for i in 1 2 3 4; do sleep 0.01; echo $i | cat; done; exit 7"];

#[test]
fn a_recording_is_analysed_converted_and_replayed() {
    let files = Files::new();
    let binary = files.path("load.dat").display().to_string();
    let Some(said) = record(&binary, &LOAD) else { return };
    says(&said, &["load.dat: ", " events, none lost", "the command ended with exit status: 7"]);
    let from_binary = success(&["analyze", &binary, "--per", "task", "--format", "csv"]);
    says(&from_binary, &["sleep", "cat"]);
    let text = files.path("load.txt").display().to_string();
    success(&["convert", &binary, &text]);
    let from_text = success(&["analyze", &text, "--per", "task", "--format", "csv"]);
    assert_eq!(from_binary.replace("load.dat", "load.txt"), from_text);
    says(&success(&["replay", &binary, "--sched", "fifo"]), &["recorded", "fifo"]);
}

#[test]
fn text_is_written_too() {
    let files = Files::new();
    let text = files.path("load.ftrace").display().to_string();
    let Some(said) = record(&text, &LOAD) else { return };
    says(&said, &["load.ftrace: "]);
    says(
        &std::fs::read_to_string(&text).expect("a text"),
        &["sched_switch: prev_comm=", "comm=sleep"],
    );
}

/// A run in the form for Perfetto holds the names of the scheduler's own numbers, and drawing them changes nothing of
/// the run.
#[test]
fn other_programs_formats() {
    let files = Files::new();
    let file = |name: &str| files.path(name).display().to_string();
    let run = |trace: &str| {
        let load = ["run", "hogs:3", "--sched", "eevdf", "--cpus", "2", "--duration", "100ms"];
        success(&[&load[..], &["--trace", trace]].concat())
    };
    let (text, perfetto) = (file("run.txt"), file("run.perfetto-trace"));
    let (chrome, converted) = (file("run.json"), file("converted.pftrace"));
    assert_eq!(run(&text), run(&perfetto));
    run(&chrome);
    success(&["convert", &text, &converted]);
    let holds = |path: &str, wanted: &str| {
        let bytes = std::fs::read(path).expect("it was written");
        bytes.windows(wanted.len()).any(|window| window == wanted.as_bytes())
    };
    for wanted in ["hog/1", "swapper/1", "CPU 0 queue", "lag", "dsq_vtime", "vruntime", "slice"] {
        assert!(holds(&perfetto, wanted), "{wanted}");
    }
    assert!(holds(&converted, "CPU 0 queue") && !holds(&converted, "dsq_vtime"));
    assert!(holds(&chrome, "\"traceEvents\"") && holds(&chrome, "deadline"));
    says(&refusal(&["convert", &text, &file("run.svg")]), &["run.svg", ".perfetto-trace"]);
}

#[test]
fn what_cannot_be_done_says_so() {
    let said = refusal(&["record", "-o", "load.csv", "--duration", "1s"]);
    says(&said, &["load.csv", "help: ", ".dat", ".txt"]);
    says(&refusal(&["record", "--duration", "5"]), &["--duration", "unit"]);
    says(&refusal(&["convert", "x.dat", "y.dat"]), &["y.dat", ".txt"]);
}
