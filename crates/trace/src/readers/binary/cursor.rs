//! Numbers at an offset in bytes, and reading forward from one. Nothing is read beyond the end.

/// Why something cannot be read; the reader adds the position.
pub(in super::super) type Why = String;

/// Byte order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) enum Endian {
    #[default]
    Little,
    Big,
}

impl Endian {
    /// A number of up to eight bytes without a sign; 0 for none.
    #[inline]
    pub(in super::super) fn number(self, bytes: &[u8]) -> u64 {
        let add = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
        match (self, bytes.len()) {
            (_, 2) => self.u16(bytes, 0).unwrap_or(0).into(),
            (_, 4) => self.u32(bytes, 0).unwrap_or(0).into(),
            (_, 8) => self.u64(bytes, 0).unwrap_or(0),
            (Self::Little, _) => bytes.iter().rev().fold(0, add),
            (Self::Big, _) => bytes.iter().fold(0, add),
        }
    }

    /// The number in the two bytes at an offset, if they are there.
    #[inline]
    pub(in super::super) fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let number = u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?);
        Some(if self == Self::Big { number.swap_bytes() } else { number })
    }

    /// The number in the four bytes at an offset, if they are there.
    #[inline]
    pub(in super::super) fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let number = u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?);
        Some(if self == Self::Big { number.swap_bytes() } else { number })
    }

    /// The number in the eight bytes at an offset, if they are there.
    #[inline]
    pub(in super::super) fn u64(self, bytes: &[u8], at: usize) -> Option<u64> {
        let number = u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?);
        Some(if self == Self::Big { number.swap_bytes() } else { number })
    }

    /// A number of up to eight bytes with a sign.
    #[inline]
    pub(in super::super) fn signed(self, bytes: &[u8]) -> i64 {
        let unused_bits = 64 - 8 * bytes.len().clamp(1, 8) as u32;
        ((self.number(bytes) << unused_bits) as i64) >> unused_bits
    }
}

/// Reads forward.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Cursor<'a> {
    bytes: &'a [u8],
    /// Where the bytes begin in the file.
    base: usize,
    at: usize,
    pub(in super::super) endian: Endian,
}

impl<'a> Cursor<'a> {
    pub(in super::super) fn new(bytes: &'a [u8], endian: Endian) -> Self {
        Self::part(bytes, 0, endian)
    }

    /// Reads a part of a file that begins at `base`; offsets are those of the file.
    pub(in super::super) fn part(bytes: &'a [u8], base: u64, endian: Endian) -> Self {
        let base = usize::try_from(base).unwrap_or(usize::MAX);
        Self { bytes, base, at: base, endian }
    }

    /// The offset from the start, bytes.
    pub(in super::super) fn at(&self) -> usize {
        self.at
    }

    /// Goes to an offset. Beyond the end nothing more can be read.
    pub(in super::super) fn seek(&mut self, at: u64) {
        self.at = usize::try_from(at).unwrap_or(usize::MAX);
    }

    /// The next bytes.
    pub(in super::super) fn take(&mut self, count: u64, what: &str) -> Result<&'a [u8], Why> {
        let end = usize::try_from(count).ok().and_then(|count| self.at.checked_add(count));
        let from = self.at.checked_sub(self.base);
        let found = from.zip(end).and_then(|(from, end)| self.bytes.get(from..end - self.base));
        let found = found.ok_or_else(|| format!("byte {}: {what} is cut off", self.at))?;
        self.at += found.len();
        Ok(found)
    }

    /// The bytes behind their size, which is a number of `width` bytes.
    pub(in super::super) fn sized(&mut self, width: u64, what: &str) -> Result<&'a [u8], Why> {
        let size = self.take(width, what)?;
        self.take(self.endian.number(size), what)
    }

    pub(in super::super) fn u16(&mut self, what: &str) -> Result<u16, Why> {
        Ok(self.endian.number(self.take(2, what)?) as u16)
    }

    pub(in super::super) fn u32(&mut self, what: &str) -> Result<u32, Why> {
        Ok(self.endian.number(self.take(4, what)?) as u32)
    }

    pub(in super::super) fn u64(&mut self, what: &str) -> Result<u64, Why> {
        Ok(self.endian.number(self.take(8, what)?))
    }

    /// A text that ends with a zero byte, without it.
    pub(in super::super) fn text(&mut self, what: &str) -> Result<&'a [u8], Why> {
        let from = self.at.checked_sub(self.base);
        let rest = from.and_then(|from| self.bytes.get(from..)).unwrap_or_default();
        let Some(end) = rest.iter().position(|byte| *byte == 0) else {
            return Err(format!("byte {}: {what} is cut off", self.at));
        };
        self.at += end + 1;
        Ok(&rest[..end])
    }

    /// Skips bytes that must have this value; an error otherwise.
    pub(in super::super) fn expect(&mut self, wanted: &[u8], what: &str) -> Result<(), Why> {
        let at = self.at;
        if self.take(wanted.len() as u64, what)? == wanted {
            return Ok(());
        }
        Err(format!("byte {at}: {what} should begin here"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_both_orders() {
        assert_eq!(Endian::Little.number(&[1, 2]), 0x201);
        assert_eq!(Endian::Big.number(&[1, 2]), 0x102);
        assert_eq!(Endian::Little.signed(&[0xfe, 0xff]), -2);
        assert_eq!(Endian::Big.signed(&[0xff; 8]), -1);
        assert_eq!(Endian::Big.signed(&[0x7f]), 127);
        assert_eq!((Endian::Big.number(&[]), Endian::Little.signed(&[])), (0, 0));
    }

    #[test]
    fn nothing_is_read_beyond_the_end() {
        let mut cursor = Cursor::new(b"ab\0c", Endian::Little);
        assert_eq!(cursor.text("a name"), Ok(&b"ab"[..]));
        assert_eq!(cursor.text("a name"), Err("byte 3: a name is cut off".to_owned()));
        assert_eq!(cursor.take(u64::MAX, "it"), Err("byte 3: it is cut off".to_owned()));
        assert_eq!(
            cursor.expect(b"d", "the end"),
            Err("byte 3: the end should begin here".to_owned())
        );
        cursor.seek(u64::MAX);
        assert!(cursor.u32("a number").is_err() && cursor.text("a name").is_err());
    }
}
