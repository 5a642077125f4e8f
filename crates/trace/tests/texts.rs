//! Each input format in small, and what comes out of it, word for word.

use std::fmt::Write as _;

use fairground_trace::{Trace, read};

fn show(text: &str) -> String {
    match read("sample", text.as_bytes()) {
        Ok(trace) => describe(&trace),
        Err(e) => format!("error: {e}\n"),
    }
}

fn describe(trace: &Trace) -> String {
    let mut out = String::new();
    writeln!(out, "cpus {} window {}..{}", trace.cpus, trace.start_ns, trace.end_ns).unwrap();
    for (i, task) in trace.tasks().iter().enumerate() {
        writeln!(out, "task {i}: {} {:?} nice {:?}", task.pid, task.comm, task.nice).unwrap();
    }
    for label in trace.labels() {
        writeln!(out, "label {label:?}").unwrap();
    }
    for event in trace.events() {
        let kind = format!("{:?}", event.kind).replace("TaskId(", "(");
        writeln!(out, "{} cpu{} {kind}", event.time_ns, event.cpu).unwrap();
    }
    writeln!(out, "{:?}", trace.loss).unwrap();
    out
}

#[test]
fn perf_script_raw() {
    insta::assert_snapshot!(show(include_str!("texts/perf-raw.txt")));
}

#[test]
fn perf_script_pretty() {
    insta::assert_snapshot!(show(include_str!("texts/perf-pretty.txt")));
}

#[test]
fn ftrace_of_the_kernel() {
    insta::assert_snapshot!(show(include_str!("texts/ftrace.txt")));
}

#[test]
fn ftrace_with_thread_groups() {
    insta::assert_snapshot!(show(include_str!("texts/ftrace-tgid.txt")));
}

#[test]
fn trace_cmd_report() {
    insta::assert_snapshot!(show(include_str!("texts/trace-cmd.txt")));
}

#[test]
fn pids_are_reused_and_nice_values_change() {
    insta::assert_snapshot!(show(include_str!("texts/reuse.txt")));
}

#[test]
fn clocks_jump_and_lines_are_cut() {
    insta::assert_snapshot!(show(include_str!("texts/damaged.txt").trim_end()));
}

#[test]
fn nothing_to_read() {
    let mut out = String::new();
    for text in [
        "",
        "\n\n# tracer: nop\n",
        "root:x:0:0:root:/root:/bin/bash\n",
        "PERFILE2\0\0",
        "app 7 [000] 1.5: cycles: 400\n",
    ] {
        writeln!(out, "{text:?}\n{}", show(text)).unwrap();
    }
    insta::assert_snapshot!(out);
}
