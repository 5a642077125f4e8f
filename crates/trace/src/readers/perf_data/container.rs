//! The file around perf's records (`tools/perf/Documentation/perf.data-file-format.txt` of the kernel).
//!
//! ```text
//! "PERFILE2" head size(8) size of an attribute(8)
//! attributes, data, event types: place(8) size(8) each
//! features: 256 bits
//! data:      records: type(4) misc(2) size(2, with these eight bytes) …
//! behind the data, for each feature in order: place(8) size(8)
//! attribute: perf_event_attr, then place(8) size(8) of its event numbers
//! ```

use std::collections::HashMap;
use std::io::Read;

use byteorder::{BigEndian, LittleEndian};
use linux_perf_event_reader::{Endianness, PerfEventAttr, RecordParseInfo};
use ruzstd::decoding::StreamingDecoder;

use super::super::binary::{Cursor, Endian, Why};

/// Features (`HEADER_…`).
pub(super) const FEATURE_TRACING_DATA: usize = 1;
pub(super) const FEATURE_NRCPUS: usize = 7;
const FEATURES: usize = 256;
/// Attributes that a file may have: one for each event, some for each CPU.
const ATTRIBUTES_MAX: u64 = 1 << 16;

/// Records of perf itself (`PERF_RECORD_…`).
const RECORD_AUXTRACE: u32 = 71;
const RECORD_COMPRESSED: u32 = 81;
const RECORD_COMPRESSED2: u32 = 83;
const RECORD_HEAD_BYTES: usize = 8;
/// All that compressed records may grow to, bytes, and by what factor.
const DECOMPRESSED_BYTES_MAX: u64 = 8 << 30;
const GROWTH_MAX: u64 = 1 << 10;

/// A record without its head.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawRecord<'a> {
    pub(super) kind: u32,
    pub(super) misc: u16,
    /// Where its head is: in the file, or among what was decompressed.
    pub(super) at: u64,
    pub(super) body: &'a [u8],
}

/// The file's parts.
#[derive(Debug)]
pub(super) struct Container<'a> {
    pub(super) endian: Endian,
    /// How the records of each attribute are to be read.
    pub(super) attributes: Vec<RecordParseInfo>,
    /// The attribute of an event number.
    pub(super) attribute_of: HashMap<u64, usize>,
    /// The records as they stand, and where they begin.
    data: &'a [u8],
    data_at: u64,
    features: HashMap<usize, &'a [u8]>,
    /// Why not everything could be read.
    pub(super) cut: Option<Why>,
}

impl<'a> Container<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, Why> {
        let endian = if bytes.starts_with(b"PERFILE2") { Endian::Little } else { Endian::Big };
        let mut cursor = Cursor::new(bytes, endian);
        cursor.take(8, "the head")?;
        let head_bytes = cursor.u64("the size of the head")?;
        if head_bytes == 16 {
            return Err("it was written into a pipe, where its order is another".to_owned());
        }
        let attribute_bytes = cursor.u64("the size of an attribute")?;
        let attributes_at = cursor.u64("the place of the attributes")?;
        let attributes_size = cursor.u64("the size of the attributes")?;
        let data_at = cursor.u64("the place of the data")?;
        let data_size = cursor.u64("the size of the data")?;
        cursor.take(16, "the place of the event types")?;
        let features = cursor.take(FEATURES as u64 / 8, "the features")?;
        let mut container = Self {
            endian,
            attributes: Vec::new(),
            attribute_of: HashMap::new(),
            data: &[],
            data_at,
            features: HashMap::new(),
            cut: None,
        };
        container.attributes(bytes, attributes_at, attributes_size, attribute_bytes)?;
        // perf writes the size of the data and the features when it ends.
        let mut cursor = Cursor::new(bytes, endian);
        cursor.seek(data_at);
        container.data = cursor.take(data_size, "the data")?;
        container.features(bytes, features, cursor);
        Ok(container)
    }

    fn attributes(&mut self, bytes: &[u8], at: u64, size: u64, each: u64) -> Result<(), Why> {
        const IDS_BYTES: u64 = 16;
        let count = size.checked_div(each).unwrap_or(0);
        if each <= IDS_BYTES || count > ATTRIBUTES_MAX {
            return Err(format!("byte {at}: attributes of {each} bytes each, {size} in all"));
        }
        if count == 0 {
            return Err(format!("byte {at}: no attributes, so no record can be read"));
        }
        let mut numbers_left = bytes.len() as u64 / 8;
        let mut cursor = Cursor::new(bytes, self.endian);
        cursor.seek(at);
        for index in 0..count as usize {
            let place = cursor.at();
            let attribute = cursor.take(each - IDS_BYTES, "an attribute")?;
            let parsed = match self.endian {
                Endian::Little => PerfEventAttr::parse::<_, LittleEndian>(attribute),
                Endian::Big => PerfEventAttr::parse::<_, BigEndian>(attribute),
            };
            let (parsed, _) = parsed.map_err(|e| format!("byte {place}: an attribute: {e}"))?;
            let endian = match self.endian {
                Endian::Little => Endianness::LittleEndian,
                Endian::Big => Endianness::BigEndian,
            };
            self.attributes.push(RecordParseInfo::new(&parsed, endian));
            let (at, size) = (cursor.u64("its event numbers")?, cursor.u64("their size")?);
            let mut ids = Cursor::new(bytes, self.endian);
            ids.seek(at);
            numbers_left = numbers_left
                .checked_sub(size / 8)
                .ok_or_else(|| format!("byte {place}: event numbers that overlap"))?;
            for _ in 0..size / 8 {
                self.attribute_of.insert(ids.u64("an event number")?, index);
            }
        }
        Ok(())
    }

    /// Reads the table behind the data; what is cut off is missing.
    fn features(&mut self, bytes: &'a [u8], bits: &[u8], mut table: Cursor<'a>) {
        for feature in 0..FEATURES {
            // The bits stand in words of 64, in the file's byte order.
            let word = self.endian.number(&bits[feature / 64 * 8..feature / 64 * 8 + 8]);
            if word >> (feature % 64) & 1 == 0 {
                continue;
            }
            let section = table.u64("a feature").and_then(|at| {
                let size = table.u64("the size of a feature")?;
                let mut cursor = Cursor::new(bytes, self.endian);
                cursor.seek(at);
                cursor.take(size, "a feature")
            });
            match section {
                Ok(section) => {
                    self.features.insert(feature, section);
                }
                Err(why) => {
                    self.cut.get_or_insert(why);
                }
            }
        }
    }

    /// The bytes of a feature.
    pub(super) fn feature(&self, feature: usize) -> Option<&'a [u8]> {
        self.features.get(&feature).copied()
    }

    /// The records as they stand in the file; those that hold compressed ones are put into `compressed` instead.
    pub(super) fn records(&mut self, compressed: &mut Vec<u8>) -> Vec<RawRecord<'a>> {
        let mut records = Vec::new();
        let cut = split(self.data, self.data_at, self.endian, |record| match record.kind {
            RECORD_COMPRESSED => compressed.extend(record.body),
            RECORD_COMPRESSED2 => {
                let sized = record.body.split_at_checked(8).and_then(|(size, rest)| {
                    rest.get(..usize::try_from(self.endian.number(size)).ok()?)
                });
                compressed.extend(sized.unwrap_or_default());
            }
            _ => records.push(record),
        });
        if let Some(why) = cut {
            self.cut.get_or_insert(why);
        }
        records
    }

    /// The bytes of the compressed records, as far as they are sound. All of them are one zstd frame that perf never ends.
    pub(super) fn decompress(&mut self, mut compressed: Vec<u8>) -> Vec<u8> {
        /// A block that is the last one, not compressed, and empty.
        const LAST_BLOCK: [u8; 3] = [1, 0, 0];
        let room = GROWTH_MAX.saturating_mul(compressed.len() as u64).min(DECOMPRESSED_BYTES_MAX);
        compressed.extend(LAST_BLOCK);
        let mut plain = Vec::new();
        let read = StreamingDecoder::new(&compressed[..])
            .map_err(|e| e.to_string())
            .and_then(|it| it.take(room).read_to_end(&mut plain).map_err(|e| e.to_string()));
        if let Err(why) = read {
            self.cut.get_or_insert(format!("damaged compressed records: {why}"));
        }
        plain
    }

    /// The records among what was decompressed.
    pub(super) fn decompressed<'p>(&mut self, plain: &'p [u8]) -> Vec<RawRecord<'p>> {
        let mut records = Vec::new();
        let cut = split(plain, 0, self.endian, |record| records.push(record));
        if let Some(why) = cut {
            self.cut.get_or_insert(why);
        }
        records
    }
}

/// Hands out each record; says why it ended early, if it did.
fn split<'a>(
    data: &'a [u8],
    data_at: u64,
    endian: Endian,
    mut record: impl FnMut(RawRecord<'a>),
) -> Option<Why> {
    let mut rest = data;
    while !rest.is_empty() {
        let at = data_at.saturating_add((data.len() - rest.len()) as u64);
        let Some((head, after)) = rest.split_at_checked(RECORD_HEAD_BYTES) else {
            return Some(format!("byte {at}: the head of a record is cut off"));
        };
        let kind = endian.number(&head[..4]) as u32;
        let misc = endian.number(&head[4..6]) as u16;
        let size = endian.number(&head[6..8]) as usize;
        let body =
            size.checked_sub(RECORD_HEAD_BYTES).and_then(|size| after.split_at_checked(size));
        let Some((body, mut behind)) = body else {
            return Some(format!("byte {at}: a record of {size} bytes is cut off"));
        };
        if kind == RECORD_AUXTRACE {
            // The record says how much of another kind follows it.
            let size = endian.number(body.get(..8).unwrap_or_default());
            let Some(next) = usize::try_from(size).ok().and_then(|size| behind.get(size..)) else {
                return Some(format!("byte {at}: {size} bytes of hardware traces are cut off"));
            };
            behind = next;
        }
        record(RawRecord { kind, misc, at, body });
        rest = behind;
    }
    None
}
