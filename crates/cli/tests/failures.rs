//! Schedulers that are broken on purpose: the first line of the result says what ended the run, in which callback and
//! at which line of the source, and the exit code is the documented one.

use std::fs::File;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::{Files, fairground, interruptible};
use nix::sys::signal::Signal;

/// The path of a scheduler of these tests.
fn scheduler(name: &str) -> String {
    format!("{}/tests/schedulers/{name}.bpf.c", env!("CARGO_MANIFEST_DIR"))
}

/// The line of its source that contains a text, from 1.
fn line_of(name: &str, text: &str) -> usize {
    let source = std::fs::read_to_string(scheduler(name)).expect("the source");
    let line = source.lines().position(|line| line.contains(text));
    line.unwrap_or_else(|| panic!("{name}: no {text:?}")) + 1
}

/// Runs three hogs on one CPU under a scheduler; the exit code and what is on stdout.
fn ended(name: &str, duration: &str, more: &[&str]) -> (Option<i32>, String) {
    let path = scheduler(name);
    let run = ["run", "hogs:3", "--cpus", "1", "--duration", duration, "--sched", &path, "--quiet"];
    let arguments: Vec<&str> = run.into_iter().chain(more.iter().copied()).collect();
    let output = fairground(&arguments);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    (output.status.code(), text)
}

/// The first line holds all of this, and the line of the source that contains `at`.
fn is_named(name: &str, duration: &str, code: i32, parts: &[&str], at: &str) {
    let (ended_with, text) = ended(name, duration, &[]);
    let first = text.lines().next().unwrap_or_default();
    for part in parts {
        assert!(first.contains(part), "{name}: no {part:?} in: {first}");
    }
    let place = format!("{name}.bpf.c:{}", line_of(name, at));
    assert!(first.contains(&place), "{name}: no {place} in: {first}");
    assert_eq!(ended_with, Some(code), "{name}: {first}");
    assert!(text.contains("last callbacks"), "{name}: {text}");
}

#[test]
fn one_that_starves_a_task() {
    let parts = ["SCX_EXIT_ERROR_STALL", "hog/", "failed to run for", "ops.enqueue()"];
    is_named("starves", "60s", 42, &parts, "starves_enqueue,");
}

/// Shorter than the time between two looks of the watchdog after which it would see it.
#[test]
fn one_that_forgets_a_task() {
    let parts = ["SCX_EXIT_ERROR_STALL", "hog/0[", "failed to run for 40.000s", "ops.enqueue()"];
    is_named("forgets", "40s", 42, &parts, "forgets_enqueue,");
}

#[test]
fn a_task_that_never_ran_heads_the_result() {
    let (code, text) = ended("forgets", "5s", &[]);
    let first = text.lines().next().unwrap_or_default();
    assert!(first.contains("1 task never ran: hog/0 (waiting for 5.000 s"), "{first}");
    assert!(first.contains("taken by ops.enqueue() and in no dispatch queue"), "{first}");
    assert_eq!(code, Some(0));
}

#[test]
fn one_that_dispatches_twice() {
    let parts =
        ["already direct-dispatched", "in ops.enqueue() for hog/0[", ", at double_dispatch"];
    is_named("double_dispatch", "1s", 43, &parts, "scx_bpf_dsq_insert(p,");
}

#[test]
fn one_that_reads_through_null() {
    let parts = ["load through a NULL pointer", "ops.enqueue()", "for hog/0["];
    is_named("null_pointer", "1s", 43, &parts, "*slice_ns, enq_flags");
}

#[test]
fn one_whose_queue_does_not_exist() {
    let parts =
        ["non-existent DSQ 0x7 for hog/0[", "in ops.enqueue() for hog/0[", ", at wrong_queue"];
    is_named("wrong_queue", "1s", 43, &parts, "scx_bpf_dsq_insert(p,");
}

#[test]
fn one_with_an_endless_loop() {
    let (code, text) = ended("endless_loop", "1s", &[]);
    let first = text.lines().next().unwrap_or_default();
    for part in ["an endless loop?", "ops.enqueue()", "endless_loop.bpf.c:"] {
        assert!(first.contains(part), "{first}");
    }
    assert_eq!(code, Some(43));
}

#[test]
fn one_whose_timer_expires_without_end() {
    let parts = ["timers expire without end", "in a timer's callback"];
    is_named("timer_rearms", "1s", 43, &parts, "bpf_timer_start(&alarm->timer, 0, 0)");
}

#[test]
fn one_that_leaves() {
    let parts = ["the scheduler left after 4.", "code 0x7", "the work is done", "in ops.tick()"];
    is_named("leaves", "1s", 41, &parts, "scx_bpf_exit_bstr(7");
}

#[test]
fn programs_are_told_as_well() {
    let (_, json) = ended("leaves", "1s", &["--format", "json"]);
    let document: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(document["verdicts"][0]["level"], "failure");
    let (_, csv) = ended("leaves", "1s", &["--format", "csv"]);
    let second = csv.lines().nth(1).unwrap_or_default();
    assert!(second.contains(",run,,verdict,") && second.contains("the scheduler left"), "{second}");
}

#[test]
fn a_comparison_names_the_run() {
    let both = format!("fifo,{}", scheduler("wrong_queue"));
    let arguments = ["compare", "hogs:2", "--cpus", "1", "--duration", "1s", "--sched", &both];
    let output = fairground(&arguments);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let first = text.lines().next().unwrap_or_default();
    assert!(first.contains("wrong_queue.bpf.c: the scheduler was ejected"), "{first}");
    assert_eq!(output.status.code(), Some(43));
}

/// Tables and parameters fit into 80 columns where there is no terminal; `--wide` prints lines as long as they are.
#[test]
fn tables_fit() {
    let widest = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fairground"));
        let output = command.args(arguments).env_remove("COLUMNS").output().expect("it starts");
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
    };
    let run = ["run", "hogs:2 + sleepers:2", "--cpus", "2", "--duration", "200ms", "--quiet"];
    let compare =
        ["compare", "hogs:2", "--sched", "cfs,fifo,rfs", "--duration", "200ms", "--quiet"];
    for arguments in [&run[..], &compare[..], &["reproduce"]] {
        assert!(widest(arguments) <= 80, "{arguments:?}: {}", widest(arguments));
    }
    let wide: Vec<&str> = run.into_iter().chain(["--wide"]).collect();
    assert!(widest(&wide) > 80);
}

#[test]
fn parameters_are_those_that_are_not_usual() {
    let text = |more: &[&str]| {
        let run = ["run", "hogs:2", "--cpus", "1", "--duration", "100ms", "--cost", "wakeup_ns=7"];
        let arguments: Vec<&str> = run.iter().chain(more).copied().collect();
        String::from_utf8(fairground(&arguments).stdout).expect("UTF-8")
    };
    let short = text(&[]);
    assert!(short.contains("wakeup_ns 7 ns") && !short.contains("tick_ns"), "{short}");
    let long = text(&["--verbose"]);
    assert!(long.contains("wakeup_ns 7 ns") && long.contains("tick_ns"), "{long}");
}

/// A timer that expires each ns: 50 ms of simulated time, after which a run looks for Ctrl-C at the latest, take
/// seconds.
#[test]
fn ctrl_c_ends_a_step_of_many_events() {
    let files = Files::new();
    let out = File::create(files.path("out")).expect("a file");
    let mut command = interruptible();
    command.args(["run", "hogs:1", "--cpus", "1", "--duration", "1000s", "--format", "json"]);
    command.args(["--quiet", "--sched"]).arg(scheduler("timer_races"));
    let mut child = command.stdout(Stdio::from(out)).spawn().expect("it starts");
    std::thread::sleep(Duration::from_secs(2));
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).expect("a pid"));
    nix::sys::signal::kill(pid, Signal::SIGINT).expect("a signal");
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(130));
    let text = std::fs::read_to_string(files.path("out")).expect("text");
    let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let verdict = document["verdicts"][0]["text"].as_str().unwrap_or_default();
    assert!(verdict.starts_with("partial: it was interrupted after 0.0"), "{verdict}");
}
