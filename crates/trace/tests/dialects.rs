//! Texts of the same events as different programs write them.

use fairground_trace::{EventKind, TaskState, Trace, read, read_machine};

fn trace(text: &str) -> Trace {
    read("sample", text.as_bytes()).expect("a recording")
}

/// Time (us), CPU and state left of each switch, and the names of both tasks.
fn switches(trace: &Trace) -> Vec<(u64, u32, TaskState, &str, &str)> {
    let name = |task: fairground_trace::TaskId| trace.tasks()[task.index()].comm.as_str();
    let switch = |event: fairground_trace::Event| match event.kind {
        EventKind::Switch { prev, prev_state, next } => {
            Some((event.time_ns / 1_000, event.cpu, prev_state, name(prev), name(next)))
        }
        _ => None,
    };
    trace.events().filter_map(switch).collect()
}

fn lost(trace: &Trace) -> Vec<(u64, u32, u64)> {
    let lost = trace.events().filter_map(|event| match event.kind {
        EventKind::Lost { count } => Some((event.time_ns / 1_000, event.cpu, count)),
        _ => None,
    });
    lost.collect()
}

#[test]
fn fields_without_the_kernels_arrow() {
    let text = "\
cpus=2
 a =a-7  [001]  1.000001: sched_switch:  prev_comm=a =a prev_pid=7 prev_prio=120 prev_state=1 next_comm=b next_pid=8 next_prio=99
   b-8   [001]  1.000002: sched_process_fork:  parent_comm=b parent_pid=8 child_comm=b child_pid=9
   b-8   [001]  1.000003: sched_switch:  prev_comm=b prev_pid=8 prev_prio=99 prev_state=256 next_comm=a =a next_pid=7 next_prio=120
   b-8   [001]  1.000004: sched_switch:  prev_comm=a =a prev_pid=7 prev_prio=120 prev_state=130 next_comm=swapper/1 next_pid=0 next_prio=120
";
    let trace = trace(text);
    assert_eq!(trace.loss.unreadable, 0, "{:?}", trace.loss.first);
    let b = "b";
    let wanted = [
        (1_000_001, 1, TaskState::Sleeping, "a =a", b),
        (1_000_003, 1, TaskState::Preempted, b, "a =a"),
        (1_000_004, 1, TaskState::Uninterruptible, "a =a", "swapper"),
    ];
    assert_eq!(switches(&trace), wanted);
    assert!(trace.events().any(|event| matches!(event.kind, EventKind::Fork { .. })));
}

#[test]
fn a_buffer_instance_names_itself_at_each_line() {
    let text = "\
cpus=1
inst:          <idle>-0     [000]    10.000000: sched_switch:         swapper/0:0 [120] R ==> a:11 [120]
inst:               a-11    [000]    10.010000: sched_switch:         a:11 [120] S ==> swapper/0:0 [120]
inst: CPU:0 [635 EVENTS DROPPED]
inst:          <idle>-0     [000]    12.000000: sched_switch:         swapper/0:0 [120] R ==> tmux: client:12 [120]
    tmux: client-12    [000]    12.010000: sched_switch:         tmux: client:12 [120] S ==> swapper/0:0 [120]
";
    let trace = trace(text);
    assert_eq!((trace.loss.unreadable, trace.loss.lost_events), (0, 635));
    assert_eq!(lost(&trace), [(10_010_000, 0, 635)]);
    let ran: Vec<_> = switches(&trace).into_iter().map(|(.., next)| next).collect();
    assert_eq!(ran, ["a", "swapper", "tmux: client", "swapper"]);
}

/// `trace-cmd report` writes the name of a file or instance once for a loss and the event behind it, and blanks where
/// the others have a name.
#[test]
fn a_loss_and_the_event_behind_it_name_their_source_once() {
    let text = "\
cpus=1
              <idle>-0     [000]    10.000000: sched_switch:         swapper/0:0 [120] R ==> a:11 [120]
      CPU:0 [7 EVENTS DROPPED]
                   a-11    [000]    10.010000: sched_switch:         a:11 [120] S ==> swapper/0:0 [120]
";
    let top = trace(text);
    assert_eq!((top.loss.unreadable, lost(&top)), (0, vec![(10_000_000, 0, 7)]));
    let other = "\
guest.dat: CPU:0 [9 EVENTS DROPPED]
          <idle>-0     [000]   100.020000: sched_switch: swapper/0:0 [120] R ==> app:500 [120]
guest.dat: CPU:0 [EVENTS DROPPED]
             app-500   [000]   100.030000: sched_switch: app:500 [120] S ==> swapper/0:0 [120]
";
    let host = trace(&format!("{SEVERAL_FILES}{other}"));
    let ran: Vec<_> = switches(&host).into_iter().map(|(.., next)| next).collect();
    assert_eq!((ran, host.loss.lost_events), (vec!["qemu", "swapper"], 0));
}

/// Frames have no name in front of them, and belong to the event above.
#[test]
fn stacks_of_another_file_are_left_out() {
    let text = format!(
        "{SEVERAL_FILES}\
guest.dat:          <idle>-0     [000]   100.020000: kernel_stack:         <stack trace >
=> schedule (ffffffff81000000)
"
    );
    let trace = trace(&text);
    let has_stack = trace.events().any(|event| matches!(event.kind, EventKind::Stack { .. }));
    assert_eq!((has_stack, trace.loss.unreadable), (false, 0), "{:?}", trace.loss.first);
}

/// A report of the files of a host and its guest.
const SEVERAL_FILES: &str = "\
 host.dat: cpus=1
guest.dat: cpus=1
 host.dat:         qemu-500   [000]   100.000000: sched_switch: swapper/0:0 [120] R ==> qemu:500 [120]
guest.dat:          <idle>-0     [000]   100.000010: sched_switch: swapper/0:0 [120] R ==> app:500 [120]
guest.dat:             app-500   [000]   100.004000: sched_switch: app:500 [120] S ==> swapper/0:0 [120]
 host.dat:            qemu-500   [000]   100.010000: sched_switch: qemu:500 [120] S ==> swapper/0:0 [120]
";

#[test]
fn of_several_files_the_first_is_read() {
    let trace = trace(SEVERAL_FILES);
    let ran: Vec<_> = switches(&trace).into_iter().map(|(.., next)| next).collect();
    assert_eq!((ran, trace.loss.skipped), (vec!["qemu", "swapper"], 3));
    let first = trace.loss.first.unwrap_or_default();
    assert!(first.contains("several recordings, host.dat and guest.dat"), "{first}");
    assert!(first.contains("--machine guest.dat"), "{first}");
}

#[test]
fn of_several_files_one_is_chosen() {
    let of = |machine| read_machine("report", SEVERAL_FILES.as_bytes(), Some(machine));
    let ran = |machine| -> Vec<String> {
        let trace = of(machine).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(trace.loss.first, None);
        switches(&trace).into_iter().map(|(.., next)| next.to_string()).collect()
    };
    assert_eq!(ran("host.dat"), ["qemu", "swapper"]);
    assert_eq!(ran("guest.dat"), ["app", "swapper"]);
    let said = of("third.dat").expect_err("there is none").to_string();
    assert!(said.contains("`third.dat`") && said.contains("host.dat, guest.dat"), "{said}");
    let alone = "x-3 [000] d..2 1.000000: sched_switch: x:3 [120] S ==> y:4 [120]\n";
    let said = read_machine("alone", alone.as_bytes(), Some("host.dat")).expect_err("one alone");
    assert!(said.to_string().contains("leave out --machine"), "{said}");
}

/// The times on both sides of a loss may be the same microsecond.
#[test]
fn a_loss_stands_behind_the_last_event_before_it() {
    let text = |last: &str| {
        format!(
            "\
 x-3 [000] d..2 1.000000: sched_switch: prev_comm=x prev_pid=3 prev_prio=120 prev_state=S ==> next_comm=y next_pid=4 next_prio=120
 z-5 [001] d..2 1.500000: sched_switch: prev_comm=z prev_pid=5 prev_prio=120 prev_state=S ==> next_comm=w next_pid=6 next_prio=120
CPU:0 [LOST 9 EVENTS]
 x-3 [000] d..2 {last}: sched_switch: prev_comm=x prev_pid=3 prev_prio=120 prev_state=S ==> next_comm=y next_pid=4 next_prio=120
"
        )
    };
    let kinds = |trace: &Trace| -> Vec<bool> {
        trace.events().map(|event| matches!(event.kind, EventKind::Lost { .. })).collect()
    };
    let late = trace(&text("3.000000"));
    assert_eq!(lost(&late), [(1_000_000, 0, 9)]);
    assert_eq!((kinds(&late), late.loss.broken_switches), (vec![false, true, false, false], 0));
    let same = trace(&text("1.000000"));
    assert_eq!(lost(&same), [(1_000_000, 0, 9)]);
    assert_eq!((kinds(&same), same.loss.broken_switches), (vec![false, true, false, false], 0));
}

#[test]
fn a_text_in_a_page_of_systrace() {
    let text = r#"<html><head><script>
var linuxPerfData = "\
# tracer: nop\n\
#\n\
          atrace-700 [000] 600.000000: sched_switch: prev_comm=atrace prev_pid=700 prev_prio=120 prev_state=S ==> next_comm=app next_pid=701 next_prio=120\n\
             app-701 [000] 600.010000: sched_switch: prev_comm=app prev_pid=701 prev_prio=120 prev_state=R ==> next_comm=ui next_pid=702 next_prio=110\n\
";
</script></head></html>
"#;
    let trace = trace(text);
    assert_eq!(switches(&trace).len(), 2, "{:?}", trace.loss.first);
    assert_eq!((trace.loss.unreadable, trace.loss.skipped), (0, 4));
}

/// Later pages have the text in an element of its own, and JavaScript around it.
#[test]
fn a_text_in_an_element_of_a_page() {
    let line = "   app-701 [000] 600.0: sched_switch: app:701 [120] S ==> swapper/0:0 [120]";
    let text = format!(
        "<!DOCTYPE html>\n<script>\nvar a = [1];\n</script>\n\
         <script class=\"trace-data\" type=\"application/text\">\n# tracer: nop\n{line}\n\
         of the recording\n</script>\n<script>\nf([0]);\n</script>\n"
    );
    let trace = trace(&text);
    assert_eq!((switches(&trace).len(), trace.loss.unreadable), (1, 1));
    assert!(trace.loss.first.expect("a problem").contains("of the recording"));
}

/// Kernels of 32 bits have the state of `trace-cmd report -R` in hexadecimal. A state without a name is none of those.
#[test]
fn states_in_hexadecimal() {
    let text: String = ["0x0", "0x1", "0x2", "0x80", "0x100", "0x200"]
        .iter()
        .map(|state| {
            format!(
                " a-11 [000] 10.0: sched_switch: prev_comm=a prev_pid=11 prev_prio=120 \
                 prev_state={state} next_comm=a next_pid=11 next_prio=120\n"
            )
        })
        .collect();
    let states: Vec<_> =
        switches(&trace(&text)).into_iter().map(|(_, _, state, ..)| state).collect();
    use TaskState::{Idle, Parked, Preempted, Runnable, Sleeping, Uninterruptible};
    assert_eq!(states, [Runnable, Sleeping, Uninterruptible, Idle, Preempted, Parked]);
}

/// Ticks alone say nothing of scheduling.
#[test]
fn ticks_alone_are_no_recording() {
    let text = "  <idle>-0 [000] d.h. 10.0: hrtimer_expire_entry: hrtimer=00000000abc \
                function=tick_sched_timer now=10000\n";
    let said = read("ticks", text.as_bytes()).expect_err("no scheduling event").to_string();
    assert!(said.contains("no scheduling event in"), "{said}");
}

/// `perf script -F pid,cpu,time,event,trace`.
#[test]
fn lines_without_the_name_of_the_running_task() {
    let text = "\
    0 [000]     1.000000: sched:sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a next_pid=11 next_prio=120
   11 [000]     1.010000: sched:sched_switch: prev_comm=a prev_pid=11 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
";
    let trace = trace(text);
    let ran: Vec<_> = switches(&trace).into_iter().map(|(.., next)| next).collect();
    assert_eq!((ran, trace.loss.unreadable), (vec!["a", "swapper"], 0));
}

/// A profile of the CPU time has stacks, and no event of the scheduler.
#[test]
fn stacks_alone_are_no_recording() {
    let text = "\
app  4242 [001]   500.000000:     250000 cpu-clock:pppH: 
\tffffffff81a01234 do_idle+0x2c4 ([kernel.kallsyms])

app  4242 [001]   500.010000:     250000 cpu-clock:pppH: 
\tffffffff81a01234 do_idle+0x2c4 ([kernel.kallsyms])

";
    let said = read("profile", text.as_bytes()).expect_err("no scheduling event").to_string();
    assert!(said.contains("no scheduling event in"), "{said}");
}

/// Times (us) of all events.
fn times(trace: &Trace) -> Vec<u64> {
    trace.events().map(|event| event.time_ns / 1_000).collect()
}

#[test]
fn differences_are_summed_up() {
    assert_eq!(times(&trace(include_str!("samples/text/perf-deltatime.txt"))), [0, 6, 9, 13]);
    assert_eq!(times(&trace(include_str!("samples/text/perf-reltime.txt"))), [0, 6, 13]);
    // Long enough to be no differences, then a clock that jumps.
    let line = |us: u64| {
        format!("a 1 [000] 0.{us:06}: sched:sched_waking: comm=b pid=2 prio=120 target_cpu=0\n")
    };
    let text: String = (0..70).chain([3]).map(line).collect();
    let trace = trace(&text);
    assert_eq!((trace.len(), trace.loss.clock_jumps), (71, 1));
}

#[test]
fn the_forms_of_old_kernels() {
    let old = trace(include_str!("samples/text/linux-2.6.32.txt"));
    let names: Vec<_> = old.tasks().iter().map(|task| (task.pid, task.comm.as_str())).collect();
    assert_eq!(names, [(0, "swapper"), (7, "bash"), (8, "a [b]")]);
    let wanted = [
        (240_132_281, 0, TaskState::Runnable, "swapper", "bash"),
        (240_132_400, 0, TaskState::Sleeping, "bash", "a [b]"),
    ];
    assert_eq!((switches(&old), old.len()), (wanted.to_vec(), 5));
    let older = trace(include_str!("samples/text/linux-2.6.27.txt"));
    // The task that comes has no name there; the line's first columns have it when it runs.
    let wanted = [
        (240_132_284, 1, TaskState::Runnable, "bash", "cat"),
        (240_132_371, 1, TaskState::Sleeping, "cat", "bash"),
    ];
    assert_eq!((switches(&older), older.tasks().len()), (wanted.to_vec(), 3));
}

#[test]
fn the_latency_format() {
    let latency = trace(include_str!("samples/text/latency.txt"));
    let wanted = [(15, 3, TaskState::Runnable, "swapper", "kworker/3:1H")];
    assert_eq!(switches(&latency), wanted);
    assert!(
        latency.events().any(|event| matches!(event.kind, EventKind::Wakeup { target_cpu: 3, .. }))
    );
    let report = trace(include_str!("samples/text/trace-cmd-latency.txt"));
    assert_eq!((switches(&report).len(), report.cpus), (2, 2));
}

#[test]
fn a_clock_that_counts_no_time_is_named() {
    let text = "a-7 [001] d..2. 4711: sched_switch: prev_comm=a prev_pid=7 prev_prio=120 prev_state=S ==> \
                next_comm=b next_pid=8 next_prio=120\n";
    let said = read("counter", text.as_bytes()).expect_err("no time").to_string();
    assert!(said.contains("the time is a count"), "{said}");
}

/// simpleperf prints the fields of an event below its frames, if it is told to.
#[test]
fn fields_below_a_sample() {
    let text = include_str!("samples/text/simpleperf.txt");
    let trace = trace(text);
    let wanted = [
        (684_943_449, 1, TaskState::Runnable, "swapper", "my app"),
        (684_944_000, 1, TaskState::Sleeping, "my app", "swapper"),
    ];
    assert_eq!(switches(&trace), wanted);
    assert_eq!((trace.loss.unreadable, trace.loss.skipped), (0, 1), "{:?}", trace.loss.first);
    let stacks: Vec<_> = trace
        .events()
        .filter_map(|event| match event.kind {
            EventKind::Stack { label, .. } => Some((event.time_ns / 1_000, trace.label(label))),
            _ => None,
        })
        .collect();
    // An address alone is no call chain.
    let wanted = [(684_943_800, "main;void"), (684_944_000, "futex_wait;schedule;__schedule")];
    assert_eq!(stacks, wanted);
    let wakes_in_interrupt = |event: fairground_trace::Event| matches!(event.kind, EventKind::Waking { waker, .. } if waker.is_idle());
    assert!(trace.events().any(wakes_in_interrupt));
    assert_eq!(trace.tasks()[1].nice, Some(-10));
}

#[test]
fn samples_without_their_fields() {
    let text = include_str!("samples/text/simpleperf.txt");
    let without = |line: &&str| !line.starts_with("\t\t") && *line != "\ttracing data:";
    let text: String = text.lines().filter(without).map(|line| format!("{line}\n")).collect();
    let said = read("sample", text.as_bytes()).expect_err("no fields").to_string();
    assert!(said.contains("no scheduling event in"), "{said}");
    assert!(said.contains("3 not readable"), "{said}");
    assert!(said.contains("line 6: sched_switch without its fields"), "{said}");
    assert!(said.contains("--show_tracing_data"), "{said}");
    // Samples of cycles alone.
    let cycles =
        "app\t7/7 [001] 1.500000: 571042 cpu-cycles:u:\n\t    706b4e14 work (/app/libwork.so)\n\n";
    let said = read("sample", cycles.as_bytes()).expect_err("no switch").to_string();
    assert!(said.contains("no scheduling event in 3 lines (0 not readable, 1 of kinds"), "{said}");
    // Forms without CPUs.
    for text in
        ["sample:\n  event_type: sched:sched_switch\n", "magic: PERFILE2\nheader_size: 104\n"]
    {
        let said = read("sample", text.as_bytes()).expect_err("refused").to_string();
        assert!(said.contains("simpleperf") && said.contains("--show_tracing_data"), "{said}");
    }
}
