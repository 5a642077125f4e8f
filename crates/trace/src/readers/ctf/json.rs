//! The description of a CTF trace of version 2: a sequence of JSON objects, each behind a record separator (RFC 7464).
//!
//! ```text
//! {"type": "preamble", "version": 2}
//! {"type": "trace-class", "environment": {…}, "packet-header-field-class": {…}}
//! {"type": "clock-class", "name": "monotonic", "frequency": 1000000000}
//! {"type": "data-stream-class", "id": 0, "event-record-header-field-class": {…}, …}
//! {"type": "event-record-class", "id": 5, "name": "sched_switch", "payload-field-class": {…}}
//! ```
//!
//! The bytes of the streams are those of version 1.8. What version 1.8 tells by a field's name (`packet_size`), version
//! 2 tells by a role (`packet-total-length`): a field with a role gets the name of version 1.8 here.

use std::collections::HashMap;
use std::rc::Rc;

use serde::Deserialize;

use super::super::binary::{Endian, Why};
use super::description::{DEPTH_MAX, EventClass, Metadata, StreamClass, plain};
use super::types::{Fields, Int, Length, Type};

type Parsed<T> = Result<T, &'static str>;

/// The separator before each object.
const SEPARATOR: char = '\u{1e}';

/// One object of the sequence. Other kinds describe nothing that is read here.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
enum Fragment {
    Preamble {
        version: u64,
    },
    FieldClassAlias {
        name: String,
        field_class: FieldClass,
    },
    TraceClass {
        #[serde(default)]
        environment: HashMap<String, serde_json::Value>,
        packet_header_field_class: Option<FieldClass>,
    },
    ClockClass {
        frequency: u64,
    },
    DataStreamClass {
        #[serde(default)]
        id: i64,
        packet_context_field_class: Option<FieldClass>,
        event_record_header_field_class: Option<FieldClass>,
        event_record_common_context_field_class: Option<FieldClass>,
    },
    EventRecordClass {
        #[serde(default)]
        id: i64,
        #[serde(default)]
        data_stream_class_id: i64,
        #[serde(default)]
        name: String,
        specific_context_field_class: Option<FieldClass>,
        payload_field_class: Option<FieldClass>,
    },
    #[serde(other)]
    Other,
}

/// A field class, or the name of an alias.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum FieldClass {
    Alias(String),
    Own(Box<OwnClass>),
}

/// The properties of a field class of any type.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct OwnClass {
    r#type: String,
    /// Bits of a number, bytes of a text or blob, elements of an array.
    length: Option<u64>,
    alignment: Option<u64>,
    minimum_alignment: Option<u64>,
    byte_order: Option<String>,
    #[serde(default)]
    roles: Vec<String>,
    #[serde(default)]
    member_classes: Vec<Member>,
    element_field_class: Option<FieldClass>,
    length_field_location: Option<Location>,
    /// Of an optional field.
    field_class: Option<FieldClass>,
    #[serde(default)]
    options: Vec<Choice>,
    selector_field_location: Option<Location>,
    selector_field_ranges: Option<Vec<[i64; 2]>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Member {
    name: String,
    field_class: FieldClass,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Choice {
    field_class: FieldClass,
    selector_field_ranges: Vec<[i64; 2]>,
}

/// Where an earlier field is: its path, with its origin before it in drafts of the format. An element that is null goes
/// up by one structure.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Location {
    Path { path: Vec<Option<String>> },
    Words(Vec<Option<String>>),
}

/// Whether a description is one of version 2.
pub(super) fn is_json(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().first().is_some_and(|byte| b"{\x1e".contains(byte))
}

/// Reads the description.
pub(super) fn parse(text: &str) -> Result<Metadata, Why> {
    let mut parser = Parser {
        metadata: Metadata::new(Endian::Little),
        aliases: HashMap::new(),
        renamed: HashMap::new(),
        depth: 0,
    };
    for (at, part) in text.split(SEPARATOR).filter(|part| !part.trim().is_empty()).enumerate() {
        for fragment in serde_json::Deserializer::from_str(part).into_iter() {
            let fragment = fragment.map_err(|e| e.to_string());
            let read =
                fragment.and_then(|fragment| parser.fragment(fragment).map_err(str::to_owned));
            read.map_err(|why| format!("object {} of its metadata: {why}", at + 1))?;
        }
    }
    Ok(parser.metadata)
}

struct Parser {
    metadata: Metadata,
    aliases: HashMap<String, Rc<Type>>,
    /// Fields with a role: the name that the trace gives them, and the one of version 1.8.
    renamed: HashMap<String, &'static str>,
    depth: u32,
}

impl Parser {
    fn fragment(&mut self, fragment: Fragment) -> Parsed<()> {
        match fragment {
            Fragment::Preamble { version: 2 } | Fragment::Other => {}
            Fragment::Preamble { .. } => return Err("a version of CTF that is not known"),
            Fragment::FieldClassAlias { name, field_class } => {
                let kind = self.kind(&field_class)?;
                self.aliases.insert(name, kind);
            }
            Fragment::TraceClass { environment, packet_header_field_class } => {
                let texts = environment.into_iter().filter_map(|(key, value)| match value {
                    serde_json::Value::String(text) => Some((key, text)),
                    _ => None,
                });
                self.metadata.env.extend(texts);
                self.metadata.packet_header = self.optional(packet_header_field_class)?;
            }
            Fragment::ClockClass { frequency } if frequency > 0 => {
                self.metadata.frequency = frequency;
            }
            Fragment::ClockClass { .. } => return Err("a clock that stands still"),
            Fragment::DataStreamClass {
                id,
                packet_context_field_class,
                event_record_header_field_class,
                event_record_common_context_field_class,
            } => {
                let stream = StreamClass {
                    packet_context: self.optional(packet_context_field_class)?,
                    event_header: self.optional(event_record_header_field_class)?,
                    event_context: self.optional(event_record_common_context_field_class)?,
                };
                self.metadata.streams.insert(id, stream);
            }
            Fragment::EventRecordClass {
                id,
                data_stream_class_id,
                name,
                specific_context_field_class,
                payload_field_class,
            } => {
                let context = self.optional(specific_context_field_class)?;
                let fields = self.optional(payload_field_class)?;
                let event = EventClass { name, context, fields };
                self.metadata.events.insert((data_stream_class_id, id), event);
            }
        }
        Ok(())
    }

    fn optional(&mut self, class: Option<FieldClass>) -> Parsed<Option<Rc<Type>>> {
        class.map(|class| self.kind(&class)).transpose()
    }

    fn kind(&mut self, class: &FieldClass) -> Parsed<Rc<Type>> {
        let class = match class {
            FieldClass::Alias(name) => {
                return self.aliases.get(name).cloned().ok_or("a field class that is not known");
            }
            FieldClass::Own(class) => class,
        };
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err("field classes within field classes");
        }
        let kind = self.own(class)?;
        self.depth -= 1;
        Ok(Rc::new(kind))
    }

    fn own(&mut self, class: &OwnClass) -> Parsed<Type> {
        let word = class.r#type.as_str();
        Ok(match word {
            "fixed-length-bit-array"
            | "fixed-length-bit-map"
            | "fixed-length-boolean"
            | "fixed-length-unsigned-integer"
            | "fixed-length-unsigned-enumeration" => Type::Int(class.int(false)?),
            "fixed-length-signed-integer" | "fixed-length-signed-enumeration" => {
                Type::Int(class.int(true)?)
            }
            "variable-length-unsigned-integer" | "variable-length-unsigned-enumeration" => {
                Type::Varying { is_signed: false, is_clock: class.is_clock() }
            }
            "variable-length-signed-integer" | "variable-length-signed-enumeration" => {
                Type::Varying { is_signed: true, is_clock: false }
            }
            "fixed-length-floating-point-number" => {
                let int = class.int(false)?;
                Type::Float(int.size, int.align)
            }
            "null-terminated-string" => Type::Text,
            "static-length-string" | "static-length-blob" => {
                Type::Array(Rc::new(byte()), Length::Fixed(class.length.ok_or("no length")?))
            }
            "dynamic-length-string" | "dynamic-length-blob" => {
                Type::Array(Rc::new(byte()), self.length(class)?)
            }
            "static-length-array" | "dynamic-length-array" => {
                let of = class.element_field_class.as_ref().ok_or("an array without elements")?;
                let of = self.kind(of)?;
                let length = match class.length {
                    Some(length) => Length::Fixed(length),
                    None => self.length(class)?,
                };
                Type::Array(of, length)
            }
            "structure" => self.structure(class)?,
            "variant" => {
                let mut options = Vec::new();
                for option in &class.options {
                    let kind = self.kind(&option.field_class)?;
                    options.push((option.selector_field_ranges.clone(), kind));
                }
                Type::Chosen { by: self.selector(class)?, options, is_optional: false }
            }
            "optional" => {
                let of = class.field_class.as_ref().ok_or("an optional field without a class")?;
                // Without ranges the selector is a truth value.
                let ranges = class.selector_field_ranges.clone();
                let ranges = ranges.unwrap_or_else(|| vec![[i64::MIN, -1], [1, i64::MAX]]);
                let options = vec![(ranges, self.kind(of)?)];
                Type::Chosen { by: self.selector(class)?, options, is_optional: true }
            }
            _ => return Err("a type of field class that is not known"),
        })
    }

    fn structure(&mut self, class: &OwnClass) -> Parsed<Type> {
        let mut fields: Fields = Vec::new();
        for Member { name, field_class } in &class.member_classes {
            let kind = self.kind(field_class)?;
            let role = match field_class {
                FieldClass::Own(own) => own.roles.iter().find_map(|role| name_of_role(role)),
                FieldClass::Alias(_) => None,
            };
            let name = plain(name);
            if let Some(role) = role {
                self.renamed.insert(name.clone(), role);
            }
            fields.push((role.map_or(name, str::to_owned), kind));
        }
        let align = alignment(class.minimum_alignment)?;
        let align = fields.iter().map(|(_, kind)| kind.align()).fold(align, u32::max);
        Ok(Type::Struct(fields, align))
    }

    fn selector(&self, class: &OwnClass) -> Parsed<String> {
        self.field(class.selector_field_location.as_ref().ok_or("a choice without a selector")?)
    }

    fn length(&self, class: &OwnClass) -> Parsed<Length> {
        let location = class.length_field_location.as_ref().ok_or("no length")?;
        Ok(Length::Field(self.field(location)?))
    }

    /// The name of the field at a location: the last field of that name is meant.
    fn field(&self, location: &Location) -> Parsed<String> {
        let (Location::Path { path } | Location::Words(path)) = location;
        let name = path.iter().rev().flatten().next().ok_or("a location without a name")?;
        let name = plain(name);
        Ok(self.renamed.get(&name).map_or(name, |renamed| (*renamed).to_owned()))
    }
}

impl OwnClass {
    fn is_clock(&self) -> bool {
        self.roles.iter().any(|role| role == "default-clock-timestamp")
    }

    fn int(&self, is_signed: bool) -> Parsed<Int> {
        let size = self.length.filter(|size| (1..=64).contains(size));
        Ok(Int {
            size: size.ok_or("a number without a length")? as u32,
            align: alignment(self.alignment)?,
            is_signed,
            endian: match self.byte_order.as_deref() {
                Some("big-endian") => Endian::Big,
                _ => Endian::Little,
            },
            is_text: false,
            is_clock: self.is_clock(),
        })
    }
}

fn alignment(bits: Option<u64>) -> Parsed<u32> {
    let bits = bits.unwrap_or(1);
    let is_possible = (1..=1024).contains(&bits) && bits.is_power_of_two();
    is_possible.then_some(bits as u32).ok_or("an impossible alignment")
}

/// A byte of a text.
fn byte() -> Type {
    Type::Int(Int {
        size: 8,
        align: 8,
        is_signed: false,
        endian: Endian::Little,
        is_text: true,
        is_clock: false,
    })
}

/// The name that version 1.8 gives a field with a role.
fn name_of_role(role: &str) -> Option<&'static str> {
    Some(match role {
        "packet-magic-number" => "magic",
        "data-stream-class-id" => "stream_id",
        "data-stream-id" => "stream_instance_id",
        "packet-total-length" => "packet_size",
        "packet-content-length" => "content_size",
        "default-clock-timestamp" => "timestamp_begin",
        "packet-end-default-clock-timestamp" => "timestamp_end",
        "discarded-event-record-counter-snapshot" => "events_discarded",
        "packet-sequence-number" => "packet_seq_num",
        "event-record-class-id" => "id",
        _ => return None,
    })
}
