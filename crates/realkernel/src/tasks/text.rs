//! Lines of text, formatted without allocation.

use std::fmt;
use std::io::Write;

/// A short line; text beyond its capacity is dropped.
#[derive(Debug)]
pub(super) struct Line {
    bytes: [u8; LINE_BYTES_MAX],
    len: usize,
}

/// Capacity, bytes: a mark's label of 64 characters of 4 bytes each, and two numbers.
const LINE_BYTES_MAX: usize = 320;

impl Line {
    pub(super) fn of(text: fmt::Arguments<'_>) -> Self {
        let mut bytes = [0; LINE_BYTES_MAX];
        let mut rest = bytes.as_mut_slice();
        // Fails when it is full, after it has written what fits.
        let _ = rest.write_fmt(text);
        let len = LINE_BYTES_MAX - rest.len();
        Self { bytes, len }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts() {
        let line = Line::of(format_args!("a={} b={} {}", 0, -20, u64::MAX));
        assert_eq!(line.bytes(), b"a=0 b=-20 18446744073709551615");
        let line = Line::of(format_args!("{}{}", "x".repeat(200), "y".repeat(1_000)));
        assert_eq!(line.bytes().len(), LINE_BYTES_MAX);
        assert!(line.bytes().ends_with(b"yyy"));
    }
}
