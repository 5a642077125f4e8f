//! The data of a file in chunks of whole records, in order, in bounded memory.

use std::io::{self, Read, Take};

use super::super::binary::{Endian, Why};
use super::super::expand::Expands;
use super::simpleperf;

/// Kind, flags and size.
pub(super) const RECORD_HEAD_BYTES: usize = 8;
/// The most bytes of a record.
const RECORD_BYTES_MAX: usize = 1 << 16;

/// Records of perf itself (`PERF_RECORD_…`).
const RECORD_FINISHED_ROUND: u32 = 68;
const RECORD_AUXTRACE: u32 = 71;
const RECORD_COMPRESSED: u32 = 81;
const RECORD_COMPRESSED2: u32 = 83;

/// A record.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawRecord<'a> {
    pub(super) kind: u32,
    pub(super) misc: u16,
    /// The byte of the file, or of the decompressed data, where it begins.
    pub(super) at: u64,
    /// Without the head.
    pub(super) body: &'a [u8],
}

impl<'a> RawRecord<'a> {
    /// The record at the beginning of some bytes; `Err` with its size when it is not whole.
    #[inline]
    fn split(bytes: &'a [u8], at: u64, endian: Endian) -> Result<(Self, &'a [u8]), usize> {
        let Some((head, _)) = bytes.split_at_checked(RECORD_HEAD_BYTES) else { return Err(0) };
        let size = usize::from(endian.u16(head, 6).unwrap_or(0));
        let record = bytes.split_at_checked(size).filter(|_| size >= RECORD_HEAD_BYTES);
        let (record, rest) = record.ok_or(size)?;
        let (head, body) = record.split_at(RECORD_HEAD_BYTES);
        let kind = endian.u32(head, 0).unwrap_or(0);
        Ok((Self { kind, misc: endian.u16(head, 4).unwrap_or(0), at, body }, rest))
    }
}

/// Some whole records.
#[derive(Debug)]
pub(super) struct Chunk {
    /// The byte of the file, or of the decompressed data, where it begins.
    at: u64,
    /// To be filled again.
    pub(super) bytes: Vec<u8>,
    /// The bytes that are used.
    len: usize,
    /// The last record ends a round of the recorder.
    pub(super) ends_round: bool,
}

impl Chunk {
    pub(super) fn records(&self, endian: Endian) -> impl Iterator<Item = RawRecord<'_>> {
        let mut rest = &self.bytes[..self.len];
        std::iter::from_fn(move || {
            let at = self.at + (self.len - rest.len()) as u64;
            let (record, behind) = RawRecord::split(rest, at, endian).ok()?;
            rest = behind;
            Some(record)
        })
    }
}

/// Cuts data into chunks.
#[derive(Debug)]
pub(super) struct Chunks<R> {
    input: Take<R>,
    endian: Endian,
    /// Bytes of a chunk, about.
    chunk_bytes: usize,
    /// Bytes since a round of the recorder ended a chunk. With fewer than half a chunk a round is part of the next one,
    /// so that there are not very many small chunks.
    round_bytes: usize,
    /// Where the next chunk begins.
    at: u64,
    /// The input has so many bytes, or it is cut off.
    is_size_known: bool,
    /// The bytes read behind the last chunk: the beginning of a record, as long as the input has more.
    rest: Vec<u8>,
    /// The input has no more.
    has_ended: bool,
    /// The bodies of compressed records, one after the other.
    pub(super) compressed: Vec<u8>,
    /// Why the data ends early.
    pub(super) why_cut: Option<Why>,
    /// The input failed because of [`Expands`].
    pub(super) expands: bool,
}

impl<R: Read> Chunks<R> {
    /// Reads records, the first of which begins at byte `at`. Without a `size` in bytes they reach to the end of the
    /// input.
    pub(super) fn new(
        input: R,
        at: u64,
        size: Option<u64>,
        endian: Endian,
        chunk_bytes: usize,
    ) -> Self {
        Self {
            input: input.take(size.unwrap_or(u64::MAX)),
            endian,
            chunk_bytes,
            round_bytes: 0,
            at,
            is_size_known: size.is_some(),
            rest: Vec::new(),
            has_ended: false,
            compressed: Vec::new(),
            why_cut: None,
            expands: false,
        }
    }

    /// The next chunk, in the memory that is given; `None` at the end.
    pub(super) fn next(&mut self, mut bytes: Vec<u8>) -> Option<Chunk> {
        loop {
            let filled = self.fill(&mut bytes);
            let (len, ends_round, other_bytes) = self.whole_records(&bytes[..filled]);
            self.rest.clear();
            self.rest.extend_from_slice(&bytes[len..filled]);
            let at = self.at;
            self.at += len as u64;
            self.skip(other_bytes);
            if len > 0 || other_bytes == 0 {
                let chunk = Chunk { at, bytes, len, ends_round };
                return (len > 0).then_some(chunk);
            }
        }
    }

    /// Reads until there is enough for a chunk, or the input ends. Returns the number of bytes.
    fn fill(&mut self, bytes: &mut Vec<u8>) -> usize {
        let mut filled = self.rest.len();
        let wanted = self.chunk_bytes.max(RECORD_BYTES_MAX).max(filled);
        bytes.resize(bytes.len().max(wanted), 0);
        bytes[..filled].copy_from_slice(&self.rest);
        while !self.has_ended && filled < wanted {
            let at = self.at + filled as u64;
            match self.input.read(&mut bytes[filled..wanted]) {
                Ok(0) => {
                    self.has_ended = true;
                    if self.is_size_known && self.input.limit() > 0 {
                        self.cut(format!("byte {at}: the data is cut off"));
                    }
                }
                Ok(count) => filled += count,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => {
                    self.has_ended = true;
                    self.expands = Expands::is_cause(&e);
                    self.cut(format!("byte {at}: the input failed: {e}"));
                }
            }
        }
        filled
    }

    fn cut(&mut self, why: Why) {
        self.why_cut.get_or_insert(why);
    }

    /// Searches what was read for the end of the chunk. Returns the bytes of its records, whether the last one ends a
    /// round, and the number of bytes behind it that are no records.
    fn whole_records(&mut self, read: &[u8]) -> (usize, bool, u64) {
        let mut len = 0;
        while len < self.chunk_bytes && len < read.len() {
            let (at, rest) = (self.at + len as u64, &read[len..]);
            if let Some(other_bytes) = self.own_of_simpleperf(rest) {
                return (len, false, other_bytes);
            }
            let record = match RawRecord::split(rest, at, self.endian) {
                Ok((record, _)) => record,
                Err(size) => {
                    let has_head = rest.len() >= RECORD_HEAD_BYTES;
                    if !has_head && self.has_ended {
                        self.cut(format!("byte {at}: the head of a record is cut off"));
                    } else if has_head && (self.has_ended || size < RECORD_HEAD_BYTES) {
                        self.cut(format!("byte {at}: a record of {size} bytes is cut off"));
                    }
                    break;
                }
            };
            let bytes = RECORD_HEAD_BYTES + record.body.len();
            len += bytes;
            self.round_bytes += bytes;
            match record.kind {
                RECORD_FINISHED_ROUND if self.round_bytes >= self.chunk_bytes / 2 => {
                    self.round_bytes = 0;
                    return (len, true, 0);
                }
                // Hardware traces follow.
                RECORD_AUXTRACE => {
                    return (len, false, self.endian.u64(record.body, 0).unwrap_or(0));
                }
                RECORD_COMPRESSED => self.compressed.extend(record.body),
                RECORD_COMPRESSED2 => {
                    let sized = record.body.split_at_checked(8).and_then(|(size, rest)| {
                        rest.get(..usize::try_from(self.endian.number(size)).ok()?)
                    });
                    self.compressed.extend(sized.unwrap_or_default());
                }
                _ => {}
            }
        }
        (len, false, 0)
    }

    /// The bytes of a record that only simpleperf reads.
    fn own_of_simpleperf(&self, rest: &[u8]) -> Option<u64> {
        let kind = self.endian.u32(rest, 0)?;
        let size = simpleperf::own_size(kind, rest, self.endian)?;
        Some(size).filter(|size| *size >= RECORD_HEAD_BYTES as u64)
    }

    /// Goes over bytes that are no records.
    fn skip(&mut self, bytes: u64) {
        let at = self.at;
        let read = self.rest.len().min(usize::try_from(bytes).unwrap_or(usize::MAX));
        self.rest.drain(..read);
        self.at = at.saturating_add(bytes);
        let rest = bytes - read as u64;
        let skipped = io::copy(&mut self.input.by_ref().take(rest), &mut io::sink());
        if skipped.ok() != Some(rest) {
            self.has_ended = true;
            self.cut(format!(
                "byte {at}: {bytes} bytes, of hardware traces or simpleperf, are cut off"
            ));
        }
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

    /// Kind, offset and bytes of a record.
    type Found = (u32, u64, usize);

    /// The records in each chunk, and why the data ends early.
    fn all(bytes: &[u8], chunk_bytes: usize) -> (Vec<Vec<Found>>, Option<Why>) {
        let size = Some(bytes.len() as u64);
        let mut chunks = Chunks::new(bytes, 100, size, Endian::Little, chunk_bytes);
        let mut found = Vec::new();
        while let Some(chunk) = chunks.next(Vec::new()) {
            let records = chunk.records(Endian::Little);
            found.push(records.map(|record| (record.kind, record.at, record.body.len())).collect());
        }
        (found, chunks.why_cut)
    }

    #[test]
    fn records_of_more_than_a_chunk() {
        let one = record(9, &[7; 50_000]);
        let bytes = one.repeat(100);
        let (found, why) = all(&bytes, 1 << 18);
        assert!(found.iter().all(|chunk| chunk.len() <= 6));
        let found = found.concat();
        assert_eq!((found.len(), why), (100, None));
        assert_eq!(found[99], (9, 100 + 99 * one.len() as u64, 50_000));
        let (found, why) = all(&bytes[..bytes.len() - 1], 1);
        assert_eq!(found.concat().len(), 99);
        assert!(why.is_some_and(|why| why.ends_with("a record of 50008 bytes is cut off")));
    }

    #[test]
    fn hardware_traces_are_skipped() {
        let mut bytes = record(RECORD_AUXTRACE, &200_000_u64.to_le_bytes());
        bytes.extend([1; 200_000]);
        bytes.extend(record(9, &[]));
        let (found, why) = all(&bytes, 1);
        assert_eq!((found.concat(), why), (vec![(71, 100, 8), (9, 200_116, 0)], None));
        assert!(all(&bytes[..20], 1).1.is_some_and(|why| why.contains("hardware traces")));
        assert!(all(&bytes[..100_000], 1).1.is_some_and(|why| why.contains("hardware traces")));
        assert_eq!(all(&[3; 4], 1).1, Some("byte 100: the head of a record is cut off".to_owned()));
        // A record that counts less than its own head.
        assert!(all(&[0; 8], 1).1.is_some_and(|why| why.contains("a record of 0 bytes")));
        assert!(all(&[0; 200_000], 1).1.is_some_and(|why| why.contains("a record of 0 bytes")));
    }

    #[test]
    fn a_round_ends_a_chunk_that_is_long_enough() {
        let round = record(RECORD_FINISHED_ROUND, &[]);
        let short = [record(9, &[]), round.clone()].concat();
        let bytes = [record(9, &[0; 100]), round, short].concat();
        assert_eq!(all(&bytes, 200).0.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2]);
        assert_eq!(all(&bytes, 1000).0.iter().map(Vec::len).collect::<Vec<_>>(), [4]);
    }
}
