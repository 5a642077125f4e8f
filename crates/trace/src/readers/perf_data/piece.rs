//! A piece of the file's records, taken apart by itself: which tasks a pid means, and whether the clocks of the CPUs go on from the piece
//! before, is for whoever puts the pieces together.

use std::ops::Range;
use std::sync::Mutex;

use linux_perf_event_reader::RecordType;

use super::super::binary::{At, Endian, Flat, Planned, RawEvent, RawFaces, Window};
use super::super::collect::Span;
use super::super::names::Roster;
use super::super::records::{Record, Sink};
use super::container::RawRecord;
use super::forms::Forms;
use super::in_hand::InHand;
use super::input::ReadAt;
use super::samples::Sample;
use super::stamps::Stamps;
use super::usual::Usuals;
use crate::memory::prefetch;

/// Kind, flags and size of a record.
pub(super) const HEAD_BYTES: usize = 8;
/// So many records in a row are taken for the true ones, until it is known.
const CHAIN: usize = 8;

/// Samples are looked at where the kernel keeps them, and one says where the next begins: so far ahead memory is asked for what will be
/// wanted, two lines each time, which most samples do not go beyond.
const PREFETCH_BYTES: usize = 1 << 12;
const LINE_BYTES: usize = 64;

/// `PERF_RECORD_AUXTRACE`, `PERF_RECORD_COMPRESSED` and `PERF_RECORD_COMPRESSED2`.
const AUXTRACE: u32 = 71;
const PACKED: [u32; 2] = [81, 83];

/// Records that tell the names of tasks.
const OTHERS: [RecordType; 2] = [RecordType::COMM, RecordType::FORK];

/// What was found in a piece.
#[derive(Debug, Default)]
pub(super) struct Piece {
    /// Where its first record begins in the file, and where the first one behind it does.
    pub(super) start: u64,
    pub(super) end: u64,
    /// Its records are to be read with care, one by one.
    pub(super) is_odd: bool,
    /// From its end on nothing can be told of the records.
    pub(super) is_last: bool,
    /// The events, in the order of the file, and the runs in order of time that they consist of.
    pub(super) records: Vec<Record>,
    pub(super) runs: Vec<Range<usize>>,
    /// The latest time in the piece so far where a round of the recorder ended, ns.
    pub(super) rounds: Vec<u64>,
    /// The records of another kind that count, with their places in the file.
    pub(super) others: Vec<(u64, Box<[u8]>)>,
    pub(super) spans: Vec<Span>,
    /// Records of the kernel, without [`OTHERS`].
    pub(super) read: u64,
    pub(super) skipped: u64,
    /// One more than the highest number of a CPU in the records.
    pub(super) cpus: u32,
    pub(super) has_wakeups: bool,
}

impl Piece {
    /// Notes the end of a round, if the record says so.
    fn end_round(&mut self, kind: RecordType) {
        if kind == super::RECORD_FINISHED_ROUND {
            let seen_ns = self.spans.iter().map(|span| span.last_ns).max();
            self.rounds.push(seen_ns.unwrap_or(0));
        }
    }
}

/// A sample with an event that somebody uses.
#[derive(Clone, Copy, Debug)]
struct Found {
    time_ns: u64,
    /// Where the event begins in the bytes in hand.
    at: u32,
    /// Negative where it is not known, and of a task that had just been reaped.
    tid: i32,
    cpu: u16,
    bytes: u16,
    planned: Planned,
}

impl Found {
    /// `event` is the place and the number of its bytes.
    #[inline(always)]
    fn new(time_ns: u64, cpu: u32, tid: i32, event: (usize, u32), planned: Planned) -> Self {
        // A piece has fewer bytes than 2^32, a record fewer than 2^16, and CPUs were looked at.
        let (at, bytes) = (event.0 as u32, event.1 as u16);
        Self { time_ns, at, tid, cpu: cpu as u16, bytes, planned }
    }
}

/// Who takes pieces apart: one a thread.
#[derive(Debug)]
pub(super) struct Hands<'d> {
    forms: Forms<'d>,
    flat: &'d Flat,
    usuals: Usuals,
    faces: RawFaces<'d>,
    in_hand: InHand<'d>,
    /// What its samples hold, in their order.
    found: Vec<Found>,
    /// Events of the last piece.
    expected: usize,
}

impl<'d> Hands<'d> {
    pub(super) fn new(forms: Forms<'d>, flat: &'d Flat, roster: &'d Mutex<Roster>) -> Self {
        let (usuals, faces) = (Usuals::default(), RawFaces::new(roster));
        let (in_hand, found) = (InHand::default(), Vec::new());
        Self { forms, flat, usuals, faces, in_hand, found, expected: 0 }
    }

    /// [`InHand::fill`].
    pub(super) fn fill(&mut self, input: &'d impl ReadAt, at: u64, len: usize, data_end: u64) {
        self.in_hand.fill(input, at, len, data_end);
    }

    /// [`InHand::place`].
    pub(super) fn place(&self, at: u64) -> Option<usize> {
        self.in_hand.place(at)
    }

    /// Finds where the first record may begin: where several that look like records follow each other.
    pub(super) fn guess(&self) -> usize {
        const KERNEL: std::ops::RangeInclusive<u32> = 1..=31;
        const PERF: std::ops::RangeInclusive<u32> = 64..=95;
        let looks_right = |at: usize| {
            let mut next = at;
            for _ in 0..CHAIN {
                let Some((kind, size)) = head(self.in_hand.there(), next) else {
                    return next > self.in_hand.piece_bytes;
                };
                if !(KERNEL.contains(&kind) || PERF.contains(&kind)) || size % HEAD_BYTES != 0 {
                    return false;
                }
                next += size;
            }
            true
        };
        let len = self.in_hand.piece_bytes;
        (0..len).step_by(HEAD_BYTES).find(|at| looks_right(*at)).unwrap_or(len)
    }

    /// Takes apart the records of the piece in hand, from `start` on. `records` is room for its events.
    pub(super) fn take_apart(
        &mut self,
        start: usize,
        input: &impl ReadAt,
        data_end: u64,
        mut records: Vec<Record>,
    ) -> Piece {
        let at = self.in_hand.at + start as u64;
        records.reserve(self.expected);
        let mut piece = Piece { start: at, end: at, records, ..Piece::default() };
        self.found.clear();
        self.walk(&mut piece);
        if piece.is_last && self.in_hand.is_partial() {
            self.in_hand.complete(input, data_end);
            piece.is_last = false;
            self.walk(&mut piece);
        }
        if !piece.is_odd {
            self.make_records(&mut piece);
        }
        if piece.is_odd {
            piece.records.clear();
        }
        self.expected = piece.records.len();
        piece
    }

    /// The records that begin in the piece from its end so far on.
    fn walk(&mut self, piece: &mut Piece) {
        let mut at = (piece.end - self.in_hand.at) as usize;
        loop {
            if !piece.is_odd {
                at = self.samples(at, piece);
            }
            if at >= self.in_hand.piece_bytes {
                break;
            }
            let Some((kind, size)) =
                head(self.in_hand.there(), at).filter(|(kind, _)| *kind != AUXTRACE)
            else {
                piece.is_last = true;
                break;
            };
            self.other(at..at + size, RecordType(kind), piece);
            at += size;
        }
        piece.end = self.in_hand.at + at as u64;
    }

    /// A record that is no sample, or not one in which everything has its place.
    fn other(&mut self, record: Range<usize>, kind: RecordType, piece: &mut Piece) {
        if kind == RecordType::SAMPLE && !piece.is_odd {
            piece.is_odd = self.other_sample(record, piece).is_none();
            return;
        }
        piece.is_odd |= PACKED.contains(&kind.0);
        if piece.is_odd || kind.is_user_type() {
            return piece.end_round(kind);
        }
        piece.read += u64::from(!OTHERS.contains(&kind));
        match kind {
            other if OTHERS.contains(&other) => {
                let place = self.in_hand.at + record.start as u64;
                piece.others.push((place, self.in_hand[record].into()));
            }
            RecordType::LOST | super::RECORD_LOST_SAMPLES => piece.is_odd = true,
            _ => {}
        }
    }

    /// Looks at the samples that stand in a row from a place on, as long as everything in them has its place; gives where that ends. What
    /// their events say is taken in a second go, of those alone that somebody uses: each go has few things in hand then.
    fn samples(&mut self, at: usize, piece: &mut Piece) -> usize {
        let Self { forms, flat, usuals, in_hand, found, .. } = self;
        let bytes: &[u8] = in_hand;
        let mut rest = &bytes[at..];
        // The room for bytes reaches beyond all that are read: so much is left where the last record may begin, and behind all of them.
        let (left, behind) = (bytes.len() - in_hand.piece_bytes, bytes.len() - in_hand.filled);
        let (known, mut skipped) = (found.len(), 0);
        let mut stamps = Stamps::new(&mut piece.spans);
        while rest.len() > left
            && let Some(record) = rest.first_chunk()
            && let Some(usual) = usuals.of(record, forms, flat)
        {
            let size = usual.size();
            prefetch(rest, PREFETCH_BYTES);
            prefetch(rest, PREFETCH_BYTES + LINE_BYTES);
            if behind + size > rest.len() || usual.common_pid(record) < 0 {
                break;
            }
            let (cpu, time_ns) = (usual.cpu(record), usual.time_ns(record));
            match stamps.note(cpu, time_ns) {
                Some(is_sound) if is_sound && usual.is_used => {
                    let (raw_at, raw_bytes) = usual.raw();
                    let at = bytes.len() - rest.len() + raw_at;
                    let tid = usual.tid(record);
                    found.push(Found::new(time_ns, cpu, tid, (at, raw_bytes), usual.planned));
                }
                Some(_) => skipped += 1,
                None => break,
            }
            rest = &rest[size..];
        }
        stamps.put_back();
        piece.read += skipped + (found.len() - known) as u64;
        piece.skipped += skipped;
        bytes.len() - rest.len()
    }

    /// A sample in which not everything has its place. `None` for one that is to be read with care.
    fn other_sample(&mut self, record: Range<usize>, piece: &mut Piece) -> Option<()> {
        let begin = record.start + HEAD_BYTES;
        let sample = self.forms.sample(Endian::Little, &self.in_hand[begin..record.end])?;
        let Sample { time_ns, cpu, tid, raw_at, raw_bytes } = sample;
        let at = begin + raw_at;
        let event =
            RawEvent { record: window(&self.in_hand, at)?, at: At::BEGIN, bytes: raw_bytes };
        let mut stamps = Stamps::new(&mut piece.spans);
        let is_sound = stamps.note(cpu, time_ns)?;
        stamps.put_back();
        let (planned, is_used) = match is_sound {
            true => self.flat.plan(event)?,
            false => (Planned::default(), false),
        };
        piece.read += 1;
        if is_used {
            let tid = tid.unwrap_or(-1);
            self.found.push(Found::new(time_ns, cpu, tid, (at, raw_bytes), planned));
        } else {
            piece.skipped += 1;
        }
        Some(())
    }

    /// Makes records of the events that were found.
    fn make_records(&mut self, piece: &mut Piece) {
        let Self { flat, faces, in_hand, found, .. } = self;
        let Piece { records, runs, cpus, has_wakeups, .. } = piece;
        let bytes: &[u8] = in_hand;
        let (mut run, mut last_ns) = (0, 0);
        for Found { time_ns, at, tid, cpu, bytes: event_bytes, planned } in &*found {
            let (time_ns, cpu, known) = (*time_ns, u32::from(*cpu), records.len());
            if time_ns < last_ns {
                runs.push(run..known);
                run = known;
            }
            last_ns = time_ns;
            let made = window(bytes, *at as usize).and_then(|record| {
                let event = RawEvent { record, at: At::BEGIN, bytes: (*event_bytes).into() };
                let sink = Sink { time_ns, cpu, records, cpus, has_wakeups };
                flat.record(*planned, event, u32::try_from(*tid).ok(), faces, sink)
            });
            match made {
                Some(true) => {}
                Some(false) => piece.skipped += 1,
                None => {
                    piece.is_odd = true;
                    break;
                }
            }
        }
        runs.push(run..records.len());
    }

    /// The records of a piece, which is read anew.
    pub(super) fn records_of(
        &mut self,
        piece: &Piece,
        input: &'d impl ReadAt,
    ) -> impl Iterator<Item = RawRecord<'_>> {
        let bytes = usize::try_from(piece.end - piece.start).unwrap_or(usize::MAX);
        self.fill(input, piece.start, bytes, piece.end);
        let (bytes, mut next, first) = (self.in_hand.there(), 0, self.in_hand.at);
        std::iter::from_fn(move || {
            let (_, size) = head(bytes, next)?;
            let record = raw_record(first + next as u64, &bytes[next..next + size])?;
            next += size;
            Some(record)
        })
    }
}

/// A record with its head.
pub(super) fn raw_record(at: u64, bytes: &[u8]) -> Option<RawRecord<'_>> {
    let (head, body) = bytes.split_first_chunk::<HEAD_BYTES>()?;
    let [a, b, c, d, e, f, ..] = *head;
    let (kind, misc) = (u32::from_le_bytes([a, b, c, d]), u16::from_le_bytes([e, f]));
    Some(RawRecord { kind, misc, at, body })
}

/// The bytes from a place on. The room for bytes reaches beyond all that are read.
#[inline(always)]
fn window(bytes: &[u8], at: usize) -> Option<&Window> {
    bytes.get(at..)?.first_chunk()
}

/// The kind of a record and all its bytes; `None` where it is not whole.
#[inline]
fn head(bytes: &[u8], at: usize) -> Option<(u32, usize)> {
    let (kind, size) = split_head(bytes.get(at..)?.first_chunk::<HEAD_BYTES>()?);
    (size >= HEAD_BYTES && size <= bytes.len() - at).then_some((kind, size))
}

/// The kind of a record and all its bytes, as its head says.
#[inline(always)]
pub(super) fn split_head<const BYTES: usize>(record: &[u8; BYTES]) -> (u32, usize) {
    let head = record.first_chunk().map_or(0, |head| u64::from_le_bytes(*head));
    (head as u32, (head >> 48) as usize)
}
