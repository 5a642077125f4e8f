//! `record` and `convert`, as a user calls them. Recording needs root and tracefs; where they are missing, the
//! message is checked instead.

use std::process::Command;

use fairground_testing::unavailable;

use crate::support::{Files, refusal, success};

const BINARY: &str = env!("CARGO_BIN_EXE_fairground");

fn says(text: &str, parts: &[&str]) {
    parts.iter().for_each(|part| assert!(text.contains(part), "no {part:?} in:\n{text}"));
}

/// Records a small load that ends with this code, as the program then does; `None`, and why, where this machine cannot.
fn record(output: &str, command: &[&str], code: i32) -> Option<String> {
    let all = [&["record", "-o", output, "--"], command].concat();
    let output = Command::new(BINARY).args(all).output().expect("the program");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if !said.contains("help: ") {
        assert_eq!(output.status.code(), Some(code), "{said}");
        return Some(said);
    }
    says(&said, &["help: ", "root"]);
    unavailable("recording", &said);
    None
}

const LOAD: [&str; 3] =
    ["sh", "-c", "for i in 1 2 3 4; do sleep 0.01; echo $i | cat; done; exit 7"];

#[test]
fn a_recording_is_analysed_converted_and_replayed() {
    let files = Files::new();
    let binary = files.path("load.dat").display().to_string();
    let Some(said) = record(&binary, &LOAD, 7) else { return };
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
fn the_exit_code_is_that_of_the_command() {
    let files = Files::new();
    let output = files.path("load.dat").display().to_string();
    record(&output, &["sh", "-c", "kill -TERM $$"], 143);
}

#[test]
fn text_is_written_too() {
    let files = Files::new();
    let text = files.path("load.ftrace").display().to_string();
    let Some(said) = record(&text, &LOAD, 7) else { return };
    says(&said, &["load.ftrace: "]);
    says(
        &std::fs::read_to_string(&text).expect("a text"),
        &["sched_switch: prev_comm=", "comm=sleep"],
    );
}

/// Runs the program in a folder on a disk of so many MiB, which is also the temporary one, and copies what is there
/// then; `None`, and why, where this machine cannot. The program records an endless load until the disk is full.
/// Returns what it said.
fn record_until_full(disk_mib: u32, words: &[&str], into: &Files) -> Option<String> {
    let script = "mount -t tmpfs -o size=\"$1\"m none \"$2\" || exit 77; cd \"$2\"; export TMPDIR=\"$2\"; \
                  program=$3; copies=$4; shift 4; echo earlier > old.dat; \"$program\" \"$@\"; code=$?; \
                  cp ./* \"$copies\"; exit $code";
    let place = Files::new();
    let endless = "while :; do seq 1000 | cat | cat > /dev/null; done";
    let ended = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, "sh", &disk_mib.to_string()])
        .args([place.path(""), BINARY.into(), into.path("")])
        .args(words)
        .args(["--buffer", "64", "--", "sh", "-c", endless])
        .output()
        .expect("unshare");
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    if ended.status.code() != Some(2) || said.contains("requires root") {
        assert_ne!(ended.status.code(), Some(0), "the disk is not full: {said}");
        unavailable("recording", &said);
        return None;
    }
    Some(said)
}

/// The files in a folder, sorted, and the events of a recording there.
fn kept(files: &Files, recording: &str) -> (Vec<String>, u64) {
    let entries = std::fs::read_dir(files.path("")).expect("a folder").flatten();
    let mut names: Vec<String> = entries.map(|e| e.file_name().display().to_string()).collect();
    names.sort();
    let path = files.path(recording).display().to_string();
    let table = success(&["analyze", &path, "--format", "json"]);
    let document: serde_json::Value = serde_json::from_str(&table).expect("JSON");
    let sections = document["sections"].as_array().expect("sections");
    let entries = sections.iter().flat_map(|section| section["entries"].as_array());
    let events = entries.flatten().find(|entry| entry["name"] == "events");
    (names, events.and_then(|entry| entry["value"].as_u64()).expect("events"))
}

#[test]
fn a_full_disk_ends_a_recording_and_keeps_it() {
    const FULL: [&str; 3] = ["could not be continued: ", "No space left", "is kept in "];
    let files = Files::new();
    let Some(said) = record_until_full(6, &["record", "-o", "load.dat"], &files) else { return };
    says(&said, &FULL);
    says(&said, &["is kept in load.dat", "help: make room"]);
    let (names, events) = kept(&files, "load.dat");
    assert_eq!(names, ["load.dat", "old.dat"], "{said}");
    // 4 MiB of pages, of which an event of scheduling takes less than 100 bytes.
    assert!(events > 20_000, "{events}: {said}");
    // One that is there stays.
    let files = Files::new();
    let Some(said) = record_until_full(6, &["record", "-o", "old.dat", "--force"], &files) else {
        return;
    };
    says(&said, &FULL);
    let (names, events) = kept(&files, "old-partial.dat");
    assert_eq!(names, ["old-partial.dat", "old.dat"], "{said}");
    assert!(events > 20_000, "{events}: {said}");
    let old = std::fs::read_to_string(files.path("old.dat")).expect("it is there");
    assert_eq!(old, "earlier\n");
    // Text is longer than trace-cmd's form: that is what is kept.
    let files = Files::new();
    let Some(said) = record_until_full(6, &["record", "-o", "load.txt"], &files) else { return };
    says(&said, &FULL);
    says(&said, &["load.txt: No space left", "is kept in load-recording.dat"]);
    let (names, events) = kept(&files, "load-recording.dat");
    assert_eq!(names, ["load-recording.dat", "old.dat"], "{said}");
    assert!(events > 20_000, "{events}: {said}");
    // Not even the head of a recording.
    let files = Files::new();
    let Some(said) = record_until_full(1, &["record", "-o", "load.dat"], &files) else { return };
    says(&said, &["a recording needs ", " KiB of disk space", "No space left", "help: make room"]);
}

#[test]
fn a_full_disk_ends_the_recording_of_contention_and_keeps_it() {
    let files = Files::new();
    // The kernel's symbols, which stacks need, take half of it.
    let Some(said) = record_until_full(12, &["contention"], &files) else { return };
    says(&said, &["could not be continued: ", "No space left", "/fairground-recording.dat"]);
    let (names, events) = kept(&files, "fairground-recording.dat");
    assert_eq!(names, ["fairground-recording.dat", "old.dat"], "{said}");
    assert!(events > 1_000, "{events}: {said}");
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
    says(&refusal(&["convert", "x.dat", "y.csv"]), &["y.csv", ".dat", ".txt"]);
}
