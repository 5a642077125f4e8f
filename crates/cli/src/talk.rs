//! Results, notes and errors as they reach a terminal: without the characters that would control it.
//!
//! Names come from objects, recordings, guests, arguments and files. Everything that the program prints passes
//! through this module.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

use fairground_report::is_printable;

/// The longest character of UTF-8, bytes.
const CHAR_BYTES_MAX: usize = 4;

fn is_shown(c: char) -> bool {
    matches!(c, '\n' | '\t') || is_printable(c)
}

/// A text of lines with U+FFFD in place of each character that would control a terminal.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_shown) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(|c| if is_shown(c) { c } else { '\u{fffd}' }).collect())
}

/// JSON that says the same with these characters as `\uXXXX`. The JSON itself has them in strings only.
pub(crate) fn shown_json(json: &str) -> Cow<'_, str> {
    if json.chars().all(is_shown) {
        return Cow::Borrowed(json);
    }
    let mut text = String::with_capacity(json.len() + 64);
    for c in json.chars() {
        if is_shown(c) {
            text.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a String cannot fail.
                let _ = write!(text, "\\u{unit:04x}");
            }
        }
    }
    Cow::Owned(text)
}

/// Says something on stderr, on lines of its own.
pub(crate) fn say(text: impl AsRef<str>) {
    // A reader that went away is no error.
    let _ = writeln!(io::stderr().lock(), "{}", shown(text.as_ref()));
}

/// A stream of text that goes where people look: [`shown`] of what is written into it. Bytes that are not UTF-8 become
/// U+FFFD, too.
#[derive(Debug)]
pub(crate) struct Shown<W: Write> {
    into: W,
    /// The start of a character whose end has not been written yet.
    begun: Vec<u8>,
}

impl<W: Write> Shown<W> {
    pub(crate) fn new(into: W) -> Self {
        Self { into, begun: Vec::with_capacity(CHAR_BYTES_MAX) }
    }
}

impl<W: Write> Write for Shown<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut whole = std::mem::take(&mut self.begun);
        whole.extend_from_slice(bytes);
        let end = end_of_characters(&whole);
        self.begun.extend_from_slice(&whole[end..]);
        let text = String::from_utf8_lossy(&whole[..end]);
        self.into.write_all(shown(&text).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.into.flush()
    }
}

/// Where the last character begins if it is cut off; else the length.
fn end_of_characters(bytes: &[u8]) -> usize {
    let from = bytes.len().saturating_sub(CHAR_BYTES_MAX - 1);
    for at in from..bytes.len() {
        if let Err(error) = str::from_utf8(&bytes[at..])
            && error.error_len().is_none()
            && error.valid_up_to() == 0
        {
            return at;
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "a\x1b]0;x\x07b\u{9b}31mc\u{202e}d\u{2066}e\u{200f}f\rg\x7fh";

    #[test]
    fn what_controls_a_terminal_is_replaced() {
        let text = shown(HOSTILE);
        assert_eq!(
            text,
            "a\u{fffd}]0;x\u{fffd}b\u{fffd}31mc\u{fffd}d\u{fffd}e\u{fffd}f\u{fffd}g\u{fffd}h"
        );
        assert!(matches!(shown("two\nlines\tä 日本"), Cow::Borrowed(_)));
    }

    #[test]
    fn json_says_the_same() {
        let json = serde_json::json!({ HOSTILE: [HOSTILE, "\u{1f600}"] });
        let text = serde_json::to_string_pretty(&json).expect("JSON");
        let shown = shown_json(&text);
        assert!(shown.chars().all(is_shown) && shown.contains("\\u202e"), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).expect("JSON"), json);
    }

    #[test]
    fn a_stream_is_cut_anywhere() {
        let text = format!("{HOSTILE}日本\u{1f600}ä");
        for size in 1..text.len() {
            let mut stream = Shown::new(Vec::new());
            for part in text.as_bytes().chunks(size) {
                stream.write_all(part).expect("into memory");
            }
            assert_eq!(String::from_utf8(stream.into).expect("text"), shown(&text), "{size}");
        }
        let mut stream = Shown::new(Vec::new());
        stream.write_all(b"a\xff\x9bb\n").expect("into memory");
        assert_eq!(stream.into, "a\u{fffd}\u{fffd}b\n".as_bytes());
    }
}
