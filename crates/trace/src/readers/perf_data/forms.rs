//! Which attribute of the file says how a record is to be read.

use byteorder::{BigEndian, LittleEndian};
use linux_perf_event_reader::{
    RawData, RawEventRecord, RecordParseInfo, RecordType, get_record_identifier,
};

use super::super::binary::{At, Endian, Window};
use super::container::{Attributes, RawRecord};
use super::piece::HEAD_BYTES;
use super::samples::{Fixed, Layout, Sample, Tracepoint};

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
    /// Event numbers asked for before: looked at before the table.
    recent: [Recent; RECENT_NUMBERS],
}

/// What is known of an event number.
#[derive(Clone, Copy, Debug)]
struct Recent {
    number: u64,
    attribute: usize,
    fixed: Option<Fixed>,
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
            recent: [Recent { number: u64::MAX, attribute: 0, fixed: None }; RECENT_NUMBERS],
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

    fn index_of(&mut self, number: u64) -> usize {
        self.find(number).attribute
    }

    #[inline(always)]
    fn find(&mut self, number: u64) -> &Recent {
        let at = number as usize % RECENT_NUMBERS;
        if number != self.recent[at].number {
            self.recent[at] = self.look_up(number);
        }
        &self.recent[at]
    }

    #[cold]
    fn look_up(&self, number: u64) -> Recent {
        let attribute = self.attributes.of.get(&number).copied().filter(|_| !self.uniform);
        let attribute = attribute.unwrap_or(0);
        let fixed = self.layouts[attribute].as_ref().and_then(|layout| layout.fixed(HEAD_BYTES));
        Recent { number, attribute, fixed }
    }

    /// A sample, taken apart the short way; `None` when that cannot be done. `endian` is the file's.
    pub(super) fn sample(&mut self, endian: Endian, body: &[u8]) -> Option<Sample> {
        // Where events have different forms their numbers stand in front (`PERF_SAMPLE_IDENTIFIER`).
        let index = if self.uniform { 0 } else { self.index_of(endian.u64(body, 0)?) };
        self.layouts[index].as_ref()?.parse(endian, body)
    }

    /// The sample in a record of so many bytes, of a file whose lower bytes come first, if everything in it has its place.
    #[inline(always)]
    pub(super) fn fixed_sample<'r>(
        &mut self,
        record: &'r Window,
        bytes: usize,
    ) -> Option<Tracepoint<'r>> {
        const NUMBER: At = At::new(HEAD_BYTES).unwrap();
        let number = u64::from_le_bytes(NUMBER.in_record(record));
        self.find(if self.uniform { 0 } else { number }).fixed?.parse(record, bytes)
    }

    /// A record with the attribute by which it is to be read.
    pub(super) fn raw<'r>(&mut self, record: &RawRecord<'r>) -> RawEventRecord<'r> {
        let kind = RecordType(record.kind);
        let info: RecordParseInfo = self.attributes.infos[self.index(kind, record.body)];
        RawEventRecord::new(kind, record.misc, RawData::Single(record.body), info)
    }
}
