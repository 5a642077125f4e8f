//! Writes the result of a relocation into its instruction.

use super::value::Outcome;
use crate::error::LoadCause;
use crate::linked::{Fixup, Insn, LDDW};

/// The result of patching an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Patched {
    /// The patched instruction.
    Insn(Insn),
    /// It is an `lddw`, or may not be reached.
    Fixup(Fixup),
}

/// Writes a result into an instruction: an immediate, an offset with the width of the access, a 64-bit constant.
pub(crate) fn patch(insn: Insn, outcome: Outcome) -> Result<Patched, LoadCause> {
    let (value, size) = match outcome {
        Outcome::Value { value, size } => (value, size),
        Outcome::Nothing(text) => return Ok(Patched::Fixup(Fixup::Poison(text))),
    };
    match insn.code & 7 {
        _ if insn.code == LDDW => Ok(Patched::Fixup(Fixup::Value(value))),
        1..=3 => access(insn, value, size),
        4 | 7 if insn.code & 8 == 0 => immediate(insn, value),
        _ => Err(LoadCause::BadRelocation(format!(
            "CO-RE: an instruction that has nothing to relocate (opcode {:#04x})",
            insn.code
        ))),
    }
}

fn immediate(insn: Insn, value: u64) -> Result<Patched, LoadCause> {
    // An enumeration's negative constant arrives sign-extended, an unsigned 32-bit one does not.
    let imm =
        i32::try_from(value as i64).ok().or_else(|| u32::try_from(value).ok().map(|v| v as i32));
    match imm {
        Some(imm) => Ok(Patched::Insn(Insn { imm, ..insn })),
        None => Err(LoadCause::BadRelocation(format!("CO-RE: {value} exceeds an immediate"))),
    }
}

fn access(insn: Insn, value: u64, size: Option<Result<u32, String>>) -> Result<Patched, LoadCause> {
    let Ok(off) = i16::try_from(value) else {
        let text = format!("CO-RE: byte {value} exceeds the offset of a load or store");
        return Err(LoadCause::BadRelocation(text));
    };
    let width = match size {
        None => insn.code & 0x18,
        Some(Err(text)) => return Ok(Patched::Fixup(Fixup::Poison(text))),
        Some(Ok(4)) => 0x00,
        Some(Ok(2)) => 0x08,
        Some(Ok(1)) => 0x10,
        Some(Ok(8)) => 0x18,
        Some(Ok(bytes)) => {
            let text = format!("CO-RE: a load or store of {bytes} bytes");
            return Err(LoadCause::BadRelocation(text));
        }
    };
    Ok(Patched::Insn(Insn { code: insn.code & !0x18 | width, off, ..insn }))
}
