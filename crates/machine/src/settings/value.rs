//! The bytes of a value for the parts of a variable.

use fairground_bpf::{GlobalType, Types};

use super::path::{Places, describe};
use super::words::{Item, Meaning, Words};

/// Bytes of a machine word of a mask.
const WORD_BYTES: usize = 8;
/// Maximum bytes of a number.
const NUMBER_BYTES_MAX: u64 = 16;

/// A change of some bytes of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// Byte offset in the variable.
    pub offset: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The bits of them that change, for a bit field; empty: all.
    pub mask: Vec<u8>,
}

impl Patch {
    /// Changes the bytes of the variable. Returns `false`, and changes nothing, if they are fewer.
    pub fn apply(&self, content: &mut [u8]) -> bool {
        let from = usize::try_from(self.offset).unwrap_or(usize::MAX);
        let end = from.saturating_add(self.bytes.len());
        let Some(target) = content.get_mut(from..end) else { return false };
        self.change(target);
        true
    }

    /// Changes the bytes that lie at its offset.
    pub(crate) fn change(&self, target: &mut [u8]) {
        for (index, (old, new)) in target.iter_mut().zip(&self.bytes).enumerate() {
            let mask = self.mask.get(index).copied().unwrap_or(u8::MAX);
            *old = (*old & !mask) | (new & mask);
        }
    }
}

/// Target of a value.
pub(super) struct Target<'t> {
    /// The setting's name.
    pub(super) name: &'t str,
    /// Its unit of time, ns, if it has one.
    pub(super) unit_ns: Option<u64>,
    pub(super) types: &'t Types,
    pub(super) words: Words<'t>,
}

impl Target<'_> {
    /// The bytes that a value writes to the parts of the variable that a path names, in the order of their offsets.
    ///
    /// # Errors
    /// The problem with the value, in words.
    pub(super) fn patches(&self, places: &Places, value: &str) -> Result<Vec<Patch>, String> {
        let mut patches = Vec::new();
        let (ty, size) = (&places.ty, places.size);
        match self.meaning(ty, value)? {
            Some(Meaning::List(items)) => self.list(places, value, &items, &mut patches)?,
            meaning => {
                let bytes = match meaning {
                    Some(Meaning::One(item)) => self.item(ty, size, places.field, &item)?,
                    _ => self.scalar(ty, size, places.field, value)?,
                };
                for (offset, _) in &places.at {
                    push(&mut patches, *offset, &bytes, places.field);
                }
            }
        }
        Ok(patches)
    }

    /// Meaning of a value, if it is a word: texts are not, and the constants of an enumeration count first.
    fn meaning(&self, ty: &GlobalType, value: &str) -> Result<Option<Meaning>, String> {
        match ty {
            GlobalType::Array { text: true, .. } => Ok(None),
            GlobalType::Enum { values, .. } if constant(values, value).is_some() => Ok(None),
            _ => self.words.meaning(value),
        }
    }

    /// Values for the elements of a `[*]` or of a range, else of the array that the path names.
    fn list(
        &self,
        places: &Places,
        word: &str,
        items: &[Item],
        patches: &mut Vec<Patch>,
    ) -> Result<(), String> {
        let room = |elements: u64, what: &str| match items.len() as u64 > elements {
            true => Err(format!(
                "`{word}` has {} values, and {what} has {elements} elements",
                items.len()
            )),
            false => Ok(()),
        };
        if let Some(elements) = places.spread {
            room(elements as u64, "the range")?;
            for (offset, number) in &places.at {
                let Some(item) = items.get(*number) else { continue };
                let bytes = self.item(&places.ty, places.size, places.field, item)?;
                push(patches, *offset, &bytes, places.field);
            }
            return Ok(());
        }
        let GlobalType::Array { of, element_size, count, .. } = &places.ty else {
            return Err(format!(
                "`{word}` is a list of {} values, and `{}` is no array",
                items.len(),
                self.name
            ));
        };
        room(*count, "the array")?;
        for (offset, _) in &places.at {
            for (item, index) in items.iter().zip(0..) {
                let bytes = self.item(of, *element_size, None, item)?;
                push(patches, offset + index * element_size, &bytes, None);
            }
        }
        Ok(())
    }

    /// The bytes of one value of a word.
    fn item(
        &self,
        ty: &GlobalType,
        size: u64,
        field: Option<(u32, u32)>,
        item: &Item,
    ) -> Result<Vec<u8>, String> {
        match (item, ty) {
            (Item::Number(number), _) => self.number(ty, size, field, i128::from(*number)),
            (Item::Mask(words), GlobalType::Int { .. }) => mask(words, size),
            (Item::Mask(words), GlobalType::Array { of, .. })
                if matches!(**of, GlobalType::Int { .. }) =>
            {
                mask(words, size)
            }
            (Item::Mask(_), _) => {
                Err("a mask of CPUs needs a whole number or an array of whole numbers".to_owned())
            }
            (Item::Numbers(numbers), GlobalType::Array { of, element_size, count, .. }) => {
                if numbers.len() as u64 > *count {
                    let given = numbers.len();
                    return Err(format!("{given} values for an array of {count} elements"));
                }
                let bytes = |number: &u64| self.number(of, *element_size, None, (*number).into());
                Ok(numbers.iter().map(bytes).collect::<Result<Vec<_>, _>>()?.concat())
            }
            (Item::Numbers(_), _) => {
                Err("several numbers need an array; `.count` behind the word counts them"
                    .to_owned())
            }
        }
    }

    /// The bytes of a value that is no word.
    fn scalar(
        &self,
        ty: &GlobalType,
        size: u64,
        field: Option<(u32, u32)>,
        value: &str,
    ) -> Result<Vec<u8>, String> {
        let number = match ty {
            GlobalType::Bool => {
                i128::from(switch(value).ok_or("it is a switch: give `on` or `off`")?)
            }
            GlobalType::Int { .. } => self.parse_number(value)?,
            GlobalType::Enum { values, .. } => {
                i128::from(constant(values, value).ok_or_else(|| {
                    let names: Vec<&str> = values.iter().map(|(name, _)| name.as_str()).collect();
                    let names = super::listed(&names, super::LISTED_MAX, "");
                    format!("it takes one of {names}")
                })?)
            }
            GlobalType::Array { text: true, count, .. } => return text(value, *count, size),
            _ => return Err(describe(self.name, ty, self.types)),
        };
        self.number(ty, size, field, number)
    }

    fn number(
        &self,
        ty: &GlobalType,
        size: u64,
        field: Option<(u32, u32)>,
        number: i128,
    ) -> Result<Vec<u8>, String> {
        let (bits, signed) = match ty {
            GlobalType::Bool => (1, false),
            GlobalType::Int { bits, signed } | GlobalType::Enum { bits, signed, .. } => {
                (*bits, *signed)
            }
            _ => return Err(describe(self.name, ty, self.types)),
        };
        let (low, high) = range(field.map_or(bits, |(_, bits)| bits), signed);
        if number < low || number > high {
            return Err(format!("out of range; it holds {low} to {high}"));
        }
        if !(1..=NUMBER_BYTES_MAX).contains(&size) {
            return Err(format!("its size of {size} bytes is not that of a number"));
        }
        let Some((shift, bits)) = field else {
            return Ok(number.to_le_bytes()[..size as usize].to_vec());
        };
        let low = number as u128 & field_mask(bits);
        Ok((low << shift).to_le_bytes()[..(shift + bits).div_ceil(8) as usize].to_vec())
    }

    fn parse_number(&self, value: &str) -> Result<i128, String> {
        let (negative, digits) = match value.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, value),
        };
        let sign = |n: u64| if negative { -i128::from(n) } else { i128::from(n) };
        if let Some(hex) = digits.strip_prefix("0x") {
            return u64::from_str_radix(&hex.replace('_', ""), 16)
                .map(sign)
                .map_err(|_| "not a number".to_owned());
        }
        let split = digits.find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(digits.len());
        let (digits, suffix) = digits.split_at(split);
        let Ok(number) = digits.replace('_', "").parse::<u64>() else {
            if let Some(on) = switch(value) {
                return Ok(i128::from(on));
            }
            return Err("not a number".to_owned());
        };
        if suffix.is_empty() {
            return Ok(sign(number));
        }
        let scale = match suffix {
            "ns" => 1,
            "us" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            _ => return Err(format!("unknown unit `{suffix}`; use ns, us, ms or s")),
        };
        let Some(unit) = self.unit_ns else {
            return Err("its unit is not known to be a time: give the plain number".to_owned());
        };
        let total_ns = number.checked_mul(scale).ok_or("too large")?;
        if total_ns % unit != 0 {
            return Err(format!("it counts in steps of {unit} ns"));
        }
        Ok(sign(total_ns / unit))
    }
}

/// Adds a change, as a part of the last one where it adjoins it.
fn push(patches: &mut Vec<Patch>, offset: u64, bytes: &[u8], field: Option<(u32, u32)>) {
    let mask = field.map_or(Vec::new(), |(shift, bits)| {
        (field_mask(bits) << shift).to_le_bytes()[..bytes.len()].to_vec()
    });
    if let Some(last) = patches.last_mut()
        && mask.is_empty()
        && last.mask.is_empty()
        && last.offset + last.bytes.len() as u64 == offset
    {
        last.bytes.extend(bytes);
        return;
    }
    patches.push(Patch { offset, bytes: bytes.to_vec(), mask });
}

/// As many ones as a bit field has bits.
fn field_mask(bits: u32) -> u128 {
    (1u128 << bits.min(64)) - 1
}

/// The value of a constant, by its name whatever the case, or by its number.
fn constant(values: &[(String, i64)], text: &str) -> Option<i64> {
    let named = values.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
    let number = || text.parse().ok().filter(|number| values.iter().any(|(_, v)| v == number));
    named.map(|(_, number)| *number).or_else(number)
}

/// A text in an array of `char`, with zeros behind it.
fn text(value: &str, count: u64, size: u64) -> Result<Vec<u8>, String> {
    if value.len() as u64 >= count || value.contains('\0') {
        return Err(format!(
            "it has {} bytes, and the array takes {} before the terminating zero",
            value.len(),
            count.saturating_sub(1)
        ));
    }
    let mut bytes = value.as_bytes().to_vec();
    bytes.resize(size as usize, 0);
    Ok(bytes)
}

/// A mask of CPUs in so many bytes.
fn mask(words: &[u64], size: u64) -> Result<Vec<u8>, String> {
    let size = size as usize;
    let mut bytes = Vec::with_capacity(words.len() * WORD_BYTES);
    bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    if bytes.iter().skip(size).any(|byte| *byte != 0) {
        return Err(format!("a mask of {} bits has no room for every CPU", 8 * size));
    }
    bytes.resize(size, 0);
    Ok(bytes)
}

fn range(bits: u32, signed: bool) -> (i128, i128) {
    let bits = bits.clamp(1, 64);
    if signed {
        (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
    } else {
        (0, (1i128 << bits) - 1)
    }
}

/// A switch as text.
pub(crate) fn switch(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "on" | "true" | "yes" | "1" => Some(true),
        "off" | "false" | "no" | "0" => Some(false),
        _ => None,
    }
}
