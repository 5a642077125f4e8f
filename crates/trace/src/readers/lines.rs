//! Lines of an input, one buffer for all of them, bounded.

use std::io::{self, BufRead};

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
    /// The number of the line last read, from 1.
    pub(super) number: u64,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, text: Vec::new(), number: 0 }
    }

    /// The next line without its line feed, or `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<(&[u8], End)>> {
        self.text.clear();
        let mut any = false;
        let end = loop {
            let chunk = match self.input.fill_buf() {
                Ok(chunk) => chunk,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            };
            if chunk.is_empty() {
                break End::Input;
            }
            any = true;
            let newline = chunk.iter().position(|b| *b == b'\n');
            let line_part = newline.unwrap_or(chunk.len());
            let room = LINE_BYTES_MAX - self.text.len();
            self.text.extend_from_slice(&chunk[..line_part.min(room)]);
            let too_long = line_part > room;
            self.input.consume(newline.map_or(line_part, |at| at + 1));
            if too_long {
                if newline.is_none() {
                    self.input.skip_until(b'\n')?;
                }
                break End::TooLong;
            }
            if newline.is_some() {
                break End::Newline;
            }
        };
        if !any {
            return Ok(None);
        }
        self.number += 1;
        if end == End::Newline && self.text.last() == Some(&b'\r') {
            self.text.pop();
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
        assert_eq!(lines.number, 3);
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
