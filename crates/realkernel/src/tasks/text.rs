//! Lines of text, formatted without allocation.

/// A short line; text beyond its capacity is dropped.
#[derive(Debug)]
pub(super) struct Line {
    bytes: [u8; LINE_BYTES_MAX],
    len: usize,
}

/// Capacity, bytes: a mark's label of 64 characters of 4 bytes each, and two numbers.
const LINE_BYTES_MAX: usize = 320;

impl Line {
    pub(super) fn new() -> Self {
        Self { bytes: [0; LINE_BYTES_MAX], len: 0 }
    }

    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        for byte in text.bytes() {
            if let Some(place) = self.bytes.get_mut(self.len) {
                *place = byte;
                self.len += 1;
            }
        }
        self
    }

    pub(super) fn number(&mut self, number: u64) -> &mut Self {
        let mut digits = [0u8; 20];
        let (mut rest, mut at) = (number, digits.len());
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.text(std::str::from_utf8(&digits[at..]).unwrap_or(""))
    }

    pub(super) fn signed(&mut self, number: i64) -> &mut Self {
        if number < 0 {
            self.text("-");
        }
        self.number(number.unsigned_abs())
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
        let mut line = Line::new();
        line.text("a=").number(0).text(" b=").signed(-20).text(" ").number(u64::MAX);
        assert_eq!(line.bytes(), b"a=0 b=-20 18446744073709551615");
        line.text(&"x".repeat(1_000));
        assert_eq!(line.bytes().len(), LINE_BYTES_MAX);
    }
}
