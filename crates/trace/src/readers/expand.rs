//! Compressed input: how much it may become.
//!
//! Recordings shrink to a tenth, very regular ones to a hundredth. A file that becomes far more than that is made to
//! fill the memory, and is refused.

use std::cell::Cell;
use std::io::{self, BufRead, Read};
use std::rc::Rc;

use super::error::ReadError;

/// Bytes that a compressed byte may become, on average.
pub(super) const EXPANSION_MAX: u64 = 256;
/// Bytes that any compressed input may become: pages without events shrink to almost nothing.
const EXPANDED_BYTES_FREE: u64 = 16 << 20;
/// The most of all, whatever the size of the input.
const EXPANDED_BYTES_MAX: u64 = 8 << 30;

/// The most bytes that compressed ones may become.
pub(super) fn expanded_bytes_max(compressed_bytes: u64) -> u64 {
    let by_size = EXPANSION_MAX.saturating_mul(compressed_bytes);
    by_size.saturating_add(EXPANDED_BYTES_FREE).min(EXPANDED_BYTES_MAX)
}

/// More than [`expanded_bytes_max`]: the cause of an [`io::Error`].
#[derive(Debug, thiserror::Error)]
#[error("it becomes more than {EXPANSION_MAX} times as long when it is decompressed")]
pub(super) struct Expands;

impl Expands {
    /// Whether an input failed for this reason.
    pub(super) fn is_cause(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|cause| cause.is::<Self>())
    }

    /// The error of a reader whose input failed for this reason.
    pub(super) fn refuse(name: &str) -> ReadError {
        ReadError::Expands { name: name.to_owned(), times_max: EXPANSION_MAX }
    }
}

/// Counts the bytes that a decoder takes.
#[derive(Debug)]
pub(super) struct Counted<R> {
    input: R,
    count: Rc<Cell<u64>>,
}

impl<R: BufRead> Read for Counted<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(to)?;
        self.count.set(self.count.get() + count as u64);
        Ok(count)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.input.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.count.set(self.count.get() + count as u64);
        self.input.consume(count);
    }
}

/// A decoder that fails with [`Expands`] when it gives too much for what it took.
#[derive(Debug)]
pub(super) struct Expanding<D> {
    decoder: D,
    taken: Rc<Cell<u64>>,
    given: u64,
}

impl<D: Read> Expanding<D> {
    /// Makes the decoder of an input.
    pub(super) fn new<R>(input: R, decoder: impl FnOnce(Counted<R>) -> D) -> Self {
        let taken = Rc::default();
        let counted = Counted { input, count: Rc::clone(&taken) };
        Self { decoder: decoder(counted), taken, given: 0 }
    }
}

impl<D: Read> Read for Expanding<D> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let count = self.decoder.read(to)?;
        self.given += count as u64;
        if self.given > expanded_bytes_max(self.taken.get()) {
            return Err(io::Error::other(Expands));
        }
        Ok(count)
    }
}
