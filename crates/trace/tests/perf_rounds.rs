//! Rounds of the recorder: events are handed out when a round says that nothing before them is missing, and what comes
//! later nevertheless stands where it belongs. Each round is longer than a piece in which the reader takes the file.

use crate::support::perf_file::PerfFile;
use fairground_trace::read;

const IDLE: (u32, &[u8; 4]) = (0, b"swap");
const ONE: (u32, &[u8; 4]) = (1, b"one\0");

/// Switches of a CPU in a round.
const SWITCHES: u64 = 3_000;
const ROUNDS: u64 = 4;

/// CPU 0 is emptied first: what it did while CPU 1 was comes with the next round.
fn events() -> Vec<Vec<(u32, u64)>> {
    let round = |round: u64| {
        let of =
            move |cpu: u32, begin_ns: u64| (0..SWITCHES).map(move |n| (cpu, begin_ns + 10 * n));
        let begin_ns = 10 * SWITCHES * round + 1_000;
        of(0, begin_ns).chain(of(1, begin_ns + 505)).collect()
    };
    (0..ROUNDS).map(round).collect()
}

/// Reads a recording of such rounds; its events must be in order, and none may be missing.
fn are_in_order(rounds: &[Vec<(u32, u64)>]) {
    let mut file = PerfFile::default();
    for round in rounds {
        for (cpu, time_ns) in round {
            file.switch(*time_ns, *cpu, (IDLE.0, IDLE.1, 0), ONE);
        }
        assert!(file.records.len() > 1 << 18);
        file.round();
    }
    let trace = read("it", &file.bytes()[..]).expect("a recording");
    let times: Vec<(u64, u32)> = trace.events().map(|event| (event.time_ns, event.cpu)).collect();
    let mut wanted: Vec<(u64, u32)> =
        rounds.concat().iter().map(|(cpu, time_ns)| (*time_ns, *cpu)).collect();
    wanted.sort_unstable();
    assert!(times == wanted);
    assert_eq!((trace.start_ns, trace.end_ns), (wanted[0].0, wanted[wanted.len() - 1].0));
}

#[test]
fn a_round_goes_back_to_where_the_one_before_began_to_end() {
    are_in_order(&events());
}

#[test]
fn what_comes_too_late_for_its_round_is_put_in_order() {
    let mut rounds = events();
    // Of a CPU that was not heard of before.
    rounds[3].push((2, 1_015));
    are_in_order(&rounds);
}
