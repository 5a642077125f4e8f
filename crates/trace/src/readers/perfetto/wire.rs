//! Protobuf's wire format: keys, numbers and sized bytes, without copies.

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    pub(super) fn number(self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(number),
            Self::Bytes(_) => None,
        }
    }

    pub(super) fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Number(_) => None,
        }
    }
}

/// The bytes do not follow the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken;

/// The fields of a message in order: number and value. Ends after the first [`Broken`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Value<'a>), Broken>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = field(&mut self.0);
        if field.is_none() {
            self.0 = &[];
        }
        Some(field.ok_or(Broken))
    }
}

#[inline]
fn field<'a>(rest: &mut &'a [u8]) -> Option<(u32, Value<'a>)> {
    let (number, wire_type) = split_key(varint(rest)?)?;
    let value = match wire_type {
        0 => Value::Number(varint(rest)?),
        1 => Value::Number(u64::from_le_bytes(*take(rest, 8)?.first_chunk()?)),
        2 => {
            let size = usize::try_from(varint(rest)?).ok()?;
            Value::Bytes(take(rest, size)?)
        }
        5 => Value::Number(u32::from_le_bytes(*take(rest, 4)?.first_chunk()?).into()),
        _ => return None,
    };
    Some((number, value))
}

/// The number of a field and its wire type.
pub(super) fn split_key(key: u64) -> Option<(u32, u8)> {
    let number = u32::try_from(key >> 3).ok().filter(|number| *number > 0)?;
    Some((number, (key & 7) as u8))
}

fn take<'a>(rest: &mut &'a [u8], size: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(size)?;
    *rest = left;
    Some(taken)
}

#[inline]
fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut number = Varint::default();
    loop {
        let (byte, left) = rest.split_first()?;
        *rest = left;
        if number.push(*byte)? {
            return Some(number.value);
        }
    }
}

/// A number of seven bits a byte, the lowest first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Varint {
    pub(super) value: u64,
    shift: u32,
}

impl Varint {
    /// Adds a byte; returns whether it is the last one. `None` for more than ten.
    #[inline]
    pub(super) fn push(&mut self, byte: u8) -> Option<bool> {
        if self.shift > 63 {
            return None;
        }
        self.value |= u64::from(byte & 0x7f) << self.shift;
        self.shift += 7;
        Some(byte & 0x80 == 0)
    }
}

/// The numbers of a repeated field: packed into one value, or a value each.
pub(super) fn numbers<'a>(value: Value<'a>) -> impl Iterator<Item = Result<u64, Broken>> + 'a {
    let (mut rest, mut single) = match value {
        Value::Bytes(bytes) => (bytes, None),
        Value::Number(number) => (&[][..], Some(Ok(number))),
    };
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return single.take();
        }
        let number = varint(&mut rest).ok_or(Broken);
        if number.is_err() {
            rest = &[];
        }
        Some(number)
    })
}

/// The low-numbered fields of a small message, the last one of each number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record<'a>([Option<Value<'a>>; RECORD_FIELDS]);

/// Field numbers of a [`Record`] are below it.
const RECORD_FIELDS: usize = 9;

impl<'a> Record<'a> {
    #[inline]
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, Broken> {
        let mut found = [None; RECORD_FIELDS];
        for field in Fields(bytes) {
            let (number, value) = field?;
            if let Some(place) = found.get_mut(number as usize) {
                *place = Some(value);
            }
        }
        Ok(Self(found))
    }

    #[inline]
    pub(super) fn number(&self, field: usize) -> Option<u64> {
        self.0[field]?.number()
    }

    #[inline]
    pub(super) fn bytes(&self, field: usize) -> Option<&'a [u8]> {
        self.0[field]?.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wire_type() {
        let bytes = [8, 0x96, 1, 17, 1, 0, 0, 0, 0, 0, 0, 0, 0x1a, 2, 7, 8, 0x25, 2, 0, 0, 0];
        let fields: Vec<_> = Fields(&bytes).collect();
        assert_eq!(
            fields,
            [
                Ok((1, Value::Number(150))),
                Ok((2, Value::Number(1))),
                Ok((3, Value::Bytes(&[7, 8]))),
                Ok((4, Value::Number(2))),
            ]
        );
        let packed: Vec<_> = numbers(Value::Bytes(&[1, 0x96, 1, 0x80])).collect();
        assert_eq!(packed, [Ok(1), Ok(150), Err(Broken)]);
        assert_eq!(numbers(Value::Number(5)).collect::<Vec<_>>(), [Ok(5)]);
    }

    #[test]
    fn damage_ends_a_message() {
        for bytes in [&[8][..], &[8, 0x80], &[0x1a, 9, 1], &[3, 1], &[0, 1], &[17, 1], &[0x80; 11]]
        {
            assert_eq!(Fields(bytes).collect::<Vec<_>>(), [Err(Broken)], "{bytes:?}");
        }
        assert!(Record::parse(&[8, 0x80]).is_err());
    }
}
