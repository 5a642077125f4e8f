//! Version 7: sections anywhere in the file, named by options, each compressed or not.
//!
//! ```text
//! MAGIC "7\0" ENDIAN LONG_SIZE PAGE_SIZE(4) COMPRESSION\0 ITS_VERSION\0 offset of the first options(8)
//! section:          number(2) flags(2) description(4) size(8) data
//! compressed data:  size(4) size before compression(4) bytes
//! option:           number(2) size(4) data; the last is number 0, with the offset of the next options(8) or 0
//! buffer option:    offset(8) NAME\0 CLOCK\0 page size(4) CPUs(4) { CPU(4) offset(8) size(8) }
//! compressed pages: chunks(4) { size(4) size before compression(4) bytes }
//! ```

use std::borrow::Cow;
use std::io::Read;

use flate2::read::ZlibDecoder;
use ruzstd::decoding::StreamingDecoder;

use super::super::binary::{Cursor, Endian, Why, event_formats, ftrace_formats, header_info};
use super::super::expand::Expansion;
use super::contents::{
    BUFFERS_MAX, Buffer, Contents, CpuPages, OPTION_BUFFER, OPTION_DONE, OPTIONS_MAX, cpu_count,
};

const SECTION_HEADER_INFO: u16 = 16;
const SECTION_FTRACE_EVENTS: u16 = 17;
const SECTION_EVENT_FORMATS: u16 = 18;
const SECTION_KALLSYMS: u16 = 19;
const SECTION_CMDLINES: u16 = 21;
/// The flag of a compressed section.
const COMPRESSED: u16 = 1;
/// Sections that a file may have: of each kind one, and a few of options.
const SECTIONS_MAX: u32 = 1 << 8;

/// How sections are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compression {
    None,
    Zlib,
    Zstd,
}

/// A file of version 7.
struct File<'a> {
    bytes: &'a [u8],
    endian: Endian,
    compression: Compression,
    expansion: &'a Expansion,
    /// Sections that may still be read.
    sections: u32,
    /// Options that may still be read.
    options: usize,
}

/// Reads version 7; the cursor stands behind the page size.
pub(super) fn version_7<'a>(
    bytes: &'a [u8],
    mut cursor: Cursor<'a>,
    page_bytes: usize,
    expansion: &'a Expansion,
) -> Result<Contents<'a>, Why> {
    let compression = match cursor.text("the compression")? {
        b"none" => Compression::None,
        b"zlib" => Compression::Zlib,
        b"zstd" => Compression::Zstd,
        other => {
            let other = String::from_utf8_lossy(other).into_owned();
            return Err(format!("it is compressed with {other:?}, which is not known here"));
        }
    };
    cursor.text("the version of the compression")?;
    let endian = cursor.endian;
    let mut contents = Contents::new(endian, page_bytes);
    let mut file = File {
        bytes,
        endian,
        compression,
        expansion,
        sections: SECTIONS_MAX,
        options: OPTIONS_MAX,
    };
    let mut next = cursor.u64("the offset of the options")?;
    while next != 0 {
        next = file.options(next, &mut contents)?;
    }
    Ok(contents)
}

impl<'a> File<'a> {
    /// A section's data, decompressed if need be.
    fn section(&mut self, at: u64) -> Result<(u16, Cow<'a, [u8]>), Why> {
        self.sections = self
            .sections
            .checked_sub(1)
            .ok_or_else(|| format!("more than {SECTIONS_MAX} sections"))?;
        let mut cursor = Cursor::new(self.bytes, self.endian);
        cursor.seek(at);
        let number = cursor.u16("a section")?;
        let flags = cursor.u16("the flags of a section")?;
        cursor.u32("the description of a section")?;
        let size = cursor.u64("the size of a section")?;
        if flags & COMPRESSED == 0 || self.compression == Compression::None {
            return Ok((number, Cow::Borrowed(cursor.take(size, "a section")?)));
        }
        Ok((number, Cow::Owned(self.chunk(&mut cursor)?)))
    }

    /// The next compressed chunk.
    fn chunk(&mut self, cursor: &mut Cursor<'_>) -> Result<Vec<u8>, Why> {
        let at = cursor.at();
        let size = cursor.u32("a compressed chunk")?;
        let plain_size = u64::from(cursor.u32("the size of a compressed chunk")?);
        let packed = cursor.take(size.into(), "a compressed chunk")?;
        let wrong =
            |why: &dyn std::fmt::Display| format!("byte {at}: damaged compressed data: {why}");
        self.expansion.give(plain_size).map_err(|e| wrong(&e))?;
        let mut plain = Vec::new();
        let read = match self.compression {
            Compression::Zlib => ZlibDecoder::new(packed).take(plain_size).read_to_end(&mut plain),
            _ => StreamingDecoder::new(packed)
                .map_err(|e| wrong(&e))?
                .take(plain_size)
                .read_to_end(&mut plain),
        };
        read.map_err(|e| wrong(&e))?;
        if plain.len() as u64 != plain_size {
            return Err(wrong(&format_args!("{} bytes instead of {plain_size}", plain.len())));
        }
        Ok(plain)
    }

    /// Reads a section of options and the sections that they name; returns the offset of the next one.
    fn options(&mut self, at: u64, contents: &mut Contents<'a>) -> Result<u64, Why> {
        let (_, data) = self.section(at)?;
        let mut cursor = Cursor::new(&data, self.endian);
        while self.options > 0 {
            self.options -= 1;
            let number = cursor.u16("an option")?;
            let data = cursor.sized(4, "an option")?;
            match number {
                OPTION_DONE => {
                    return Cursor::new(data, self.endian).u64("the offset of the next options");
                }
                OPTION_BUFFER => self.buffer(data, contents)?,
                SECTION_HEADER_INFO..=SECTION_CMDLINES => {
                    let at = Cursor::new(data, self.endian).u64("the offset of a section")?;
                    self.described(at, contents)?;
                }
                _ => contents.option(number, data),
            }
        }
        Err(format!("byte {at}: more than {OPTIONS_MAX} options"))
    }

    /// Reads one of the sections of descriptions.
    fn described(&mut self, at: u64, contents: &mut Contents<'a>) -> Result<(), Why> {
        let (number, data) = self.section(at)?;
        let mut cursor = Cursor::new(&data, self.endian);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match number {
            SECTION_HEADER_INFO => contents.header_page = header_info(&mut cursor)?,
            SECTION_FTRACE_EVENTS => ftrace_formats(&mut cursor, &mut contents.formats)?,
            SECTION_EVENT_FORMATS => event_formats(&mut cursor, &mut contents.formats)?,
            SECTION_KALLSYMS => contents.kallsyms = text(cursor.sized(4, "the kernel's symbols")?),
            SECTION_CMDLINES => {
                contents.cmdlines = text(cursor.sized(8, "the names of the tasks")?);
            }
            _ => {}
        }
        Ok(())
    }

    /// Reads the option of a buffer and takes its pages.
    fn buffer(&mut self, option: &[u8], contents: &mut Contents<'a>) -> Result<(), Why> {
        if contents.buffers.len() >= BUFFERS_MAX {
            return Err(format!("more than {BUFFERS_MAX} buffers"));
        }
        let mut cursor = Cursor::new(option, self.endian);
        let section_at = cursor.u64("the offset of a buffer")?;
        let name = String::from_utf8_lossy(cursor.text("the name of a buffer")?).into_owned();
        let clock = String::from_utf8_lossy(cursor.text("the clock of a buffer")?).into_owned();
        if !clock.is_empty() {
            contents.clock.get_or_insert(clock);
        }
        let page_bytes = cursor.u32("the page size of a buffer")? as usize;
        if page_bytes != 0 {
            contents.page_bytes = page_bytes;
        }
        let cpus = cpu_count(cursor.u32("the number of CPUs")?)?;
        let mut section = Cursor::new(self.bytes, self.endian);
        section.seek(section_at.saturating_add(2));
        let flags = section.u16("the flags of a buffer")?;
        let compressed = flags & COMPRESSED != 0 && self.compression != Compression::None;
        let mut buffer = Buffer::new(name);
        for _ in 0..cpus {
            let cpu = cursor.u32("the number of a CPU")?;
            let (at, size) =
                (cursor.u64("the offset of a CPU's pages")?, cursor.u64("their size")?);
            contents.cpus = contents.cpus.max(cpu_count(cpu.saturating_add(1))?);
            buffer.claim(size.min(self.bytes.len() as u64), self.bytes.len())?;
            let bytes = match compressed && size > 0 {
                true => Cow::Owned(self.chunks(at, contents)),
                false => Cow::Borrowed(contents.plain(self.bytes, cpu, at, size)),
            };
            buffer.cpus.push(CpuPages { cpu, at, bytes });
        }
        contents.buffers.push(buffer);
        Ok(())
    }

    /// A CPU's compressed pages, as far as they are sound. (The size that trace-cmd writes for them is four bytes
    /// short; each chunk has its own.)
    fn chunks(&mut self, at: u64, contents: &mut Contents<'_>) -> Vec<u8> {
        let mut cursor = Cursor::new(self.bytes, self.endian);
        cursor.seek(at);
        let mut pages = Vec::new();
        let mut all = || -> Result<(), Why> {
            for _ in 0..cursor.u32("the number of compressed chunks")? {
                pages.extend(self.chunk(&mut cursor)?);
            }
            Ok(())
        };
        if let Err(why) = all() {
            contents.cut.get_or_insert(why);
        }
        pages
    }
}
