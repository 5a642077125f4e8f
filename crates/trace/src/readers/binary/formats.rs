//! The kernel's description of an event: `events/SYSTEM/EVENT/format`.
//!
//! ```text
//! name: sched_waking
//! ID: 375
//! format:
//!     field:unsigned short common_type; offset:0; size:2; signed:0;
//!     field:char comm[16]; offset:8; size:16; signed:0;
//!     field:__data_loc char[] path; offset:24; size:4; signed:0;
//!
//! print fmt: "comm=%s …", …
//! ```

use std::borrow::Cow;

use super::cursor::Endian;
use crate::TaskState;
use crate::readers::fields::task_state;

/// How the bytes of a field are interpreted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// A number without a sign.
    Unsigned,
    /// A number with a sign.
    Signed,
    /// A text that ends with a zero byte or with the field. A size of 0 means up to the end of the event.
    Text,
    /// Offset and size (16 bits each) of a text elsewhere in the event.
    Elsewhere,
    /// The same, counted from the end of this field.
    After,
}

/// A field of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field {
    offset: usize,
    size: usize,
    form: Form,
}

impl Field {
    /// Where it begins in the event.
    pub(super) fn offset(&self) -> usize {
        self.offset
    }

    /// The number; `None` when the event is too short for it.
    #[inline]
    pub(super) fn number(&self, event: &[u8], endian: Endian) -> Option<i64> {
        let bytes = event.get(self.offset..self.offset.checked_add(self.size)?)?;
        if bytes.is_empty() || bytes.len() > 8 {
            return None;
        }
        Some(match self.form {
            Form::Signed => endian.signed(bytes),
            _ => endian.number(bytes) as i64,
        })
    }

    /// The bytes that hold a text; `None` when they are not in the event.
    #[inline]
    pub(super) fn text<'a>(&self, event: &'a [u8], endian: Endian) -> Option<TextBytes<'a>> {
        let bytes = match self.form {
            Form::Elsewhere | Form::After => {
                let end = self.offset.checked_add(self.size)?;
                let location = endian.number(event.get(self.offset..end)?);
                let base = if self.form == Form::After { end } else { 0 };
                let start = base + (location & 0xffff) as usize;
                event.get(start..start + (location >> 16 & 0xffff) as usize)?
            }
            _ if self.size == 0 => event.get(self.offset..)?,
            _ => event.get(self.offset..self.offset.checked_add(self.size)?)?,
        };
        Some(TextBytes(bytes))
    }
}

/// A text that ends at its first zero byte, or with the bytes.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct TextBytes<'a>(pub(in super::super) &'a [u8]);

impl<'a> TextBytes<'a> {
    /// The text; what is no UTF-8 is replaced.
    pub(in super::super) fn text(self) -> Cow<'a, str> {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        String::from_utf8_lossy(&self.0[..end])
    }
}

/// An event as the kernel describes it.
#[derive(Clone, Debug)]
pub(super) struct Format {
    pub(super) name: String,
    pub(super) id: u16,
    fields: Vec<(String, Field)>,
    /// For `sched_switch`: the bits of `prev_state` and what they are printed as.
    pub(super) states: Vec<(u64, TaskState)>,
}

impl Format {
    /// Parses a description; `None` when it is none.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let after = |key: &str| text.lines().find_map(|line| line.strip_prefix(key));
        let name = after("name:")?.trim().to_owned();
        let id = after("ID:")?.trim().parse().ok()?;
        let described = text.lines().take_while(|line| !line.starts_with("print fmt:"));
        let fields = described.filter_map(field).collect();
        let states = after("print fmt:").map_or_else(Vec::new, states);
        Some(Self { name, id, fields, states })
    }

    pub(super) fn field(&self, name: &str) -> Option<Field> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, field)| *field)
    }
}

/// ` field:TYPE NAME[SIZE]; offset:0; size:2; signed:0;`
fn field(line: &str) -> Option<(String, Field)> {
    let rest = line.trim_start().strip_prefix("field:").or_else(|| {
        // Fields that filters cannot use.
        line.trim_start().strip_prefix("field special:")
    })?;
    let (declaration, rest) = rest.split_once(';')?;
    let value = |key: &str| {
        rest.split(';').find_map(|part| part.trim().strip_prefix(key)?.trim().parse::<usize>().ok())
    };
    let (offset, size) = (value("offset:")?, value("size:")?);
    let (kind, name) = declaration.trim().rsplit_once([' ', '\t'])?;
    let (name, is_array) = match name.split_once('[') {
        Some((name, _)) => (name, true),
        None => (name, false),
    };
    let form = if kind.starts_with("__data_loc") {
        Form::Elsewhere
    } else if kind.starts_with("__rel_loc") {
        Form::After
    } else if is_array || kind.ends_with("char[]") {
        Form::Text
    } else if value("signed:") == Some(1) {
        Form::Signed
    } else {
        Form::Unsigned
    };
    Some((name.trim_start_matches('*').to_owned(), Field { offset, size, form }))
}

/// The table of `__print_flags` in the print format: `{ 0x00000001, "S" }, { 0x00000002, "D" }, …`.
fn states(print: &str) -> Vec<(u64, TaskState)> {
    let entry = |part: &str| {
        let (number, rest) = part.split_once(',')?;
        let number = number.trim();
        let bit = match number.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok()?,
            None => number.parse().ok()?,
        };
        let letter = rest.trim().strip_prefix('"')?.split('"').next()?;
        Some((bit, task_state(letter)?)).filter(|(bit, _)| *bit != 0)
    };
    print.split('{').skip(1).filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWITCH: &str = "name: sched_switch\nID: 372\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:__data_loc char[] path;\toffset:24;\tsize:4;\tsigned:0;\n\
        \tfield:const char * function;\toffset:28;\tsize:8;\tsigned:0;\n\n\
        print fmt: \"%s%s\", (REC->prev_state & 0x3) ? __print_flags(REC->prev_state & 0x3, \"|\", \
        { 0x00000001, \"S\" }, { 2, \"D\" }) : \"R\", REC->prev_state & 0x100 ? \"+\" : \"\"\n";

    #[test]
    fn a_description_of_the_kernel() {
        let format = Format::parse(SWITCH).unwrap();
        assert_eq!((format.name.as_str(), format.id), ("sched_switch", 372));
        assert_eq!(format.states, [(1, TaskState::Sleeping), (2, TaskState::Uninterruptible)]);
        let mut event = [0_u8; 48];
        event[..2].copy_from_slice(&372_u16.to_le_bytes());
        event[4..8].copy_from_slice(&(-1_i32).to_le_bytes());
        event[8..12].copy_from_slice(b"bash");
        event[24..28].copy_from_slice(&((5_u32 << 16) | 40).to_le_bytes());
        event[40..45].copy_from_slice(b"/a/b\0");
        let little = Endian::Little;
        let number = |name| format.field(name).unwrap().number(&event, little);
        assert_eq!((number("common_type"), number("common_pid")), (Some(372), Some(-1)));
        assert_eq!(number("function"), Some(0));
        let text = |name| Some(format.field(name)?.text(&event, little)?.text());
        assert_eq!((text("prev_comm"), text("path")), (Some("bash".into()), Some("/a/b".into())));
        assert!(format.field("path").unwrap().text(&event[..42], little).is_none());
        assert_eq!(format.field("next_comm"), None);
    }

    #[test]
    fn what_is_no_description() {
        for text in ["", "name: x", "name: x\nID: 70000\n", "ID: 5\n"] {
            assert!(Format::parse(text).is_none(), "{text}");
        }
    }
}
