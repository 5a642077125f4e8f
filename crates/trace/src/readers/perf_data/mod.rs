//! `perf.data`: the samples of the scheduler's tracepoints, decoded by the kernel's descriptions that the file holds.
//!
//! The same events as in the text of `perf sched script --ns`, with the same names of tasks.

mod ahead;
mod container;
mod forms;
mod input;
mod piece;
mod pieces;
mod samples;

use std::io;
use std::mem::take;

use linux_perf_event_reader::{EventRecord, RawEventRecord, RecordType};

use self::ahead::{Cut, Data};
use self::container::{
    Container, FEATURE_NRCPUS, FEATURE_TRACING_DATA, RawRecord, compressed, decompress,
};
use self::forms::Forms;
use self::input::From;
pub(super) use self::input::ReadAt;
use self::piece::{Piece, raw_record};
use self::pieces::Pieces;
use self::samples::Sample;
use super::ReadError;
use super::binary::{Decoded, Decoder, Endian, Flat, Scratch, TracingData, Why};
use super::collect::{Collector, Place};
use super::fields::Said;
use super::line::CPUS_MAX;
use super::parts::TakeParts;
use crate::Trace;

/// The first bytes, in either byte order.
pub(super) const MAGICS: [&[u8]; 2] = [b"PERFILE2", b"2ELIFREP"];

/// `PERF_RECORD_LOST_SAMPLES`.
const RECORD_LOST_SAMPLES: RecordType = RecordType(13);
/// `PERF_RECORD_FINISHED_ROUND`: the recorder has written what there was of each CPU.
const RECORD_FINISHED_ROUND: RecordType = RecordType(68);
/// The samples that are used have more: head, task, time, CPU, and an event with a name.
const SAMPLE_BYTES_MIN: u64 = 64;
/// Versions of the tracing data before this one have no names of tasks.
const FIRST_WITH_NAMES: &str = "0.6";

const REMEDY: &str = "print it with the perf that recorded it: perf sched script --ns -i FILE";

/// When events are handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HandOut {
    /// As soon as nothing before them is missing, as the recorder says it.
    Early,
    /// When all of the file is read.
    AtTheEnd,
}

/// Reads a file; `cut` says why it is not whole, and `parts` may take its events.
pub(super) fn read(
    name: &str,
    input: &impl ReadAt,
    cut: Option<io::Error>,
    parts: Option<&mut dyn TakeParts>,
) -> Result<Trace, ReadError> {
    let cut = cut.map(|error| format!("the input failed: {error}"));
    read_cut(name, input, cut.as_deref(), Cut::usual(), parts)
}

fn read_cut(
    name: &str,
    input: &impl ReadAt,
    cut: Option<&str>,
    ahead: Cut,
    mut parts: Option<&mut dyn TakeParts>,
) -> Result<Trace, ReadError> {
    let again: Option<&mut dyn TakeParts> = match &mut parts {
        Some(parts) => Some(&mut **parts),
        None => None,
    };
    let (collector, read) = collect(name, input, cut, ahead, HandOut::Early, again)?;
    if !collector.is_late() {
        return collector.finish(name, read, "records");
    }
    drop(collector);
    let (collector, read) = collect(name, input, cut, ahead, HandOut::AtTheEnd, parts)?;
    collector.finish(name, read, "records")
}

/// All records of a file, and the number of those of the kernel; or those up to where it turned out that events were handed out too
/// early ([`Collector::is_late`]).
fn collect<'p>(
    name: &str,
    input: &impl ReadAt,
    cut: Option<&str>,
    ahead: Cut,
    hand_out: HandOut,
    parts: Option<&'p mut dyn TakeParts>,
) -> Result<(Collector<'p>, u64), ReadError> {
    let damaged = |why: Why| ReadError::Damaged {
        name: name.to_owned(),
        format: "a perf.data",
        why,
        remedy: REMEDY,
    };
    let failed = |source| ReadError::Io { name: name.to_owned(), source };
    let pieces = Pieces::read(input).map_err(failed)?;
    let container = Container::parse(&pieces).map_err(damaged)?;
    let Some(described) = container.feature(FEATURE_TRACING_DATA) else {
        return Err(damaged("it holds no tracepoints, or it is cut off: the kernel's descriptions of events stand at its end".to_owned()));
    };
    let with_names = |version: &str| version >= FIRST_WITH_NAMES;
    let (described, _) = TracingData::parse(described, with_names).map_err(damaged)?;
    let formats = described.formats.iter().map(String::as_str);
    let decoder = Decoder::new(container.endian, formats, &described.kallsyms);
    let flat = Flat::new(&decoder);
    let mut reader = Reader::new(&container, decoder, hand_out, parts);
    if let Some(why) = cut {
        reader.cut(why.to_owned());
    }
    let (endian, end) = (container.endian, pieces.data_at.saturating_add(pieces.data_size));
    let mut at = pieces.data_at;
    if let Some(flat) = &flat {
        let end = end.min(pieces.file_bytes);
        let data = Data { input, attributes: &container.attributes, flat, from: at, end };
        at = data.read(&mut reader, ahead);
        if reader.collector.is_late() {
            return Ok((reader.collector, reader.read));
        }
    }
    let rest = From { input, at };
    let cut = pieces::split(rest, (at, end - at), endian, |record| reader.record(&record));
    let (plain, cut_in_packing) = decompress(take(&mut reader.packed));
    let cut_in_packed =
        pieces::split(&plain[..], (0, plain.len() as u64), endian, |record| reader.record(&record));
    for why in [container.why_cut.clone(), cut, cut_in_packing, cut_in_packed] {
        why.into_iter().for_each(|why| reader.cut(why));
    }
    Ok((reader.collector, reader.read))
}

struct Reader<'a, 'p> {
    forms: Forms<'a>,
    endian: Endian,
    hand_out: HandOut,
    collector: Collector<'p>,
    decoder: Decoder<'a>,
    scratch: Scratch,
    /// Records of the kernel so far.
    read: u64,
    /// Compressed records, one behind the other.
    packed: Vec<u8>,
}

impl<'a, 'p> Reader<'a, 'p> {
    fn new(
        container: &'a Container<'_>,
        decoder: Decoder<'a>,
        hand_out: HandOut,
        parts: Option<&'p mut dyn TakeParts>,
    ) -> Self {
        let mut collector = Collector::new().for_parts(parts);
        // Number of CPUs that there may be, and number online.
        let online = container.feature(FEATURE_NRCPUS).and_then(|feature| feature.get(4..8));
        let online = online.map_or(0, |bytes| container.endian.number(bytes) as u32);
        collector.trace.cpus = if online <= CPUS_MAX { online } else { 0 };
        collector.named_later(0, 0, "swapper");
        let endian = container.endian;
        let forms = Forms::new(&container.attributes, endian);
        let scratch = Scratch::default();
        Self { forms, endian, hand_out, collector, decoder, scratch, read: 0, packed: Vec::new() }
    }

    fn cut(&mut self, why: Why) {
        self.collector.trace.loss.truncated = true;
        self.collector.first_of_all(|| format!("the file ends early: {why}"));
    }

    /// Whether events may be handed out before the rest is read. Packed records come last, whatever their times.
    fn hands_out(&self) -> bool {
        self.hand_out == HandOut::Early && self.packed.is_empty()
    }

    /// Takes the next piece of the file. False: it is to be taken record by record.
    fn piece(&mut self, piece: &mut Piece) -> bool {
        if piece.is_odd || !self.collector.goes_on(&piece.spans) {
            return false;
        }
        self.read += piece.read;
        self.collector.trace.loss.skipped += piece.skipped;
        piece.rounds.iter().for_each(|seen_ns| self.collector.round(*seen_ns));
        let (records, runs) = (take(&mut piece.records), piece.runs.iter().cloned());
        self.collector.all(&piece.spans, records, runs, piece.cpus, piece.has_wakeups);
        let others = piece.others.iter();
        others.filter_map(|(at, bytes)| raw_record(*at, bytes)).for_each(|r| self.record(&r));
        true
    }

    /// Takes the next record of the file.
    fn record(&mut self, record: &RawRecord<'_>) {
        let kind = RecordType(record.kind);
        if kind == RECORD_FINISHED_ROUND {
            return self.collector.round(0);
        }
        if kind.is_user_type() {
            compressed(record, self.endian, &mut self.packed);
            return;
        }
        self.read += 1;
        self.collector.place = Place::Byte(record.at);
        let sample = (kind == RecordType::SAMPLE)
            .then(|| self.forms.sample(self.endian, record.body))
            .flatten();
        if let Some(Sample { time_ns, cpu, tid, raw }) = sample {
            if cpu < CPUS_MAX {
                self.sample(cpu, time_ns, tid, raw);
            } else {
                self.collector.trace.loss.skipped += 1;
            }
            return;
        }
        // The others say nothing here, and a damaged one of them (a build id that is too long) stops the crate that parses them.
        const OF_USE: [RecordType; 5] = [
            RecordType::COMM,
            RecordType::FORK,
            RecordType::LOST,
            RecordType::SAMPLE,
            RECORD_LOST_SAMPLES,
        ];
        if OF_USE.contains(&kind) {
            let record = self.forms.raw(record);
            self.take(record.timestamp().unwrap_or(0), &record);
        }
    }

    fn take(&mut self, time_ns: u64, record: &RawEventRecord<'_>) {
        if record.record_type == RECORD_LOST_SAMPLES {
            let count = self.endian.number(&record.data.as_slice()[..8.min(record.data.len())]);
            return self.lost(time_ns, record, count);
        }
        match record.parse() {
            Ok(EventRecord::Comm(comm)) => {
                let name = String::from_utf8_lossy(&comm.name.as_slice()).into_owned();
                self.collector.named_later(time_ns, comm.tid as u32, &name);
            }
            Ok(EventRecord::Fork(fork)) => {
                self.collector.forked_later(time_ns, fork.ptid as u32, fork.tid as u32);
            }
            Ok(EventRecord::Lost(lost)) => self.lost(time_ns, record, lost.count),
            Ok(EventRecord::Sample(sample)) => {
                let Some((cpu, raw)) = sample.cpu.filter(|cpu| *cpu < CPUS_MAX).zip(sample.raw)
                else {
                    // An event that is no tracepoint, or one without the columns that perf sched asks for.
                    self.collector.trace.loss.skipped += 1;
                    return;
                };
                if sample.timestamp.is_none() {
                    return self.collector.unreadable("a sample without its time");
                }
                self.sample(cpu, time_ns, sample.tid, &raw.as_slice());
            }
            Ok(_) => {}
            Err(e) => self.collector.unreadable(&format!("a record that cannot be parsed: {e}")),
        }
    }

    fn lost(&mut self, time_ns: u64, record: &RawEventRecord<'_>, count: u64) {
        let common = record.common_data().unwrap_or_default();
        match common.cpu.filter(|cpu| *cpu < CPUS_MAX) {
            Some(cpu) => {
                self.collector.first(|| format!("CPU {cpu} lost {count} events"));
                self.collector.event(cpu, time_ns, Said::Lost { count }, None);
            }
            None => {
                let loss = &mut self.collector.trace.loss;
                loss.lost_events = loss.lost_events.saturating_add(count);
            }
        }
    }

    fn sample(&mut self, cpu: u32, time_ns: u64, tid: Option<i32>, raw: &[u8]) {
        match self.decoder.decode(raw, &mut self.scratch) {
            Decoded::Event { said, .. } => {
                // −1 is a task that had just been reaped.
                let tid = tid.filter(|tid| *tid >= 0);
                // Its name is known when all records are in order of time.
                let running = tid.map(|tid| (tid as u32, ""));
                self.collector.event(cpu, time_ns, said, running);
            }
            Decoded::Unreadable(why) => self.collector.unreadable(&why),
        }
    }
}

#[cfg(test)]
mod tests {
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

    /// The same, handed out as early as can be.
    fn early(bytes: &Vec<u8>, cut: Cut) -> Result<Trace, String> {
        read_cut("it", bytes, None, cut, None).map_err(|e| e.to_string())
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
        let why =
            pieces::split(data, whole, Endian::Little, |record| places.push(record.at as usize));
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
}
