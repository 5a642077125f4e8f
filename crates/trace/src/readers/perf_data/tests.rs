//! Reading early, in pieces and by threads, held against reading one by one to the end.

use std::io::Read as _;

use flate2::read::MultiGzDecoder;
use proptest::prelude::*;

use super::*;
use crate::Part;

const ONE_BY_ONE: Cut = Cut { piece_bytes: 8, threads: 0 };

fn recording() -> Vec<u8> {
    let packed = include_bytes!("../../../tests/recordings/perf.data.gz");
    let mut bytes = Vec::new();
    MultiGzDecoder::new(&packed[..]).read_to_end(&mut bytes).unwrap();
    bytes
}

/// The trace, or what is wrong with the file: all of it is read before anything is handed out.
fn whole(bytes: &Vec<u8>) -> Result<Trace, String> {
    let collected = collect("it", bytes, None, ONE_BY_ONE, HandOut::AtTheEnd, None);
    let trace = collected.and_then(|(all, read)| all.finish("it", read, "records"));
    trace.map_err(|e| e.to_string())
}

/// An input that can be looked at up to a place, and has to be read from there on.
struct Partly<'b> {
    bytes: &'b Vec<u8>,
    seen: usize,
}

impl ReadAt for Partly<'_> {
    fn bytes(&self) -> io::Result<u64> {
        self.bytes.bytes()
    }

    fn read_at(&self, at: u64, to: &mut [u8]) -> io::Result<usize> {
        // No more at once than a slow disk may give.
        let bytes = to.len().min(3000);
        self.bytes.read_at(at, &mut to[..bytes])
    }

    fn view(&self, at: u64, len: usize) -> Option<&[u8]> {
        self.bytes[..self.seen].get(usize::try_from(at).ok()?..)?.get(..len)
    }
}

/// The same, handed out as early as can be: looked at, read, looked at in part (a view reaches 64 KiB beyond its piece), and with other
/// bytes behind the file, which must not count.
fn early(bytes: &Vec<u8>, cut: Cut) -> Result<Trace, String> {
    fn read(input: &impl ReadAt, cut: Cut) -> Result<Trace, String> {
        read_cut("it", input, None, cut, None).map_err(|e| e.to_string())
    }
    let mut longer = bytes.clone();
    longer.resize(bytes.len() + cut.piece_bytes + (1 << 17), 0xff);
    let found = read(bytes, cut);
    for seen in [0, bytes.len() / 4 * 3] {
        assert_eq!(read(&Partly { bytes, seen }, cut), found, "{seen} bytes can be looked at");
    }
    assert_eq!(read(&longer, cut), found);
    found
}

/// Puts parts together again.
#[derive(Default)]
struct Together {
    trace: Option<Trace>,
    has_wakeups: bool,
    begun: u32,
    parts: u32,
}

impl TakeParts for Together {
    fn begin(&mut self, header: &Trace, has_wakeups: bool) {
        assert_eq!((header.len(), header.tasks().len()), (0, 1));
        (self.trace, self.has_wakeups) = (Some(header.clone()), has_wakeups);
        (self.begun, self.parts) = (self.begun + 1, 0);
    }

    fn take(&mut self, part: Part) -> Part {
        self.parts += 1;
        let trace = self.trace.as_mut().unwrap();
        part.tasks.iter().for_each(|task| _ = trace.add_task(task.clone()));
        part.nices.iter().for_each(|(task, nice)| trace.task_mut(*task).nice = Some(*nice));
        part.events.iter().for_each(|event| trace.push(*event));
        Part::default()
    }
}

/// The same in parts, put together; how often they began, and how many there were.
fn in_parts(bytes: &Vec<u8>, cut: Cut) -> (Result<Trace, String>, u32, u32) {
    let mut together = Together::default();
    let read = read_cut("it", bytes, None, cut, Some(&mut together));
    let trace = read.map_err(|e| e.to_string()).map(|rest| {
        let Some(mut trace) = together.trace else { return rest };
        assert_eq!((rest.len(), rest.tasks().len()), (0, trace.tasks().len()));
        assert_eq!((rest.start_ns, rest.cpus), (trace.start_ns, trace.cpus));
        let is_wakeup = |event: crate::Event| matches!(event.kind, crate::EventKind::Wakeup { .. });
        assert_eq!(trace.events().any(is_wakeup), together.has_wakeups);
        for (at, task) in rest.tasks().iter().enumerate() {
            assert_eq!(trace.tasks()[at].nice, task.nice);
            *trace.task_mut(crate::TaskId(at as u32)) = task.clone();
        }
        (trace.end_ns, trace.loss) = (rest.end_ns, rest.loss);
        trace
    });
    (trace, together.begun, together.parts)
}

#[test]
fn pieces_and_threads_of_any_number_give_the_trace_of_reading_one_by_one() {
    let bytes = recording();
    let wanted = whole(&bytes).unwrap();
    assert!(wanted.len() > 300);
    for piece_bytes in [8, 64, 100, 1000, 4096, 1 << 16, 1 << 20] {
        for threads in 1..4 {
            let cut = Cut { piece_bytes, threads };
            assert_eq!(early(&bytes, cut).as_ref(), Ok(&wanted), "{piece_bytes} {threads}");
            let (found, begun, _) = in_parts(&bytes, cut);
            assert_eq!((found.as_ref(), begun), (Ok(&wanted), 1), "{piece_bytes} {threads}");
        }
    }
}

/// Event by event, one is moved to the beginning of the recording: found when events before it were handed out, it begins anew.
#[test]
fn what_comes_too_late_is_put_in_order() {
    let bytes = recording();
    let pieces = Pieces::read(&bytes).unwrap();
    let is_sample = |at: &usize| bytes[*at..*at + 4] == RecordType::SAMPLE.0.to_le_bytes();
    let samples: Vec<usize> = places(&bytes, &pieces).into_iter().filter(is_sample).collect();
    let cut = Cut { piece_bytes: 256, threads: 2 };
    let mut begun_anew = 0;
    for at in samples.iter().step_by(7) {
        // Behind the head, the number of the event, the address and the task.
        let time = |at: usize| at + 32..at + 40;
        let mut late = bytes.clone();
        late.copy_within(time(samples[0]), time(*at).start);
        let wanted = whole(&late);
        assert_eq!(early(&late, cut), wanted);
        let (found, begun, _) = in_parts(&late, cut);
        assert_eq!(found, wanted);
        begun_anew += u32::from(begun == 2);
    }
    assert!(begun_anew > 10, "{begun_anew} of {}", samples.len());
}

/// A disk that was full leaves such holes.
#[test]
fn zeros_end_the_records_wherever_they_begin() {
    let bytes = recording();
    let pieces = Pieces::read(&bytes).unwrap();
    for place in places(&bytes, &pieces).into_iter().step_by(11) {
        let mut bytes = bytes.clone();
        bytes[place..(pieces.data_at + pieces.data_size) as usize].fill(0);
        let wanted = whole(&bytes);
        for cut in [Cut { piece_bytes: 512, threads: 2 }, Cut { piece_bytes: 1 << 18, threads: 1 }]
        {
            assert_eq!(early(&bytes, cut), wanted, "from byte {place} on");
        }
    }
}

/// How much was taken over in pieces, bytes.
#[test]
fn a_sound_file_is_read_in_pieces_to_its_end() {
    let bytes = recording();
    let pieces = Pieces::read(&bytes).unwrap();
    let container = Container::parse(&pieces).unwrap();
    let described = container.feature(FEATURE_TRACING_DATA).unwrap();
    let (described, _) = TracingData::parse(described, |_| true).unwrap();
    let formats = described.formats.iter().map(String::as_str);
    let decoder = Decoder::new(container.endian, formats, &described.kallsyms);
    let flat = Flat::new(&decoder).unwrap();
    let mut reader = Reader::new(&container, decoder, HandOut::Early, None);
    let end = pieces.data_at + pieces.data_size;
    let data = Data {
        input: &bytes,
        attributes: &container.attributes,
        flat: &flat,
        from: pieces.data_at,
        end,
    };
    assert_eq!(data.read(&mut reader, Cut { piece_bytes: 4096, threads: 2 }), end);
}

/// Where the records of a sound file begin.
fn places(bytes: &[u8], pieces: &Pieces) -> Vec<usize> {
    let mut places = Vec::new();
    let data = &bytes[pieces.data_at as usize..];
    let whole = (pieces.data_at, pieces.data_size);
    let why = pieces::split(data, whole, Endian::Little, |record| places.push(record.at as usize));
    assert_eq!(why, None);
    places
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn so_it_is_with_damage(
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        heads in prop::collection::vec((any::<prop::sample::Index>(), 0..4_usize, any::<u16>()), 0..6),
        piece_bytes in prop::sample::select(vec![64, 200, 1024, 4096]),
        threads in 1..3_usize,
    ) {
        let mut bytes = recording();
        let pieces = Pieces::read(&bytes).unwrap();
        let places = places(&bytes, &pieces);
        for (at, value) in flips {
            bytes[pieces.data_at as usize + at.index(pieces.data_size as usize)] = value;
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
        let (wanted, cut) = (whole(&bytes), Cut { piece_bytes, threads });
        prop_assert_eq!(&early(&bytes, cut), &wanted);
        prop_assert_eq!(in_parts(&bytes, cut).0, wanted);
    }
}
