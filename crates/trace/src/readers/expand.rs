//! Compressed input: how much it may become.
//!
//! Recordings shrink to a tenth, very regular ones to a hundredth. A file that becomes far more than that is made to
//! fill the memory, and is refused. Layers of compression share one [`Expansion`]: what all of them give counts against
//! the bytes of the file itself, so that their limits do not multiply.

use std::io::{self, BufRead, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::error::ReadError;

/// Bytes that a compressed byte may become, on average.
pub(super) const EXPANSION_MAX: u64 = 256;
/// Bytes that any compressed input may become: pages without events shrink to almost nothing.
const EXPANDED_BYTES_FREE: u64 = 16 << 20;
/// The most of all, whatever the size of the input.
const EXPANDED_BYTES_MAX: u64 = 8 << 30;

/// The bytes of an input and what they became, in all layers. Clones count together.
#[derive(Clone, Debug, Default)]
pub(super) struct Expansion(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    /// Bytes of the file itself.
    taken: AtomicU64,
    /// Bytes that decoders made.
    given: AtomicU64,
}

impl Expansion {
    /// Of a file of which the size is known.
    pub(super) fn of_bytes(bytes: u64) -> Self {
        let expansion = Self::default();
        expansion.0.taken.store(bytes, Relaxed);
        expansion
    }

    /// Counts the bytes of the file itself.
    pub(super) fn input<R>(&self, input: R) -> Counted<R> {
        Counted { input, expansion: self.clone() }
    }

    /// A decoder that fails with [`Expands`] when all decoders have given too much for what was taken.
    pub(super) fn decoder<D>(&self, decoder: D) -> Expanding<D> {
        Expanding { decoder, expansion: self.clone() }
    }

    /// Counts bytes that a decoder makes.
    pub(super) fn give(&self, bytes: u64) -> io::Result<()> {
        let given = self.0.given.fetch_add(bytes, Relaxed).saturating_add(bytes);
        let by_size = EXPANSION_MAX.saturating_mul(self.0.taken.load(Relaxed));
        let given_max = by_size.saturating_add(EXPANDED_BYTES_FREE).min(EXPANDED_BYTES_MAX);
        if given > given_max { Err(io::Error::other(Expands)) } else { Ok(()) }
    }
}

/// More than an [`Expansion`] allows: the cause of an [`io::Error`].
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

/// An input whose bytes are counted.
#[derive(Debug)]
pub(super) struct Counted<R> {
    input: R,
    expansion: Expansion,
}

impl<R: BufRead> Read for Counted<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(to)?;
        self.expansion.0.taken.fetch_add(count as u64, Relaxed);
        Ok(count)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.input.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.expansion.0.taken.fetch_add(count as u64, Relaxed);
        self.input.consume(count);
    }
}

/// A decoder whose bytes are counted.
#[derive(Debug)]
pub(super) struct Expanding<D> {
    decoder: D,
    expansion: Expansion,
}

impl<D: Read> Read for Expanding<D> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let count = self.decoder.read(to)?;
        self.expansion.give(count as u64)?;
        Ok(count)
    }
}
