//! Which attribute of the file says how a record is to be read.

use byteorder::{BigEndian, LittleEndian};
use linux_perf_event_reader::{
    RawData, RawEventRecord, RecordParseInfo, RecordType, get_record_identifier,
};

use super::super::binary::Endian;
use super::container::{Attributes, RawRecord};
use super::samples::{Layout, Sample};

const RECENT_NUMBERS: usize = 64;

/// What reading the records by their attributes takes.
#[derive(Debug)]
pub(super) struct Forms<'c> {
    attributes: &'c Attributes,
    endian: Endian,
    /// How the samples of each attribute are taken apart.
    layouts: Vec<Option<Layout>>,
    /// All attributes say the same of a record's form.
    uniform: bool,
    /// Event numbers asked for before, and their attributes: looked at before the table.
    recent: [(u64, usize); RECENT_NUMBERS],
}

impl<'c> Forms<'c> {
    pub(super) fn new(attributes: &'c Attributes, endian: Endian) -> Self {
        let first = attributes.infos.first();
        let formats = attributes.infos.iter().zip(&attributes.read_formats);
        let layouts = formats.map(|(info, read_format)| Layout::new(info, *read_format));
        Self {
            attributes,
            endian,
            layouts: layouts.collect(),
            uniform: attributes.infos.iter().all(|info| Some(info) == first),
            recent: [(u64::MAX, 0); RECENT_NUMBERS],
        }
    }

    fn index(&mut self, kind: RecordType, body: &[u8]) -> usize {
        if self.uniform {
            return 0;
        }
        let data = RawData::Single(body);
        let number = match self.endian {
            Endian::Little => get_record_identifier::<LittleEndian>(kind, data, true),
            Endian::Big => get_record_identifier::<BigEndian>(kind, data, true),
        };
        number.map_or(0, |number| self.index_of(number))
    }

    /// The attribute of an event number.
    fn index_of(&mut self, number: u64) -> usize {
        let recent = &mut self.recent[number as usize % RECENT_NUMBERS];
        if number != recent.0 {
            *recent = (number, self.attributes.of.get(&number).copied().unwrap_or(0));
        }
        recent.1
    }

    /// How samples with this first word are taken apart the short way; `None` when they cannot be.
    pub(super) fn layout_of(&mut self, first: u64) -> Option<&Layout> {
        // Where events have different forms their numbers stand in front (`PERF_SAMPLE_IDENTIFIER`).
        let index = if self.uniform { 0 } else { self.index_of(first) };
        self.layouts[index].as_ref()
    }

    /// A sample, taken apart the short way; `None` when that cannot be done. `endian` is the file's.
    pub(super) fn sample(&mut self, endian: Endian, body: &[u8]) -> Option<Sample> {
        self.layout_of(endian.u64(body, 0)?)?.parse(endian, body)
    }

    /// A record with the attribute by which it is to be read.
    pub(super) fn raw<'r>(&mut self, record: &RawRecord<'r>) -> RawEventRecord<'r> {
        let kind = RecordType(record.kind);
        let info: RecordParseInfo = self.attributes.infos[self.index(kind, record.body)];
        RawEventRecord::new(kind, record.misc, RawData::Single(record.body), info)
    }
}
