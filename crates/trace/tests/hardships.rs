//! The same events in every format: losses, duplicates and jumps of the clock are counted alike by all readers.

use std::io::{Cursor, Write};

use crate::support::perf_file::{CALLCHAIN, PerfFile, READ};
use crate::support::{Dat, MISSED, STORED, small};
use fairground_trace::{EventKind, ReadError, Trace, read, read_file, write_ftrace};

const IDLE: (u32, &[u8; 4]) = (0, b"swap");
const ONE: (u32, &[u8; 4]) = (1, b"one\0");
const SLEEPS: u64 = 1;
const DEAD: u64 = 16;

/// Something of CPU 0.
#[derive(Clone, Copy)]
enum Step {
    /// A switch at a time, from a task in a state to a task.
    Switch(u64, (u32, &'static [u8; 4]), u64, (u32, &'static [u8; 4])),
    /// So many events are lost, and the next ones come after them.
    Lost(u64),
}

/// The file in each format, with its name.
fn files(steps: &[Step]) -> [(&'static str, Vec<u8>); 3] {
    [("trace.dat", dat(steps).bytes()), ("perf.data", perf(steps, 0)), ("ftrace", text(steps))]
}

/// A page for each switch, so that times may go back.
fn dat(steps: &[Step]) -> Dat {
    let mut dat = Dat { clock: "[mono]".to_owned(), cpus: vec![vec![]], ..Dat::default() };
    let mut missing = None;
    for step in steps {
        match *step {
            Step::Lost(count) => missing = Some(count),
            Step::Switch(time_ns, (pid, comm), state, next) => {
                let event = dat.switch(0, (pid, comm, state), next);
                let count = missing.take();
                let flags = if count.is_some() { MISSED | STORED } else { 0 };
                let page = dat.page(time_ns, &[event], flags, count.unwrap_or(0));
                dat.add(0, page);
            }
        }
    }
    dat
}

fn perf(steps: &[Step], format: u64) -> Vec<u8> {
    perf_with(steps, format, false)
}

fn perf_with(steps: &[Step], format: u64, group: bool) -> Vec<u8> {
    let mut file = PerfFile { format, group, ..PerfFile::default() };
    let mut last_ns = 0;
    for step in steps {
        match *step {
            Step::Lost(count) => file.lost(last_ns, 0, count),
            Step::Switch(time_ns, (pid, comm), state, next) => {
                last_ns = time_ns;
                file.switch(time_ns, 0, (pid, comm, state), next);
            }
        }
    }
    file.bytes()
}

fn text(steps: &[Step]) -> Vec<u8> {
    let mut text = Vec::new();
    let name = |comm: &[u8; 4]| String::from_utf8_lossy(comm).trim_end_matches('\0').to_owned();
    for step in steps {
        let _ = match *step {
            Step::Lost(count) => writeln!(text, "CPU:0 [LOST {count} EVENTS]"),
            Step::Switch(time_ns, (pid, comm), state, (next, next_comm)) => {
                let (comm, next_comm) = (name(comm), name(next_comm));
                let (seconds, rest) = (time_ns / 1_000_000_000, time_ns % 1_000_000_000);
                let letter = match state {
                    0 => 'R',
                    DEAD => 'X',
                    _ => 'S',
                };
                writeln!(
                    text,
                    " {comm}-{pid} [000] d..2. {seconds}.{rest:09}: sched_switch: prev_comm={comm} prev_pid={pid} \
                     prev_prio=120 prev_state={letter} ==> next_comm={next_comm} next_pid={next} next_prio=120"
                )
            }
        };
    }
    text
}

fn each(steps: &[Step], check: impl Fn(&str, Trace)) {
    for (format, bytes) in files(steps) {
        check(format, read(format, &bytes[..]).unwrap_or_else(|e| panic!("{format}: {e}")));
    }
}

fn switch_times(trace: &Trace) -> Vec<u64> {
    let switches = trace.events().filter(|e| matches!(e.kind, EventKind::Switch { .. }));
    switches.map(|event| event.time_ns).collect()
}

#[test]
fn duplicates_stay_and_a_clock_that_jumps_is_counted() {
    let steps = [
        Step::Switch(5_000, IDLE, 0, ONE),
        Step::Switch(9_000, ONE, SLEEPS, IDLE),
        Step::Switch(9_000, IDLE, 0, ONE),
        Step::Switch(7_000, ONE, SLEEPS, IDLE),
        Step::Switch(1 << 60, IDLE, 0, ONE),
    ];
    each(&steps, |format, trace| {
        assert_eq!(switch_times(&trace), [5_000, 7_000, 9_000, 9_000, 1 << 60], "{format}");
        assert_eq!(trace.loss.clock_jumps, 1, "{format}");
        assert_eq!((trace.start_ns, trace.end_ns), (5_000, 1 << 60), "{format}");
        let first = trace.loss.first.unwrap_or_default();
        assert!(first.ends_with("the clock of CPU 0 went back by 2000 ns"), "{format}: {first}");
    });
}

#[test]
fn a_pid_that_lives_again_is_another_task() {
    let steps = [
        Step::Switch(1_000, IDLE, 0, ONE),
        Step::Switch(2_000, ONE, DEAD, IDLE),
        Step::Switch(3_000, IDLE, 0, ONE),
    ];
    each(&steps, |format, trace| {
        assert_eq!((trace.tasks().len(), trace.loss.pid_reuses), (3, 1), "{format}");
    });
}

#[test]
fn lost_events_are_an_event_and_counted() {
    let steps =
        [Step::Switch(1_000, IDLE, 0, ONE), Step::Lost(35), Step::Switch(2_000, IDLE, 0, ONE)];
    each(&steps, |format, trace| {
        assert_eq!(trace.loss.lost_events, 35, "{format}");
        let lost: Vec<_> = trace
            .events()
            .filter(|e| matches!(e.kind, EventKind::Lost { .. }))
            .map(|event| event.kind)
            .collect();
        assert_eq!(lost, [EventKind::Lost { count: 35 }], "{format}");
        // What ran after the gap is not known, so nothing contradicts it.
        assert_eq!((trace.loss.broken_switches, switch_times(&trace).len()), (0, 2), "{format}");
        assert!(trace.loss.first.unwrap_or_default().contains("lost 35 events"), "{format}");
    });
}

const STORY: [Step; 4] = [
    Step::Switch(1_000, IDLE, 0, ONE),
    Step::Switch(2_000, ONE, SLEEPS, IDLE),
    Step::Lost(3),
    Step::Switch(3_000, IDLE, 0, ONE),
];

/// The trace does not depend on what a sample holds before the event's bytes.
#[test]
fn samples_with_more_in_them() {
    let plain = read("plain", &perf(&STORY, 0)[..]).unwrap();
    for format in [CALLCHAIN, READ, READ | CALLCHAIN] {
        for group in [false, true] {
            let trace = read("more", &perf_with(&STORY, format, group)[..]).unwrap();
            assert!(trace.events().eq(plain.events()), "{format} {group}");
            assert_eq!(trace.digest(), plain.digest(), "{format} {group}");
        }
    }
}

#[test]
fn a_perf_data_cut_at_every_byte_or_with_any_bit_flipped() {
    let mut bytes = perf(&STORY, 0);
    for end in 0..bytes.len() {
        match read("cut", &bytes[..end]) {
            Ok(trace) => assert!(trace.loss.truncated && trace.len() <= 4, "{end}"),
            Err(ReadError::Empty { .. }) => assert_eq!(end, 0),
            Err(ReadError::Damaged { why, .. }) => assert!(!why.is_empty(), "{end}"),
            Err(ReadError::NoEvents { .. }) => assert!(end < 12, "{end}"),
            Err(other) => panic!("{end}: {other}"),
        }
    }
    for at in 0..bytes.len() {
        for bit in 0..8 {
            bytes[at] ^= 1 << bit;
            if let Ok(trace) = read("flipped", &bytes[..]) {
                assert!(trace.len() < 100, "byte {at} bit {bit}");
            }
            bytes[at] ^= 1 << bit;
        }
    }
}

#[test]
fn our_own_text_cut_at_every_byte_or_with_any_bit_flipped() {
    let trace = read("story", &perf(&STORY, 0)[..]).unwrap();
    let mut text = Vec::new();
    write_ftrace(&trace, &mut text).unwrap();
    for end in 0..text.len() {
        if let Ok(part) = read("cut", &text[..end]) {
            assert!(part.len() <= trace.len(), "{end}");
            assert_eq!(part.loss.truncated, !text[..end].ends_with(b"\n"), "{end}");
        }
    }
    for at in 0..text.len() {
        for bit in 0..8 {
            text[at] ^= 1 << bit;
            if let Ok(other) = read("flipped", &text[..]) {
                assert!(other.len() <= trace.len() + 2, "byte {at} bit {bit}");
            }
            text[at] ^= 1 << bit;
        }
    }
}

#[test]
fn names_as_long_as_the_format_lets_them_be() {
    let million = "n".repeat(1_000_000);
    let dat = Dat { names: format!("1 {million}\n"), ..small(false) };
    let trace = read("trace.dat", &dat.bytes()[..]).unwrap();
    assert_eq!(trace.len(), read("short", &small(false).bytes()[..]).unwrap().len());
    let mut file = PerfFile::default();
    file.comm(1, 1, &million[..65_000]);
    file.switch(2, 0, (0, b"swap", 0), ONE);
    assert_eq!(read("perf.data", &file.bytes()[..]).unwrap().len(), 1);
    let line = format!(
        "{million}-1 [000] d..2. 1.5: sched_switch: prev_comm={million} prev_pid=1 prev_prio=120 prev_state=S ==> \
         next_comm=swapper/0 next_pid=0 next_prio=120\n"
    );
    let trace = read("text", line.as_bytes()).unwrap();
    assert_eq!((trace.len(), trace.tasks()[1].comm.len()), (1, 1_000_000));
}

/// A file on disk gives what the same bytes give from a pipe.
#[test]
fn a_file_is_read_like_a_stream() {
    let mut all = files(&STORY).to_vec();
    all.push(("compressed", {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(&perf(&STORY, 0)).unwrap();
        packed.finish().unwrap()
    }));
    for (format, bytes) in all {
        let path = std::env::temp_dir().join(format!("fairground-{}-{format}", std::process::id()));
        std::fs::write(&path, &bytes).unwrap();
        let from_file = read_file(format, std::fs::File::open(&path).unwrap());
        std::fs::remove_file(&path).unwrap();
        assert_eq!(from_file.unwrap(), read(format, Cursor::new(bytes)).unwrap(), "{format}");
    }
}
