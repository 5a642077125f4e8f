//! A file in two pieces: what stands before the records and what stands behind them. The records between them pass by in a
//! buffer, so that a file of any length takes little memory.

use std::io::{self, Read};

use super::super::binary::{Cursor, Endian, Why};
use super::container::RawRecord;
use super::input::{From, ReadAt};

/// Bytes of the buffer; a record has at most 64 KiB.
const BUFFER_BYTES: usize = 1 << 18;
const RECORD_HEAD_BYTES: usize = 8;
/// `PERF_RECORD_AUXTRACE`.
const RECORD_AUXTRACE: u32 = 71;

/// Where the records are said to be.
const DATA_AT: usize = 40;

/// The pieces.
#[derive(Debug)]
pub(super) struct Pieces {
    pub(super) endian: Endian,
    head: Vec<u8>,
    tail: Vec<u8>,
    /// Where the piece behind the records begins in the file.
    tail_at: u64,
    pub(super) file_bytes: u64,
    pub(super) data_at: u64,
    pub(super) data_size: u64,
}

impl Pieces {
    /// Reads both pieces. Of a file that is too short for its own head, there is only the first.
    pub(super) fn read(input: &impl ReadAt) -> io::Result<Self> {
        let file_bytes = input.bytes()?;
        let from = |at: u64| From { input, at };
        let mut head = Vec::new();
        from(0).take(DATA_AT as u64 + 16).read_to_end(&mut head)?;
        let endian = if head.starts_with(b"PERFILE2") { Endian::Little } else { Endian::Big };
        let place = endian.u64(&head, DATA_AT).zip(endian.u64(&head, DATA_AT + 8));
        let (data_at, data_size) = place.unwrap_or((file_bytes, 0));
        let rest = data_at.saturating_sub(head.len() as u64);
        from(head.len() as u64).take(rest).read_to_end(&mut head)?;
        let mut tail = Vec::new();
        let tail_at = data_at.saturating_add(data_size).max(head.len() as u64).min(file_bytes);
        from(tail_at).read_to_end(&mut tail)?;
        Ok(Self { endian, head, tail, tail_at, file_bytes, data_at, data_size })
    }

    /// Reads from a place in one of the pieces.
    pub(super) fn at(&self, at: u64) -> Cursor<'_> {
        let mut cursor = match at >= self.tail_at {
            true => Cursor::part(&self.tail, self.tail_at, self.endian),
            false => Cursor::new(&self.head, self.endian),
        };
        cursor.seek(at);
        cursor
    }
}

/// Records passing by.
struct Passing<R> {
    input: R,
    /// Bytes that the input may still give.
    left: u64,
    buffer: Vec<u8>,
    /// What of the buffer was not handed out yet.
    from: usize,
    to: usize,
}

impl<R: Read> Passing<R> {
    /// The next bytes, at least `wanted` of them unless the input ends before.
    fn look(&mut self, wanted: usize) -> io::Result<&[u8]> {
        if self.to - self.from < wanted && self.left > 0 {
            self.buffer.copy_within(self.from..self.to, 0);
            (self.from, self.to) = (0, self.to - self.from);
            while self.to < wanted && self.left > 0 {
                let room = (self.buffer.len() - self.to)
                    .min(usize::try_from(self.left).unwrap_or(usize::MAX));
                let read = match self.input.read(&mut self.buffer[self.to..self.to + room]) {
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                    read => read?,
                };
                if read == 0 {
                    self.left = 0;
                }
                self.to += read;
                self.left -= read as u64;
            }
        }
        Ok(&self.buffer[self.from..self.to])
    }

    /// Goes over bytes; false when there are not so many.
    fn pass(&mut self, bytes: u64) -> io::Result<bool> {
        let there = ((self.to - self.from) as u64).min(bytes);
        self.from += there as usize;
        let rest = bytes - there;
        if rest > self.left {
            self.left = 0;
            return Ok(false);
        }
        self.left -= rest;
        io::copy(&mut (&mut self.input).take(rest), &mut io::sink())?;
        Ok(true)
    }
}

/// Hands out each record of `size` bytes of records, of which the first stands at `data_at`; says why it ended early, if it did.
pub(super) fn split(
    input: impl Read,
    (data_at, size): (u64, u64),
    endian: Endian,
    mut take: impl FnMut(RawRecord<'_>),
) -> Option<Why> {
    let buffer = vec![0; BUFFER_BYTES.min(usize::try_from(size).unwrap_or(BUFFER_BYTES))];
    let mut passing = Passing { input, left: size, buffer, from: 0, to: 0 };
    let mut at = data_at;
    loop {
        match next(&mut passing, at, endian, &mut take) {
            Ok(0) => return None,
            Ok(passed) => at = at.saturating_add(passed),
            Err(why) => return Some(why),
        }
    }
}

/// Hands out the next record; gives the bytes that it takes, 0 at the end.
fn next(
    passing: &mut Passing<impl Read>,
    at: u64,
    endian: Endian,
    take: &mut impl FnMut(RawRecord<'_>),
) -> Result<u64, Why> {
    let failed = |e: io::Error| format!("byte {at}: the input failed: {e}");
    let head = passing.look(RECORD_HEAD_BYTES).map_err(failed)?;
    if head.is_empty() {
        return Ok(0);
    }
    let Some(head) = head.get(..RECORD_HEAD_BYTES) else {
        return Err(format!("byte {at}: the head of a record is cut off"));
    };
    let kind = endian.number(&head[..4]) as u32;
    let misc = endian.number(&head[4..6]) as u16;
    let size = endian.number(&head[6..8]) as usize;
    let record = passing.look(size).map_err(failed)?;
    let Some(body) = record.get(RECORD_HEAD_BYTES..size) else {
        return Err(format!("byte {at}: a record of {size} bytes is cut off"));
    };
    take(RawRecord { kind, misc, at, body });
    // The record of hardware traces says how much of another kind follows it.
    let more = match kind {
        RECORD_AUXTRACE => endian.number(body.get(..8).unwrap_or_default()),
        _ => 0,
    };
    let passed = more.saturating_add(size as u64);
    match passing.pass(passed).map_err(failed)? {
        true => Ok(passed),
        false => Err(format!("byte {at}: {more} bytes of hardware traces are cut off")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, body: &[u8]) -> Vec<u8> {
        let mut record = kind.to_le_bytes().to_vec();
        record.extend([0, 0]);
        record.extend((8 + body.len() as u16).to_le_bytes());
        record.extend(body);
        record
    }

    fn all(bytes: &[u8]) -> (Vec<(u32, u64, usize)>, Option<Why>) {
        let mut found = Vec::new();
        let why = split(bytes, (100, bytes.len() as u64), Endian::Little, |record| {
            found.push((record.kind, record.at, record.body.len()));
        });
        (found, why)
    }

    #[test]
    fn records_of_more_than_a_buffer_pass_by() {
        let one = record(9, &[7; 50_000]);
        let bytes = one.repeat(100);
        let (found, why) = all(&bytes);
        assert_eq!((found.len(), why), (100, None));
        assert_eq!(found[99], (9, 100 + 99 * one.len() as u64, 50_000));
        let (found, why) = all(&bytes[..bytes.len() - 1]);
        assert_eq!(found.len(), 99);
        assert!(why.is_some_and(|why| why.ends_with("a record of 50008 bytes is cut off")));
    }

    #[test]
    fn hardware_traces_are_passed_over() {
        let mut bytes = record(RECORD_AUXTRACE, &5_u64.to_le_bytes());
        bytes.extend([1; 5]);
        bytes.extend(record(9, &[]));
        let (found, why) = all(&bytes);
        assert_eq!((found, why), (vec![(71, 100, 8), (9, 121, 0)], None));
        assert!(all(&bytes[..20]).1.is_some_and(|why| why.contains("hardware traces")));
        assert_eq!(all(&[3; 4]).1, Some("byte 100: the head of a record is cut off".to_owned()));
        // A record that counts less than its own head.
        assert!(all(&[0; 8]).1.is_some_and(|why| why.contains("a record of 0 bytes")));
    }
}
