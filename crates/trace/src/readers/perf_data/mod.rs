//! `perf.data`: the samples of the scheduler's tracepoints, decoded by the kernel's descriptions that the file holds.
//!
//! The same events as in the text of `perf sched script --ns`, with the same names of tasks.

mod container;

use std::collections::HashMap;
use std::io;

use byteorder::{BigEndian, LittleEndian};
use linux_perf_event_reader::{
    EventRecord, RawData, RawEventRecord, RecordParseInfo, RecordType, get_record_identifier,
};

use self::container::{Container, FEATURE_NRCPUS, FEATURE_TRACING_DATA, RawRecord};
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

/// Reads a whole file; `cut` says why it is not whole.
pub(super) fn read(name: &str, bytes: &[u8], cut: Option<io::Error>) -> Result<Trace, ReadError> {
    let damaged = |why: Why| ReadError::Damaged {
        name: name.to_owned(),
        format: "a perf.data",
        why,
        remedy: REMEDY,
    };
    let mut container = Container::parse(bytes).map_err(damaged)?;
    let Some(described) = container.feature(FEATURE_TRACING_DATA) else {
        return Err(damaged("it holds no tracepoints, or it is cut off: the kernel's descriptions of events stand at its end".to_owned()));
    };
    let with_names = |version: &str| version >= FIRST_WITH_NAMES;
    let (described, _) = TracingData::parse(described, with_names).map_err(damaged)?;
    let mut compressed = Vec::new();
    let mut records = container.records(&mut compressed);
    let plain = if compressed.is_empty() { Vec::new() } else { container.decompress(compressed) };
    records.extend(container.decompressed(&plain));

    let formats = described.formats.iter().map(String::as_str);
    let decoder = Decoder::new(container.endian, formats, &described.kallsyms);
    let mut reader = Reader::new(&container, decoder);
    if let Some(error) = cut {
        reader.cut(format!("the input failed: {error}"));
    }
    if let Some(why) = &container.cut {
        reader.cut(why.clone());
    }
    let read = reader.all(&records);
    reader.collector.finish(name, read, "records")
}

struct Reader<'a> {
    container: &'a Container<'a>,
    collector: Collector,
    decoder: Decoder<'a>,
    scratch: Scratch,
    names: HashMap<i32, String>,
}

impl<'a> Reader<'a> {
    fn new(container: &'a Container<'a>, decoder: Decoder<'a>) -> Self {
        let mut collector = Collector::new();
        // Number of CPUs that there may be, and number online.
        let online = container.feature(FEATURE_NRCPUS).and_then(|feature| feature.get(4..8));
        let online = online.map_or(0, |bytes| container.endian.number(bytes) as u32);
        collector.trace.cpus = if online <= CPUS_MAX { online } else { 0 };
        let names = HashMap::from([(0, "swapper".to_owned())]);
        Self { container, collector, decoder, scratch: Scratch::default(), names }
    }

    fn cut(&mut self, why: Why) {
        self.collector.trace.loss.truncated = true;
        self.collector.first_of_all(|| format!("the file ends early: {why}"));
    }

    /// Takes every record in order of time, as perf does; returns the number of those that are of the kernel.
    fn all(&mut self, records: &[RawRecord<'_>]) -> u64 {
        let of_kernel = records.iter().filter(|record| !RecordType(record.kind).is_user_type());
        let mut in_order: Vec<(u64, RawEventRecord<'_>, u64)> = of_kernel
            .map(|record| {
                let parsed = self.raw(record);
                (parsed.timestamp().unwrap_or(0), parsed, record.at)
            })
            .collect();
        self.clock_jumps(&in_order);
        in_order.sort_by_key(|(time_ns, ..)| *time_ns);
        for (time_ns, record, at) in &in_order {
            self.collector.place = Place::Byte(*at);
            self.take(*time_ns, record);
        }
        in_order.len() as u64
    }

    /// The order of each CPU's samples in the file is that of its clock.
    fn clock_jumps(&mut self, in_file: &[(u64, RawEventRecord<'_>, u64)]) {
        let mut last_ns: HashMap<u32, u64> = HashMap::new();
        for (time_ns, record, at) in in_file {
            if record.record_type != RecordType::SAMPLE {
                continue;
            }
            let Some(cpu) = record.common_data().ok().and_then(|common| common.cpu) else {
                continue;
            };
            let last = last_ns.insert(cpu, *time_ns);
            if let Some(last) = last.filter(|last| *last > *time_ns) {
                self.collector.trace.loss.clock_jumps += 1;
                self.collector.place = Place::Byte(*at);
                self.collector
                    .first(|| format!("the clock of CPU {cpu} went back by {} ns", last - time_ns));
            }
        }
    }

    /// A record with the attribute by which it is to be read.
    fn raw<'r>(&self, record: &RawRecord<'r>) -> RawEventRecord<'r> {
        let data = RawData::Single(record.body);
        let kind = RecordType(record.kind);
        RawEventRecord::new(kind, record.misc, data, self.attribute(kind, data))
    }

    fn attribute(&self, kind: RecordType, data: RawData<'_>) -> RecordParseInfo {
        let Container { endian, attributes, attribute_of, .. } = self.container;
        let first = attributes[0];
        if attributes.iter().all(|attribute| *attribute == first) {
            return first;
        }
        let number = match endian {
            Endian::Little => get_record_identifier::<LittleEndian>(kind, data, true),
            Endian::Big => get_record_identifier::<BigEndian>(kind, data, true),
        };
        let index = number.and_then(|number| attribute_of.get(&number));
        index.map_or(first, |index| attributes[*index])
    }

    fn take(&mut self, time_ns: u64, record: &RawEventRecord<'_>) {
        if record.record_type == RECORD_LOST_SAMPLES {
            let count =
                self.container.endian.number(&record.data.as_slice()[..8.min(record.data.len())]);
            return self.lost(time_ns, record, count);
        }
        // The others say nothing here, and a damaged one of them (a build id that is too long) stops the crate that parses them.
        const OF_USE: [RecordType; 4] =
            [RecordType::COMM, RecordType::FORK, RecordType::LOST, RecordType::SAMPLE];
        if !OF_USE.contains(&record.record_type) {
            return;
        }
        match record.parse() {
            Ok(EventRecord::Comm(comm)) => {
                let name = String::from_utf8_lossy(&comm.name.as_slice()).into_owned();
                self.names.insert(comm.tid, name);
            }
            Ok(EventRecord::Fork(fork)) => {
                if let Some(parent) = self.names.get(&fork.ptid).cloned() {
                    self.names.insert(fork.tid, parent);
                }
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
                let unknown = format!(":{}", tid.unwrap_or(-1));
                let running = tid.map(|tid| {
                    (tid as u32, self.names.get(&tid).map_or(unknown.as_str(), String::as_str))
                });
                self.collector.event(cpu, time_ns, said, running);
            }
            Decoded::Unreadable(why) => self.collector.unreadable(&why),
        }
    }
}
