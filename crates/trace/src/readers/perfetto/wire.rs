//! Protobuf's wire format: keys, numbers and sized bytes, without copies.

use prost::bytes::Buf;
use prost::encoding::{WireType, decode_key, decode_varint};

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WireValue<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> WireValue<'a> {
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
    type Item = Result<(u32, WireValue<'a>), Broken>;

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
fn field<'a>(rest: &mut &'a [u8]) -> Option<(u32, WireValue<'a>)> {
    let (number, wire_type) = decode_key(rest).ok()?;
    let value = match wire_type {
        WireType::Varint => WireValue::Number(decode_varint(rest).ok()?),
        WireType::SixtyFourBit => WireValue::Number(rest.try_get_u64_le().ok()?),
        WireType::LengthDelimited => {
            let size = usize::try_from(decode_varint(rest).ok()?).ok()?;
            WireValue::Bytes(take(rest, size)?)
        }
        WireType::ThirtyTwoBit => WireValue::Number(rest.try_get_u32_le().ok()?.into()),
        WireType::StartGroup | WireType::EndGroup => return None,
    };
    Some((number, value))
}

fn take<'a>(rest: &mut &'a [u8], size: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(size)?;
    *rest = left;
    Some(taken)
}

/// The numbers of a repeated field: packed into one value, or a value each.
pub(super) fn numbers<'a>(value: WireValue<'a>) -> impl Iterator<Item = Result<u64, Broken>> + 'a {
    let (mut rest, mut single) = match value {
        WireValue::Bytes(bytes) => (bytes, None),
        WireValue::Number(number) => (&[][..], Some(Ok(number))),
    };
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return single.take();
        }
        let number = decode_varint(&mut rest).map_err(|_| Broken);
        if number.is_err() {
            rest = &[];
        }
        Some(number)
    })
}

/// The low-numbered fields of a small message, the last one of each number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record<'a>([Option<WireValue<'a>>; RECORD_FIELDS]);

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
                Ok((1, WireValue::Number(150))),
                Ok((2, WireValue::Number(1))),
                Ok((3, WireValue::Bytes(&[7, 8]))),
                Ok((4, WireValue::Number(2))),
            ]
        );
        let packed: Vec<_> = numbers(WireValue::Bytes(&[1, 0x96, 1, 0x80])).collect();
        assert_eq!(packed, [Ok(1), Ok(150), Err(Broken)]);
        assert_eq!(numbers(WireValue::Number(5)).collect::<Vec<_>>(), [Ok(5)]);
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
