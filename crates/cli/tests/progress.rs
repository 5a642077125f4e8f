//! What shows on a terminal how far a command is, and nowhere else.

use std::fs;
use std::process::Command;

use fairground_testing::unavailable;

use crate::support::terminal::Terminal;
use crate::support::{Files, fairground, success};

/// A recording that is not read in an instant.
fn large_recording(files: &Files) -> String {
    let path = files.path("large.txt").display().to_string();
    let workload = "sleepers:16,run=100us,sleep=400us";
    let machine = ["--cpus", "4", "--duration", "3s", "--quiet", "--trace", &path];
    success(&[&["run", workload], &machine[..]].concat());
    let bytes = fs::metadata(&path).expect("a recording").len();
    assert!(bytes > 16 << 20, "{bytes} bytes are no large recording");
    path
}

#[test]
fn reading_a_large_recording_shows_how_far_it_is_and_what_is_left() {
    let files = Files::new();
    let path = large_recording(&files);
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairground"));
    command.args(["convert", &path]).arg(files.path("again.txt"));
    let mut terminal = Terminal::start(command, 24, 200);
    terminal.until("the way through the file", |screen| {
        screen.lines().any(|line| {
            let line = line.trim();
            line.starts_with("reading ") && line.contains(" %  ") && line.ends_with("s left")
        })
    });
    let (status, left) = terminal.ends();
    assert!(status.success(), "{left}");
    assert!(!left.contains("reading"), "it stays on the terminal: {left}");
    let elsewhere = fairground(&["convert", &path, "-"]);
    assert!(elsewhere.stderr.is_empty(), "{}", String::from_utf8_lossy(&elsewhere.stderr));
}

#[test]
fn a_recording_of_a_known_length_shows_how_far_it_is() {
    let files = Files::new();
    let path = files.path("machine.dat");
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairground"));
    command.args(["record", "--duration", "3s", "-o"]).arg(&path);
    let mut terminal = Terminal::start(command, 24, 200);
    let screen = terminal.until("the time, or why not", |screen| {
        screen.contains("1 s of 3 s") || screen.contains("help: ")
    });
    if screen.contains("help: ") {
        assert!(screen.contains("root"), "{screen}");
        return unavailable("recording", screen.trim());
    }
    let (status, left) = terminal.ends();
    assert!(status.success(), "{left}");
    assert!(left.contains("machine.dat: ") && !left.contains("of 3 s"), "{left}");
    assert!(path.is_file());
}
