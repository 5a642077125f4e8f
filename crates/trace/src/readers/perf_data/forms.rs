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
        let layouts = formats.map(|(info, read_format)| Layout::new(info, *read_format, endian));
        Self {
            attributes,
            endian,
            layouts: layouts.collect(),
            uniform: attributes.infos.iter().all(|info| Some(info) == first),
            recent: [const { Cell::new((u64::MAX, 0)) }; RECENT_NUMBERS],
        }
    }

    #[inline]
    fn index(&self, kind: RecordType, body: &[u8]) -> usize {
        if self.uniform {
            return 0;
        }
        let data = RawData::Single(body);
        let number = match self.endian {
            Endian::Little => get_record_identifier::<LittleEndian>(kind, data, true),
            Endian::Big => get_record_identifier::<BigEndian>(kind, data, true),
        };
        let Some(number) = number else { return 0 };
        let place = &self.recent[number as usize % RECENT_NUMBERS];
        let (recent, index) = place.get();
        if number == recent {
            return index;
        }
        let index = self.attributes.of.get(&number).copied().unwrap_or(0);
        place.set((number, index));
        index
    }

    /// A sample, taken apart the short way; `None` when that cannot be done.
    #[inline]
    pub(super) fn sample<'r>(&self, body: &'r [u8]) -> Option<Sample<'r>> {
        let index = self.index(RecordType::SAMPLE, body);
        self.layouts[index].as_ref()?.parse(body)
    }

    /// A record with the attribute by which it is to be read.
    pub(super) fn raw<'r>(&self, record: &RawRecord<'r>) -> RawEventRecord<'r> {
        let kind = RecordType(record.kind);
        let info: RecordParseInfo = self.attributes.infos[self.index(kind, record.body)];
        RawEventRecord::new(kind, record.misc, RawData::Single(record.body), info)
    }
}
