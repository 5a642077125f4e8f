//! Damaged input: never a panic, never a silent loss, and what was read before the damage is kept.

use std::io::{self, BufRead, BufReader, Read};

use fairground_trace::{EventKind, ReadError, TaskId, TaskInfo, Trace, read, write_ftrace};
use proptest::prelude::*;

const PERF: &str = include_str!("texts/perf-raw.txt");
const FTRACE: &str = include_str!("texts/ftrace.txt");
const PRETTY: &str = include_str!("texts/trace-cmd.txt");

fn lines_of(text: &str) -> usize {
    text.bytes().filter(|b| *b == b'\n').count()
}

#[test]
fn cut_at_every_byte() {
    for text in [PERF, FTRACE, PRETTY] {
        let whole = read("whole", text.as_bytes()).unwrap();
        let mut longest = 0;
        for end in 0..text.len() {
            let complete = text[..end].ends_with('\n') || end == 0;
            let Ok(part) = read("cut", &text.as_bytes()[..end]) else {
                assert_eq!(longest, 0, "more input gives not less");
                continue;
            };
            assert_eq!(part.loss.truncated, !complete, "at byte {end}");
            assert_eq!(part.loss.unreadable, 0, "at byte {end}: {:?}", part.loss.first);
            assert!(part.len() >= longest);
            longest = part.len();
            // A lost-events line whose event was cut off has only the last known time.
            let known = part.events().filter(|e| !matches!(e.kind, EventKind::Lost { .. }));
            let all = whole.events().filter(|e| !matches!(e.kind, EventKind::Lost { .. }));
            for (a, b) in known.zip(all) {
                assert_eq!((a.time_ns, a.cpu), (b.time_ns, b.cpu));
            }
        }
        assert!(longest + 1 >= whole.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn bit_flips(
        which in 0..3_usize,
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0..8_u32), 1..12),
    ) {
        let text = [PERF, FTRACE, PRETTY][which];
        let mut bytes = text.as_bytes().to_vec();
        for (at, bit) in flips {
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
        }
        if let Ok(trace) = read("flipped", &bytes[..]) {
            prop_assert!(trace.events().zip(trace.events().skip(1)).all(|(a, b)| a.time_ns <= b.time_ns));
            prop_assert!(trace.events().all(|event| event.cpu < trace.cpus));
            // What was read can be written, and that can be read.
            let mut written = Vec::new();
            write_ftrace(&trace, &mut written).unwrap();
            let again = read("again", &written[..]).unwrap();
            prop_assert_eq!(again.len(), trace.len());
        }
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = read("noise", &bytes[..]);
    }

    #[test]
    fn any_line(line in "[ a-z0-9\\[\\]:=>().#-]{0,120}") {
        let _ = read("noise", format!("{line}\n").as_bytes());
    }

    /// Lines in any order give the events in order of time, and equal times in the order of the lines.
    #[test]
    fn order_is_restored(stamps in prop::collection::vec((0..20_u64, 0..3_u32), 1..50)) {
        let mut text = String::new();
        for (i, (stamp, cpu)) in stamps.iter().enumerate() {
            text += &format!("a-1 [{cpu}] .. 7.{stamp:06}: sched_waking: comm=b pid={} prio=120 \
                              target_cpu=0\n", i + 10);
        }
        let trace = read("shuffled", text.as_bytes()).unwrap();
        let mut wanted: Vec<(u64, u32, u32)> =
            stamps.iter().enumerate().map(|(i, (t, cpu))| (*t, i as u32 + 10, *cpu)).collect();
        wanted.sort();
        let got: Vec<(u64, u32, u32)> = trace.events().map(|event| {
            let EventKind::Waking { task, .. } = event.kind else { panic!("{event:?}") };
            ((event.time_ns - 7_000_000_000) / 1000, trace.tasks()[task.index()].pid, event.cpu)
        }).collect();
        prop_assert_eq!(got, wanted);
        let jumps = (0..3).map(|c| {
            let of_cpu: Vec<u64> = stamps.iter().filter(|(_, cpu)| *cpu == c).map(|(t, _)| *t).collect();
            of_cpu.windows(2).filter(|pair| pair[0] > pair[1]).count() as u64
        }).sum::<u64>();
        prop_assert_eq!(trace.loss.clock_jumps, jumps);
    }
}

#[test]
fn damage_in_the_middle_costs_only_its_lines() {
    let mut bytes = PERF.as_bytes().to_vec();
    let clean = read("clean", &bytes[..]).unwrap();
    let at = PERF.find("sched:sched_migrate_task: comm=Web Content pid=").unwrap() + 47;
    bytes[at] = b'\xff';
    let trace = read("damaged", &bytes[..]).unwrap();
    assert_eq!((trace.loss.unreadable, trace.len() + 1), (1, clean.len()));
    let first = trace.loss.first.unwrap();
    assert!(first.starts_with("line 7: sched_migrate_task without its fields: "), "{first}");
}

#[test]
fn names_of_a_million_characters() {
    let name = "n [3] 4: prev_pid=".repeat(60_000);
    let line = format!(
        "{name}-5 [000] .. 1.5: sched_switch: prev_comm={name} prev_pid=5 prev_prio=120 \
         prev_state=S ==> next_comm={name} next_pid=6 next_prio=120\n"
    );
    let trace = read("long", line.as_bytes()).unwrap_or_else(|_| Trace::new(0));
    // So many brackets in a name end the search for the CPU: the line is given up, quickly.
    assert!(trace.is_empty());

    let name = "n".repeat(1_000_000);
    let mut trace = Trace::new(1);
    let task = trace.add_task(TaskInfo { nice: Some(0), ..TaskInfo::new(5, &name) });
    let kind = EventKind::Waking { task, waker: TaskId::IDLE, target_cpu: 0 };
    trace.push(fairground_trace::Event { time_ns: 9, cpu: 0, insns: 0, kind });
    (trace.start_ns, trace.end_ns) = (9, 9);
    let mut text = Vec::new();
    write_ftrace(&trace, &mut text).unwrap();
    assert_eq!(read("long", &text[..]).unwrap(), trace);
}

/// Gives some bytes, then an error.
struct Failing(io::Cursor<Vec<u8>>);

impl Read for Failing {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buf)? {
            0 => Err(io::Error::other("the disk is gone")),
            n => Ok(n),
        }
    }
}

#[test]
fn an_input_that_fails_keeps_what_was_read() {
    let failing = |text: &str| BufReader::new(Failing(io::Cursor::new(text.into())));
    let trace = read("disk", failing(PERF)).unwrap();
    assert!(trace.loss.truncated);
    assert_eq!(trace.len(), read("whole", PERF.as_bytes()).unwrap().len());
    let first = trace.loss.first.unwrap();
    assert_eq!(first, format!("after line {}: the input failed: the disk is gone", lines_of(PERF)));
    let error = read("disk", failing("")).unwrap_err();
    assert!(matches!(error, ReadError::Io { .. }));
    assert_eq!(error.to_string(), "disk: cannot be read: the disk is gone");
    let mut rest = failing("x");
    assert_eq!(rest.fill_buf().unwrap(), b"x");
}
