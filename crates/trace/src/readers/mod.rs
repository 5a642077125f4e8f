//! Readers of recordings: the text of `perf sched script`, `perf script`, ftrace and trace-cmd, and the binary files of
//! trace-cmd (`trace.dat`), perf (`perf.data`) and Perfetto, plain or compressed with gzip.
//!
//! How every reader treats losses and damage:
//!
//! * a line or record that cannot be read is counted ([`crate::Loss::unreadable`]), the first is kept in words, and
//!   reading goes on;
//! * an event of a kind that is not used is counted ([`crate::Loss::skipped`]);
//! * events are put in order of time; equal times keep the order of the file. Where the order of *one CPU* was broken
//!   the clock jumped ([`crate::Loss::clock_jumps`]);
//! * lost events become [`crate::EventKind::Lost`] at the time of that CPU's last event before them, whichever way the
//!   input tells of them: from there to its next event it is not known what the CPU did;
//! * a pid that appears again after its task died, or is created again, is another task ([`crate::Loss::pid_reuses`]);
//! * a last line without line feed may be cut in the middle of a number: it is left out ([`crate::Loss::truncated`]).
//!   Of a binary file that is cut, every whole event is kept.
//!
//! A recording does not contain what a CPU ran before its first switch, nor where a task was before its first event,
//! and neither is guessed: the first switch of a CPU names its `prev`, which is all that is known.
//!
//! A task's nice value is taken from the priority in the fields (100…139). When it changes there is a
//! [`crate::EventKind::Nice`] event just before the event that shows it; the change itself happened at some moment
//! since the last event that named the task. Priority inheritance between normal tasks looks the same.

mod babeltrace;
mod batch;
mod binary;
mod build;
mod calls;
mod clocks;
mod collect;
mod ctf;
mod differences;
mod error;
mod expand;
mod fields;
mod header;
mod interner;
mod line;
mod lines;
mod lttng;
mod magic;
mod marks;
mod merge;
mod old_fields;
mod page;
mod perf_data;
mod perfetto;
mod prefix;
mod renames;
mod reports;
mod segments;
mod simpleperf;
mod stack_text;
mod start;
mod state_bits;
mod stated;
mod text;
mod tie_order;
mod trace_dat;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use flate2::bufread::{MultiGzDecoder, ZlibDecoder};

use crate::Trace;
pub use binary::tick_symbols;
pub use calls::system_calls;
pub use error::{Machines, ReadError};
use expand::{Expands, Expansion};
pub use segments::{Segment, TakeSegments};

/// The most that is read of a recording, bytes after decompression. A longer text counts as cut off there; a longer
/// binary file is refused, for the whole of it must be in memory.
const BYTES_MAX: u64 = 8 << 30;

/// Bytes that are read of a text file at once.
const FILE_BUFFER_BYTES: usize = 1 << 18;

/// Reads a recording in any of the supported formats, recognised by its first bytes. `name` is for messages.
///
/// # Errors
/// [`ReadError`] when there is no event in it at all, or it is a binary file that cannot be understood; anything less
/// is counted in [`Trace::loss`].
pub fn read(name: &str, input: impl BufRead) -> Result<Trace, ReadError> {
    read_machine(name, input, None)
}

/// Reads one machine or buffer of a recording that has several, like [`read`]: the file's name in a text of several
/// files, the number of a machine in a Perfetto trace, the name of a buffer (`top`: that of the tracer itself) in a
/// `trace.dat`, the folder of a CTF trace in an archive. `None`: the one that [`read`] takes, which the first problem
/// of [`Trace::loss`] names.
///
/// # Errors
/// As [`read`]; [`ReadError::NoMachine`] where there is none of that name.
pub fn read_machine(
    name: &str,
    input: impl BufRead,
    machine: Option<&str>,
) -> Result<Trace, ReadError> {
    let expansion = Expansion::default();
    let input = expansion.input(input);
    read_expanding(name, input, machine, &expansion)
}

/// Reads an input whose bytes `expansion` counts, or has counted.
fn read_expanding(
    name: &str,
    input: impl BufRead,
    machine: Option<&str>,
    expansion: &Expansion,
) -> Result<Trace, ReadError> {
    let (start, input) = look(name, input)?;
    if start.starts_with(magic::GZIP) {
        let decoder = expansion.decoder(MultiGzDecoder::new(input));
        let (start, input) = look(name, BufReader::new(decoder))?;
        return read_plain(name, &start, input, machine, expansion);
    }
    read_plain(name, &start, input, machine, expansion)
}

/// Reads a recording from a file, like [`read`]. A `perf.data` that is not compressed passes by in a buffer: what is
/// kept in memory are its events.
///
/// # Errors
/// As [`read`].
pub fn read_file(name: &str, file: File) -> Result<Trace, ReadError> {
    read_any_file(name, file, None, None)
}

/// Reads one machine or buffer of a recording in a file or a folder, like [`read_machine`].
///
/// # Errors
/// As [`read_machine`].
pub fn read_machine_file(
    name: &str,
    file: File,
    machine: Option<&str>,
) -> Result<Trace, ReadError> {
    read_any_file(name, file, machine, None)
}

/// Reads a recording from a file, like [`read_file`], and passes its events to `parts` in order of time, where its
/// format lets it (a `perf.data`, without control groups): then the trace that comes back has none. Where
/// [`TakeSegments::begin`] was not called, it has all.
///
/// # Errors
/// As [`read`].
pub fn read_file_in_segments(
    name: &str,
    file: File,
    parts: &mut dyn TakeSegments,
) -> Result<Trace, ReadError> {
    read_any_file(name, file, None, Some(parts))
}

fn read_any_file(
    name: &str,
    mut file: File,
    machine: Option<&str>,
    parts: Option<&mut dyn TakeSegments>,
) -> Result<Trace, ReadError> {
    let mut start = [0; magic::START_BYTES];
    let known = file.metadata().ok().filter(|known| known.is_file() && known.len() <= BYTES_MAX);
    let is_plain = known.is_some();
    if is_plain
        && file.read_exact(&mut start).is_ok()
        && perf_data::MAGICS.iter().any(|magic| start.starts_with(magic))
    {
        only_one(name, machine)?;
        let expansion = Expansion::of_bytes(known.map_or(0, |known| known.len()));
        return perf_data::read(name, file, None, &expansion, parts);
    }
    if file.metadata().is_ok_and(|known| known.is_dir()) {
        return read_folder(name, &file, machine);
    }
    let input = |file| BufReader::with_capacity(FILE_BUFFER_BYTES, file);
    if let Some(known) = known {
        let failed = |source| ReadError::Io { name: name.to_owned(), source };
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        // Reading into memory at once is faster where no byte is counted.
        return read_expanding(name, input(file), machine, &Expansion::of_bytes(known.len()));
    }
    read_machine(name, input(file), machine)
}

/// Reads a folder that a tracer wrote.
fn read_folder(name: &str, folder: &File, machine: Option<&str>) -> Result<Trace, ReadError> {
    let path = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()));
    if let Some(found) = perf_data::read_folder(name, &path) {
        return only_one(name, machine).and(found);
    }
    let found = ctf::read_folder(name, &path, machine);
    found.unwrap_or_else(|| {
        Err(ReadError::Binary {
            name: name.to_owned(),
            format: "a folder",
            remedy: "give the recording in it (folders are read of `perf record --threads`, and of CTF, with a file `metadata`)",
        })
    })
}

/// The first bytes, and the whole input again.
fn look(name: &str, mut input: impl BufRead) -> Result<(Vec<u8>, impl BufRead), ReadError> {
    let mut start = Vec::new();
    let looked = (&mut input).take(magic::START_BYTES as u64).read_to_end(&mut start);
    match looked {
        Err(source) if start.is_empty() => Err(ReadError::Io { name: name.to_owned(), source }),
        // An input that fails will do so again.
        _ => Ok((start.clone(), Cursor::new(start).chain(input))),
    }
}

/// The line that atrace prints before a trace.
const ATRACE: &[u8] = b"TRACE:\n";
/// The first byte of a zlib stream, as `atrace -z` writes it.
const ZLIB: u8 = 0x78;

fn read_plain(
    name: &str,
    start: &[u8],
    mut input: impl BufRead,
    machine: Option<&str>,
    expansion: &Expansion,
) -> Result<Trace, ReadError> {
    if start.starts_with(binary::MAGIC) {
        let (bytes, cut) = whole(name, input)?;
        return trace_dat::read(name, &bytes, cut, machine, expansion);
    }
    if perf_data::MAGICS.iter().any(|magic| start.starts_with(magic)) {
        only_one(name, machine)?;
        let (bytes, cut) = whole(name, input)?;
        return perf_data::read(name, Cursor::new(bytes), cut, expansion, None);
    }
    if start.starts_with(ATRACE) {
        input.consume(ATRACE.len());
        if start.get(ATRACE.len()) == Some(&ZLIB) {
            let decoder = expansion.decoder(ZlibDecoder::new(input));
            return text::read(name, BufReader::new(decoder).take(BYTES_MAX), machine);
        }
        return text::read(name, input.take(BYTES_MAX), machine);
    }
    match magic::by_first_bytes(start) {
        Some(foreign) if foreign.is_tar() => {
            let (bytes, _) = whole(name, input)?;
            ctf::read_tar(name, &bytes, machine).unwrap_or_else(|| Err(foreign.refuse(name)))
        }
        Some(foreign) => Err(foreign.refuse(name)),
        None if perfetto::is_perfetto(start) => {
            perfetto::read(name, input.take(BYTES_MAX), machine, expansion)
        }
        None => match magic::by_content(start) {
            Some(foreign) => Err(foreign.refuse(name)),
            None => text::read(name, input.take(BYTES_MAX), machine),
        },
    }
}

/// Refuses a choice of machine in a format that has no several.
fn only_one(name: &str, machine: Option<&str>) -> Result<(), ReadError> {
    let refuse = |machine| Err(no_machine(name, machine, Machines::default()));
    machine.map_or(Ok(()), refuse)
}

fn no_machine(name: &str, machine: &str, known: Machines) -> ReadError {
    ReadError::NoMachine { name: name.to_owned(), machine: machine.to_owned(), known }
}

/// Everything that the input gives, and why it ended early if it did.
fn whole(name: &str, input: impl Read) -> Result<(Vec<u8>, Option<io::Error>), ReadError> {
    let mut bytes = Vec::new();
    let cut = input.take(BYTES_MAX + 1).read_to_end(&mut bytes).err();
    if cut.as_ref().is_some_and(Expands::is_cause) {
        return Err(Expands::refuse(name));
    }
    if bytes.len() as u64 > BYTES_MAX {
        return Err(ReadError::TooLarge { name: name.to_owned(), bytes_max: BYTES_MAX });
    }
    Ok((bytes, cut))
}
