//! Lost events of a `perf.data`: those that a record locates, and the totals at the end, which have no time.

use crate::support::perf_file::{DROPPED, PerfFile};
use fairground_trace::{EventKind, Trace, read};

const IDLE: (u32, &[u8; 4]) = (0, b"swap");
const ONE: (u32, &[u8; 4]) = (1, b"one\0");

/// Two switches of each of two CPUs, with `between` lost events between those of CPU 0, and the counts at the end: CPU,
/// number and flags.
fn trace(between: u64, in_all: &[(u32, u64, u16)]) -> Trace {
    let mut file = PerfFile::default();
    for cpu in 0..2 {
        file.switch(1_000 + u64::from(cpu), cpu, (IDLE.0, IDLE.1, 0), ONE);
        if cpu == 0 && between > 0 {
            file.lost(1_500, cpu, between);
        }
        file.switch(2_000 + u64::from(cpu), cpu, (ONE.0, ONE.1, 0), IDLE);
    }
    in_all.iter().for_each(|(cpu, count, misc)| file.lost_in_all(*cpu, *count, *misc));
    let trace = read("it", &file.bytes()[..]).expect("a recording");
    assert_eq!((trace.start_ns, trace.end_ns), (1_000, 2_001));
    trace
}

/// Time, CPU and number of the lost events.
fn lost(trace: &Trace) -> Vec<(u64, u32, u64)> {
    let lost = trace.events().filter_map(|event| match event.kind {
        EventKind::Lost { count } => Some((event.time_ns, event.cpu, count)),
        _ => None,
    });
    lost.collect()
}

#[test]
fn the_count_at_the_end_says_once_more_what_was_lost() {
    let trace = trace(35, &[(0, 30, 0), (0, 5, 0)]);
    assert_eq!(lost(&trace), [(1_000, 0, 35)], "since the CPU's event before");
    assert_eq!((trace.loss.lost_events, trace.loss.clock_jumps), (35, 0));
}

#[test]
fn what_only_the_count_tells_is_missing_behind_the_last_event() {
    let trace = trace(35, &[(0, 36, 0), (0, 4, 0), (1, 7, 0)]);
    assert_eq!(lost(&trace), [(1_000, 0, 35), (2_000, 0, 5), (2_001, 1, 7)]);
    assert_eq!(trace.loss.lost_events, 47);
}

#[test]
fn what_a_filter_dropped_was_not_lost() {
    let trace = trace(0, &[(0, 99, DROPPED)]);
    assert_eq!((lost(&trace).len(), trace.loss.lost_events), (0, 0));
}
