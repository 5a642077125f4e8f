//! The content of a file of any version: descriptions, options, and where the pages of each CPU are.

use std::borrow::Cow;

use super::super::binary::{Cursor, Endian, TracingData, Why};
use super::super::line::CPUS_MAX;
use crate::StartState;

/// Options (`TRACECMD_OPTION_…` of libtracecmd).
pub(super) const OPTION_DONE: u16 = 0;
pub(super) const OPTION_CPUSTAT: u16 = 2;
pub(super) const OPTION_BUFFER: u16 = 3;
pub(super) const OPTION_TRACECLOCK: u16 = 4;
pub(super) const OPTION_UNAME: u16 = 5;
/// Options that a file may have: some for each CPU.
pub(super) const OPTIONS_MAX: usize = 1 << 20;
/// The name of the kernel's own buffer, which has none in the file.
const TOP: &str = "top";
/// Buffers that a file may have.
pub(super) const BUFFERS_MAX: usize = 1 << 10;

/// The pages of one CPU.
#[derive(Debug)]
pub(super) struct CpuPages<'a> {
    pub(super) cpu: u32,
    /// Where they begin in the file.
    pub(super) at: u64,
    pub(super) bytes: Cow<'a, [u8]>,
}

/// A buffer of the recording: the kernel's own, or an instance's.
#[derive(Debug, Default)]
pub(super) struct Buffer<'a> {
    /// The instance's; empty: the kernel's own.
    pub(super) name: String,
    pub(super) cpus: Vec<CpuPages<'a>>,
    /// Bytes of the file that its CPUs claim.
    claimed: u64,
}

impl Buffer<'_> {
    /// Without pages yet.
    pub(super) fn new(name: String) -> Self {
        Self { name, ..Self::default() }
    }

    /// Counts the bytes of a file that a CPU's pages take. Pages that overlap would be read again and again.
    pub(super) fn claim(&mut self, size: u64, file_bytes: usize) -> Result<(), Why> {
        self.claimed = self.claimed.saturating_add(size);
        if self.claimed > file_bytes as u64 {
            return Err("the pages of its CPUs overlap".to_owned());
        }
        Ok(())
    }

    /// The name by which it is chosen.
    pub(super) fn called(&self) -> &str {
        if self.name.is_empty() { TOP } else { &self.name }
    }

    pub(super) fn bytes(&self) -> usize {
        self.cpus.iter().map(|cpu| cpu.bytes.len()).sum()
    }
}

/// The whole content.
#[derive(Debug, Default)]
pub(super) struct Contents<'a> {
    pub(super) endian: Endian,
    pub(super) page_bytes: usize,
    pub(super) header_page: String,
    pub(super) formats: Vec<String>,
    pub(super) kallsyms: String,
    /// Lines `pid name`.
    pub(super) cmdlines: String,
    /// `trace_clock`, the one in use in brackets.
    pub(super) clock: Option<String>,
    /// Names of the system and of the machine, release, version or architecture: words of `uname`.
    pub(super) uname: Option<String>,
    /// The text of a [`StartState`].
    pub(super) start_state: Option<String>,
    /// The kernel's statistics of each CPU's buffer.
    pub(super) stats: Vec<String>,
    /// CPU numbers lie below it.
    pub(super) cpus: u32,
    pub(super) buffers: Vec<Buffer<'a>>,
    /// Why not everything could be read.
    pub(super) cut: Option<Why>,
}

impl<'a> Contents<'a> {
    pub(super) fn new(endian: Endian, page_bytes: usize) -> Self {
        Self { endian, page_bytes, ..Self::default() }
    }

    /// The buffers with anything in them, the one with the most first.
    pub(super) fn filled(&self) -> Vec<&Buffer<'a>> {
        let mut filled: Vec<_> = self.buffers.iter().filter(|buffer| buffer.bytes() > 0).collect();
        filled.sort_by_key(|buffer| std::cmp::Reverse(buffer.bytes()));
        filled
    }

    /// The pages of a CPU that are not compressed, as far as they are in the file.
    pub(super) fn plain(&mut self, bytes: &'a [u8], cpu: u32, at: u64, size: u64) -> &'a [u8] {
        let len = bytes.len() as u64;
        let (start, end) = (at.min(len), at.saturating_add(size).min(len));
        if end - start < size {
            self.cut.get_or_insert_with(|| format!("the pages of CPU {cpu} are cut off"));
        }
        &bytes[start as usize..end as usize]
    }

    /// Reads an option that is the same in all versions.
    pub(super) fn option(&mut self, number: u16, data: &[u8]) {
        let text = || String::from_utf8_lossy(data).trim_end_matches('\0').to_owned();
        match number {
            OPTION_CPUSTAT => self.stats.push(text()),
            OPTION_TRACECLOCK => self.clock = Some(text()),
            OPTION_UNAME => self.uname = Some(text()),
            StartState::OPTION => self.start_state = Some(text()),
            _ => {}
        }
    }
}

pub(super) fn cpu_count(cpus: u32) -> Result<u32, Why> {
    if cpus > CPUS_MAX {
        return Err(format!("its head claims {cpus} CPUs"));
    }
    Ok(cpus)
}

/// Reads version 6: sections in a fixed order.
pub(super) fn version_6(bytes: &[u8]) -> Result<Contents<'_>, Why> {
    let (head, mut cursor) = TracingData::parse(bytes, |_| true)?;
    let mut contents = Contents::new(cursor.endian, head.page_bytes);
    contents.header_page = head.header_page;
    contents.formats = head.formats;
    contents.kallsyms = head.kallsyms;
    contents.cmdlines = head.cmdlines;
    contents.cpus = cpu_count(cursor.u32("the number of CPUs")?)?;
    let mut instances = Vec::new();
    let mut section = cursor.take(10, "the kind of the data")?;
    if section == b"options  \0" {
        instances = options(&mut cursor, &mut contents)?;
        section = cursor.take(10, "the kind of the data")?;
    }
    match section {
        b"flyrecord\0" => table(bytes, &mut cursor, &mut contents, String::new())?,
        b"latency  \0" => return Err("it holds the text of a latency tracer".to_owned()),
        other => return Err(format!("byte {}: {other:?} is no kind of data", cursor.at() - 10)),
    }
    for (at, name) in instances {
        cursor.seek(at);
        if let Err(why) = instance(bytes, &mut cursor, &mut contents, name) {
            contents.cut.get_or_insert(why);
        }
    }
    Ok(contents)
}

/// Reads the options; returns the offsets and the names of the buffers of instances.
fn options(
    cursor: &mut Cursor<'_>,
    contents: &mut Contents<'_>,
) -> Result<Vec<(u64, String)>, Why> {
    let mut instances = Vec::new();
    for _ in 0..OPTIONS_MAX {
        let number = cursor.u16("an option")?;
        if number == OPTION_DONE {
            return Ok(instances);
        }
        let data = cursor.sized(4, "an option")?;
        match data.split_at_checked(8) {
            Some((at, name)) if number == OPTION_BUFFER && instances.len() < BUFFERS_MAX => {
                let name = String::from_utf8_lossy(name).trim_end_matches('\0').to_owned();
                instances.push((cursor.endian.number(at), name));
            }
            _ => contents.option(number, data),
        }
    }
    Err(format!("byte {}: more than {OPTIONS_MAX} options", cursor.at()))
}

fn instance<'a>(
    bytes: &'a [u8],
    cursor: &mut Cursor<'a>,
    contents: &mut Contents<'a>,
    name: String,
) -> Result<(), Why> {
    cursor.expect(b"flyrecord\0", "the buffer of an instance")?;
    table(bytes, cursor, contents, name)
}

/// The table of offsets and sizes, one entry a CPU, and the pages there.
fn table<'a>(
    bytes: &'a [u8],
    cursor: &mut Cursor<'a>,
    contents: &mut Contents<'a>,
    name: String,
) -> Result<(), Why> {
    let mut buffer = Buffer::new(name);
    for cpu in 0..contents.cpus {
        let (at, size) = (cursor.u64("the offset of a CPU's pages")?, cursor.u64("their size")?);
        let pages = contents.plain(bytes, cpu, at, size);
        buffer.claim(pages.len() as u64, bytes.len())?;
        buffer.cpus.push(CpuPages { cpu, at, bytes: Cow::Borrowed(pages) });
    }
    contents.buffers.push(buffer);
    Ok(())
}
