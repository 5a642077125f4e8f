//! The types of a CTF trace, and values of them in its bytes.

use std::rc::Rc;

use super::super::binary::Endian;
use super::super::lttng::LttngValue;

/// Values that an event may have, with those of its header and contexts.
const VALUES_MAX: u32 = 1 << 16;

/// A whole number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Int {
    /// Bits: 1 to 64.
    pub(super) size: u32,
    /// Bits, a power of two.
    pub(super) align: u32,
    pub(super) is_signed: bool,
    pub(super) endian: Endian,
    /// It is a character of a text.
    pub(super) is_text: bool,
    /// It is the clock, or the lower bits of it.
    pub(super) is_clock: bool,
}

/// How many elements an array has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Length {
    Fixed(u64),
    /// The value of an earlier field.
    Field(String),
}

/// Names for ranges of numbers, both ends included.
pub(super) type Ranges = Vec<(String, [i64; 2])>;

/// The options of a variant: each with its name.
pub(super) type Fields = Vec<(String, Rc<Type>)>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Int(Int),
    /// A number with a fraction, which no event of scheduling has: bits and alignment.
    Float(u32, u32),
    /// Bytes up to a zero.
    Text,
    /// A number with names for ranges of it.
    Enum(Int, Ranges),
    /// Fields and alignment.
    Struct(Fields, u32),
    /// The name of the enumeration that chooses, and the options.
    Variant(String, Fields),
    /// An option for ranges of an earlier number, by the name of its field, both ends included.
    Chosen {
        by: String,
        options: Vec<(Vec<[i64; 2]>, Rc<Type>)>,
        is_optional: bool,
    },
    /// A number in as many bytes as it needs, seven bits in each, the lowest first (LEB128).
    Varying {
        is_signed: bool,
        is_clock: bool,
    },
    Array(Rc<Type>, Length),
}

impl Type {
    /// The alignment of its first bit.
    pub(super) fn align(&self) -> u32 {
        match self {
            Self::Int(int) | Self::Enum(int, _) => int.align,
            Self::Float(_, align) | Self::Struct(_, align) => *align,
            Self::Text | Self::Varying { .. } => 8,
            Self::Variant(..) | Self::Chosen { .. } => 1,
            Self::Array(of, _) => of.align(),
        }
    }
}

/// Bits of a packet, read forward.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bits<'d> {
    bytes: &'d [u8],
    /// The next bit.
    pub(super) at: u64,
    /// Where the content ends.
    end: u64,
}

impl<'d> Bits<'d> {
    /// Reads from a bit on, up to another one.
    pub(super) fn new(bytes: &'d [u8], at: u64, end: u64) -> Self {
        Self { bytes, at, end: end.min(bytes.len() as u64 * 8) }
    }

    fn align(&mut self, align: u32) {
        self.at = self.at.next_multiple_of(u64::from(align.max(1)));
    }

    fn take(&mut self, size: u64) -> Option<u64> {
        let at = self.at;
        self.at = at.checked_add(size).filter(|end| *end <= self.end)?;
        Some(at)
    }

    fn int(&mut self, int: &Int) -> Option<u64> {
        self.align(int.align);
        let at = self.take(int.size.into())?;
        let (first, bit) = ((at / 8) as usize, (at % 8) as u32);
        let count = (bit + int.size).div_ceil(8) as usize;
        let bytes = self.bytes.get(first..first + count)?;
        let mut sum: u128 = 0;
        let shift = match int.endian {
            Endian::Little => {
                bytes.iter().rev().for_each(|byte| sum = sum << 8 | u128::from(*byte));
                bit
            }
            // The first bit is the highest one.
            Endian::Big => {
                bytes.iter().for_each(|byte| sum = sum << 8 | u128::from(*byte));
                count as u32 * 8 - bit - int.size
            }
        };
        Some((sum >> shift) as u64 & mask(int.size))
    }

    /// A number in bytes of seven bits, and how many bits it has.
    fn varying(&mut self) -> Option<(u64, u32)> {
        let (mut number, mut size) = (0, 0);
        loop {
            let byte = *self.bytes(1)?.first()?;
            number |= u64::from(byte & 0x7f).checked_shl(size)?;
            size += 7;
            if byte & 0x80 == 0 {
                return Some((number, size.min(64)));
            }
        }
    }

    fn bytes(&mut self, count: u64) -> Option<&'d [u8]> {
        self.align(8);
        let at = (self.take(count.checked_mul(8)?)? / 8) as usize;
        self.bytes.get(at..at + count as usize)
    }

    fn text(&mut self) -> Option<&'d [u8]> {
        self.align(8);
        let rest = self.bytes.get((self.at / 8) as usize..(self.end / 8) as usize)?;
        let len = rest.iter().position(|byte| *byte == 0)?;
        self.take(len as u64 * 8 + 8)?;
        Some(&rest[..len])
    }
}

fn mask(size: u32) -> u64 {
    u64::MAX >> (64 - size.clamp(1, 64))
}

/// Values of a packet or an event, by the names of their fields.
#[derive(Debug)]
pub(super) struct Values<'t, 'd> {
    pub(super) found: Vec<(&'t str, LttngValue<'d>)>,
    /// The clock: the last full value, with the lower bits that came since.
    pub(super) clock: u64,
    /// Enumerations: the field, the names for ranges, the number.
    choices: Vec<(&'t str, &'t Ranges, i64)>,
    values: u32,
}

impl<'t, 'd> Values<'t, 'd> {
    pub(super) fn new(clock: u64) -> Self {
        Self { found: Vec::new(), clock, choices: Vec::new(), values: 0 }
    }

    /// Reads a value. `None` where the bits end before it does, or where it contradicts its type.
    pub(super) fn read(
        &mut self,
        kind: &'t Type,
        name: &'t str,
        bits: &mut Bits<'d>,
    ) -> Option<()> {
        self.values += 1;
        if self.values > VALUES_MAX {
            return None;
        }
        match kind {
            Type::Int(int) | Type::Enum(int, _) => {
                let number = bits.int(int)?;
                let number = self.whole(number, int.size, int.is_signed, int.is_clock);
                self.found.push((name, LttngValue::Number(number)));
                if let Type::Enum(_, names) = kind {
                    self.choices.push((name, names, number));
                }
            }
            Type::Float(size, align) => {
                bits.align(*align);
                bits.take((*size).into())?;
            }
            Type::Text => self.found.push((name, LttngValue::Text(bits.text()?))),
            Type::Struct(fields, align) => {
                bits.align(*align);
                for (name, kind) in fields {
                    self.read(kind, name, bits)?;
                }
            }
            Type::Variant(tag, options) => {
                let chosen = self.chosen(tag)?;
                let (_, kind) = options.iter().find(|(name, _)| name == chosen)?;
                self.read(kind, name, bits)?;
            }
            Type::Chosen { by, options, is_optional } => {
                let number = self.number(by)?;
                let is_in = |ranges: &[[i64; 2]]| {
                    ranges.iter().any(|[first, last]| (first..=last).contains(&&number))
                };
                match options.iter().find(|(ranges, _)| is_in(ranges)) {
                    Some((_, kind)) => self.read(kind, name, bits)?,
                    None if *is_optional => {}
                    None => return None,
                }
            }
            Type::Varying { is_signed, is_clock } => {
                let (number, size) = bits.varying()?;
                let number = self.whole(number, size, *is_signed, *is_clock);
                self.found.push((name, LttngValue::Number(number)));
            }
            Type::Array(of, length) => self.array(of, length, name, bits)?,
        }
        Some(())
    }

    /// The value of a number of so many bits; the clock moves on to it if it is the clock.
    fn whole(&mut self, number: u64, size: u32, is_signed: bool, is_clock: bool) -> i64 {
        if is_clock {
            self.tick(number, size);
        }
        let unused = 64 - size.clamp(1, 64);
        if is_signed { ((number << unused) as i64) >> unused } else { number as i64 }
    }

    fn array(
        &mut self,
        of: &'t Type,
        length: &Length,
        name: &'t str,
        bits: &mut Bits<'d>,
    ) -> Option<()> {
        let len = match length {
            Length::Fixed(len) => *len,
            Length::Field(field) => u64::try_from(self.number(field)?).ok()?,
        };
        if let Type::Int(Int { is_text: true, size: 8, .. }) = of {
            self.found.push((name, LttngValue::Text(bits.bytes(len)?)));
            return Some(());
        }
        let kept = self.found.len();
        for _ in 0..len {
            self.read(of, name, bits)?;
            // Elements have no names.
            self.found.truncate(kept);
        }
        Some(())
    }

    /// The last number of a field.
    pub(super) fn number(&self, name: &str) -> Option<i64> {
        self.found.iter().rev().find_map(|(found, value)| match value {
            LttngValue::Number(number) if *found == name => Some(*number),
            _ => None,
        })
    }

    /// The option that the last enumeration of a name chooses.
    fn chosen(&self, tag: &str) -> Option<&'t str> {
        let (_, names, number) = self.choices.iter().rev().find(|(found, ..)| *found == tag)?;
        let range = names.iter().find(|(_, [first, last])| (first..=last).contains(&number))?;
        Some(&range.0)
    }

    /// Moves the clock on to a value, or to its lower bits.
    fn tick(&mut self, number: u64, size: u32) {
        let mask = mask(size);
        let before = self.clock & mask;
        self.clock = (self.clock & !mask) | number;
        if number < before && size < 64 {
            self.clock = self.clock.wrapping_add(mask).wrapping_add(1);
        }
    }
}
