//! The file around perf's records (`tools/perf/Documentation/perf.data-file-format.txt` of the kernel).
//!
//! ```text
//! "PERFILE2" size of the head(8) size of an attribute(8)
//! attributes, data, event types: offset(8) size(8) each
//! features: 256 bits
//! data:      records: type(4) misc(2) size(2, with these eight bytes) …
//! behind the data, for each feature in order: offset(8) size(8)
//! attribute: perf_event_attr, then offset(8) size(8) of its event numbers
//! ```

use std::collections::HashMap;
use std::io::{self, Read, Seek, SeekFrom};

use super::super::binary::{Cursor, Endian, Why};
use super::attributes::{Attribute, Attributes};

/// Features (`HEADER_…`).
const FEATURE_TRACING_DATA: u64 = 1;
const FEATURE_OSRELEASE: u64 = 4;
const FEATURE_NRCPUS: u64 = 7;
const FEATURE_COMPRESSED: u64 = 27;
const FEATURES: u64 = 256;
/// Attributes that a file may have: one for each event, some for each CPU.
const ATTRIBUTES_MAX: u64 = 1 << 16;
/// Bytes of an attribute's offset and size of event numbers.
const NUMBERS_BYTES: u64 = 16;
/// Where the offset and the size of the data are.
const DATA_AT: usize = 40;

/// The bytes before and behind the data.
#[derive(Debug)]
pub(super) struct Sections {
    pub(super) endian: Endian,
    head: Vec<u8>,
    tail: Vec<u8>,
    /// Where the tail begins in the file.
    tail_at: u64,
    file_bytes: u64,
    pub(super) data_at: u64,
    pub(super) data_size: u64,
}

impl Sections {
    /// Reads both. Of a file that is too short for its own head, there is only the first.
    pub(super) fn read(input: &mut (impl Read + Seek)) -> io::Result<Self> {
        let file_bytes = input.seek(SeekFrom::End(0))?;
        input.seek(SeekFrom::Start(0))?;
        let mut head = Vec::new();
        input.by_ref().take(DATA_AT as u64 + 16).read_to_end(&mut head)?;
        let endian = if head.starts_with(b"PERFILE2") { Endian::Little } else { Endian::Big };
        let data = endian.u64(&head, DATA_AT).zip(endian.u64(&head, DATA_AT + 8));
        let (data_at, data_size) = data.unwrap_or((file_bytes, 0));
        let rest = data_at.saturating_sub(head.len() as u64);
        input.by_ref().take(rest).read_to_end(&mut head)?;
        let tail_at = data_at.saturating_add(data_size).max(head.len() as u64).min(file_bytes);
        input.seek(SeekFrom::Start(tail_at))?;
        let mut tail = Vec::new();
        input.read_to_end(&mut tail)?;
        Ok(Self { endian, head, tail, tail_at, file_bytes, data_at, data_size })
    }

    /// Reads from an offset of the file on.
    fn at(&self, at: u64) -> Cursor<'_> {
        let mut cursor = match at >= self.tail_at {
            true => Cursor::part(&self.tail, self.tail_at, self.endian),
            false => Cursor::new(&self.head, self.endian),
        };
        cursor.seek(at);
        cursor
    }
}

/// The head and the features of a file.
#[derive(Debug)]
pub(super) struct PerfFile<'a> {
    pub(super) endian: Endian,
    pub(super) attributes: Attributes,
    /// The kernel's descriptions of its tracepoints.
    pub(super) tracing_data: Option<&'a [u8]>,
    /// The number of CPUs that there may be, and of those online; 0 where it is not known.
    pub(super) cpus: [u32; 2],
    /// The kernel's release, where the file has it.
    pub(super) release: Option<String>,
    /// Whether records are compressed.
    pub(super) is_compressed: bool,
    /// Why not all features could be read.
    pub(super) why_cut: Option<Why>,
}

impl<'a> PerfFile<'a> {
    pub(super) fn parse(sections: &'a Sections) -> Result<Self, Why> {
        let mut cursor = sections.at(0);
        cursor.take(8, "the head")?;
        cursor.u64("the size of the head")?;
        let attribute_bytes = cursor.u64("the size of an attribute")?;
        let attributes_at = cursor.u64("the offset of the attributes")?;
        let attributes_size = cursor.u64("the size of the attributes")?;
        cursor.take(16, "the offset of the data")?;
        cursor.take(16, "the offset of the event types")?;
        let bits = cursor.take(FEATURES / 8, "the features")?;
        let attributes = attributes(sections, attributes_at, attributes_size, attribute_bytes)?;
        // perf writes the size of the data and the features when it ends.
        let end = sections.data_at.saturating_add(sections.data_size);
        if end > sections.file_bytes {
            return Err(format!("byte {}: the data is cut off", sections.data_at));
        }
        let endian = sections.endian;
        let (features, why_cut) = features(sections, bits, sections.at(end));
        let tracing_data = features.get(&FEATURE_TRACING_DATA).copied();
        let counts = features.get(&FEATURE_NRCPUS).copied().unwrap_or_default();
        let cpus = [0, 4].map(|at| endian.u32(counts, at).unwrap_or(0));
        let release = features.get(&FEATURE_OSRELEASE).and_then(|bytes| text(endian, bytes));
        let is_compressed = features.contains_key(&FEATURE_COMPRESSED);
        Ok(Self { endian, attributes, tracing_data, cpus, release, is_compressed, why_cut })
    }
}

/// A text of a feature: size(4), then the bytes with zeros behind them.
fn text(endian: Endian, bytes: &[u8]) -> Option<String> {
    let size = endian.u32(bytes, 0)? as usize;
    let text = bytes.get(4..4_usize.checked_add(size)?)?;
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(size);
    Some(String::from_utf8_lossy(&text[..end]).into_owned())
}

/// Reads the table behind the data. What is cut off is missing, with the reason.
fn features<'a>(
    sections: &'a Sections,
    bits: &[u8],
    mut table: Cursor<'a>,
) -> (HashMap<u64, &'a [u8]>, Option<Why>) {
    let (mut found, mut why_cut) = (HashMap::new(), None);
    // The bits stand in words of 64, in the file's byte order.
    let words: Vec<u64> = bits.chunks(8).map(|word| sections.endian.number(word)).collect();
    for feature in (0..FEATURES).filter(|bit| words[*bit as usize / 64] >> (bit % 64) & 1 != 0) {
        let section = table.u64("a feature").and_then(|at| {
            let size = table.u64("the size of a feature")?;
            sections.at(at).take(size, "a feature")
        });
        match section {
            Ok(section) => _ = found.insert(feature, section),
            Err(why) => _ = why_cut.get_or_insert(why),
        }
    }
    (found, why_cut)
}

fn attributes(sections: &Sections, at: u64, size: u64, each: u64) -> Result<Attributes, Why> {
    let count = size.checked_div(each).unwrap_or(0);
    if each <= NUMBERS_BYTES || count > ATTRIBUTES_MAX {
        return Err(format!("byte {at}: attributes of {each} bytes each, {size} in all"));
    }
    if count == 0 {
        return Err(format!("byte {at}: no attributes, so no record can be read"));
    }
    let (mut all, mut by_number) = (Vec::new(), Vec::new());
    let mut numbers_left = sections.file_bytes / 8;
    let mut cursor = sections.at(at);
    for index in 0..count as usize {
        let start = cursor.at();
        let bytes = cursor.take(each - NUMBERS_BYTES, "an attribute")?;
        let attribute = Attribute::parse(sections.endian, bytes);
        all.push(attribute.ok_or_else(|| format!("byte {start}: an attribute is cut off"))?);
        let (at, size) = (cursor.u64("its event numbers")?, cursor.u64("their size")?);
        let mut numbers = sections.at(at);
        numbers_left = numbers_left
            .checked_sub(size / 8)
            .ok_or_else(|| format!("byte {start}: event numbers that overlap"))?;
        for _ in 0..size / 8 {
            by_number.push((numbers.u64("an event number")?, index));
        }
    }
    Ok(Attributes::new(sections.endian, all, by_number))
}
