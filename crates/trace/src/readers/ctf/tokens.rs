//! The words, numbers and signs of a description in TSDL.

/// The error says what is wrong.
pub(super) type Parsed<T> = Result<T, &'static str>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    Word(&'a str),
    Number(i64),
    Text(&'a str),
    Sign(&'a str),
    End,
}

/// Reads a text token by token.
#[derive(Clone, Debug)]
pub(super) struct Tokens<'a> {
    text: &'a str,
    /// The next byte.
    pub(super) at: usize,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// The number of the present line, from 1.
    pub(super) fn line(&self) -> usize {
        self.text[..self.at].bytes().filter(|byte| *byte == b'\n').count() + 1
    }

    pub(super) fn next(&mut self) -> Parsed<Token<'a>> {
        self.skip_blanks();
        let rest = &self.text[self.at..];
        let Some(first) = rest.chars().next() else { return Ok(Token::End) };
        let length = |is_in: fn(char) -> bool| rest.find(|c| !is_in(c)).unwrap_or(rest.len());
        let (token, len) = if first.is_ascii_digit() || first == '-' {
            let len =
                1 + rest[1..].find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len() - 1);
            (Token::Number(number(&rest[..len]).ok_or("an impossible number")?), len)
        } else if first.is_alphabetic() || first == '_' {
            let len = length(|c| c.is_alphanumeric() || c == '_');
            (Token::Word(&rest[..len]), len)
        } else if first == '"' {
            let mut escaped = false;
            let end = rest[1..].find(|c| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            });
            let end = end.ok_or("a text without an end")?;
            (Token::Text(&rest[1..=end]), end + 2)
        } else {
            let len = [":=", "..."].into_iter().find(|sign| rest.starts_with(sign));
            let len = len.map_or(first.len_utf8(), str::len);
            (Token::Sign(&rest[..len]), len)
        };
        self.at += len;
        Ok(token)
    }

    fn skip_blanks(&mut self) {
        loop {
            let rest = self.text[self.at..].trim_start();
            self.at = self.text.len() - rest.len();
            let end = match rest {
                _ if rest.starts_with("/*") => rest.find("*/").map(|end| end + 2),
                _ if rest.starts_with("//") => rest.find('\n'),
                _ => return,
            };
            self.at += end.unwrap_or(rest.len());
        }
    }

    pub(super) fn peek(&mut self) -> Parsed<Token<'a>> {
        let at = self.at;
        let token = self.next();
        self.at = at;
        token
    }

    pub(super) fn take(&mut self, sign: &str) -> Parsed<bool> {
        let taken = self.peek()? == Token::Sign(sign);
        if taken {
            self.next()?;
        }
        Ok(taken)
    }

    pub(super) fn expect(&mut self, sign: &'static str) -> Parsed<()> {
        if self.take(sign)? { Ok(()) } else { Err("a sign that should not stand here") }
    }

    pub(super) fn word(&mut self) -> Parsed<&'a str> {
        match self.next()? {
            Token::Word(word) => Ok(word),
            _ => Err("a name is missing"),
        }
    }
}

/// `17`, `-1`, `0x1F`, `017`, with `u` or `l` behind.
fn number(text: &str) -> Option<i64> {
    let (is_negative, digits) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let digits = digits.trim_end_matches(['u', 'U', 'l', 'L']);
    let magnitude = if let Some(hex) = digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        u64::from_str_radix(hex, 16).ok()?
    } else if digits.len() > 1 && digits.starts_with('0') {
        u64::from_str_radix(digits, 8).ok()?
    } else {
        digits.parse().ok()?
    };
    let number = magnitude as i64;
    Some(if is_negative { number.wrapping_neg() } else { number })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_of_a_description() {
        let mut tokens = Tokens::new(
            "/* CTF */ event { name := \"a \\\" b\"; // it\n id = 0x1Fu, -7 ... 017 }; _x[ä]",
        );
        let mut found = Vec::new();
        loop {
            match tokens.next() {
                Ok(Token::End) => break,
                token => found.push(token.expect("a token")),
            }
        }
        use Token::{Number, Sign, Text, Word};
        let wanted = [
            Word("event"),
            Sign("{"),
            Word("name"),
            Sign(":="),
            Text("a \\\" b"),
            Sign(";"),
            Word("id"),
            Sign("="),
            Number(31),
            Sign(","),
            Number(-7),
            Sign("..."),
            Number(15),
            Sign("}"),
            Sign(";"),
            Word("_x"),
            Sign("["),
            Word("ä"),
            Sign("]"),
        ];
        assert_eq!(found, wanted);
        assert!(Tokens::new("\"without end").next().is_err());
        assert!(Tokens::new("12ab").next().is_err());
    }
}
