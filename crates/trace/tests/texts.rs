//! Each input format in small, and what comes out of it, word for word.

use std::fmt::Write as _;

use fairground_trace::{Event, EventKind, TaskId, TaskInfo, TaskState, Trace, read, write_ftrace};

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

/// Names of six and more hexadecimal digits: in front of a line they look like the address of a stack's frame.
const LIKE_ADDRESSES: [&str; 4] = ["decade", "facade", "deadbeef 2", "c0ffee12"];

fn comms(trace: &Trace) -> Vec<&str> {
    trace.tasks().iter().map(|task| task.comm.as_ref()).collect()
}

#[test]
fn a_task_called_like_an_address_is_no_frame() {
    let mut text = String::new();
    for (i, comm) in LIKE_ADDRESSES.iter().enumerate() {
        let pid = i + 7;
        writeln!(
            text,
            "            bash  9952 [001]  1.{i}00000000: sched:sched_waking: comm={comm} \
             pid={pid} prio=120 target_cpu=000"
        )
        .unwrap();
        writeln!(
            text,
            "{comm:>16}  {pid} [000]  1.{i}50000000: sched:sched_waking: comm=bash pid=9952 \
             prio=120 target_cpu=001"
        )
        .unwrap();
        writeln!(text, "\tffffffff810b1234 schedule+0x44 ([kernel.kallsyms])").unwrap();
        writeln!(text, "\t    7f0012345678 main+0x1 (/usr/bin/{comm})\n").unwrap();
    }
    let trace = read("sample", text.as_bytes()).unwrap();
    let wakings = trace.events().filter(|e| matches!(e.kind, EventKind::Waking { .. })).count();
    let stacks = trace.events().filter(|e| matches!(e.kind, EventKind::Stack { .. })).count();
    assert_eq!((wakings, stacks), (8, 4), "{}", describe(&trace));
    assert_eq!(trace.labels(), ["main;schedule"], "no line of an event is in a stack");
    assert_eq!((trace.loss.unreadable, trace.loss.skipped), (0, 0), "{:?}", trace.loss.first);
    assert!(LIKE_ADDRESSES.iter().all(|comm| comms(&trace).contains(comm)));

    let mut written = Vec::new();
    write_ftrace(&trace, &mut written).unwrap();
    let again = read("again", &written[..]).unwrap();
    assert_eq!(again, trace);
}

#[test]
fn what_is_written_of_a_task_called_like_an_address_reads_back() {
    let mut trace = Trace::new(1);
    for (i, comm) in LIKE_ADDRESSES.iter().enumerate() {
        let task = trace.add_task(TaskInfo { nice: Some(0), ..TaskInfo::new(i as u32 + 7, comm) });
        let at_ns = i as u64 * 1000;
        let switch =
            EventKind::Switch { prev: TaskId::IDLE, next: task, prev_state: TaskState::Runnable };
        for (time_ns, kind) in [
            (at_ns, EventKind::Waking { task, waker: TaskId::IDLE, target_cpu: 0 }),
            (at_ns + 100, switch),
            (at_ns + 200, EventKind::Waking { task, waker: task, target_cpu: 0 }),
        ] {
            trace.push(Event { time_ns, cpu: 0, insns: 0, kind });
        }
    }
    let mut text = Vec::new();
    write_ftrace(&trace, &mut text).unwrap();
    let again = read("again", &text[..]).unwrap();
    assert!(again.events().eq(trace.events()), "{}", describe(&again));
    assert_eq!(comms(&again), comms(&trace));
}

/// The event of these frames could not be read: they are not those of the event before it.
#[test]
fn the_stack_of_an_unreadable_line_belongs_to_no_event() {
    let text = "\
        bash  9952 [001]  1.100000: sched:sched_waking: comm=a pid=7 prio=120 target_cpu=000\n\
        bash  9952 [001]  1.200000: sched:sched_waking: comm=a pid=\n\
        \tffffffff810b1234 schedule+0x44 ([kernel.kallsyms])\n\
        \t    7f0012345678 main+0x1 (/usr/bin/bash)\n";
    let trace = read("sample", text.as_bytes()).unwrap();
    assert_eq!(trace.len(), 1, "{}", describe(&trace));
    assert_eq!((trace.loss.unreadable, trace.loss.skipped), (1, 2), "{:?}", trace.loss.first);
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
