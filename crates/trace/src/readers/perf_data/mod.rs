//! `perf.data`: the samples of the scheduler's tracepoints, decoded by the kernel's descriptions that the file holds.
//!
//! The same events as in the text of `perf sched script --ns`, with the same names of tasks. The file is read once, in
//! order: see [`pipeline`] for the stages.

mod attributes;
mod chunks;
mod decode;
mod file;
mod losses;
mod pipeline;
#[cfg(test)]
mod tests;

use std::io::{self, Read, Seek, SeekFrom};
use std::mem::take;

use ruzstd::decoding::StreamingDecoder;

use self::chunks::Chunks;
use self::file::{PerfFile, Sections};
use self::pipeline::{ChunkCollector, Division};
use super::batch::NewName;
use super::binary::{Decoder, TracingData, Why};
use super::collect::{Announced, Collector};
use super::error::ReadError;
use super::line::CPUS_MAX;
use super::parts::TakeParts;
use crate::Trace;

/// The first bytes, in either byte order.
pub(super) const MAGICS: [&[u8]; 2] = [b"PERFILE2", b"2ELIFREP"];

/// Versions of the tracing data before this one have no names of tasks.
const FIRST_WITH_NAMES: &str = "0.6";
/// All that compressed records may grow to, bytes, and by what factor.
const DECOMPRESSED_BYTES_MAX: u64 = 8 << 30;
const GROWTH_MAX: u64 = 1 << 10;

const REMEDY: &str = "print it with the perf that recorded it: perf sched script --ns -i FILE";

/// Reads a file; `cut` is the reason why it is not whole, and `parts` may take its events.
pub(super) fn read(
    name: &str,
    input: impl Read + Seek + Send,
    cut: Option<io::Error>,
    parts: Option<&mut dyn TakeParts>,
) -> Result<Trace, ReadError> {
    let why = cut.map(|error| format!("the input failed: {error}"));
    read_divided(name, input, why, Division::of_this_machine(), parts)
}

fn read_divided(
    name: &str,
    mut input: impl Read + Seek + Send,
    why_cut: Option<Why>,
    division: Division,
    parts: Option<&mut dyn TakeParts>,
) -> Result<Trace, ReadError> {
    let damaged = |why: Why| ReadError::Damaged {
        name: name.to_owned(),
        format: "a perf.data",
        why,
        remedy: REMEDY,
    };
    let failed = |source| ReadError::Io { name: name.to_owned(), source };
    let sections = Sections::read(&mut input).map_err(failed)?;
    let file = PerfFile::parse(&sections).map_err(damaged)?;
    let Some(described) = file.tracing_data() else {
        return Err(damaged(
            "it holds no tracepoints, or it is cut off: the kernel's descriptions of events stand \
             at its end"
                .to_owned(),
        ));
    };
    let with_names = |version: &str| version >= FIRST_WITH_NAMES;
    let (described, _) = TracingData::parse(described, with_names).map_err(damaged)?;
    let formats = described.formats.iter().map(String::as_str);
    let decoder = Decoder::new(file.endian, formats, &described.kallsyms);

    let mut reader = ChunkCollector::new(collector(&file, &decoder, parts));
    why_cut.into_iter().for_each(|why| truncated(&mut reader, why));
    input.seek(SeekFrom::Start(sections.data_at)).map_err(failed)?;
    let size = Some(sections.data_size);
    let mut chunks = Chunks::new(input, sections.data_at, size, file.endian, division.chunk_bytes);
    reader.collect(&mut chunks, &file, &decoder, division);
    let (compressed, why_cut) = (take(&mut chunks.compressed), chunks.why_cut);
    for why in [file.why_cut.clone(), why_cut].into_iter().flatten() {
        truncated(&mut reader, why);
    }
    read_compressed(compressed, &mut reader, &file, &decoder, division);
    reader.add_losses();
    reader.collector.finish(name, reader.read, "records")
}

/// A collector with what the head of the file announces.
fn collector<'p>(
    file: &PerfFile<'_>,
    decoder: &Decoder<'_>,
    parts: Option<&'p mut dyn TakeParts>,
) -> Collector<'p> {
    let mut collector = Collector::new(parts);
    let [possible, online] = file.cpus().unwrap_or_default();
    collector.trace().cpus = if online <= CPUS_MAX { online } else { 0 };
    collector.rename(0, 0, NewName::To("swapper".to_owned()));
    // Which events were recorded is in the attributes.
    let kinds = file.attributes.tracepoints().map(|id| decoder.kinds(id));
    let kinds = kinds.fold(Default::default(), |all: super::pending::EventKinds, of| all.and(of));
    // Compressed records are read at the end. Where CPUs are offline, the numbers of the others may go beyond their
    // count.
    let is_plain = !file.is_compressed() && !kinds.labels && !kinds.cgroups;
    if is_plain && possible == online && (1..=CPUS_MAX).contains(&online) {
        collector.announce(Announced { cpus: online, kinds });
    }
    collector
}

fn truncated(reader: &mut ChunkCollector<'_>, why: Why) {
    reader.collector.truncated(|| format!("the file ends early: {why}"));
}

/// Reads the compressed records: all of them are one zstd frame, which perf never ends.
fn read_compressed(
    mut compressed: Vec<u8>,
    reader: &mut ChunkCollector<'_>,
    file: &PerfFile<'_>,
    decoder: &Decoder<'_>,
    division: Division,
) {
    /// A block that is the last one, not compressed, and empty.
    const LAST_BLOCK: [u8; 3] = [1, 0, 0];
    if compressed.is_empty() {
        return;
    }
    let bytes_max = GROWTH_MAX.saturating_mul(compressed.len() as u64).min(DECOMPRESSED_BYTES_MAX);
    compressed.extend(LAST_BLOCK);
    let plain = match StreamingDecoder::new(&compressed[..]) {
        Ok(plain) => plain.take(bytes_max),
        Err(e) => return truncated(reader, format!("damaged compressed records: {e}")),
    };
    let mut chunks = Chunks::new(plain, 0, None, file.endian, division.chunk_bytes);
    reader.collect(&mut chunks, file, decoder, division);
    if let Some(why) = chunks.why_cut {
        truncated(reader, format!("damaged compressed records: {why}"));
    }
}
