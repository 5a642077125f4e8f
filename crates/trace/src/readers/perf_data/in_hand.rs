//! The bytes of a piece of the records while it is taken apart.

use std::io;
use std::ops::Deref;

use super::super::binary::WINDOW_BYTES;
use super::input::ReadAt;

/// A record has at most so many bytes.
const RECORD_BYTES_MAX: usize = 1 << 16;
/// Bytes behind the piece that are read with it: records of the scheduler that reach over its end fit.
const MARGIN_BYTES: usize = 1 << 10;

/// A piece, with bytes behind it that a record may reach into, and behind all of those a window of bytes that mean nothing: with it no place
/// of a record has to be looked at for whether it is there.
#[derive(Debug, Default)]
pub(super) struct InHand<'d> {
    /// Where the piece begins in the file.
    pub(super) at: u64,
    /// The bytes that its records begin in.
    pub(super) piece_bytes: usize,
    /// How many bytes there are.
    pub(super) filled: usize,
    /// Where they are seen without reading them.
    seen: Option<&'d [u8]>,
    /// Where they are read to.
    own: Vec<u8>,
}

impl Deref for InHand<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.seen.unwrap_or(&self.own)
    }
}

impl<'d> InHand<'d> {
    /// Gets the bytes of a piece of the records, which end at `data_end`. What cannot be read is missing.
    pub(super) fn fill(&mut self, input: &'d impl ReadAt, at: u64, len: usize, data_end: u64) {
        self.at = at;
        self.piece_bytes = self.left(data_end).min(len);
        let bytes_max = len + RECORD_BYTES_MAX;
        let bytes = bytes_max.min(self.left(data_end));
        self.seen = input.view(at, bytes + WINDOW_BYTES);
        if self.seen.is_some() {
            self.filled = bytes;
        } else {
            self.own.resize(bytes_max + WINDOW_BYTES, 0);
            self.filled = 0;
            self.read_on(input, len + MARGIN_BYTES, data_end);
        }
    }

    /// Gets all bytes that a record of the piece may reach into.
    pub(super) fn complete(&mut self, input: &impl ReadAt, data_end: u64) {
        self.read_on(input, self.len_max(), data_end);
    }

    /// Whether a record may reach into bytes that were not asked for.
    pub(super) fn is_partial(&self) -> bool {
        self.filled < self.len_max()
    }

    /// Bytes that there are of a piece at most.
    fn len_max(&self) -> usize {
        self.len() - WINDOW_BYTES
    }

    /// Bytes from the begin of the piece to the end of all records.
    fn left(&self, data_end: u64) -> usize {
        usize::try_from(data_end.saturating_sub(self.at)).unwrap_or(usize::MAX)
    }

    /// Reads until there are so many bytes, or no more.
    fn read_on(&mut self, input: &impl ReadAt, wanted: usize, data_end: u64) {
        let wanted = wanted.min(self.len_max()).min(self.left(data_end));
        while self.filled < wanted {
            let at = self.at + self.filled as u64;
            match input.read_at(at, &mut self.own[self.filled..wanted]) {
                Ok(read) if read > 0 => self.filled += read,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                _ => return,
            }
        }
    }

    /// The place in the piece of a byte of the file, if records begin there.
    pub(super) fn place(&self, at: u64) -> Option<usize> {
        let place = usize::try_from(at.checked_sub(self.at)?).ok()?;
        (place < self.piece_bytes).then_some(place)
    }

    /// The bytes that are there.
    pub(super) fn there(&self) -> &[u8] {
        &self[..self.filled]
    }
}
