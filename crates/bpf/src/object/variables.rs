//! The variables of a data section.

use super::elf::Elf;
use crate::btf::{Btf, Kind};
use crate::error::{Fault, LoadCause};

/// A variable of a section.
pub(crate) struct PlacedVariable<'a> {
    /// Identifier of the `Variable` type.
    pub(crate) id: u32,
    pub(crate) name: &'a str,
    /// The type of its value.
    pub(crate) of: u32,
    /// Byte offset in the section.
    pub(crate) offset: u64,
    /// Bytes.
    pub(crate) size: u64,
}

/// The variables of a section, in the order of the type information. A variable's offset is that of its symbol, else
/// that in the type information.
///
/// # Errors
/// A variable exceeds the section.
pub(crate) fn variables<'a>(
    elf: &Elf<'_>,
    btf: &'a Btf,
    section: usize,
) -> Result<Vec<PlacedVariable<'a>>, Fault> {
    let name = &elf.sections[section].name;
    let mut placed = Vec::new();
    for id in btf.named(name) {
        let Kind::Section { variables } = &btf.get(id).kind else { continue };
        for entry in variables {
            let ty = btf.get(entry.variable);
            let Kind::Variable { of } = ty.kind else { continue };
            let size = btf.size_of(of).unwrap_or(0).max(u64::from(entry.size));
            let offset = elf.value_of(section, &ty.name).unwrap_or_else(|| u64::from(entry.offset));
            if offset.checked_add(size).is_none_or(|end| end > elf.sections[section].size) {
                let cause = LoadCause::BadBtf("the variable exceeds its section".into());
                return Err(Fault::at_symbol(&ty.name, cause));
            }
            placed.push(PlacedVariable { id: entry.variable, name: &ty.name, of, offset, size });
        }
    }
    Ok(placed)
}
