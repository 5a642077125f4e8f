//! Contents of variables: the values of their parts, by their types.

use std::fmt;
use std::ops::ControlFlow;

use fairground_bpf::{GlobalType, Types};

use super::path::Places;

/// Maximum depth of structures and arrays within each other.
const DEPTH_MAX: usize = 64;
/// Maximum parts of a variable that are looked at.
const STEPS_MAX: usize = 1 << 20;
/// Bytes of the largest number.
const NUMBER_BYTES_MAX: u64 = 8;

/// Content of one part of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A switch.
    Switch(bool),
    /// A whole number.
    Number(i128),
    /// A constant of an enumeration: its name and number.
    Constant(String, i128),
    /// The text in an array of `char`, up to its terminating zero.
    Text(String),
    /// A pointer.
    Address(u64),
    /// Anything else.
    Bytes(Vec<u8>),
}

impl Value {
    /// The value as a number; `None` for texts and bytes.
    pub(super) fn number(&self) -> Option<i128> {
        match self {
            Value::Switch(on) => Some(i128::from(*on)),
            Value::Number(number) | Value::Constant(_, number) => Some(*number),
            Value::Address(address) => Some(i128::from(*address)),
            Value::Text(_) | Value::Bytes(_) => None,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Switch(on) => f.write_str(if *on { "on" } else { "off" }),
            Value::Number(number) => write!(f, "{number}"),
            Value::Constant(name, _) => f.write_str(name),
            Value::Text(text) => write!(f, "{text:?}"),
            Value::Address(0) => f.write_str("NULL"),
            Value::Address(address) => write!(f, "{address:#x}"),
            Value::Bytes(bytes) => {
                f.write_str("0x")?;
                bytes.iter().rev().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }
    }
}

/// One value within a variable, at a byte offset.
#[derive(Clone, Debug)]
struct Element {
    offset: u64,
    ty: GlobalType,
    size: u64,
    field: Option<(u32, u32)>,
}

/// The content of a variable beside another one of the same type: values that follow each other in an array and are
/// equal in both are one part (`x[4..64]`).
#[derive(Debug)]
pub(super) struct Reading<'r> {
    pub(super) types: &'r Types,
    pub(super) found: &'r [u8],
    pub(super) expected: &'r [u8],
    /// Parts that are equal in both are left out.
    pub(super) only_differing: bool,
}

/// Receives the path of a part, and what it holds in both contents.
type Visit<'v> = dyn FnMut(&str, Value, Value) -> ControlFlow<()> + 'v;

impl Reading<'_> {
    /// Visits the parts of the place number `index` of some places, which is called `name`. Breaks if the visitor does,
    /// or the parts are too many to look at.
    pub(super) fn visit(
        &self,
        places: &Places,
        index: usize,
        name: &str,
        visit: &mut Visit<'_>,
    ) -> ControlFlow<()> {
        let Some((offset, _)) = places.at.get(index) else { return ControlFlow::Continue(()) };
        let Places { ty, size, field, .. } = places;
        let part = Element { offset: *offset, ty: ty.clone(), size: *size, field: *field };
        let mut steps = STEPS_MAX;
        self.walk(&part, name, DEPTH_MAX, &mut steps, visit)
    }

    fn walk(
        &self,
        part: &Element,
        name: &str,
        depth: usize,
        steps: &mut usize,
        visit: &mut Visit<'_>,
    ) -> ControlFlow<()> {
        if self.only_differing
            && bytes(self.found, part.offset, part.size)
                == bytes(self.expected, part.offset, part.size)
        {
            return ControlFlow::Continue(());
        }
        *steps = steps.saturating_sub(1);
        if *steps == 0 {
            return ControlFlow::Break(());
        }
        match &part.ty {
            GlobalType::Array { of, element_size, count, text: false } if depth > 0 => {
                let (mut first, count) = (0, *count);
                while first < count {
                    let end = self.end_of_run(part.offset, *element_size, first, count);
                    let label = match end - first {
                        1 => format!("{name}[{first}]"),
                        all if all == count => format!("{name}[*]"),
                        _ => format!("{name}[{first}..{end}]"),
                    };
                    let offset = part.offset + first * element_size;
                    let element =
                        Element { offset, ty: (**of).clone(), size: *element_size, field: None };
                    self.walk(&element, &label, depth - 1, steps, visit)?;
                    first = end;
                }
                ControlFlow::Continue(())
            }
            GlobalType::Composite { id, .. } if depth > 0 => {
                self.types.members(*id).into_iter().try_for_each(|member| {
                    let field = ((member.bit_offset % 8) as u32, member.bits);
                    let inner = Element {
                        offset: part.offset + member.bit_offset / 8,
                        ty: member.ty,
                        size: member.size,
                        field: (member.bits > 0).then_some(field),
                    };
                    self.walk(&inner, &format!("{name}.{}", member.name), depth - 1, steps, visit)
                })
            }
            _ => visit(name, value(part, self.found), value(part, self.expected)),
        }
    }

    /// The first element of an array after `first` that is not equal to it in both contents.
    fn end_of_run(&self, start: u64, size: u64, first: u64, count: u64) -> u64 {
        if size == 0 {
            return count;
        }
        let element = |content, index: u64| bytes(content, start + index * size, size);
        let is_equal = |index: &u64| {
            element(self.found, *index) == element(self.found, first)
                && element(self.expected, *index) == element(self.expected, first)
        };
        (first + 1..count).find(|index| !is_equal(index)).unwrap_or(count)
    }
}

/// A part of a content; nothing behind its end.
fn bytes(content: &[u8], offset: u64, size: u64) -> &[u8] {
    let from = usize::try_from(offset).unwrap_or(usize::MAX).min(content.len());
    let end = from.saturating_add(usize::try_from(size).unwrap_or(usize::MAX)).min(content.len());
    &content[from..end]
}

fn value(part: &Element, content: &[u8]) -> Value {
    let own = bytes(content, part.offset, part.size);
    match &part.ty {
        GlobalType::Bool => Value::Switch(raw(part, content) != 0),
        GlobalType::Int { signed, .. } if part.size <= NUMBER_BYTES_MAX => {
            Value::Number(number(part, content, *signed))
        }
        GlobalType::Enum { signed, values, .. } if part.size <= NUMBER_BYTES_MAX => {
            let number = number(part, content, *signed);
            match values.iter().find(|(_, value)| i128::from(*value) == number) {
                Some((name, _)) => Value::Constant(name.clone(), number),
                None => Value::Number(number),
            }
        }
        GlobalType::Array { text: true, .. } => {
            let text = own.split(|byte| *byte == 0).next().unwrap_or_default();
            Value::Text(String::from_utf8_lossy(text).into_owned())
        }
        GlobalType::Pointer => Value::Address(raw(part, content) as u64),
        _ => Value::Bytes(own.to_vec()),
    }
}

/// The bits of a number, a pointer or a bit field.
fn raw(part: &Element, content: &[u8]) -> u128 {
    let (shift, bits) = part.field.unwrap_or((0, (part.size * 8) as u32));
    let own = bytes(content, part.offset, u64::from((shift + bits).div_ceil(8)));
    let all = own.iter().rev().fold(0, |number: u128, byte| number << 8 | u128::from(*byte));
    (all >> shift) & ((1u128 << bits.min(64)) - 1)
}

fn number(part: &Element, content: &[u8], signed: bool) -> i128 {
    let bits = part.field.map_or((part.size * 8) as u32, |(_, bits)| bits).clamp(1, 64);
    let raw = raw(part, content) as i128;
    match signed && raw >> (bits - 1) != 0 {
        true => raw - (1i128 << bits),
        false => raw,
    }
}
