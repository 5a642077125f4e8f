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
use super::pieces::Pieces;

/// Features (`HEADER_…`).
pub(super) const FEATURE_TRACING_DATA: usize = 1;
pub(super) const FEATURE_NRCPUS: usize = 7;
const FEATURES: usize = 256;
/// Attributes that a file may have: one for each event, some for each CPU.
const ATTRIBUTES_MAX: u64 = 1 << 16;

/// Where `read_format` stands in `perf_event_attr`.
const READ_FORMAT_AT: usize = 32;

/// Records of perf itself (`PERF_RECORD_…`).
const RECORD_COMPRESSED: u32 = 81;
const RECORD_COMPRESSED2: u32 = 83;
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

/// What was recorded: an attribute for each event, or for each event of each CPU.
#[derive(Debug, Default)]
pub(super) struct Attributes {
    /// How the records of each are to be read; never empty.
    pub(super) infos: Vec<RecordParseInfo>,
    /// `read_format` of each, with bits that are newer than the crate that parses attributes.
    pub(super) read_formats: Vec<u64>,
    /// The attribute of an event number.
    pub(super) of: HashMap<u64, usize>,
}

/// The file's parts.
#[derive(Debug)]
pub(super) struct Container<'a> {
    pub(super) endian: Endian,
    pub(super) attributes: Attributes,
    features: HashMap<usize, &'a [u8]>,
    /// Why not all features could be read.
    pub(super) why_cut: Option<Why>,
}

impl<'a> Container<'a> {
    pub(super) fn parse(pieces: &'a Pieces) -> Result<Self, Why> {
        let mut cursor = pieces.at(0);
        cursor.take(8, "the head")?;
        let head_bytes = cursor.u64("the size of the head")?;
        if head_bytes == 16 {
            return Err("it was written into a pipe, where its order is another".to_owned());
        }
        let attribute_bytes = cursor.u64("the size of an attribute")?;
        let attributes_at = cursor.u64("the place of the attributes")?;
        let attributes_size = cursor.u64("the size of the attributes")?;
        cursor.take(16, "the place of the data")?;
        cursor.take(16, "the place of the event types")?;
        let features = cursor.take(FEATURES as u64 / 8, "the features")?;
        let mut container = Self {
            endian: pieces.endian,
            attributes: Attributes::default(),
            features: HashMap::new(),
            why_cut: None,
        };
        container.attributes(pieces, attributes_at, attributes_size, attribute_bytes)?;
        // perf writes the size of the data and the features when it ends.
        let end = pieces.data_at.saturating_add(pieces.data_size);
        if end > pieces.file_bytes {
            return Err(format!("byte {}: the data is cut off", pieces.data_at));
        }
        container.features(pieces, features, pieces.at(end));
        Ok(container)
    }

    fn attributes(&mut self, pieces: &Pieces, at: u64, size: u64, each: u64) -> Result<(), Why> {
        const IDS_BYTES: u64 = 16;
        let count = size.checked_div(each).unwrap_or(0);
        if each <= IDS_BYTES || count > ATTRIBUTES_MAX {
            return Err(format!("byte {at}: attributes of {each} bytes each, {size} in all"));
        }
        if count == 0 {
            return Err(format!("byte {at}: no attributes, so no record can be read"));
        }
        let mut numbers_left = pieces.file_bytes / 8;
        let mut cursor = pieces.at(at);
        for index in 0..count as usize {
            let place = cursor.at();
            let attribute = cursor.take(each - IDS_BYTES, "an attribute")?;
            let read_format = self.endian.u64(attribute, READ_FORMAT_AT).unwrap_or(0);
            self.attributes.read_formats.push(read_format);
            let parsed = match self.endian {
                Endian::Little => PerfEventAttr::parse::<_, LittleEndian>(attribute),
                Endian::Big => PerfEventAttr::parse::<_, BigEndian>(attribute),
            };
            let (parsed, _) = parsed.map_err(|e| format!("byte {place}: an attribute: {e}"))?;
            let endian = match self.endian {
                Endian::Little => Endianness::LittleEndian,
                Endian::Big => Endianness::BigEndian,
            };
            self.attributes.infos.push(RecordParseInfo::new(&parsed, endian));
            let (at, size) = (cursor.u64("its event numbers")?, cursor.u64("their size")?);
            let mut ids = pieces.at(at);
            numbers_left = numbers_left
                .checked_sub(size / 8)
                .ok_or_else(|| format!("byte {place}: event numbers that overlap"))?;
            for _ in 0..size / 8 {
                self.attributes.of.insert(ids.u64("an event number")?, index);
            }
        }
        Ok(())
    }

    /// Reads the table behind the data; what is cut off is missing.
    fn features(&mut self, pieces: &'a Pieces, bits: &[u8], mut table: Cursor<'a>) {
        for feature in 0..FEATURES {
            // The bits stand in words of 64, in the file's byte order.
            let word = self.endian.number(&bits[feature / 64 * 8..feature / 64 * 8 + 8]);
            if word >> (feature % 64) & 1 == 0 {
                continue;
            }
            let section = table.u64("a feature").and_then(|at| {
                let size = table.u64("the size of a feature")?;
                pieces.at(at).take(size, "a feature")
            });
            match section {
                Ok(section) => {
                    self.features.insert(feature, section);
                }
                Err(why) => {
                    self.why_cut.get_or_insert(why);
                }
            }
        }
    }

    /// The bytes of a feature.
    pub(super) fn feature(&self, feature: usize) -> Option<&'a [u8]> {
        self.features.get(&feature).copied()
    }
}

/// Takes what a record of compressed ones holds, if it is one.
pub(super) fn compressed(record: &RawRecord<'_>, endian: Endian, to: &mut Vec<u8>) {
    match record.kind {
        RECORD_COMPRESSED => to.extend(record.body),
        RECORD_COMPRESSED2 => {
            let sized = record
                .body
                .split_at_checked(8)
                .and_then(|(size, rest)| rest.get(..usize::try_from(endian.number(size)).ok()?));
            to.extend(sized.unwrap_or_default());
        }
        _ => {}
    }
}

/// The bytes of the compressed records, as far as they are sound, and why not all are. All of them are one zstd frame that perf
/// never ends.
pub(super) fn decompress(mut compressed: Vec<u8>) -> (Vec<u8>, Option<Why>) {
    /// A block that is the last one, not compressed, and empty.
    const LAST_BLOCK: [u8; 3] = [1, 0, 0];
    if compressed.is_empty() {
        return Default::default();
    }
    let room = GROWTH_MAX.saturating_mul(compressed.len() as u64).min(DECOMPRESSED_BYTES_MAX);
    compressed.extend(LAST_BLOCK);
    let mut plain = Vec::new();
    let read = StreamingDecoder::new(&compressed[..])
        .map_err(|e| e.to_string())
        .and_then(|it| it.take(room).read_to_end(&mut plain).map_err(|e| e.to_string()));
    (plain, read.err().map(|why| format!("damaged compressed records: {why}")))
}
