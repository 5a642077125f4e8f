//! Samples like those before them. The samples of one event have one size, and everything stands at the same places in them: what was looked
//! at in one of them is not looked at again in the next.

use linux_perf_event_reader::RecordType;

use super::super::binary::{At, Flat, Planned, RawEvent, Window};
use super::forms::Forms;
use super::piece::{HEAD_BYTES, split_head};

/// So many events are told apart; more of them are looked at again and again.
const EVENTS: usize = 64;
const HEAD: At = At::BEGIN;
/// Where events have different forms, a sample's first word is its event's number (`PERF_SAMPLE_IDENTIFIER`). In other files it tells events
/// apart well enough.
const FIRST: At = At::new(HEAD_BYTES).unwrap();

/// What the samples of an event look like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usual {
    /// Kind, flags and size.
    head: u64,
    first: u64,
    raw_bytes: u32,
    pub(super) planned: Planned,
    places: Places,
    /// Whether anybody uses the event.
    pub(super) is_used: bool,
}

/// Where in its record a sample is looked at.
#[derive(Clone, Copy, Debug)]
struct Places {
    tid: At,
    time: At,
    cpu: At,
    raw_bytes: At,
    /// Where the event itself begins.
    raw: At,
    common_type: At,
    common_pid: At,
}

/// What the samples of all events look like.
#[derive(Debug)]
pub(super) struct Usuals([Usual; EVENTS]);

impl Default for Usuals {
    fn default() -> Self {
        let [tid, time, cpu, raw_bytes, raw, common_type, common_pid] = [HEAD; 7];
        let places = Places { tid, time, cpu, raw_bytes, raw, common_type, common_pid };
        let planned = Planned::default();
        // No record fits: the bytes that are compared with the two are the same.
        let (head, raw_bytes) = (0, 1);
        Self([Usual { head, first: 0, raw_bytes, planned, places, is_used: false }; EVENTS])
    }
}

impl Usuals {
    /// What a record is like, if it is a sample in which everything has its place.
    #[inline(always)]
    pub(super) fn of(
        &mut self,
        record: &Window,
        forms: &mut Forms<'_>,
        flat: &Flat,
    ) -> Option<&Usual> {
        let first = u64::from_le_bytes(FIRST.in_record(record));
        let known = &mut self.0[first as usize % EVENTS];
        if first != known.first || !known.fits(record) {
            *known = Usual::look_at(record, forms, flat)?;
        }
        Some(known)
    }
}

impl Usual {
    #[inline(always)]
    fn fits(&self, record: &Window) -> bool {
        u64::from_le_bytes(HEAD.in_record(record)) == self.head
            && u32::from_le_bytes(self.places.raw_bytes.in_record(record)) == self.raw_bytes
            && Planned::of(self.places.common_type.in_record(record)) == self.planned
    }

    #[cold]
    fn look_at(record: &Window, forms: &mut Forms<'_>, flat: &Flat) -> Option<Self> {
        let head = u64::from_le_bytes(HEAD.in_record(record));
        let first = u64::from_le_bytes(FIRST.in_record(record));
        let (kind, size) = split_head(record);
        if kind != RecordType::SAMPLE.0 || size < HEAD_BYTES {
            return None;
        }
        let places = forms.layout_of(first)?.fixed()?;
        let [tid, time, cpu, raw_bytes, raw] = places.map(|place| At::new(HEAD_BYTES + place));
        let (raw_bytes, raw) = (raw_bytes?, raw?);
        let inside = |at: At| At::new(raw.place() + at.place());
        let (common_type, common_pid) = (inside(flat.common_type)?, inside(flat.common_pid)?);
        let bytes = u32::from_le_bytes(raw_bytes.in_record(record));
        if raw.place() + bytes as usize > size {
            return None;
        }
        let event = RawEvent { record, at: raw, bytes };
        let (planned, is_used) = flat.plan(event)?;
        let (tid, time, cpu) = (tid?, time?, cpu?);
        let places = Places { tid, time, cpu, raw_bytes, raw, common_type, common_pid };
        Some(Self { head, first, raw_bytes: bytes, planned, places, is_used })
    }

    /// Bytes of the record.
    #[inline(always)]
    pub(super) fn size(&self) -> usize {
        (self.head >> 48) as usize
    }

    #[inline(always)]
    pub(super) fn time_ns(&self, record: &Window) -> u64 {
        u64::from_le_bytes(self.places.time.in_record(record))
    }

    #[inline(always)]
    pub(super) fn cpu(&self, record: &Window) -> u32 {
        u32::from_le_bytes(self.places.cpu.in_record(record))
    }

    #[inline(always)]
    pub(super) fn tid(&self, record: &Window) -> i32 {
        i32::from_le_bytes(self.places.tid.in_record(record))
    }

    /// The task of the event's own head.
    #[inline(always)]
    pub(super) fn common_pid(&self, record: &Window) -> i32 {
        i32::from_le_bytes(self.places.common_pid.in_record(record))
    }

    /// Where in the record the event begins, and its bytes.
    #[inline(always)]
    pub(super) fn raw(&self) -> (usize, u32) {
        (self.places.raw.place(), self.raw_bytes)
    }
}
