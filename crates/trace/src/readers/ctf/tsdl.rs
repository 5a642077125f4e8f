//! The description of a CTF trace: the language TSDL of CTF 1.8, as far as LTTng, babeltrace and perf write it.
//!
//! ```text
//! typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
//! trace { byte_order = le; packet.header := struct { uint32_t magic; … }; };
//! env { kernel_release = "6.1.0"; }; clock { freq = 1000000000; };
//! stream { id = 0; event.header := struct event_header_compact; packet.context := struct packet_context; };
//! event { name = "sched_switch"; id = 5; stream_id = 0; fields := struct { integer { … } _prev_tid; … }; };
//! ```

use std::collections::HashMap;
use std::rc::Rc;

use super::super::binary::{Endian, Why};
use super::description::{DEPTH_MAX, EventClass, Metadata, StreamClass, plain};
use super::tokens::{Parsed, Token, Tokens};
use super::types::{Fields, Int, Length, Type};

/// Reads the description.
pub(super) fn parse(text: &str) -> Result<Metadata, Why> {
    let parsed = |endian| {
        let mut parser = Parser::new(text, endian);
        parser
            .all()
            .map_err(|why| format!("line {} of its metadata: {why}", parser.tokens.line()))?;
        Ok(parser.metadata)
    };
    // The byte order stands behind the first types that depend on it.
    let metadata: Metadata = parsed(Endian::Little)?;
    if metadata.endian == Endian::Big { parsed(Endian::Big) } else { Ok(metadata) }
}

/// The value of a block's declaration.
enum Assigned {
    Type(Rc<Type>),
    Word(String),
    Number(i64),
}

struct Parser<'a> {
    tokens: Tokens<'a>,
    named: HashMap<String, Rc<Type>>,
    metadata: Metadata,
    depth: u32,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, endian: Endian) -> Self {
        let metadata = Metadata::new(endian);
        Self { tokens: Tokens::new(text), named: HashMap::new(), metadata, depth: 0 }
    }

    fn all(&mut self) -> Parsed<()> {
        loop {
            match self.tokens.peek()? {
                Token::End => return Ok(()),
                Token::Sign(";") => _ = self.tokens.next()?,
                Token::Word("typealias") => self.typealias()?,
                Token::Word("trace" | "env" | "clock" | "stream" | "event" | "callsite") => {
                    let kind = self.tokens.word()?;
                    self.block(kind)?;
                }
                Token::Word("struct" | "enum" | "variant") => _ = self.kind()?,
                _ => return Err("an unknown block"),
            }
        }
    }

    /// `typealias TYPE := words;`
    fn typealias(&mut self) -> Parsed<()> {
        self.tokens.word()?;
        let kind = self.kind()?;
        self.tokens.expect(":=")?;
        let name = self.words()?;
        self.named.insert(name, kind);
        Ok(())
    }

    /// Names one after the other, as `unsigned long`.
    fn words(&mut self) -> Parsed<String> {
        let mut words = vec![self.tokens.word()?];
        while let Token::Word(word) = self.tokens.peek()? {
            self.tokens.next()?;
            words.push(word);
        }
        Ok(words.join(" "))
    }

    /// A block of entries `key = value;` and `key := type;`.
    fn block(&mut self, kind: &str) -> Parsed<()> {
        let entries = self.entries()?;
        let number = |key: &str| match entries.get(key) {
            Some(Assigned::Number(number)) => Some(*number),
            _ => None,
        };
        let word = |key: &str| match entries.get(key) {
            Some(Assigned::Word(word)) => Some(word.clone()),
            _ => None,
        };
        let of = |key: &str| match entries.get(key) {
            Some(Assigned::Type(kind)) => Some(Rc::clone(kind)),
            _ => None,
        };
        match kind {
            "trace" => self.metadata.packet_header = of("packet.header"),
            "env" => {
                let texts = entries.iter().filter_map(|(key, entry)| match entry {
                    Assigned::Word(word) => Some((key.clone(), word.clone())),
                    _ => None,
                });
                self.metadata.env.extend(texts);
            }
            "clock" => {
                let frequency = number("freq").and_then(|frequency| u64::try_from(frequency).ok());
                self.metadata.frequency =
                    frequency.filter(|frequency| *frequency > 0).unwrap_or(1_000_000_000);
            }
            "stream" => {
                let stream = StreamClass {
                    packet_context: of("packet.context"),
                    event_header: of("event.header"),
                    event_context: of("event.context"),
                };
                self.metadata.streams.insert(number("id").unwrap_or(0), stream);
            }
            "event" => {
                let name = word("name").ok_or("an event without a name")?;
                let event = EventClass { name, context: of("context"), fields: of("fields") };
                let key = (number("stream_id").unwrap_or(0), number("id").unwrap_or(0));
                self.metadata.events.insert(key, event);
            }
            _ => {}
        }
        Ok(())
    }

    fn entries(&mut self) -> Parsed<HashMap<String, Assigned>> {
        self.tokens.expect("{")?;
        let mut entries = HashMap::new();
        while !self.tokens.take("}")? {
            if self.tokens.take(";")? {
                continue;
            }
            if matches!(self.tokens.peek()?, Token::Word("typealias")) {
                self.typealias()?;
                continue;
            }
            let mut key = self.tokens.word()?.to_owned();
            while self.tokens.take(".")? {
                key = key + "." + self.tokens.word()?;
            }
            if self.tokens.take(":=")? {
                entries.insert(key, Assigned::Type(self.kind()?));
                continue;
            }
            self.tokens.expect("=")?;
            let entry = match self.tokens.next()? {
                Token::Number(number) => Assigned::Number(number),
                Token::Text(text) => Assigned::Word(text.to_owned()),
                Token::Word(word) => {
                    let mut words = word.to_owned();
                    while self.tokens.take(".")? {
                        words = words + "." + self.tokens.word()?;
                    }
                    Assigned::Word(words)
                }
                _ => return Err("a value is missing"),
            };
            // The types behind it depend on it.
            if let ("byte_order", Assigned::Word(order)) = (key.as_str(), &entry)
                && let Some(endian) = endian(order)
                && self.depth == 0
            {
                self.metadata.endian = endian;
            }
            entries.insert(key, entry);
        }
        Ok(entries)
    }

    /// A type without a name behind it.
    fn kind(&mut self) -> Parsed<Rc<Type>> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err("types within types");
        }
        let kind = match self.tokens.peek()? {
            Token::Word("integer") => {
                self.tokens.next()?;
                Rc::new(Type::Int(self.integer()?))
            }
            Token::Word("floating_point") => {
                self.tokens.next()?;
                let entries = self.entries()?;
                let bits = |key: &str| match entries.get(key) {
                    Some(Assigned::Number(bits @ 0..=64)) => *bits as u32,
                    _ => 0,
                };
                let align = bits("align").max(1);
                Rc::new(Type::Float(bits("exp_dig") + bits("mant_dig"), align))
            }
            Token::Word("string") => {
                self.tokens.next()?;
                if self.tokens.peek()? == Token::Sign("{") {
                    self.entries()?;
                }
                Rc::new(Type::Text)
            }
            Token::Word("struct") => self.structure()?,
            Token::Word("enum") => self.enumeration()?,
            Token::Word("variant") => self.variant()?,
            _ => {
                let name = self.words()?;
                self.known(&name)?
            }
        };
        self.depth -= 1;
        Ok(kind)
    }

    fn known(&self, name: &str) -> Parsed<Rc<Type>> {
        self.named.get(name).cloned().ok_or("a type that is not known")
    }

    fn integer(&mut self) -> Parsed<Int> {
        let entries = self.entries()?;
        let number = |key: &str| match entries.get(key) {
            Some(Assigned::Number(number)) => Some(*number),
            _ => None,
        };
        let word = |key: &str| match entries.get(key) {
            Some(Assigned::Word(word)) => word.as_str(),
            _ => "",
        };
        let size = number("size")
            .filter(|size| (1..=64).contains(size))
            .ok_or("a number without a size")?;
        let align = number("align").unwrap_or(if size % 8 == 0 { 8 } else { 1 });
        let is_power = (1..=1024).contains(&align) && align.count_ones() == 1;
        Ok(Int {
            size: size as u32,
            align: if is_power { align as u32 } else { return Err("an impossible alignment") },
            is_signed: number("signed") == Some(1) || matches!(word("signed"), "true" | "TRUE"),
            endian: endian(word("byte_order")).unwrap_or(self.metadata.endian),
            is_text: matches!(word("encoding"), "UTF8" | "utf8" | "ASCII" | "ascii"),
            is_clock: word("map").starts_with("clock."),
        })
    }

    /// `struct [NAME] [{ fields }] [align(8)]`
    fn structure(&mut self) -> Parsed<Rc<Type>> {
        self.tokens.next()?;
        let name = self.own_name("struct")?;
        if self.tokens.peek()? != Token::Sign("{") {
            return self.known(&name.ok_or("a structure without fields")?);
        }
        let fields = self.fields()?;
        let mut align = fields.iter().map(|(_, kind)| kind.align()).max().unwrap_or(1);
        if self.tokens.peek()? == Token::Word("align") {
            self.tokens.next()?;
            self.tokens.expect("(")?;
            let Token::Number(wanted @ 1..=1024) = self.tokens.next()? else {
                return Err("an impossible alignment");
            };
            align = align.max(wanted as u32);
            self.tokens.expect(")")?;
        }
        Ok(self.keep(name, Type::Struct(fields, align)))
    }

    fn own_name(&mut self, kind: &str) -> Parsed<Option<String>> {
        let Token::Word(name) = self.tokens.peek()? else { return Ok(None) };
        self.tokens.next()?;
        Ok(Some(format!("{kind} {name}")))
    }

    fn keep(&mut self, name: Option<String>, kind: Type) -> Rc<Type> {
        let kind = Rc::new(kind);
        self.named.extend(name.map(|name| (name, Rc::clone(&kind))));
        kind
    }

    /// `{ TYPE name; TYPE name[4]; TYPE name[ length ]; … }`
    fn fields(&mut self) -> Parsed<Fields> {
        self.tokens.expect("{")?;
        let mut fields = Vec::new();
        while !self.tokens.take("}")? {
            if self.tokens.peek()? == Token::Word("typealias") {
                self.typealias()?;
                self.tokens.expect(";")?;
                continue;
            }
            let is_own = matches!(
                self.tokens.peek()?,
                Token::Word(
                    "integer" | "floating_point" | "string" | "struct" | "enum" | "variant"
                )
            );
            let (kind, name) = if is_own && !self.is_named_reference()? {
                (self.kind()?, self.tokens.word()?.to_owned())
            } else {
                let words = self.words()?;
                let (kind, name) = words.rsplit_once(' ').ok_or("a field without a name")?;
                (self.known(kind)?, name.to_owned())
            };
            let mut kind = kind;
            let mut lengths = Vec::new();
            while self.tokens.take("[")? {
                lengths.push(match self.tokens.next()? {
                    Token::Number(length @ 0..) => Length::Fixed(length as u64),
                    Token::Word(first) => {
                        let mut last = first;
                        while self.tokens.take(".")? {
                            last = self.tokens.word()?;
                        }
                        Length::Field(plain(last))
                    }
                    _ => return Err("an impossible length"),
                });
                self.tokens.expect("]")?;
            }
            // The last one counts elements.
            for length in lengths.into_iter().rev() {
                kind = Rc::new(Type::Array(kind, length));
            }
            self.tokens.expect(";")?;
            fields.push((plain(&name), kind));
        }
        Ok(fields)
    }

    /// `struct NAME field;`: a reference, with the name of the field behind it.
    fn is_named_reference(&mut self) -> Parsed<bool> {
        let at = self.tokens.at;
        let kind = self.tokens.word()?;
        let is_named = matches!(kind, "struct" | "enum" | "variant");
        let is_reference = is_named
            && matches!(self.tokens.next()?, Token::Word(_))
            && matches!(self.tokens.peek()?, Token::Word(_));
        self.tokens.at = at;
        Ok(is_reference)
    }

    /// `enum [NAME] [: TYPE] { A, B = 2, C = 3 ... 5, "D" = 6 }`
    fn enumeration(&mut self) -> Parsed<Rc<Type>> {
        self.tokens.next()?;
        let name = self.own_name("enum")?;
        let base = match self.tokens.take(":")? {
            true => match &*self.kind()? {
                Type::Int(int) => int.clone(),
                _ => return Err("an enumeration of no numbers"),
            },
            false if self.tokens.peek()? == Token::Sign("{") => match &*self.known("int")? {
                Type::Int(int) => int.clone(),
                _ => return Err("an enumeration of no numbers"),
            },
            false => return self.known(&name.ok_or("an enumeration without a name")?),
        };
        self.tokens.expect("{")?;
        let (mut names, mut next) = (Vec::new(), 0_i64);
        while !self.tokens.take("}")? {
            let label = match self.tokens.next()? {
                Token::Word(label) | Token::Text(label) => label,
                _ => return Err("an enumeration without names"),
            };
            let (mut first, mut last) = (next, next);
            if self.tokens.take("=")? {
                let Token::Number(number) = self.tokens.next()? else {
                    return Err("a number is missing");
                };
                (first, last) = (number, number);
                if self.tokens.take("...")? {
                    let Token::Number(number) = self.tokens.next()? else {
                        return Err("a number is missing");
                    };
                    last = number;
                }
            }
            next = last.wrapping_add(1);
            names.push((plain(label), [first, last]));
            self.tokens.take(",")?;
        }
        Ok(self.keep(name, Type::Enum(base, names)))
    }

    /// `variant [NAME] [<tag>] { fields }`
    fn variant(&mut self) -> Parsed<Rc<Type>> {
        self.tokens.next()?;
        let name = self.own_name("variant")?;
        let mut tag = None;
        if self.tokens.take("<")? {
            let mut last = self.tokens.word()?;
            while self.tokens.take(".")? {
                last = self.tokens.word()?;
            }
            tag = Some(plain(last));
            self.tokens.expect(">")?;
        }
        let fields = match self.tokens.peek()? {
            Token::Sign("{") => self.fields()?,
            _ => match &*self.known(&name.clone().ok_or("a variant without options")?)? {
                Type::Variant(_, fields) => fields.clone(),
                _ => return Err("a variant without options"),
            },
        };
        Ok(self.keep(name, Type::Variant(tag.unwrap_or_default(), fields)))
    }
}

fn endian(word: &str) -> Option<Endian> {
    match word {
        "le" => Some(Endian::Little),
        "be" | "network" => Some(Endian::Big),
        _ => None,
    }
}
