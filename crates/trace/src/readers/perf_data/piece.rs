//! A piece of the file's records, taken apart by itself: which tasks a pid means, and whether the clocks of the CPUs go on from the piece
//! before, is for whoever puts the pieces together.

use std::io;
use std::ops::Range;
use std::sync::Mutex;

use linux_perf_event_reader::RecordType;

use super::super::binary::{At, Endian, Flat, RawEvent, RawFaces, WINDOW_BYTES};
use super::super::collect::Span;
use super::super::line::CPUS_MAX;
use super::super::names::Roster;
use super::super::records::{Record, Sink};
use super::container::RawRecord;
use super::forms::Forms;
use super::input::ReadAt;
use super::samples::{Sample, Tracepoint};

/// A record has at most so many bytes.
const RECORD_BYTES_MAX: usize = 1 << 16;
/// Bytes behind the piece that are read with it: records of the scheduler that reach over its end fit.
const MARGIN_BYTES: usize = 1 << 10;
/// Kind, flags and size of a record.
pub(super) const HEAD_BYTES: usize = 8;
/// So many records in a row are taken for the true ones, until it is known.
const CHAIN: usize = 8;

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

    /// Takes a sample's event over; says whether it makes a record. `None` for what is to be read with care: an odd event, or one before
    /// which the clock of its CPU goes back. `span` are the times of the CPU in hand.
    #[inline(always)]
    fn event(
        &mut self,
        sample: Tracepoint<'_>,
        span: &mut Span,
        flat: &Flat,
        faces: &mut RawFaces<'_>,
    ) -> Option<bool> {
        let Tracepoint { time_ns, cpu, tid, event } = sample;
        if cpu != span.cpu {
            if cpu >= CPUS_MAX {
                return Some(false);
            }
            *span = turn_to(&mut self.spans, *span, cpu, time_ns);
        }
        if time_ns < span.last_ns {
            return None;
        }
        span.last_ns = time_ns;
        // −1 is a task that had just been reaped.
        let tid = tid.and_then(|tid| u32::try_from(tid).ok());
        let Self { records, cpus, has_wakeups, .. } = self;
        flat.record(event, tid, faces, Sink { time_ns, cpu, records, cpus, has_wakeups })
    }
}

/// The times of another CPU, from now on; those of the one in hand are put back.
#[cold]
fn turn_to(spans: &mut Vec<Span>, in_hand: Span, cpu: u32, time_ns: u64) -> Span {
    put_back(spans, in_hand);
    let known = spans.iter().find(|span| span.cpu == cpu).copied();
    known.unwrap_or_else(|| {
        let span = Span { cpu, first_ns: time_ns, last_ns: time_ns };
        spans.push(span);
        span
    })
}

fn put_back(spans: &mut [Span], in_hand: Span) {
    let known = spans.iter_mut().find(|span| span.cpu == in_hand.cpu);
    known.into_iter().for_each(|span| *span = in_hand);
}

/// Who takes pieces apart: one a thread.
#[derive(Debug)]
pub(super) struct Hands<'d> {
    forms: Forms<'d>,
    flat: &'d Flat,
    faces: RawFaces<'d>,
    /// Where the piece in hand begins in the file.
    at: u64,
    /// The bytes that its records begin in.
    len: usize,
    bytes: Vec<u8>,
    filled: usize,
    /// Events of the last piece.
    expected: usize,
}

impl<'d> Hands<'d> {
    pub(super) fn new(forms: Forms<'d>, flat: &'d Flat, roster: &'d Mutex<Roster>) -> Self {
        let (faces, bytes) = (RawFaces::new(roster), Vec::new());
        Self { forms, flat, faces, at: 0, len: 0, bytes, filled: 0, expected: 0 }
    }

    /// Reads the bytes of a piece of the records, which end at `data_end`. What cannot be read is missing.
    pub(super) fn fill(&mut self, input: &impl ReadAt, at: u64, len: usize, data_end: u64) {
        self.at = at;
        self.len = usize::try_from(data_end.saturating_sub(at)).unwrap_or(len).min(len);
        self.bytes.resize(len + RECORD_BYTES_MAX + WINDOW_BYTES, 0);
        self.filled = 0;
        self.read_on(input, len + MARGIN_BYTES, data_end);
    }

    /// Bytes that are read of a piece at most.
    fn len_max(&self) -> usize {
        self.bytes.len() - WINDOW_BYTES
    }

    /// Reads until there are so many bytes, or no more.
    fn read_on(&mut self, input: &impl ReadAt, wanted: usize, data_end: u64) {
        let left = usize::try_from(data_end.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let wanted = wanted.min(self.len_max()).min(left);
        while self.filled < wanted {
            let at = self.at + self.filled as u64;
            match input.read_at(at, &mut self.bytes[self.filled..wanted]) {
                Ok(read) if read > 0 => self.filled += read,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                _ => return,
            }
        }
    }

    /// The place in the piece in hand of a byte of the file, if records begin there.
    pub(super) fn place(&self, at: u64) -> Option<usize> {
        let place = usize::try_from(at.checked_sub(self.at)?).ok()?;
        (place < self.len).then_some(place)
    }

    /// Finds where the first record may begin: where several that look like records follow each other.
    pub(super) fn guess(&self) -> usize {
        const KERNEL: std::ops::RangeInclusive<u32> = 1..=31;
        const PERF: std::ops::RangeInclusive<u32> = 64..=95;
        let looks_right = |at: usize| {
            let mut next = at;
            for _ in 0..CHAIN {
                let Some((kind, size)) = head(&self.bytes[..self.filled], next) else {
                    return next > self.len;
                };
                if !(KERNEL.contains(&kind) || PERF.contains(&kind)) || size % HEAD_BYTES != 0 {
                    return false;
                }
                next += size;
            }
            true
        };
        (0..self.len).step_by(HEAD_BYTES).find(|at| looks_right(*at)).unwrap_or(self.len)
    }

    /// Takes apart the records of the piece in hand, from `start` on. `records` is room for its events.
    pub(super) fn take_apart(
        &mut self,
        start: usize,
        input: &impl ReadAt,
        data_end: u64,
        mut records: Vec<Record>,
    ) -> Piece {
        let at = self.at + start as u64;
        records.reserve(self.expected);
        let mut piece = Piece { start: at, end: at, records, ..Piece::default() };
        self.walk(&mut piece);
        if piece.is_last && self.filled < self.len_max() {
            self.read_on(input, self.len_max(), data_end);
            piece.is_last = false;
            self.walk(&mut piece);
        }
        if piece.is_odd {
            piece.records.clear();
        }
        self.expected = piece.records.len();
        piece.runs = runs(&piece.records);
        piece
    }

    /// The records that begin in the piece from its end so far on.
    fn walk(&mut self, piece: &mut Piece) {
        let mut at = (piece.end - self.at) as usize;
        loop {
            if !piece.is_odd {
                at = self.samples(at, piece);
            }
            if at >= self.len {
                break;
            }
            let Some((kind, size)) =
                head(&self.bytes[..self.filled], at).filter(|(kind, _)| *kind != AUXTRACE)
            else {
                piece.is_last = true;
                break;
            };
            self.other(at..at + size, RecordType(kind), piece);
            at += size;
        }
        piece.end = self.at + at as u64;
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
                let place = self.at + record.start as u64;
                piece.others.push((place, self.bytes[record].into()));
            }
            RecordType::LOST | super::RECORD_LOST_SAMPLES => piece.is_odd = true,
            _ => {}
        }
    }

    /// `None` for a sample that is to be read with care.
    fn other_sample(&mut self, record: Range<usize>, piece: &mut Piece) -> Option<()> {
        let begin = record.start + HEAD_BYTES;
        let sample = self.forms.sample(Endian::Little, &self.bytes[begin..record.end])?;
        let Sample { time_ns, cpu, tid, raw_at, raw_bytes } = sample;
        // The room for bytes reaches beyond all that are read.
        let rest = self.bytes.get(begin + raw_at..)?.first_chunk()?;
        let event = RawEvent { record: rest, at: At::BEGIN, bytes: raw_bytes };
        let mut span = Span::NONE;
        let sample = Tracepoint { time_ns, cpu, tid, event };
        piece.skipped += u64::from(!piece.event(sample, &mut span, self.flat, &mut self.faces)?);
        piece.read += 1;
        put_back(&mut piece.spans, span);
        Some(())
    }

    /// Takes the samples apart that stand in a row from a place on, as long as everything in them has its place; gives where that ends.
    fn samples(&mut self, at: usize, piece: &mut Piece) -> usize {
        let Self { forms, flat, faces, bytes, len, filled, .. } = self;
        let mut rest = &bytes[at..];
        // The room for bytes reaches beyond all that are read: so much is left where the last record may begin, and behind all of them.
        let (left, behind) = (bytes.len() - *len, bytes.len() - *filled);
        let known = piece.records.len();
        let (mut skipped, mut span) = (0, Span::NONE);
        while rest.len() > left
            && let Some(record) = rest.first_chunk()
        {
            let (kind, size) = split_head(record);
            if kind != RecordType::SAMPLE.0 || behind + size > rest.len() {
                break;
            }
            let Some(sample) = forms.fixed_sample(record, size) else { break };
            let Some(made) = piece.event(sample, &mut span, flat, faces) else { break };
            skipped += u64::from(!made);
            rest = &rest[size..];
        }
        put_back(&mut piece.spans, span);
        piece.read += skipped + (piece.records.len() - known) as u64;
        piece.skipped += skipped;
        bytes.len() - rest.len()
    }

    /// The records of a piece, which is read anew.
    pub(super) fn records_of(
        &mut self,
        piece: &Piece,
        input: &impl ReadAt,
    ) -> impl Iterator<Item = RawRecord<'_>> {
        let bytes = usize::try_from(piece.end - piece.start).unwrap_or(usize::MAX);
        self.fill(input, piece.start, bytes, piece.end);
        let (bytes, mut next, first) = (&self.bytes[..self.filled], 0, self.at);
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

/// The runs in order of time that records consist of.
fn runs(records: &[Record]) -> Vec<Range<usize>> {
    let mut at = 0;
    let in_order = |a: &Record, b: &Record| a.time_ns <= b.time_ns;
    let runs = records.chunk_by(in_order).map(|run| {
        at += run.len();
        at - run.len()..at
    });
    runs.collect()
}

/// The kind of a record and all its bytes; `None` where it is not whole.
#[inline]
fn head(bytes: &[u8], at: usize) -> Option<(u32, usize)> {
    let (kind, size) = split_head(bytes.get(at..)?.first_chunk::<HEAD_BYTES>()?);
    (size >= HEAD_BYTES && size <= bytes.len() - at).then_some((kind, size))
}

/// The kind of a record and all its bytes, as its head says.
#[inline(always)]
fn split_head<const BYTES: usize>(record: &[u8; BYTES]) -> (u32, usize) {
    let head = record.first_chunk().map_or(0, |head| u64::from_le_bytes(*head));
    (head as u32, (head >> 48) as usize)
}
