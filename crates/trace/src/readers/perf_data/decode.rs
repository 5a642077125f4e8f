//! Decodes a chunk of records by itself, one thread a decoder: samples into events, and the records that tell names of
//! tasks and lost events.

use super::super::batch::{EventBatch, NewName};
use super::super::binary::{Decoded, Decoder, Scratch};
use super::super::interner::Interner;
use super::super::line::CPUS_MAX;
use super::super::parsed::ParsedEvent;
use super::super::pending::{Halves, PendingKind, Unlabelled, pending};
use super::attributes::{NoSample, Sample};
use super::chunks::{Chunk, RawRecord};
use super::file::PerfFile;
use super::losses::Losses;

/// Records of the kernel (`PERF_RECORD_…`).
const RECORD_LOST: u32 = 2;
const RECORD_COMM: u32 = 3;
const RECORD_FORK: u32 = 7;
const RECORD_SAMPLE: u32 = 9;
const RECORD_LOST_SAMPLES: u32 = 13;
/// Records of perf itself begin here.
const RECORD_USER: u32 = 64;
/// `PERF_RECORD_MISC_LOST_SAMPLES_BPF`: the recorder's filter dropped them.
const MISC_DROPPED: u16 = 1 << 15;

/// What a chunk says.
#[derive(Debug, Default)]
pub(super) struct DecodedChunk {
    pub(super) batch: EventBatch,
    pub(super) losses: Losses,
    /// A round of the recorder ends behind the events.
    pub(super) ends_round: bool,
}

/// Decodes chunks. The numbers of identities in the events are its own.
#[derive(Debug)]
pub(super) struct ChunkDecoder<'f, 'k> {
    file: &'f PerfFile<'f>,
    decoder: &'f Decoder<'k>,
    interner: Interner,
    /// Identities that earlier batches have.
    identities: usize,
    scratch: Scratch,
}

impl<'f, 'k> ChunkDecoder<'f, 'k> {
    pub(super) fn new(file: &'f PerfFile<'f>, decoder: &'f Decoder<'k>) -> Self {
        let (interner, scratch) = (Interner::default(), Scratch::default());
        Self { file, decoder, interner, identities: 0, scratch }
    }

    /// Decodes the records of a chunk.
    pub(super) fn decode(&mut self, chunk: &Chunk) -> DecodedChunk {
        let ends_round = chunk.ends_round;
        let mut decoded = DecodedChunk { ends_round, ..DecodedChunk::default() };
        for record in chunk.records(self.file.endian) {
            if record.kind >= RECORD_USER {
                continue;
            }
            decoded.batch.read += 1;
            match record.kind {
                RECORD_SAMPLE => self.sample(&record, &mut decoded.batch),
                RECORD_COMM | RECORD_FORK | RECORD_LOST | RECORD_LOST_SAMPLES
                    if self.other(&record, &mut decoded).is_none() =>
                {
                    let why = "a record that is cut off".to_owned();
                    decoded.batch.note_unreadable(record.at, why);
                }
                _ => {}
            }
        }
        let new = self.interner.identities_from(self.identities);
        self.identities += new.len();
        decoded.batch.identities =
            new.map(|(identity, name)| (identity.pid, name.to_owned(), identity.class)).collect();
        decoded
    }

    fn sample(&mut self, record: &RawRecord<'_>, batch: &mut EventBatch) {
        let Sample { time_ns, cpu, tid, event } = match self.file.attributes.sample(record.body) {
            Ok(sample) if sample.cpu < CPUS_MAX => sample,
            // An event that is no tracepoint, or one without the columns that perf sched asks for.
            Ok(_) | Err(NoSample::Other) => {
                batch.skipped += 1;
                return;
            }
            Err(NoSample::WithoutTime) => {
                return batch.note_unreadable(record.at, "a sample without its time".to_owned());
            }
            Err(NoSample::CutOff) => {
                return batch.note_unreadable(record.at, "a sample that is cut off".to_owned());
            }
        };
        let parsed = match self.decoder.decode(event, &mut self.scratch) {
            Decoded::Event { event, .. } => event,
            Decoded::Unreadable(why) => return batch.note_unreadable(record.at, why),
        };
        batch.note_clock(cpu, time_ns, record.at);
        // The name of the task that ran is known when all records are in order of time.
        let running = tid.and_then(|tid| u32::try_from(tid).ok()).map(|pid| (pid, ""));
        match pending(parsed, running, &mut self.interner) {
            Some(event) => batch.push(time_ns, cpu, event),
            None => batch.skipped += u64::from(parsed != ParsedEvent::LostHere),
        }
    }

    /// A record that is no sample; `None` when it is cut off.
    fn other(&self, record: &RawRecord<'_>, decoded: &mut DecodedChunk) -> Option<()> {
        let (endian, body) = (self.file.endian, record.body);
        let (time_ns, cpu) = self.file.attributes.time_and_cpu(body);
        let cpu = cpu.filter(|cpu| *cpu < CPUS_MAX);
        let names = &mut decoded.batch.names;
        match record.kind {
            RECORD_COMM => {
                let text = body.get(8..)?;
                let name = text.split(|byte| *byte == 0).next().unwrap_or_default();
                let name = String::from_utf8_lossy(name).into_owned();
                names.push((time_ns, endian.u32(body, 4)?, NewName::To(name)));
            }
            // Process and parent process, thread and parent thread.
            RECORD_FORK => {
                let (child, parent) = (endian.u32(body, 8)?, endian.u32(body, 12)?);
                names.push((time_ns, child, NewName::Like(parent)));
            }
            RECORD_LOST => {
                let count = endian.u64(body, 8)?;
                lost(record.at, time_ns, cpu, count, decoded);
            }
            _ => self.lost_samples(record, time_ns, cpu, decoded)?,
        }
        Some(())
    }

    /// What an event lost on a CPU: here, or where there is no time, in all.
    fn lost_samples(
        &self,
        record: &RawRecord<'_>,
        time_ns: u64,
        cpu: Option<u32>,
        decoded: &mut DecodedChunk,
    ) -> Option<()> {
        let count = self.file.endian.u64(record.body, 0)?;
        match time_ns {
            _ if record.misc & MISC_DROPPED != 0 => {}
            0 => decoded.losses.in_all(cpu, count),
            _ => lost(record.at, time_ns, cpu, count, decoded),
        }
        Some(())
    }
}

/// Events are missing here.
fn lost(at: u64, time_ns: u64, cpu: Option<u32>, count: u64, decoded: &mut DecodedChunk) {
    decoded.losses.here(cpu, count);
    let Some(cpu) = cpu else {
        decoded.losses.somewhere = decoded.losses.somewhere.saturating_add(count);
        return;
    };
    let batch = &mut decoded.batch;
    batch.note_problem(at, || format!("CPU {cpu} lost {count} events"));
    batch.note_clock(cpu, time_ns, at);
    let kind = PendingKind::Lost { count: Halves::of(count) };
    batch.push(time_ns, cpu, Unlabelled { kind, text: None });
}
