//! Lines of an input, one buffer for all of them, bounded.

use std::io::{self, BufRead, Read};

/// The longest line that is parsed. Longer ones are skipped, and count as unreadable.
pub(super) const LINE_BYTES_MAX: usize = 16 << 20;

/// How a line ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// With a line feed.
    Newline,
    /// With the input: the line may have been cut off.
    Input,
    /// It was longer than [`LINE_BYTES_MAX`]; the text holds its beginning.
    TooLong,
}

#[derive(Debug)]
pub(super) struct Lines<R> {
    input: R,
    text: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, text: Vec::new() }
    }

    /// The next line without its line feed, or `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<(&[u8], End)>> {
        self.text.clear();
        let most = LINE_BYTES_MAX as u64 + 1;
        let read = self.input.by_ref().take(most).read_until(b'\n', &mut self.text)?;
        if read == 0 {
            return Ok(None);
        }
        let end = match self.text.pop_if(|byte| *byte == b'\n') {
            Some(_) => End::Newline,
            None if self.text.len() > LINE_BYTES_MAX => End::TooLong,
            None => End::Input,
        };
        match end {
            End::Newline => _ = self.text.pop_if(|byte| *byte == b'\r'),
            End::TooLong => {
                self.text.truncate(LINE_BYTES_MAX);
                self.input.skip_until(b'\n')?;
            }
            End::Input => {}
        }
        Ok(Some((&self.text, end)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_told_apart() {
        let mut lines = Lines::new(&b"a\r\n\nb"[..]);
        assert_eq!(lines.next().unwrap(), Some((&b"a"[..], End::Newline)));
        assert_eq!(lines.next().unwrap(), Some((&b""[..], End::Newline)));
        assert_eq!(lines.next().unwrap(), Some((&b"b"[..], End::Input)));
        assert_eq!(lines.next().unwrap(), None);
    }

    #[test]
    fn a_line_without_end_takes_bounded_memory() {
        let long = vec![b'x'; LINE_BYTES_MAX + 5];
        let text = [&long[..], b"\nnext\n"].concat();
        let mut lines = Lines::new(io::BufReader::new(&text[..]));
        let (start, end) = lines.next().unwrap().unwrap();
        assert_eq!((start.len(), end), (LINE_BYTES_MAX, End::TooLong));
        assert_eq!(lines.next().unwrap(), Some((&b"next"[..], End::Newline)));
    }
}
