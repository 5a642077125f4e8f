//! Writes trace-cmd's file format, version 6 (`trace-cmd.dat.v6(5)`): sections in a fixed order, integers in the byte
//! order and word size of the machine.

use std::io::{self, BufWriter, Cursor, Seek, SeekFrom, Write};

use fairground_trace::StartState;

use super::capture::Capture;
use super::spill::{Copied, Spill, Storage, copy};

const MAGIC: &[u8] = b"\x17\x08\x44tracing";
const VERSION: &[u8] = b"6\0";
/// Alignment of data sections.
const ALIGNMENT: u64 = 4096;
/// Space for the statistics of a CPU's buffer: eight numbers with names.
const STATS_BYTES: usize = 512;

/// Options (`TRACECMD_OPTION_…`).
const OPTION_DONE: u16 = 0;
const OPTION_CPUSTAT: u16 = 2;
const OPTION_TRACECLOCK: u16 = 4;
const OPTION_UNAME: u16 = 5;

/// The content of a file except the pages.
#[derive(Debug, Default)]
pub(super) struct Description {
    /// `events/header_page`.
    pub(super) header_page: String,
    /// `events/header_event`.
    pub(super) header_event: String,
    /// The formats of ftrace's own events: marks, stacks.
    pub(super) ftrace_formats: Vec<String>,
    /// The formats of the other events, by system.
    pub(super) systems: Vec<(String, Vec<String>)>,
    /// `/proc/kallsyms`, or nothing.
    pub(super) kallsyms: Vec<u8>,
    /// `printk_formats`.
    pub(super) printk_formats: String,
    /// A line `pid name` for each known task.
    pub(super) cmdlines: Vec<u8>,
    /// `trace_clock`, with the current clock in brackets.
    pub(super) clock: String,
    /// Name, release, version and machine of the kernel.
    pub(super) uname: String,
    /// The text of a [`StartState`], for an option of its own.
    pub(super) start_state: Option<String>,
    /// One more than the highest CPU number.
    pub(super) cpus: u32,
    /// Bytes of a page of the ring buffer.
    pub(super) page_bytes: usize,
}

/// The parts of a file that are completed at its end.
struct Places {
    /// Offset of the table of the CPUs' pages.
    table: u64,
    /// Offsets of the statistics.
    stats: Vec<u64>,
}

/// Offset and length of a CPU's pages.
type Section = (u64, u64);

/// Writes a complete file with the pages that the kernel has. `stats` returns a CPU's `stats`, once all pages are
/// written.
pub(super) fn write<W: Write + Seek>(
    out: &mut W,
    described: &Description,
    capture: &mut Capture,
    stats: impl FnMut(u32) -> io::Result<String>,
) -> io::Result<()> {
    let places = begin(out, described)?;
    let mut table = vec![(0, 0); described.cpus as usize];
    for (cpu, section) in table.iter_mut().enumerate() {
        let at = align(out)?;
        *section = (at, capture.move_cpu(cpu as u32, out)?);
    }
    end(out, &places, &table, stats)
}

/// Writes a file with the pages that were drained from the buffers of `cpus`, or as many of them as there is space for.
///
/// # Errors
/// The rest of the file cannot be written.
pub(super) fn write_spilled<W: Write + Seek, F: Storage>(
    out: &mut BufWriter<W>,
    described: &Description,
    cpus: &[u32],
    spills: &mut [Spill<F>],
    stats: impl FnMut(u32) -> io::Result<String>,
) -> io::Result<Copied> {
    let places = begin(out, described)?;
    let mut at = align(out)?;
    out.flush()?;
    let mut table = vec![(at, 0); described.cpus as usize];
    let mut starts = Vec::with_capacity(spills.len());
    for spill in &*spills {
        starts.push(at);
        at = (at + spill.left()).next_multiple_of(ALIGNMENT);
    }
    // Nothing is buffered: an error of a page is known when it is written.
    let copied = copy(out.get_mut(), spills, &starts);
    for ((cpu, start), bytes) in cpus.iter().zip(starts).zip(&copied.bytes) {
        if let Some(section) = table.get_mut(*cpu as usize).filter(|_| *bytes > 0) {
            *section = (start, *bytes);
        }
    }
    end(out, &places, &table, stats)?;
    Ok(copied)
}

/// Bytes of a file without its pages.
pub(super) fn size_without_pages(described: &Description) -> io::Result<u64> {
    let mut out = Cursor::new(Vec::new());
    begin(&mut out, described)?;
    align(&mut out)
}

/// Writes all before the pages.
fn begin(out: &mut (impl Write + Seek), described: &Description) -> io::Result<Places> {
    head(out, described)?;
    let stats = options(out, described)?;
    out.write_all(b"flyrecord\0")?;
    let table = out.stream_position()?;
    write_table(out, &vec![(0, 0); described.cpus as usize])?;
    Ok(Places { table, stats })
}

/// Completes a file whose pages are written.
fn end(
    out: &mut (impl Write + Seek),
    places: &Places,
    table: &[Section],
    mut stats: impl FnMut(u32) -> io::Result<String>,
) -> io::Result<()> {
    out.seek(SeekFrom::Start(places.table))?;
    write_table(out, table)?;
    for (cpu, at) in places.stats.iter().enumerate() {
        let mut text = stats(cpu as u32)?.into_bytes();
        // trace-cmd concatenates these strings, so they are padded with blanks and not terminated.
        text.resize(STATS_BYTES - 1, b' ');
        text.push(b'\n');
        out.seek(SeekFrom::Start(*at))?;
        out.write_all(&text)?;
    }
    out.flush()
}

fn head(out: &mut impl Write, described: &Description) -> io::Result<()> {
    out.write_all(MAGIC)?;
    out.write_all(VERSION)?;
    out.write_all(&[u8::from(cfg!(target_endian = "big")), size_of::<usize>() as u8])?;
    out.write_all(&(described.page_bytes as u32).to_ne_bytes())?;
    out.write_all(b"header_page\0")?;
    long(out, described.header_page.as_bytes())?;
    out.write_all(b"header_event\0")?;
    long(out, described.header_event.as_bytes())?;
    formats(out, &described.ftrace_formats)?;
    out.write_all(&(described.systems.len() as u32).to_ne_bytes())?;
    for (system, events) in &described.systems {
        out.write_all(system.as_bytes())?;
        out.write_all(b"\0")?;
        formats(out, events)?;
    }
    short(out, &described.kallsyms)?;
    short(out, described.printk_formats.as_bytes())?;
    long(out, &described.cmdlines)?;
    out.write_all(&described.cpus.to_ne_bytes())
}

/// Writes the options with space for the statistics of each CPU; returns the offset of that space.
fn options(out: &mut (impl Write + Seek), described: &Description) -> io::Result<Vec<u64>> {
    out.write_all(b"options  \0")?;
    let mut stats_at = Vec::new();
    for _ in 0..described.cpus {
        out.write_all(&OPTION_CPUSTAT.to_ne_bytes())?;
        out.write_all(&(STATS_BYTES as u32).to_ne_bytes())?;
        stats_at.push(out.stream_position()?);
        out.write_all(&[0; STATS_BYTES])?;
    }
    option(out, OPTION_TRACECLOCK, &described.clock)?;
    option(out, OPTION_UNAME, &described.uname)?;
    if let Some(text) = &described.start_state {
        option(out, StartState::OPTION, text)?;
    }
    out.write_all(&OPTION_DONE.to_ne_bytes())?;
    Ok(stats_at)
}

fn option(out: &mut impl Write, number: u16, text: &str) -> io::Result<()> {
    out.write_all(&number.to_ne_bytes())?;
    // trace-cmd expects these strings with a terminating zero.
    short(out, &[text.as_bytes(), b"\0"].concat())
}

fn formats(out: &mut impl Write, formats: &[String]) -> io::Result<()> {
    out.write_all(&(formats.len() as u32).to_ne_bytes())?;
    formats.iter().try_for_each(|format| long(out, format.as_bytes()))
}

/// Writes a length of eight bytes and the bytes.
fn long(out: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    out.write_all(&(bytes.len() as u64).to_ne_bytes())?;
    out.write_all(bytes)
}

/// Writes a length of four bytes and the bytes.
fn short(out: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    let count = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    out.write_all(&count.to_ne_bytes())?;
    out.write_all(bytes)
}

fn write_table(out: &mut impl Write, table: &[Section]) -> io::Result<()> {
    table.iter().try_for_each(|(at, bytes)| {
        out.write_all(&at.to_ne_bytes())?;
        out.write_all(&bytes.to_ne_bytes())
    })
}

/// Pads the file to the next page; returns its offset.
fn align(out: &mut (impl Write + Seek)) -> io::Result<u64> {
    let at = out.stream_position()?;
    let aligned = at.next_multiple_of(ALIGNMENT);
    out.write_all(&vec![0; (aligned - at) as usize])?;
    Ok(aligned)
}
