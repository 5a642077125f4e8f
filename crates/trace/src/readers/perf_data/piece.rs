//! A piece of the file's records, taken apart by itself: which tasks a pid means, and whether the clocks of the CPUs go on from the piece
//! before, is for whoever puts the pieces together.

use std::io;
use std::ops::Range;
use std::sync::Mutex;

use linux_perf_event_reader::RecordType;

use super::super::binary::{Endian, Flat, RawFaces, WINDOW_BYTES};
use super::super::collect::Span;
use super::super::line::CPUS_MAX;
use super::super::names::Roster;
use super::super::records::{Record, Sink};
use super::container::RawRecord;
use super::forms::Forms;
use super::input::ReadAt;

/// A record has at most so many bytes.
const RECORD_BYTES_MAX: usize = 1 << 16;
/// Bytes behind the piece that are read with it: records of the scheduler that reach over its end fit.
const MARGIN_BYTES: usize = 1 << 10;
const HEAD_BYTES: usize = 8;
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
    /// The span that was touched last.
    recent: usize,
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

    /// Notes the time of a sample; `None` when the clock of its CPU goes back.
    #[inline]
    fn stamp(&mut self, cpu: u32, time_ns: u64) -> Option<()> {
        let recent = self.spans.get(self.recent).filter(|span| span.cpu == cpu);
        if recent.is_none() {
            let known = self.spans.iter().position(|span| span.cpu == cpu);
            self.recent = known.unwrap_or(self.spans.len());
            if known.is_none() {
                self.spans.push(Span { cpu, first_ns: time_ns, last_ns: time_ns });
            }
        }
        let span = &mut self.spans[self.recent];
        if time_ns < span.last_ns {
            return None;
        }
        span.last_ns = time_ns;
        Some(())
    }
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
        while at < self.len {
            let Some((kind, size)) =
                head(&self.bytes[..self.filled], at).filter(|(kind, _)| *kind != AUXTRACE)
            else {
                piece.is_last = true;
                break;
            };
            let record = at..at + size;
            at += size;
            let kind = RecordType(kind);
            if kind == RecordType::SAMPLE && !piece.is_odd {
                piece.read += 1;
                piece.is_odd = self.sample(record, piece).is_none();
                continue;
            }
            piece.is_odd |= PACKED.contains(&kind.0);
            if piece.is_odd || kind.is_user_type() {
                piece.end_round(kind);
                continue;
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
        piece.end = self.at + at as u64;
    }

    /// Takes a sample apart; `None` for what is to be read with care.
    #[inline(always)]
    fn sample(&mut self, record: Range<usize>, piece: &mut Piece) -> Option<()> {
        let body = &self.bytes[record.start + HEAD_BYTES..record.end];
        let sample = self.forms.sample(Endian::Little, body)?;
        let (cpu, time_ns) = (sample.cpu, sample.time_ns);
        if cpu >= CPUS_MAX {
            piece.skipped += 1;
            return Some(());
        }
        // −1 is a task that had just been reaped.
        let tid = sample.tid.and_then(|tid| u32::try_from(tid).ok());
        let from = record.start + HEAD_BYTES + sample.raw_at;
        // The room for bytes reaches beyond all that are read.
        let window = self.bytes[from..].first_chunk()?;
        piece.stamp(cpu, time_ns)?;
        let Piece { records, cpus, has_wakeups, .. } = piece;
        // Before the record is put together: nothing comes between its making and its place then.
        records.reserve(1);
        let sink = Sink { time_ns, cpu, records, cpus, has_wakeups };
        let made = self.flat.record(sample.raw, window, tid, &mut self.faces, sink)?;
        piece.skipped += u64::from(!made);
        Some(())
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
    let head: [u8; HEAD_BYTES] = *bytes.get(at..)?.first_chunk()?;
    let head = u64::from_le_bytes(head);
    let size = (head >> 48) as usize;
    (size >= HEAD_BYTES && size <= bytes.len() - at).then_some((head as u32, size))
}
