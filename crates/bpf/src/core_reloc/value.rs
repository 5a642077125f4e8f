//! The value of a relocation.

use super::question::Question;
use super::spec::{Spec, Step, bad, local_member};
use crate::btf::{Btf, Kind};
use crate::error::LoadCause;

/// The result of a relocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Value {
        value: u64,
        /// Bytes of the kernel's field, for the width of a load or store. `Err`: the instruction cannot load a field
        /// of the kernel's width; the text is the message.
        size: Option<Result<u32, String>>,
    },
    /// No match; the text is the message.
    Nothing(String),
}

impl Outcome {
    fn plain(value: u64) -> Self {
        Self::Value { value, size: None }
    }
}

/// Computes the result of a relocation, whether or not the kernel has the access path.
pub(super) fn calculate(
    local: &Btf,
    target: &Btf,
    question: Question,
    spec: &Spec,
    found: Option<&Spec>,
) -> Result<Outcome, LoadCause> {
    let Some(found) = found else {
        return Ok(match question {
            Question::FieldExists
            | Question::EnumvalExists
            | Question::TypeExists
            | Question::TypeMatches
            | Question::TypeSize
            | Question::TypeIdTarget
            | Question::TypeIdLocal => Outcome::plain(0),
            _ => Outcome::Nothing(format!(
                "needs {}, which this kernel does not have",
                spec.describe(local)
            )),
        });
    };
    let value = match question {
        Question::FieldExists
        | Question::EnumvalExists
        | Question::TypeExists
        | Question::TypeMatches => 1,
        Question::TypeSize => target.size_of(found.root).unwrap_or(0),
        Question::TypeIdTarget => u64::from(found.root),
        Question::TypeIdLocal => u64::from(spec.root),
        Question::EnumvalValue => found.constant.unwrap_or(0) as u64,
        _ => return of_field(local, target, question, spec, found),
    };
    Ok(Outcome::plain(value))
}

/// The offset of a field and the width of a load of it.
struct Extent {
    byte_offset: u64,
    bytes: u64,
    bit_offset: u64,
    bits: u64,
    is_bit_field: bool,
    of: u32,
}

fn extent(btf: &Btf, spec: &Spec) -> Result<Extent, LoadCause> {
    let step: &Step = spec.steps.last().ok_or_else(|| bad("the access is empty"))?;
    let size = |id| btf.size_of(id).ok_or_else(|| bad("the field has no size"));
    let (of, bits) = match step.name.is_empty() {
        true => (step.of, 0),
        false => {
            let member = local_member(btf, step).ok_or_else(|| bad("a member is lost"))?;
            (btf.strip_all(member.of), u64::from(member.bits))
        }
    };
    let mut bytes = size(of)?;
    let bit_offset = spec.bit_offset;
    if bits == 0 {
        let bits = bytes.saturating_mul(8);
        let byte_offset = bit_offset / 8;
        return Ok(Extent { byte_offset, bytes, bit_offset, bits, is_bit_field: false, of });
    }
    // The smallest aligned integer that contains all bits.
    loop {
        if bytes == 0 || bytes > 8 {
            return Err(bad("a bit field that no integer of eight bytes holds"));
        }
        let byte_offset = bit_offset / 8 / bytes * bytes;
        if bit_offset + bits <= (byte_offset + bytes) * 8 {
            return Ok(Extent { byte_offset, bytes, bit_offset, bits, is_bit_field: true, of });
        }
        bytes *= 2;
    }
}

fn of_field(
    local: &Btf,
    target: &Btf,
    question: Question,
    spec: &Spec,
    found: &Spec,
) -> Result<Outcome, LoadCause> {
    let field = extent(target, found)?;
    let shift = |bits: u64| {
        64u64.checked_sub(bits).ok_or_else(|| bad("a shift for a field of more than 64 bits"))
    };
    let value = match question {
        Question::FieldByteOffset if !field.is_bit_field => {
            let ours = extent(local, spec)?;
            let size = width(local, &ours, target, &field, || spec.describe(local));
            return Ok(Outcome::Value { value: field.byte_offset, size });
        }
        Question::FieldByteOffset => field.byte_offset,
        Question::FieldByteSize => field.bytes,
        Question::FieldSigned => u64::from(is_signed(target, field.of)),
        Question::FieldLshiftU64 => shift(field.bit_offset + field.bits - field.byte_offset * 8)?,
        _ => shift(field.bits)?,
    };
    Ok(Outcome::plain(value))
}

fn is_signed(btf: &Btf, id: u32) -> bool {
    matches!(btf.get(id).kind, Kind::Int { signed: true, .. } | Kind::Enum { signed: true, .. })
}

/// The width of a load of the kernel's field (of an array: of an element), if it differs from the object's.
fn width(
    local: &Btf,
    ours: &Extent,
    target: &Btf,
    theirs: &Extent,
    describe: impl Fn() -> String,
) -> Option<Result<u32, String>> {
    let (our_type, their_type) = (local.strip_arrays(ours.of), target.strip_arrays(theirs.of));
    let our_size = local.size_of(our_type)?;
    let their_size = target.size_of(their_type)?;
    if our_size == their_size {
        return None;
    }
    let safe = match (&local.get(our_type).kind, &target.get(their_type).kind) {
        (Kind::Pointer(_), Kind::Pointer(_)) => true,
        (Kind::Int { signed: ours, .. }, Kind::Int { signed: theirs, .. }) => !ours && !theirs,
        _ => false,
    };
    Some(match u32::try_from(their_size) {
        Ok(size) if safe => Ok(size),
        _ => Err(format!(
            "loads {} as {our_size} bytes, but in this kernel it has {their_size}, and only \
             unsigned integers can be loaded by another width",
            describe()
        )),
    })
}
