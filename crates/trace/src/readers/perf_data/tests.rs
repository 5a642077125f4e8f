//! Reading in chunks, by several decoders and in parts, compared with reading all in one chunk.

use std::io::Cursor;

use flate2::read::MultiGzDecoder;
use proptest::prelude::*;

use super::*;
use crate::{Event, EventKind, Segment, TaskId};

fn recording() -> Vec<u8> {
    let packed = include_bytes!("../../../tests/recordings/perf.data.gz");
    let mut bytes = Vec::new();
    MultiGzDecoder::new(&packed[..]).read_to_end(&mut bytes).unwrap();
    bytes
}

/// The trace, or what is wrong with the file.
fn divided(bytes: &[u8], chunk_bytes: usize, decoders: usize) -> Result<Trace, String> {
    let division = Division { chunk_bytes, decoders };
    read_all("it", Cursor::new(bytes), None, &Expansion::default(), division, None, Vec::new())
        .map_err(|e| e.to_string())
}

fn whole(bytes: &[u8]) -> Result<Trace, String> {
    divided(bytes, 1 << 20, 1)
}

/// Puts parts together again.
#[derive(Default)]
struct Joined {
    trace: Option<Trace>,
    has_wakeups: bool,
    parts: u32,
}

impl TakeSegments for Joined {
    fn begin(&mut self, header: &Trace, has_wakeups: bool) {
        assert!(self.trace.is_none(), "it begins once");
        assert_eq!((header.len(), header.tasks().len()), (0, 1));
        (self.trace, self.has_wakeups) = (Some(header.clone()), has_wakeups);
    }

    fn take(&mut self, part: Segment) -> Segment {
        self.parts += 1;
        let trace = self.trace.as_mut().unwrap();
        part.tasks.iter().for_each(|task| _ = trace.add_task(task.clone()));
        part.rt_prios.iter().for_each(|(task, prio)| trace.task_mut(*task).rt_prio = Some(*prio));
        part.nices.iter().for_each(|(task, nice)| trace.task_mut(*task).nice = Some(*nice));
        part.events().for_each(|event| trace.push(event));
        Segment::default()
    }
}

/// The trace, put together from parts.
fn in_parts(bytes: &[u8], chunk_bytes: usize, decoders: usize) -> Result<Trace, String> {
    let mut joined = Joined::default();
    let division = Division { chunk_bytes, decoders };
    let read = read_all(
        "it",
        Cursor::new(bytes),
        None,
        &Expansion::default(),
        division,
        Some(&mut joined),
        Vec::new(),
    );
    let rest = read.map_err(|e| e.to_string())?;
    let mut trace = joined.trace.expect("it begins");
    assert_eq!((rest.len(), rest.tasks().len()), (0, trace.tasks().len()));
    assert_eq!((rest.start_ns, rest.cpus), (trace.start_ns, trace.cpus));
    let is_wakeup = |event: Event| matches!(event.kind, EventKind::Wakeup { .. });
    assert!(joined.has_wakeups || !trace.events().any(is_wakeup));
    for (at, task) in rest.tasks().iter().enumerate() {
        assert_eq!(trace.tasks()[at].nice, task.nice);
        *trace.task_mut(TaskId(at as u32)) = task.clone();
    }
    (trace.end_ns, trace.loss) = (rest.end_ns, rest.loss);
    Ok(trace)
}

#[test]
fn chunks_and_decoders_of_any_number_give_one_trace() {
    let bytes = recording();
    let wanted = whole(&bytes).unwrap();
    assert!(wanted.len() > 300);
    for chunk_bytes in [1, 64, 1000, 4096, 1 << 16, 1 << 20] {
        for decoders in 1..4 {
            let found = divided(&bytes, chunk_bytes, decoders);
            assert_eq!(found.as_ref(), Ok(&wanted), "{chunk_bytes} {decoders}");
            let found = in_parts(&bytes, chunk_bytes, decoders);
            assert_eq!(found.as_ref(), Ok(&wanted), "{chunk_bytes} {decoders}");
        }
    }
}

/// Where the samples of a sound file begin.
fn samples(bytes: &[u8]) -> Vec<usize> {
    const SAMPLE: u32 = 9;
    places(bytes).into_iter().filter(|at| bytes[*at..*at + 4] == SAMPLE.to_le_bytes()).collect()
}

/// Where the records of a sound file begin.
fn places(bytes: &[u8]) -> Vec<usize> {
    let sections = Sections::read(&mut Cursor::new(bytes)).unwrap();
    let endian = super::super::binary::Endian::Little;
    let (at, size) = (sections.data_at, sections.data_size);
    let mut chunks = Chunks::new(&bytes[at as usize..], at, Some(size), endian, 1 << 20);
    let chunk = chunks.next(Vec::new()).unwrap();
    assert_eq!(chunks.why_cut, None);
    chunk.records(endian).map(|record| record.at as usize).collect()
}

/// The time of a sample of the recording: behind the head, the number of the event, the address and the task.
fn time(sample: usize) -> std::ops::Range<usize> {
    sample + 32..sample + 40
}

/// A sample gets the time of the first one. In a trace it stands where that is; in parts, where events behind it have
/// been passed on, it is at the end of those, and counts.
#[test]
fn what_is_older_than_its_round_allows() {
    let bytes = recording();
    let samples = samples(&bytes);
    let mut late = 0;
    for at in samples.iter().step_by(7) {
        let mut bytes = bytes.clone();
        bytes.copy_within(time(samples[0]), time(*at).start);
        let wanted = whole(&bytes).unwrap();
        assert_eq!(divided(&bytes, 1, 2).as_ref(), Ok(&wanted));
        let found = in_parts(&bytes, 1, 2).unwrap();
        if found.loss.clock_jumps == wanted.loss.clock_jumps {
            assert_eq!(found, wanted);
        } else {
            assert_eq!(found.loss.clock_jumps, wanted.loss.clock_jumps + 1);
            assert_eq!(found.end_ns, wanted.end_ns);
            late += 1;
        }
    }
    assert!(late > 10, "{late} of {}", samples.len());
}

/// One time far in the future moves no other event.
#[test]
fn a_time_far_ahead_is_counted_alone() {
    let bytes = recording();
    for at in samples(&bytes).into_iter().step_by(11) {
        let mut bytes = bytes.clone();
        bytes[time(at)].copy_from_slice(&(1_u64 << 60).to_le_bytes());
        let wanted = whole(&bytes).unwrap();
        assert_eq!(in_parts(&bytes, 1, 2).unwrap(), wanted);
    }
}

/// Behind a record of a wrong size others are found, of any CPU: those that the head does not announce are left out of
/// parts, and counted.
#[test]
fn what_is_not_announced_is_counted() {
    let bytes = recording();
    let mut left_out = 0;
    for at in places(&bytes) {
        let mut bytes = bytes.clone();
        bytes[at + 6..at + 8].copy_from_slice(&4236_u16.to_le_bytes());
        match (in_parts(&bytes, 64, 1), whole(&bytes)) {
            (Ok(found), Ok(wanted)) if found.loss.unreadable > wanted.loss.unreadable => {
                left_out += 1;
            }
            // What is left out is counted in the message.
            (Err(found), Err(wanted)) => left_out += usize::from(found != wanted),
            (found, wanted) => assert_eq!(found, wanted, "the record at byte {at}"),
        }
    }
    assert!(left_out > 0);
}

/// A disk that was full leaves such holes.
#[test]
fn zeros_end_the_records_wherever_they_begin() {
    let bytes = recording();
    let sections = Sections::read(&mut Cursor::new(&bytes)).unwrap();
    let end = (sections.data_at + sections.data_size) as usize;
    for at in places(&bytes).into_iter().step_by(11) {
        let mut bytes = bytes.clone();
        bytes[at..end].fill(0);
        let wanted = whole(&bytes);
        for (chunk_bytes, decoders) in [(512, 2), (1 << 18, 1)] {
            assert_eq!(divided(&bytes, chunk_bytes, decoders), wanted, "from byte {at} on");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn damage_is_the_same_in_all_chunks(
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        heads in prop::collection::vec((any::<prop::sample::Index>(), 0..4_usize, any::<u16>()), 0..6),
        chunk_bytes in prop::sample::select(vec![64, 200, 1024, 4096]),
        decoders in 1..3_usize,
    ) {
        let mut bytes = recording();
        let sections = Sections::read(&mut Cursor::new(&bytes)).unwrap();
        let places = places(&bytes);
        for (at, value) in flips {
            bytes[sections.data_at as usize + at.index(sections.data_size as usize)] = value;
        }
        for (of, what, value) in heads {
            let at = places[of.index(places.len())];
            match what {
                // Another kind of record, another size, another time or CPU.
                0 => bytes[at] = (value % 90) as u8,
                1 => bytes[at + 6..at + 8].copy_from_slice(&value.to_le_bytes()),
                _ => {
                    let at = (at + 8 + usize::from(value >> 8) % 48).min(bytes.len() - 1);
                    bytes[at] = value as u8;
                }
            }
        }
        let wanted = whole(&bytes);
        prop_assert_eq!(&divided(&bytes, chunk_bytes, decoders), &wanted);
        match (in_parts(&bytes, chunk_bytes, decoders), wanted) {
            (Ok(found), Ok(wanted)) if found.loss != wanted.loss => {
                // Events that come too late, or are not announced, are counted.
                let new = |trace: &Trace| trace.loss.clock_jumps + trace.loss.unreadable;
                prop_assert!(new(&found) > new(&wanted));
            }
            (Err(_), Err(_)) => {}
            (found, wanted) => prop_assert_eq!(found, wanted),
        }
    }
}
