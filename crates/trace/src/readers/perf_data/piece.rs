//! A piece of the file's records, taken apart by itself: which names and tasks there are, and whether the clocks of the CPUs go on from
//! the piece before, is for whoever puts the pieces together.

use std::io;

use linux_perf_event_reader::RecordType;

use super::super::binary::{Flat, RawFace, RawFaces};
use super::super::collect::Span;
use super::super::line::CPUS_MAX;
use super::super::records::{Record, What};
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

/// A piece, and what was found in it.
#[derive(Debug, Default)]
pub(super) struct Piece {
    /// Where it begins in the file.
    at: u64,
    /// The bytes that the records begin in.
    len: usize,
    bytes: Vec<u8>,
    filled: usize,
    /// Where its first record begins, and where the first one behind it does; from its beginning.
    start: usize,
    end: usize,
    /// Its records are to be read with care, one by one.
    pub(super) is_odd: bool,
    /// From its end on nothing can be told of the records.
    pub(super) is_last: bool,
    pub(super) records: Vec<Record>,
    /// Where there are records of another kind that count.
    others: Vec<usize>,
    pub(super) spans: Vec<Span>,
    /// The span that was touched last.
    recent: usize,
    /// Records of the kernel, without [`OTHERS`].
    pub(super) read: u64,
    pub(super) skipped: u64,
    /// One more than the highest number of a CPU in the records.
    pub(super) cpus: u32,
    /// The faces that [`RawFaces`] met here first, in the order of their numbers.
    pub(super) faces: Vec<RawFace>,
}

impl Piece {
    /// Where its first record begins in the file.
    pub(super) fn starts_at(&self) -> u64 {
        self.at + self.start as u64
    }

    /// The place in it of a byte of the file, if records begin there.
    pub(super) fn place(&self, at: u64) -> Option<usize> {
        let place = usize::try_from(at.checked_sub(self.at)?).ok()?;
        (place < self.len).then_some(place)
    }

    /// Where the first record behind it begins.
    pub(super) fn ends_at(&self) -> u64 {
        self.at + self.end as u64
    }

    /// The records that count and are no samples; of an odd piece all.
    pub(super) fn rare(&self) -> impl Iterator<Item = RawRecord<'_>> {
        let mut next = self.start;
        let all = std::iter::from_fn(move || {
            let at = next;
            let (_, size) =
                head(&self.bytes[..self.filled], at).filter(|_| self.is_odd && at < self.end)?;
            next += size;
            Some(at)
        });
        let others = self.others.iter().copied().filter(|_| !self.is_odd);
        all.chain(others).filter_map(|at| self.record(at))
    }

    fn record(&self, at: usize) -> Option<RawRecord<'_>> {
        let (kind, size) = head(&self.bytes[..self.filled], at)?;
        let misc = u16::from_le_bytes([self.bytes[at + 4], self.bytes[at + 5]]);
        let body = &self.bytes[at + HEAD_BYTES..at + size];
        Some(RawRecord { kind, misc, at: self.at + at as u64, body })
    }

    /// Reads the bytes of a piece of the records, which end at `data_end`. What cannot be read is missing.
    pub(super) fn fill(&mut self, input: &impl ReadAt, at: u64, len: usize, data_end: u64) {
        self.at = at;
        self.len = usize::try_from(data_end.saturating_sub(at)).unwrap_or(len).min(len);
        self.bytes.resize(len + RECORD_BYTES_MAX, 0);
        self.filled = 0;
        self.read_on(input, len + MARGIN_BYTES, data_end);
    }

    /// Reads until there are so many bytes, or no more.
    fn read_on(&mut self, input: &impl ReadAt, wanted: usize, data_end: u64) {
        let left = usize::try_from(data_end.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let wanted = wanted.min(self.bytes.len()).min(left);
        while self.filled < wanted {
            let at = self.at + self.filled as u64;
            match input.read_at(at, &mut self.bytes[self.filled..wanted]) {
                Ok(read) if read > 0 => self.filled += read,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                _ => return,
            }
        }
    }

    /// Finds where the first record may begin: where several that look like records follow each other.
    pub(super) fn guess(&mut self) -> usize {
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

    /// Takes apart the records from `start` on.
    pub(super) fn decode(
        &mut self,
        start: usize,
        input: &impl ReadAt,
        data_end: u64,
        how: &mut How<'_>,
    ) {
        (self.start, self.end) = (start, start);
        (self.is_odd, self.is_last) = (false, false);
        self.records.clear();
        self.others.clear();
        self.spans.clear();
        self.faces.clear();
        (self.read, self.skipped, self.cpus, self.recent) = (0, 0, 0, 0);
        self.walk(how);
        if self.is_last && self.filled < self.bytes.len() {
            self.read_on(input, self.bytes.len(), data_end);
            self.is_last = false;
            self.walk(how);
        }
        self.faces.append(&mut how.faces.fresh);
    }

    /// The records that begin in the piece from its end so far on.
    fn walk(&mut self, how: &mut How<'_>) {
        let bytes = std::mem::take(&mut self.bytes);
        while self.end < self.len {
            let at = self.end;
            let Some((kind, size)) =
                head(&bytes[..self.filled], at).filter(|(kind, _)| *kind != AUXTRACE)
            else {
                self.is_last = true;
                break;
            };
            self.end += size;
            let kind = RecordType(kind);
            self.is_odd |= PACKED.contains(&kind.0);
            if self.is_odd || kind.is_user_type() {
                continue;
            }
            self.read += u64::from(!OTHERS.contains(&kind));
            match kind {
                RecordType::SAMPLE => {
                    let taken = how.sample(&bytes[at + HEAD_BYTES..at + size]);
                    self.is_odd = taken.and_then(|found| self.take(found)).is_none();
                }
                other if OTHERS.contains(&other) => self.others.push(at),
                RecordType::LOST | super::RECORD_LOST_SAMPLES => self.is_odd = true,
                _ => {}
            }
        }
        self.bytes = bytes;
    }

    /// Takes over a sample; `None` when the clock of its CPU goes back.
    #[inline]
    fn take(&mut self, found: Found) -> Option<()> {
        let Found { cpu, time_ns, what } = found;
        if cpu >= CPUS_MAX {
            self.skipped += 1;
            return Some(());
        }
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
        match what {
            None => self.skipped += 1,
            Some(what) => {
                self.cpus = self.cpus.max(cpu.max(what.cpu_max()) + 1);
                self.records.push(Record { time_ns, cpu, what });
            }
        }
        Some(())
    }
}

/// The kind of a record and all its bytes; `None` where it is not whole.
#[inline]
fn head(bytes: &[u8], at: usize) -> Option<(u32, usize)> {
    let head: [u8; HEAD_BYTES] = *bytes.get(at..)?.first_chunk()?;
    let head = u64::from_le_bytes(head);
    let size = (head >> 48) as usize;
    (size >= HEAD_BYTES && size <= bytes.len() - at).then_some((head as u32, size))
}

/// A sample, taken apart.
#[derive(Clone, Copy, Debug)]
struct Found {
    cpu: u32,
    time_ns: u64,
    /// `None` for what is not used.
    what: Option<What>,
}

/// How pieces are taken apart.
#[derive(Debug)]
pub(super) struct How<'c> {
    pub(super) forms: Forms<'c>,
    pub(super) flat: &'c Flat,
    pub(super) faces: RawFaces,
}

impl How<'_> {
    /// `None` for what is to be read with care.
    #[inline]
    fn sample(&mut self, body: &[u8]) -> Option<Found> {
        let sample = self.forms.sample(body)?;
        let (cpu, time_ns) = (sample.cpu, sample.time_ns);
        if cpu >= CPUS_MAX {
            return Some(Found { cpu, time_ns, what: None });
        }
        // −1 is a task that had just been reaped.
        let tid = sample.tid.and_then(|tid| u32::try_from(tid).ok());
        let what = self.flat.record(sample.raw, tid, &mut self.faces)?;
        Some(Found { cpu, time_ns, what })
    }
}
