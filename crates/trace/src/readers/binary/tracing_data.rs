//! The descriptions that lead a recording: in `trace.dat` up to version 6 its head, in `perf.data` a section of their
//! own.
//!
//! ```text
//! 17 08 44 "tracing" VERSION\0 ENDIAN LONG_SIZE PAGE_SIZE(4)
//! "header_page\0" size(8) text   "header_event\0" size(8) text
//! count(4) { size(8) format }                        ftrace's own events
//! count(4) { SYSTEM\0 count(4) { size(8) format } }  the others
//! size(4) kallsyms   size(4) printk formats   size(8) "pid name" lines (not in perf's older files)
//! ```

use super::cursor::{Cursor, Endian, Why};

/// The first bytes.
pub(in super::super) const MAGIC: &[u8] = b"\x17\x08\x44tracing";
/// Descriptions that a file may have. A kernel has some thousands.
const FORMATS_MAX: u32 = 1 << 20;

/// The descriptions that were found.
#[derive(Debug)]
pub(in super::super) struct TracingData {
    /// Bytes of a page.
    pub(in super::super) page_bytes: usize,
    /// `events/header_page`.
    pub(in super::super) header_page: String,
    pub(in super::super) formats: Vec<String>,
    pub(in super::super) kallsyms: String,
    /// Lines `pid name`.
    pub(in super::super) cmdlines: String,
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// `header_page` and `header_event`; gives the first.
pub(in super::super) fn header_info(cursor: &mut Cursor<'_>) -> Result<String, Why> {
    cursor.expect(b"header_page\0", "header_page")?;
    let header_page = lossy(cursor.sized(8, "header_page")?);
    cursor.expect(b"header_event\0", "header_event")?;
    cursor.sized(8, "header_event")?;
    Ok(header_page)
}

/// The formats of ftrace's own events.
pub(in super::super) fn ftrace_formats(
    cursor: &mut Cursor<'_>,
    into: &mut Vec<String>,
) -> Result<(), Why> {
    let count = cursor.u32("the number of formats")?;
    if count > FORMATS_MAX {
        return Err(format!("byte {}: {count} formats of events", cursor.at() - 4));
    }
    for _ in 0..count {
        into.push(lossy(cursor.sized(8, "the format of an event")?));
    }
    Ok(())
}

/// The formats of the other events, by system.
pub(in super::super) fn event_formats(
    cursor: &mut Cursor<'_>,
    into: &mut Vec<String>,
) -> Result<(), Why> {
    let systems = cursor.u32("the number of event systems")?;
    if systems > FORMATS_MAX {
        return Err(format!("byte {}: {systems} systems of events", cursor.at() - 4));
    }
    for _ in 0..systems {
        cursor.text("the name of an event system")?;
        ftrace_formats(cursor, into)?;
    }
    Ok(())
}

impl TracingData {
    /// The first part: magic, version, byte order, size of long, page size.
    pub(in super::super) fn start(bytes: &[u8]) -> Result<(Cursor<'_>, String, usize), Why> {
        let mut cursor = Cursor::new(bytes, Endian::Little);
        cursor.expect(MAGIC, "the head of the tracing data")?;
        let version = lossy(cursor.text("the version")?);
        cursor.endian = match cursor.take(1, "the byte order")? {
            [0] => Endian::Little,
            [1] => Endian::Big,
            other => return Err(format!("byte {}: {other:?} is no byte order", cursor.at() - 1)),
        };
        cursor.take(1, "the size of a long")?;
        let page_bytes = cursor.u32("the page size")? as usize;
        Ok((cursor, version, page_bytes))
    }

    /// Reads the descriptions; returns them and a cursor at their end. `has_cmdlines` decides by the version whether
    /// names of tasks follow.
    pub(in super::super) fn parse(
        bytes: &[u8],
        has_cmdlines: impl Fn(&str) -> bool,
    ) -> Result<(Self, Cursor<'_>), Why> {
        let (mut cursor, version, page_bytes) = Self::start(bytes)?;
        let header_page = header_info(&mut cursor)?;
        let mut formats = Vec::new();
        ftrace_formats(&mut cursor, &mut formats)?;
        event_formats(&mut cursor, &mut formats)?;
        let kallsyms = lossy(cursor.sized(4, "the kernel's symbols")?);
        cursor.sized(4, "the printk formats")?;
        let mut cmdlines = String::new();
        if has_cmdlines(&version) {
            cmdlines = lossy(cursor.sized(8, "the names of the tasks")?);
        }
        Ok((Self { page_bytes, header_page, formats, kallsyms, cmdlines }, cursor))
    }
}
