//! Texts that must stay on one line: control characters and `%` as `%XX` of their UTF-8 bytes.

use std::borrow::Cow;
use std::fmt::Write;

/// Writes control characters and the percent sign as `%XX`.
pub(crate) fn escape(text: &str) -> Cow<'_, str> {
    let special = |c: char| c.is_control() || c == '%';
    if !text.contains(special) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if special(c) {
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                // Writing to a String cannot fail.
                let _ = write!(escaped, "%{byte:02X}");
            }
        } else {
            escaped.push(c);
        }
    }
    Cow::Owned(escaped)
}

/// [`escape`], and a blank at the start too: readers skip blanks before a text.
pub(crate) fn escape_start(text: &str) -> Cow<'_, str> {
    match text.strip_prefix(' ') {
        Some(rest) => Cow::Owned(format!("%20{}", escape(rest))),
        None => escape(text),
    }
}

/// Undoes [`escape`]; a percent sign that begins no valid sequence is kept.
pub(crate) fn unescape(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let pair = bytes.get(at + 1..at + 3).filter(|p| p.iter().all(u8::is_ascii_hexdigit));
        let byte = pair
            .filter(|_| bytes[at] == b'%')
            .and_then(|pair| std::str::from_utf8(pair).ok())
            .and_then(|pair| u8::from_str_radix(pair, 16).ok());
        plain.push(byte.unwrap_or(bytes[at]));
        at += if byte.is_some() { 3 } else { 1 };
    }
    match String::from_utf8(plain) {
        Ok(plain) => Cow::Owned(plain),
        Err(damaged) => Cow::Owned(String::from_utf8_lossy(damaged.as_bytes()).into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_escaped_comes_back() {
        for text in ["", "plain", "50%", "%41", "a\nb\tc\u{7f}\u{85}", "ä%ö\0"] {
            let escaped = escape(text);
            assert!(!escaped.contains(char::is_control), "{escaped:?}");
            assert_eq!(unescape(&escaped), text);
        }
        for text in ["", " ", "  a", "\ta", "a"] {
            let escaped = escape_start(text);
            assert!(!escaped.starts_with(' '), "{escaped:?}");
            assert_eq!(unescape(&escaped), text);
        }
        assert_eq!(unescape("100% of %zz and %4"), "100% of %zz and %4");
    }
}
