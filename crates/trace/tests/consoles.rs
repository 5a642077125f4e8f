//! ftrace's buffer as consoles and loggers print it: each line behind their own stamps, among lines of other programs.

use fairground_trace::{EventKind, Trace, read};

/// Stamps of the console, of `dmesg` with its options, of syslog and of the journal.
const PREFIXES: [&str; 17] = [
    "",
    "[  100.000004] ",
    "[  100.000004][    T1] ",
    "[  100.000004] [  T123] ",
    "<4>[  100.000004] ",
    "<4>",
    "[  100.000004 <    0.000001>] ",
    "[Tue Jan  2 10:00:00 2024] ",
    "kern  :warn  : [  100.000004] ",
    "2024-01-02T10:00:00,123456+00:00 ",
    "Jan 02 10:00:00 host kernel: ",
    "Jan  2 10:00:00 host kernel: [  100.000004] ",
    "Jan 02 10:00:00.123456 host kernel: [  100.000004][    C0] ",
    "2024-01-02T10:00:00.123456+00:00 host kernel: [  100.000004] ",
    "[  100.000004] host kernel: ",
    "2024-01-02 10:00:00 [  100.000004] ",
    "2024-01-02T10:00:00.1234567Z [  100.000004] ",
];

const DUMP: [&str; 9] = [
    "Dumping ftrace buffer:",
    "---------------------------------",
    "       x-3         0d..2. 1000000us : sched_switch: prev_comm=x prev_pid=3 prev_prio=120 prev_state=S ==> \
     next_comm=y next_pid=4 next_prio=120",
    "       y-4         0d..2. 1100000us : sched_switch: prev_comm=y prev_pid=4 prev_prio=120 prev_state=R+ ==> \
     next_comm=x next_pid=3 next_prio=120",
    "CPU:0 [LOST 9000 EVENTS]",
    "       x-3         0d..2. 3100000us : sched_switch: prev_comm=x prev_pid=3 prev_prio=120 prev_state=S ==> \
     next_comm=swapper/0 next_pid=0 next_prio=120",
    "usb 1-1: new device",
    "---------------------------------",
    "Kernel panic - not syncing: Fatal exception",
];

fn dump(prefix: &str) -> Trace {
    let lines: String = DUMP.iter().map(|line| format!("{prefix}{line}\n")).collect();
    read("console", lines.as_bytes()).unwrap_or_else(|e| panic!("{prefix:?}: {e}"))
}

#[test]
fn stamps_stand_before_events_and_losses() {
    for prefix in PREFIXES {
        let trace = dump(prefix);
        let events: Vec<_> =
            trace.events().map(|event| (event.time_ns / 1_000_000, event.kind)).collect();
        let lost = EventKind::Lost { count: 9_000 };
        let [(1_000, _), (1_100, EventKind::Switch { .. }), (1_100, found), (3_100, _)] =
            events[..]
        else {
            panic!("{prefix:?}: {events:?}, {:?}", trace.loss)
        };
        assert_eq!((found, trace.loss.lost_events), (lost, 9_000), "{prefix:?}");
        let names: Vec<_> = trace.tasks().iter().skip(1).map(|task| task.comm.as_str()).collect();
        assert_eq!(names, ["x", "y"], "{prefix:?}");
        let wanted = if prefix.is_empty() { 2 } else { 0 };
        assert_eq!(
            trace.loss.unreadable, wanted,
            "lines of other programs: {prefix:?} {:?}",
            trace.loss.first
        );
    }
}

#[test]
fn a_prefix_in_a_recording_of_its_own_is_none() {
    let text = "\
 10:00:00 123 [000] 5.000001: sched:sched_switch: prev_comm=10:00:00 prev_pid=123 prev_prio=120 prev_state=S ==> \
next_comm=a next_pid=7 next_prio=120
<...>-7 [000] d..2. 5.000002: sched_switch: prev_comm=a prev_pid=7 prev_prio=120 prev_state=S ==> \
next_comm=swapper/0 next_pid=0 next_prio=120
";
    let trace = read("names", text.as_bytes()).expect("a recording");
    assert_eq!((trace.len(), trace.loss.unreadable), (2, 0), "{:?}", trace.loss.first);
}

/// Of a scheduling event that cannot be read it is known that it is missing: a switch may have changed what the CPU
/// runs.
#[test]
fn an_event_that_cannot_be_read_is_missing() {
    let good = |us: u32, prev: &str, next: &str| {
        format!(
            "[  100.000004]  {prev} [000] d..2. 1.{us:06}: sched_switch: prev_comm=t prev_pid=1 prev_prio=120 \
             prev_state=S ==> next_comm={next} next_pid=2 next_prio=120\n"
        )
    };
    let cut =
        "[  100.000004]  t-1 [000] d..2. 1.000200: sched_switch: prev_comm=t prev_pid=1 prev_p\n";
    let torn = "[  100.000004]  t-1 [00sched_switch: prev_comm=t prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=a\n";
    let waking = "[  100.000004]  t-1 [000] d..2. 1.000300: sched_waking: comm=a pi\n";
    let text = format!("{}{cut}{}{waking}{torn}", good(100, "t-1", "a"), good(400, "a-2", "b"));
    let trace = read("damaged", text.as_bytes()).expect("a recording");
    let lost: Vec<_> =
        trace.events().filter(|event| matches!(event.kind, EventKind::Lost { .. })).collect();
    let at: Vec<_> = lost.iter().map(|event| (event.time_ns, event.kind)).collect();
    assert_eq!(
        at,
        [(1_000_100_000, EventKind::Lost { count: 1 })],
        "from the last event up to the next"
    );
    assert_eq!((trace.loss.unreadable, trace.loss.lost_events), (3, 3));
}

/// What the tracers `timerlat`, `osnoise` and `hwlat` print themselves are events of other kinds.
#[test]
fn lines_of_latency_tracers_are_no_damage() {
    let text = "\
          <idle>-0       [000] d..2. 1.000000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=w next_pid=5 next_prio=120
               w-5       [000] d.h1. 1.001000: #3 context    irq timer_latency       820 ns
               w-5       [000] d.h1. 1.001100: irq_noise: local_timer:236 start 1.001000000 duration 1881 ns
      timerlat/0-90      [000] ..... 1.001200: #3 context thread timer_latency     11700 ns
       osnoise/0-961     [000] d.... 1.637220: 1000000        190  99.98100       9     18      0   1007     18      1
          <...>-1729     [000] d.... 1.714259: #1     inner/outer(us):   14/10    ts:1499801089.066141940 count:2
               w-5       [000] d..2. 1.910000: sched_switch: prev_comm=w prev_pid=5 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
";
    let trace = read("timerlat", text.as_bytes()).expect("a recording");
    assert_eq!(
        (trace.len(), trace.loss.unreadable, trace.loss.skipped),
        (2, 0, 5),
        "{:?}",
        trace.loss.first
    );
}
