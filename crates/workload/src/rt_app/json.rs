//! JSON as in rt-app's files: members in order, repeated names kept, every value with its location. Comments (`/* …
//! */`, `//`) and a trailing comma are accepted, as by json-c; a member may lack its value (`"suspend",`), as in some
//! of rt-app's own files.

use std::ops::Range;

/// Limit of the nesting depth of lists and objects.
const DEPTH_MAX: usize = 32;

/// A value with its location.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub(super) span: Range<usize>,
    pub(super) kind: Kind,
}

/// The kind of a value.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// A member without a value.
    Absent,
    Null,
    Truth(bool),
    Integer(i64),
    /// A number with a point or an exponent, or one beyond 64 bits.
    Number,
    Text(String),
    List(Vec<Value>),
    Object(Vec<Member>),
}

/// A member of an object.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) key: String,
    pub(super) span: Range<usize>,
    pub(super) value: Value,
}

impl Member {
    /// From its key to the end of its value.
    pub(super) fn whole(&self) -> Range<usize> {
        self.span.start..self.value.span.end
    }
}

impl Value {
    /// Its text, if it is a string.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Its members; none if it is no object.
    pub(super) fn members(&self) -> &[Member] {
        match &self.kind {
            Kind::Object(members) => members,
            _ => &[],
        }
    }

    /// Its type in words.
    pub(super) fn words(&self) -> &'static str {
        match self.kind {
            Kind::Absent => "nothing",
            Kind::Null => "null",
            Kind::Truth(_) => "a boolean",
            Kind::Integer(_) => "an integer",
            Kind::Number => "a number that is not an integer, or too large",
            Kind::Text(_) => "a string",
            Kind::List(_) => "a list",
            Kind::Object(_) => "an object",
        }
    }
}

/// Why a text is not JSON, with the location.
#[derive(Clone, Debug)]
pub(super) struct SyntaxError {
    pub(super) span: Range<usize>,
    pub(super) message: String,
    pub(super) help: &'static str,
}

/// Reads a whole text.
pub(super) fn parse(text: &str) -> Result<Value, SyntaxError> {
    let mut cursor = Cursor { text, at: 0 };
    cursor.skip()?;
    let value = cursor.value(0)?;
    cursor.skip()?;
    match cursor.peek() {
        None => Ok(value),
        Some(_) => Err(cursor.error("there is text after the end", "remove it")),
    }
}

struct Cursor<'t> {
    text: &'t str,
    at: usize,
}

impl Cursor<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// A problem at the next character.
    fn error(&self, message: impl Into<String>, help: &'static str) -> SyntaxError {
        self.error_at(self.at..self.at + 1, message, help)
    }

    fn error_at(
        &self,
        span: Range<usize>,
        message: impl Into<String>,
        help: &'static str,
    ) -> SyntaxError {
        SyntaxError { span, message: message.into(), help }
    }

    /// White space and comments.
    fn skip(&mut self) -> Result<(), SyntaxError> {
        loop {
            let rest = &self.text[self.at..];
            let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
            self.at += blank;
            let rest = &rest[blank..];
            let length = if let Some(comment) = rest.strip_prefix("/*") {
                let end = comment.find("*/").map(|end| end + 4);
                end.ok_or_else(|| {
                    self.error_at(
                        self.at..self.at + 2,
                        "the comment does not end",
                        "write */ after it",
                    )
                })?
            } else if rest.starts_with("//") {
                rest.find('\n').unwrap_or(rest.len())
            } else {
                return Ok(());
            };
            self.at += length;
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value, SyntaxError> {
        let start = self.at;
        if depth > DEPTH_MAX {
            let message = format!("more than DEPTH_MAX, {DEPTH_MAX}, objects inside one another");
            return Err(self.error(message, "rt-app's own grammar has five"));
        }
        let kind = match self.peek() {
            Some(b'{') => Kind::Object(self.members(depth)?),
            Some(b'[') => Kind::List(self.list(depth)?),
            Some(b'"') => Kind::Text(self.text()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b'a'..=b'z' | b'A'..=b'Z') => self.word()?,
            None => return Err(self.error("the file ends where a value should be", CLOSE)),
            Some(_) => {
                let help = "write a number, a string in double quotes, { }, [ ], true or false";
                return Err(self.error("this is not a value", help));
            }
        };
        Ok(Value { span: start..self.at, kind })
    }

    fn word(&mut self) -> Result<Kind, SyntaxError> {
        let rest = &self.text[self.at..];
        let word = &rest[..rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len())];
        let kind = match word {
            "true" => Kind::Truth(true),
            "false" => Kind::Truth(false),
            "null" => Kind::Null,
            _ => {
                let help = "a string is written in double quotes; booleans are true and false";
                let span = self.at..self.at + word.len();
                return Err(self.error_at(span, format!("`{word}` is not a value"), help));
            }
        };
        self.at += word.len();
        Ok(kind)
    }

    fn number(&mut self) -> Result<Kind, SyntaxError> {
        let rest = &self.text[self.at..];
        let other = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.'));
        let number = &rest[..rest.find(other).unwrap_or(rest.len())];
        let span = self.at..self.at + number.len();
        let plain = number.strip_prefix('-').unwrap_or(number);
        let (digits, rest) =
            plain.split_at(plain.find(|c: char| !c.is_ascii_digit()).unwrap_or(plain.len()));
        let help = "write digits, with a - in front if need be";
        if digits.is_empty() || (digits.len() > 1 && digits.starts_with('0')) {
            return Err(self.error_at(span, format!("`{number}` is not a number"), help));
        }
        self.at = span.end;
        if rest.is_empty() {
            return Ok(number.parse().map_or(Kind::Number, Kind::Integer));
        }
        match number.parse::<f64>() {
            Ok(_) if number.ends_with(|c: char| c.is_ascii_digit()) => Ok(Kind::Number),
            _ => Err(self.error_at(span, format!("`{number}` is not a number"), help)),
        }
    }

    /// A string in double quotes.
    fn text(&mut self) -> Result<String, SyntaxError> {
        let start = self.at;
        let mut text = String::new();
        self.at += 1;
        loop {
            let rest = &self.text[self.at..];
            let Some(c) = rest.chars().next().filter(|c| *c != '\n') else {
                let help = "write a double quote after it, on the same line";
                return Err(self.error_at(start..start + 1, "the string does not end", help));
            };
            self.at += c.len_utf8();
            match c {
                '"' => return Ok(text),
                '\\' => text.push(self.escape()?),
                c if c < ' ' => {
                    self.at -= 1;
                    return Err(self.error("a control character in a string", "remove it"));
                }
                c => text.push(c),
            }
        }
    }

    /// An escape sequence after a backslash.
    fn escape(&mut self) -> Result<char, SyntaxError> {
        let start = self.at - 1;
        let c = match self.peek() {
            Some(c @ (b'"' | b'\\' | b'/')) => char::from(c),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(start),
            _ => {
                let help = "a backslash itself is written twice";
                return Err(self.error_at(
                    start..start + 2,
                    "this is not an escape sequence",
                    help,
                ));
            }
        };
        self.at += 1;
        Ok(c)
    }

    /// `u` and four hexadecimal digits; a surrogate pair for characters that do not fit.
    fn unicode(&mut self, start: usize) -> Result<char, SyntaxError> {
        let unit = |at: usize| {
            let digits = self.text.get(at..at + 4)?;
            let plain = digits.bytes().all(|b| b.is_ascii_hexdigit());
            u16::from_str_radix(digits, 16).ok().filter(|_| plain)
        };
        let first = unit(self.at + 1);
        let second = match self.text.get(self.at + 5..self.at + 7) {
            Some("\\u") => unit(self.at + 7),
            _ => None,
        };
        let alone = first.and_then(|unit| char::from_u32(unit.into()));
        let pair = [first.unwrap_or(0), second.unwrap_or(0)];
        let both = char::decode_utf16(pair).next().and_then(Result::ok);
        let (c, length) = match (alone, both) {
            (Some(c), _) => (c, 5),
            (None, Some(c)) if first.is_some() => (c, 11),
            _ => {
                let help = "write \\u and four hexadecimal digits";
                return Err(self.error_at(start..start + 2, "this is not a character", help));
            }
        };
        self.at += length;
        Ok(c)
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Value>, SyntaxError> {
        let mut list = Vec::new();
        self.at += 1;
        loop {
            self.skip()?;
            if self.peek() == Some(b']') {
                self.at += 1;
                return Ok(list);
            }
            list.push(self.value(depth + 1)?);
            self.comma(b']')?;
        }
    }

    fn members(&mut self, depth: usize) -> Result<Vec<Member>, SyntaxError> {
        let mut members = Vec::new();
        self.at += 1;
        loop {
            self.skip()?;
            let start = self.at;
            match self.peek() {
                Some(b'}') => {
                    self.at += 1;
                    return Ok(members);
                }
                Some(b'"') => {}
                None => return Err(self.error("the file ends inside an object", CLOSE)),
                Some(_) => {
                    let help = "write a key in double quotes, as in \"run\" : 1000";
                    return Err(self.error("this is not a key", help));
                }
            }
            let key = self.text()?;
            let span = start..self.at;
            self.skip()?;
            let value = match self.peek() {
                Some(b':') => {
                    self.at += 1;
                    self.skip()?;
                    self.value(depth + 1)?
                }
                Some(b',' | b'}') => Value { span: span.clone(), kind: Kind::Absent },
                _ => {
                    let help = "write \"key\" : value";
                    return Err(self.error(format!("no `:` after the key `{key}`"), help));
                }
            };
            members.push(Member { key, span, value });
            self.comma(b'}')?;
        }
    }

    /// The separator between two members, or their end.
    fn comma(&mut self, end: u8) -> Result<(), SyntaxError> {
        let before = self.at;
        self.skip()?;
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                Ok(())
            }
            Some(next) if next == end => Ok(()),
            None => Err(self.error("the file ends too early", CLOSE)),
            Some(_) => {
                let span = before.saturating_sub(1)..before;
                Err(self.error_at(span, "a comma is missing after this", "write one"))
            }
        }
    }
}

const CLOSE: &str = "close every { and [ that is open";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_keep_their_order_and_their_names() {
        let text = r#"/* a */ { "run": 1, "sleep": 2, // b
            "run": -3, "suspend", "t": ["\u00e4\ud83d\ude00\n", 1.5, true, null,], }"#;
        let Kind::Object(members) = parse(text).unwrap().kind else { panic!("an object") };
        let keys: Vec<&str> = members.iter().map(|member| member.key.as_str()).collect();
        assert_eq!(keys, ["run", "sleep", "run", "suspend", "t"]);
        assert!(matches!(members[2].value.kind, Kind::Integer(-3)));
        assert_eq!(&text[members[2].value.span.clone()], "-3");
        assert!(matches!(members[3].value.kind, Kind::Absent));
        let Kind::List(list) = &members[4].value.kind else { panic!("a list") };
        assert!(matches!(&list[0].kind, Kind::Text(text) if text == "ä😀\n"));
        assert_eq!(list.len(), 4);
    }

    #[test]
    fn what_is_no_json_is_refused_where_it_stands() {
        for (text, at) in [
            ("", 0),
            ("{", 1),
            ("{ \"a\" : }", 8),
            ("{ \"a\" 1 }", 6),
            ("{ \"a\" : 1 \"b\" : 2 }", 8),
            ("{ a : 1 }", 2),
            ("[01]", 1),
            ("[-]", 1),
            ("[1.]", 1),
            ("[1e]", 1),
            ("[True]", 1),
            ("\"a\nb\"", 0),
            ("\"\\q\"", 1),
            ("\"\\ud800\"", 1),
            ("/* a", 0),
            ("1 2", 2),
        ] {
            let error = parse(text).expect_err(text);
            assert_eq!(error.span.start, at, "{text}: {}", error.message);
        }
        assert!(parse(&"[".repeat(100_000)).is_err(), "its depth is bounded");
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "[ \\[\\]{}:,\"\\\\/*u0-9a-e\n-]{0,40}") {
            let _ = parse(&text);
        }
    }
}
