//! Attaches the records of `.BTF.ext` to instructions: CO-RE relocations and source lines.

use super::code::{CodeFunction, Target};
use super::elf::Elf;
use super::functions::SLOT_BYTES;
use crate::btf::ext::{CoreRelocation, LineRecord, OfSection};
use crate::error::{Fault, LoadCause};
use crate::location::SourceLine;

/// The function at a byte of a section, and the slot there.
fn function_at(
    functions: &mut [CodeFunction],
    section: usize,
    at: u64,
) -> Option<(&mut CodeFunction, usize)> {
    let next = functions
        .partition_point(|known| (known.extent.section, known.extent.start) <= (section, at));
    let function = functions.get_mut(next.checked_sub(1)?)?;
    let extent = &function.extent;
    // The last function that starts at or before the byte may be in an earlier section.
    let offset = at.checked_sub(extent.start).filter(|_| extent.section == section)?;
    (offset < extent.bytes).then_some((function, (offset / SLOT_BYTES) as usize))
}

/// Adds each CO-RE relocation to its function. Drops those outside of all functions: a linker leaves them where it
/// replaced a weak function.
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
                return Err(wrong("the instruction already has another symbol"));
            }
            if function.core.insert(slot, relocation).is_some() {
                return Err(wrong("there are two for one instruction"));
            }
        }
    }
    Ok(())
}

/// Adds each source line to its function.
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
