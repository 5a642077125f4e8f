//! Protobuf's wire format, and nothing else: keys, varints, fixed numbers, sized bytes.

/// The bytes of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message<'a>(pub(crate) &'a [u8]);

/// What a field holds.
#[derive(Clone, Copy, Debug)]
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Message<'a> {
    /// The fields in order.
    fn fields(self) -> Vec<(u32, Value<'a>)> {
        let mut rest = self.0;
        let mut fields = Vec::new();
        while !rest.is_empty() {
            let key = varint(&mut rest);
            let number = (key >> 3) as u32;
            let value = match key & 7 {
                0 => Value::Number(varint(&mut rest)),
                1 => Value::Number(u64::from_le_bytes(take(&mut rest, 8).try_into().unwrap())),
                2 => {
                    let size = varint(&mut rest) as usize;
                    Value::Bytes(take(&mut rest, size))
                }
                5 => {
                    Value::Number(u32::from_le_bytes(take(&mut rest, 4).try_into().unwrap()).into())
                }
                other => panic!("wire type {other}"),
            };
            fields.push((number, value));
        }
        fields
    }

    /// The messages in a field.
    pub(crate) fn messages(self, number: u32) -> Vec<Message<'a>> {
        let of = |(found, value)| match value {
            Value::Bytes(bytes) if found == number => Some(Message(bytes)),
            _ => None,
        };
        self.fields().into_iter().filter_map(of).collect()
    }

    /// The number in a field, the last one if there are several.
    pub(crate) fn number(self, number: u32) -> Option<u64> {
        let of = |(found, value)| match value {
            Value::Number(value) if found == number => Some(value),
            _ => None,
        };
        self.fields().into_iter().filter_map(of).next_back()
    }

    /// The text in a field; empty when there is none.
    pub(crate) fn text(self, number: u32) -> &'a str {
        self.messages(number).first().map_or("", |bytes| std::str::from_utf8(bytes.0).unwrap())
    }

    /// The last field that holds a message, with its number.
    pub(crate) fn last_message(self) -> Option<(u32, Message<'a>)> {
        let of = |(number, value)| match value {
            Value::Bytes(bytes) => Some((number, Message(bytes))),
            Value::Number(_) => None,
        };
        self.fields().into_iter().filter_map(of).next_back()
    }
}

fn take<'a>(rest: &mut &'a [u8], size: usize) -> &'a [u8] {
    let (taken, left) = rest.split_at(size);
    *rest = left;
    taken
}

fn varint(rest: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(rest, 1)[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return value;
        }
    }
    panic!("a varint of more than ten bytes")
}
