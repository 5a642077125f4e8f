//! `perf.data`: the samples of the scheduler's tracepoints, decoded by the kernel's descriptions that the file holds.
//!
//! The same events as in the text of `perf sched script --ns`, with the same names of tasks.

mod container;
mod forms;
mod pieces;
mod samples;

use std::io::{self, Read, Seek, SeekFrom};

use linux_perf_event_reader::{EventRecord, RawEventRecord, RecordType};

use self::container::{
    Container, FEATURE_NRCPUS, FEATURE_TRACING_DATA, RawRecord, compressed, decompress,
};
use self::forms::Forms;
use self::pieces::Pieces;
use self::samples::Sample;
use super::ReadError;
use super::binary::{Decoded, Decoder, Endian, Scratch, TracingData, Why};
use super::collect::{Collector, Place};
use super::fields::Said;
use super::line::CPUS_MAX;
use crate::Trace;

/// The first bytes, in either byte order.
pub(super) const MAGICS: [&[u8]; 2] = [b"PERFILE2", b"2ELIFREP"];

/// `PERF_RECORD_LOST_SAMPLES`.
const RECORD_LOST_SAMPLES: RecordType = RecordType(13);
/// Versions of the tracing data before this one have no names of tasks.
const FIRST_WITH_NAMES: &str = "0.6";

const REMEDY: &str = "print it with the perf that recorded it: perf sched script --ns -i FILE";

/// Reads a file; `cut` says why it is not whole.
pub(super) fn read(
    name: &str,
    mut input: impl Read + Seek,
    cut: Option<io::Error>,
) -> Result<Trace, ReadError> {
    let damaged = |why: Why| ReadError::Damaged {
        name: name.to_owned(),
        format: "a perf.data",
        why,
        remedy: REMEDY,
    };
    let failed = |source| ReadError::Io { name: name.to_owned(), source };
    let pieces = Pieces::read(&mut input).map_err(failed)?;
    let container = Container::parse(&pieces).map_err(damaged)?;
    let Some(described) = container.feature(FEATURE_TRACING_DATA) else {
        return Err(damaged("it holds no tracepoints, or it is cut off: the kernel's descriptions of events stand at its end".to_owned()));
    };
    let with_names = |version: &str| version >= FIRST_WITH_NAMES;
    let (described, _) = TracingData::parse(described, with_names).map_err(damaged)?;
    let formats = described.formats.iter().map(String::as_str);
    let decoder = Decoder::new(container.endian, formats, &described.kallsyms);
    let mut reader = Reader::new(&container, decoder);
    if let Some(error) = cut {
        reader.cut(format!("the input failed: {error}"));
    }
    let endian = container.endian;
    let mut packed = Vec::new();
    input.seek(SeekFrom::Start(pieces.data_at)).map_err(failed)?;
    let cut = pieces::split(&mut input, (pieces.data_at, pieces.data_size), endian, |record| {
        if !compressed(&record, endian, &mut packed) {
            reader.record(&record);
        }
    });
    let (plain, cut_in_packing) = decompress(packed);
    let cut_in_packed =
        pieces::split(&plain[..], (0, plain.len() as u64), endian, |record| reader.record(&record));
    for why in [container.why_cut.clone(), cut, cut_in_packing, cut_in_packed] {
        why.into_iter().for_each(|why| reader.cut(why));
    }
    let Reader { collector, read, .. } = reader;
    collector.finish(name, read, "records")
}

struct Reader<'a> {
    forms: Forms<'a>,
    endian: Endian,
    collector: Collector,
    decoder: Decoder<'a>,
    scratch: Scratch,
    /// Records of the kernel so far.
    read: u64,
}

impl<'a> Reader<'a> {
    fn new(container: &'a Container<'_>, decoder: Decoder<'a>) -> Self {
        let mut collector = Collector::new();
        // Number of CPUs that there may be, and number online.
        let online = container.feature(FEATURE_NRCPUS).and_then(|feature| feature.get(4..8));
        let online = online.map_or(0, |bytes| container.endian.number(bytes) as u32);
        collector.trace.cpus = if online <= CPUS_MAX { online } else { 0 };
        collector.named_later(0, 0, "swapper");
        let endian = container.endian;
        let forms = Forms::new(&container.attributes, endian);
        Self { forms, endian, collector, decoder, scratch: Scratch::default(), read: 0 }
    }

    fn cut(&mut self, why: Why) {
        self.collector.trace.loss.truncated = true;
        self.collector.first_of_all(|| format!("the file ends early: {why}"));
    }

    /// Takes the next record of the file.
    fn record(&mut self, record: &RawRecord<'_>) {
        let kind = RecordType(record.kind);
        if kind.is_user_type() {
            return;
        }
        self.read += 1;
        self.collector.place = Place::Byte(record.at);
        if let Some(Sample { time_ns, cpu, tid, raw }) = self.forms.sample(record) {
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
