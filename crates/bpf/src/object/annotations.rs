//! What `.BTF.ext` adds to single instructions: CO-RE relocations and lines of the source.

use super::code::{CodeFunction, SLOT_BYTES, Target};
use super::elf::Elf;
use crate::btf::ext::{CoreRelocation, LineRecord, OfSection};
use crate::error::{Fault, LoadCause};

/// A line of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// The file as the compiler was told, usually a relative path.
    pub file: String,
    /// Its line, from 1.
    pub line: u32,
    /// The line itself, without leading space; empty if the compiler did not keep it.
    pub text: String,
}

impl std::fmt::Display for SourceLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// The function at a byte of a section, and the slot there.
fn function_at(
    functions: &mut [CodeFunction],
    section: usize,
    at: u64,
) -> Option<(&mut CodeFunction, usize)> {
    let behind = functions
        .partition_point(|known| (known.place.section, known.place.start) <= (section, at));
    let function = functions.get_mut(behind.checked_sub(1)?)?;
    let place = &function.place;
    // The last function that does not begin behind the byte may lie in an earlier section, anywhere in it.
    let offset = at.checked_sub(place.start).filter(|_| place.section == section)?;
    (offset < place.bytes).then_some((function, (offset / SLOT_BYTES) as usize))
}

/// Gives each CO-RE relocation to its function. One for code that belongs to no function is dropped: a linker leaves them
/// behind where it replaced a weak function.
pub(crate) fn attach_core_relocations(
    functions: &mut [CodeFunction],
    elf: &Elf<'_>,
    core: OfSection<CoreRelocation>,
) -> Result<(), Fault> {
    for (name, relocations) in core {
        let Some(section) = elf.section_index(&name) else { continue };
        for relocation in relocations {
            let at = u64::from(relocation.offset);
            let wrong = |text: &str| {
                Fault::at_section(&name, at, LoadCause::BadRelocation(format!("CO-RE: {text}")))
            };
            if at >= elf.sections[section].size || !at.is_multiple_of(SLOT_BYTES) {
                return Err(wrong("it is for no instruction of the section"));
            }
            let Some((function, slot)) = function_at(functions, section, at) else { continue };
            let plain = matches!(function.targets.get(&slot), None | Some(Target::Value(_)));
            if !plain {
                return Err(wrong("the instruction has another symbol already"));
            }
            if function.core.insert(slot, relocation).is_some() {
                return Err(wrong("there are two for one instruction"));
            }
        }
    }
    Ok(())
}

/// Gives each source line to its function.
pub(crate) fn attach_lines(
    functions: &mut [CodeFunction],
    elf: &Elf<'_>,
    lines: OfSection<LineRecord>,
) {
    for (name, records) in lines {
        let Some(section) = elf.section_index(&name) else { continue };
        for LineRecord { offset, file, line, text } in records {
            if let Some((function, slot)) = function_at(functions, section, u64::from(offset)) {
                function.lines.insert(slot, SourceLine { file, line, text });
            }
        }
    }
}
