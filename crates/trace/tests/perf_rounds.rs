//! Rounds of the recorder: events are handed out when a round says that nothing before them is missing, and what comes later nevertheless
//! stands where it belongs.

mod support;

use fairground_trace::read;
use support::perf_file::PerfFile;

const IDLE: (u32, &[u8; 4]) = (0, b"swap");
const ONE: (u32, &[u8; 4]) = (1, b"one\0");

/// The times of a recording's events in order; each round is what it writes, by CPU and time.
fn times(rounds: &[&[(u32, u64)]]) -> Vec<u64> {
    let mut file = PerfFile::default();
    for round in rounds {
        for (cpu, time_ns) in *round {
            file.switch(*time_ns, *cpu, (IDLE.0, IDLE.1, 0), ONE);
        }
        file.round();
    }
    let trace = read("it", &file.bytes()[..]).expect("a recording");
    let times: Vec<u64> = trace.events().map(|event| event.time_ns).collect();
    assert_eq!((trace.start_ns, trace.end_ns), (times[0], times[times.len() - 1]));
    times
}

#[test]
fn a_round_goes_back_to_where_the_one_before_began_to_end() {
    let rounds: [&[_]; 3] =
        [&[(0, 10), (0, 30), (1, 20)], &[(0, 40), (1, 35), (1, 60)], &[(0, 50)]];
    assert_eq!(times(&rounds), [10, 20, 30, 35, 40, 50, 60]);
}

#[test]
fn what_comes_too_late_for_its_round_is_put_in_order() {
    let rounds: [&[_]; 4] = [&[(0, 10), (0, 30)], &[(0, 40)], &[(0, 50)], &[(1, 15), (0, 60)]];
    assert_eq!(times(&rounds), [10, 15, 30, 40, 50, 60]);
}
