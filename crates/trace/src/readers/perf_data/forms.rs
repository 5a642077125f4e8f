//! Which attribute of the file says how a record is to be read.

use std::cell::Cell;

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
    recent: [Cell<(u64, usize)>; RECENT_NUMBERS],
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
            recent: [const { Cell::new((u64::MAX, 0)) }; RECENT_NUMBERS],
        }
    }

    fn index(&self, kind: RecordType, body: &[u8]) -> usize {
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
    #[inline]
    fn index_of(&self, number: u64) -> usize {
        let place = &self.recent[number as usize % RECENT_NUMBERS];
        let (recent, index) = place.get();
        if number == recent {
            return index;
        }
        let index = self.attributes.of.get(&number).copied().unwrap_or(0);
        place.set((number, index));
        index
    }

    /// A sample, taken apart the short way; `None` when that cannot be done. `endian` is the file's.
    #[inline(always)]
    pub(super) fn sample<'r>(&self, endian: Endian, body: &'r [u8]) -> Option<Sample<'r>> {
        // Where events have different forms their numbers stand in front (`PERF_SAMPLE_IDENTIFIER`).
        let index = if self.uniform { 0 } else { self.index_of(endian.u64(body, 0)?) };
        self.layouts[index].as_ref()?.parse(endian, body)
    }

    /// A record with the attribute by which it is to be read.
    pub(super) fn raw<'r>(&self, record: &RawRecord<'r>) -> RawEventRecord<'r> {
        let kind = RecordType(record.kind);
        let info: RecordParseInfo = self.attributes.infos[self.index(kind, record.body)];
        RawEventRecord::new(kind, record.misc, RawData::Single(record.body), info)
    }
}
