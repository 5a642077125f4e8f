//! Decodes chunks of records independently, one decoder per thread: samples into events, and records with task names
//! and lost events.

use std::ops::RangeInclusive;

use super::super::batch::{Batch, StatedLoss};
use super::super::binary::Decoder;
use super::super::interner::{Interner, Named};
use super::super::line::CPUS_MAX;
use super::super::renames::Rename;
use super::super::stated::{Scope, Stated};
use super::attributes::Sample;
use super::chunks::{Chunk, RawRecord};
use super::file::PerfFile;
use crate::EventKind;

/// Records of the kernel (`PERF_RECORD_…`).
const RECORD_LOST: u32 = 2;
const RECORD_COMM: u32 = 3;
const RECORD_FORK: u32 = 7;
const RECORD_SAMPLE: u32 = 9;
const RECORD_LOST_SAMPLES: u32 = 13;
/// Records of perf itself begin here.
const RECORD_USER: u32 = 64;
/// `PERF_RECORD_MISC_CPUMODE_MASK`, with `PERF_RECORD_MISC_GUEST_KERNEL` and `PERF_RECORD_MISC_GUEST_USER`. A sample of
/// a tracepoint with these modes is the host's: of an interrupt that arrived while a guest ran.
const MISC_MODE: u16 = 7;
const GUEST_MODES: RangeInclusive<u16> = 4..=5;
/// `PERF_RECORD_MISC_LOST_SAMPLES_BPF`: the recorder's filter dropped them.
const MISC_DROPPED: u16 = 1 << 15;

/// The kernel gives a sample of any other event so many bytes in place of a tracepoint's.
const NO_EVENT_BYTES: usize = 4;

/// Decodes chunks.
#[derive(Clone, Debug)]
pub(super) struct ChunkDecoder<'f> {
    pub(super) file: &'f PerfFile<'f>,
    pub(super) decoder: &'f Decoder<'f>,
    /// Shared with the other decoders.
    pub(super) interner: Interner,
    pub(super) announced: Option<Scope>,
}

impl ChunkDecoder<'_> {
    /// Decodes the records of a chunk.
    pub(super) fn decode(&mut self, chunk: &Chunk) -> Batch {
        let (announced, ends_round) = (self.announced, chunk.ends_round);
        let mut batch = Batch { announced, ends_round, ..Batch::default() };
        for record in chunk.records(self.file.endian) {
            batch.read += u64::from(record.kind < RECORD_USER);
            let done = match record.kind {
                RECORD_SAMPLE => self.sample(&record, &mut batch),
                RECORD_COMM | RECORD_FORK | RECORD_LOST | RECORD_LOST_SAMPLES => {
                    let whole = self.other(&record, &mut batch);
                    whole.ok_or_else(|| "a record that is cut off".to_owned())
                }
                _ => Ok(()),
            };
            if let Err(why) = done {
                batch.note_unreadable(record.at, why);
            }
        }
        batch
    }

    /// The error says why the sample is unreadable.
    fn sample(&mut self, record: &RawRecord<'_>, batch: &mut Batch) -> Result<(), String> {
        let sample = self.file.attributes.sample(record.body)?;
        let is_used = |it: &Sample<'_>| it.cpu < CPUS_MAX && it.event.len() > NO_EVENT_BYTES;
        let Some(Sample { time_ns, cpu, tid, event }) = sample.filter(is_used) else {
            // An event that is no tracepoint, or one without the columns that perf sched asks for.
            batch.skipped += 1;
            return Ok(());
        };
        // The name of the task that ran is known when all records are in order of time.
        let running = |_| Some(Named { pid: u32::try_from(tid?).ok()?, comm: "", prio: None });
        let add = |stated| batch.add(record.at, time_ns, cpu, stated);
        self.decoder.decode(event, &mut self.interner, running, add)
    }

    /// A record that is no sample; `None` when it is cut off.
    fn other(&self, record: &RawRecord<'_>, batch: &mut Batch) -> Option<()> {
        let (endian, body) = (self.file.endian, record.body);
        let (time_ns, cpu) = self.file.attributes.time_and_cpu(body);
        let cpu = cpu.filter(|cpu| *cpu < CPUS_MAX);
        match record.kind {
            // Tasks of a guest have numbers of their own (`perf inject --guest-data`).
            RECORD_COMM | RECORD_FORK if GUEST_MODES.contains(&(record.misc & MISC_MODE)) => {}
            RECORD_COMM => {
                let name = body.get(8..)?.split(|byte| *byte == 0).next().unwrap_or_default();
                let name = Rename::To(String::from_utf8_lossy(name).into());
                batch.names.push((time_ns, endian.u32(body, 4)?, name));
            }
            // Process and parent process, thread and parent thread.
            RECORD_FORK => {
                let (child, parent) = (endian.u32(body, 8)?, endian.u32(body, 12)?);
                batch.names.push((time_ns, child, Rename::Like(parent)));
            }
            RECORD_LOST => lost(record.at, time_ns, cpu, endian.u64(body, 8)?, batch),
            // What an event lost on a CPU: here, or where there is no time, in all.
            _ => {
                let count = endian.u64(body, 0)?;
                match time_ns {
                    _ if record.misc & MISC_DROPPED != 0 => {}
                    0 => batch.losses.push(StatedLoss { cpu, count, is_total: true }),
                    _ => lost(record.at, time_ns, cpu, count, batch),
                }
            }
        }
        Some(())
    }
}

/// Events are missing here.
fn lost(at: u64, time_ns: u64, cpu: Option<u32>, count: u64, batch: &mut Batch) {
    batch.losses.push(StatedLoss { cpu, count, is_total: false });
    if let Some(cpu) = cpu {
        batch.note_problem(at, || format!("CPU {cpu} lost {count} events"));
        batch.add(at, time_ns, cpu, Stated::Event(EventKind::Lost { count }));
    }
}
