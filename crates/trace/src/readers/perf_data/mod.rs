//! `perf.data`: the samples of the scheduler's tracepoints, decoded by the kernel's descriptions that the file holds.
//!
//! The same events as in the text of `perf sched script --ns`, with the same names of tasks. The file is read once, in
//! order: see [`pipeline`] for the stages.

mod attributes;
mod chunks;
mod decode;
mod file;
mod pipe;
mod pipeline;
mod simpleperf;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::Path;

use ruzstd::decoding::StreamingDecoder;

use self::chunks::Chunks;
use self::decode::ChunkDecoder;
use self::file::{PerfFile, Sections};
use self::pipeline::Division;
use super::binary::{Decoder, Endian, TracingData, Why};
use super::collect::Collector;
use super::error::ReadError;
use super::expand::{Expands, Expansion};
use super::line::CPUS_MAX;
use super::renames::Rename;
use super::segments::TakeSegments;
use super::stated::Scope;
use super::whole;
use crate::Trace;

/// The first bytes, in either byte order.
pub(super) const MAGICS: [&[u8]; 2] = [b"PERFILE2", b"2ELIFREP"];

/// Versions of the tracing data before this one have no names of tasks.
const FIRST_WITH_NAMES: &str = "0.6";

const REMEDY: &str = "print it with the perf that recorded it: perf sched script --ns -i FILE";

/// Reads a file; `cut` is the reason why it is not whole, and `parts` may take its events.
pub(super) fn read(
    name: &str,
    mut input: impl Read + Seek + Send,
    cut: Option<io::Error>,
    expansion: &Expansion,
    parts: Option<&mut dyn TakeSegments>,
) -> Result<Trace, ReadError> {
    let why = cut.map(|error| format!("the input failed: {error}"));
    let failed = |source| ReadError::Io { name: name.to_owned(), source };
    if let Some(endian) = of_pipe(&mut input).map_err(failed)? {
        let (bytes, cut) = whole(name, input)?;
        let why = why.or(cut.map(|error| format!("the input failed: {error}")));
        let file = pipe::to_file(&bytes, endian).map_err(|why| damaged(name, why))?;
        drop(bytes);
        let division = Division::of_this_machine();
        return read_all(name, Cursor::new(file), why, expansion, division, parts, Vec::new());
    }
    read_all(name, input, why, expansion, Division::of_this_machine(), parts, Vec::new())
}

/// Data files of a folder.
const DATA_FILES_MAX: u32 = 1 << 16;

/// Reads the folder that `perf record --threads` writes: `data` with the head, and `data.0` and so on with records.
/// `None` where it is no such folder.
pub(super) fn read_folder(name: &str, folder: &Path) -> Option<Result<Trace, ReadError>> {
    let mut head = File::open(folder.join("data")).ok()?;
    let mut magic = [0; 8];
    head.read_exact(&mut magic).ok()?;
    MAGICS.contains(&&magic[..]).then_some(())?;
    let open = |number: u32| File::open(folder.join(format!("data.{number}"))).ok();
    let more: Vec<File> = (0..DATA_FILES_MAX).map_while(open).collect();
    let bytes = more.iter().chain([&head]).filter_map(|file| Some(file.metadata().ok()?.len()));
    let expansion = Expansion::of_bytes(bytes.fold(0, u64::saturating_add));
    Some(read_all(name, head, None, &expansion, Division::of_this_machine(), None, more))
}

/// Reads a file, and `more` files with nothing but records.
fn read_all(
    name: &str,
    mut input: impl Read + Seek + Send,
    why_cut: Option<Why>,
    expansion: &Expansion,
    division: Division,
    parts: Option<&mut dyn TakeSegments>,
    more: Vec<File>,
) -> Result<Trace, ReadError> {
    let damaged = |why| damaged(name, why);
    let failed = |source| ReadError::Io { name: name.to_owned(), source };
    let sections = Sections::read(&mut input).map_err(failed)?;
    let file = PerfFile::parse(&sections).map_err(damaged)?;
    let in_record = match file.tracing_data {
        Some(_) => None,
        None => simpleperf::tracing_data(&mut input, &sections),
    };
    let Some(described) = file.tracing_data.or(in_record.as_deref()) else {
        return Err(damaged(
            "it holds no tracepoints, or it is cut off: the kernel's descriptions of events stand \
             at its end"
                .to_owned(),
        ));
    };
    let with_names = |version: &str| version >= FIRST_WITH_NAMES;
    let (described, _) = TracingData::parse(described, with_names).map_err(damaged)?;
    let decoder = Decoder::new(file.endian, &described.formats, &described.kallsyms);

    let mut collector = Collector::new(parts);
    let announced = head(&file, &decoder, &mut collector);
    let interner = collector.interner.clone();
    let decoder = ChunkDecoder { file: &file, decoder: &decoder, interner, announced };
    why_cut.into_iter().for_each(|why| truncated(&mut collector, why));
    input.seek(SeekFrom::Start(sections.data_at)).map_err(failed)?;
    let size = Some(sections.data_size);
    let mut chunks = Chunks::new(input, sections.data_at, size, file.endian, division.chunk_bytes);
    pipeline::collect(&mut chunks, &decoder, division.decoders, &mut collector);
    for why in [file.why_cut.clone(), chunks.why_cut].into_iter().flatten() {
        truncated(&mut collector, why);
    }
    let read = |compressed, collector: &mut Collector<'_>| {
        let read = read_compressed(compressed, collector, &decoder, division, expansion);
        read.map_err(|Expands| Expands::refuse(name))
    };
    read(chunks.compressed, &mut collector)?;
    for file in more {
        let mut chunks = Chunks::new(file, 0, None, decoder.file.endian, division.chunk_bytes);
        pipeline::collect(&mut chunks, &decoder, division.decoders, &mut collector);
        chunks.why_cut.into_iter().for_each(|why| truncated(&mut collector, why));
        read(chunks.compressed, &mut collector)?;
    }
    collector.finish(name)
}

fn damaged(name: &str, why: Why) -> ReadError {
    ReadError::Damaged { name: name.to_owned(), format: "a perf.data", why, remedy: REMEDY }
}

/// The byte order of an input that perf wrote into a pipe. The input is at its beginning then.
fn of_pipe(input: &mut (impl Read + Seek)) -> io::Result<Option<Endian>> {
    let mut head = Vec::new();
    input.seek(SeekFrom::Start(0))?;
    input.by_ref().take(pipe::HEAD_BYTES).read_to_end(&mut head)?;
    input.seek(SeekFrom::Start(0))?;
    let endian = if head.starts_with(MAGICS[0]) { Endian::Little } else { Endian::Big };
    Ok((endian.u64(&head, 8) == Some(pipe::HEAD_BYTES)).then_some(endian))
}

/// Takes over what the head of the file says. Returns what it announces of the events, if parts are wanted.
fn head(
    file: &PerfFile<'_>,
    decoder: &Decoder<'_>,
    collector: &mut Collector<'_>,
) -> Option<Scope> {
    let [possible, online] = file.cpus;
    collector.position = ("byte", 0);
    collector.trace().cpus = if online <= CPUS_MAX { online } else { 0 };
    file.release.iter().for_each(|release| collector.origin("kernel", release));
    collector.builder.renames.add(&mut vec![(0, 0, Rename::To("swapper".into()))]);
    // Which events were recorded is in the attributes.
    let kinds = file.attributes.tracepoints().map(|id| decoder.kinds(id));
    let scope =
        kinds.fold(Scope { cpus: online, scheduling: true, ..Scope::default() }, Scope::with);
    // Compressed records are read at the end. Where CPUs are offline, the numbers of the others may go beyond their
    // count.
    let is_plain = !file.is_compressed && !scope.labels && !scope.cgroups;
    let is_known = possible == online && (1..=CPUS_MAX).contains(&online);
    if is_plain && is_known { collector.announce(scope) } else { None }
}

fn truncated(collector: &mut Collector<'_>, why: Why) {
    collector.truncated(|| format!("the file ends early: {why}"));
}

/// Reads the compressed records: all of them are one zstd frame, which perf never ends.
fn read_compressed(
    mut compressed: Vec<u8>,
    collector: &mut Collector<'_>,
    decoder: &ChunkDecoder<'_>,
    division: Division,
    expansion: &Expansion,
) -> Result<(), Expands> {
    /// A block that is the last one, not compressed, and empty.
    const LAST_BLOCK: [u8; 3] = [1, 0, 0];
    if compressed.is_empty() {
        return Ok(());
    }
    compressed.extend(LAST_BLOCK);
    let why_cut = match StreamingDecoder::new(&compressed[..]) {
        Ok(plain) => {
            let (plain, endian) = (expansion.decoder(plain), decoder.file.endian);
            let mut chunks = Chunks::new(plain, 0, None, endian, division.chunk_bytes);
            pipeline::collect(&mut chunks, decoder, division.decoders, collector);
            if chunks.expands {
                return Err(Expands);
            }
            chunks.why_cut
        }
        Err(e) => Some(e.to_string()),
    };
    if let Some(why) = why_cut {
        truncated(collector, format!("damaged compressed records: {why}"));
    }
    Ok(())
}
