//! `perf.data`: the samples of the scheduler's tracepoints, decoded by the kernel's descriptions that the file holds.
//!
//! The same events as in the text of `perf sched script --ns`, with the same names of tasks.

mod ahead;
mod container;
mod forms;
mod in_hand;
mod input;
mod losses;
mod mapped;
mod piece;
mod pieces;
mod samples;
mod stamps;
mod usual;

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
use self::losses::Losses;
pub(super) use self::mapped::Mapped;
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
/// `PERF_RECORD_MISC_LOST_SAMPLES_BPF`: they were not lost, a filter of the recorder's dropped them.
const MISC_DROPPED: u16 = 1 << 15;
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
    reader.end();
    Ok((reader.collector, reader.read))
}

struct Reader<'a, 'p> {
    forms: Forms<'a>,
    endian: Endian,
    hand_out: HandOut,
    collector: Collector<'p>,
    decoder: Decoder<'a>,
    scratch: Scratch,
    losses: Losses,
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
        let (losses, packed) = (Losses::default(), Vec::new());
        Self { forms, endian, hand_out, collector, decoder, scratch, losses, read: 0, packed }
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
        let (records, runs) = (take(&mut piece.records), take(&mut piece.runs));
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
        if let Some(Sample { time_ns, cpu, tid, raw_at, raw_bytes }) = sample {
            if cpu < CPUS_MAX {
                let raw = &record.body[raw_at..][..raw_bytes as usize];
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
            return match time_ns {
                _ if record.misc & MISC_DROPPED != 0 => {}
                0 => self.losses.in_all(cpu_of(record), count),
                _ => self.lost(time_ns, record, count),
            };
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

    /// Events are missing here.
    fn lost(&mut self, time_ns: u64, record: &RawEventRecord<'_>, count: u64) {
        let cpu = cpu_of(record);
        self.losses.here(cpu, count);
        match cpu {
            Some(cpu) => {
                self.collector.first(|| format!("CPU {cpu} lost {count} events"));
                self.collector.event(cpu, time_ns, Said::Lost { count }, None);
            }
            None => self.collector.lost_somewhere(count),
        }
    }

    /// There are no more records.
    fn end(&mut self) {
        for (cpu, count) in self.losses.untold() {
            match cpu {
                Some(cpu) => self.collector.lost_at_the_end(cpu, count),
                None => self.collector.lost_somewhere(count),
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

/// The CPU on which a record that is no sample was made.
fn cpu_of(record: &RawEventRecord<'_>) -> Option<u32> {
    record.common_data().unwrap_or_default().cpu.filter(|cpu| *cpu < CPUS_MAX)
}

#[cfg(test)]
mod tests;
