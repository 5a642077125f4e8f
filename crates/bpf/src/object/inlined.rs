//! The lines that call inline functions, from an object's DWARF: `.BTF.ext` has only the line of the inline function.

use std::collections::BTreeMap;
use std::sync::Arc;

use gimli::constants::{
    DW_AT_abstract_origin, DW_AT_call_file, DW_AT_call_line, DW_AT_decl_file,
    DW_TAG_inlined_subroutine, DW_TAG_subprogram,
};
use gimli::{AttributeValue, DebuggingInformationEntry, Dwarf, EndianSlice, LittleEndian, Unit};

use super::elf::{Elf, address_in};

type Bytes<'d> = EndianSlice<'d, LittleEndian>;
type Entry<'d> = DebuggingInformationEntry<Bytes<'d>>;

/// The sections that describe inlined calls.
const SECTIONS: [&str; 6] = [
    ".debug_abbrev",
    ".debug_addr",
    ".debug_info",
    ".debug_line",
    ".debug_ranges",
    ".debug_rnglists",
];

/// The DWARF of an object, not yet parsed: only the message about a failed scheduler needs it.
#[derive(Clone, Debug)]
pub(super) struct DebugInfo {
    sections: Arc<BTreeMap<&'static str, Vec<u8>>>,
}

impl DebugInfo {
    pub(super) fn read(elf: &Elf<'_>) -> Self {
        let section = |name| Some((name, elf.relocated(elf.section(name)?)));
        Self { sections: Arc::new(SECTIONS.into_iter().filter_map(section).collect()) }
    }

    /// The line that the instruction at a byte of a section belongs to in the file of its function, if it comes from
    /// an inline function: that of the innermost call there. `None` without DWARF, or if that is damaged.
    pub(super) fn call_line(&self, section: usize, at: u64) -> Option<u32> {
        let load = |id: gimli::SectionId| {
            let bytes = self.sections.get(id.name()).map_or(&[][..], Vec::as_slice);
            Ok::<_, gimli::Error>(EndianSlice::new(bytes, LittleEndian))
        };
        let line = call_line(&Dwarf::load(load).ok()?, address_in(section, at)).ok()??;
        u32::try_from(line).ok()
    }
}

fn call_line<'d>(dwarf: &Dwarf<Bytes<'d>>, address: u64) -> gimli::Result<Option<u64>> {
    let mut units = dwarf.units();
    while let Some(header) = units.next()? {
        let unit = dwarf.unit(header)?;
        let covers = |entry: &Entry<'d>| -> gimli::Result<bool> {
            let mut ranges = dwarf.die_ranges(&unit, entry)?;
            while let Some(range) = ranges.next()? {
                if (range.begin..range.end).contains(&address) {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        let (mut own_file, mut line) = (None, None);
        let mut entries = unit.entries();
        while let Some(entry) = entries.next_dfs()? {
            if entry.tag() == DW_TAG_subprogram && covers(entry)? {
                own_file = declaring_file(&unit, entry)?;
            } else if entry.tag() == DW_TAG_inlined_subroutine
                && own_file.is_some()
                && entry.attr_value(DW_AT_call_file) == own_file
                && covers(entry)?
            {
                line = entry.attr_value(DW_AT_call_line).and_then(|line| line.udata_value());
            }
        }
        if line.is_some() {
            return Ok(line);
        }
    }
    Ok(None)
}

/// The number of the file that declares a function. A function that is inlined elsewhere as well has it at its origin.
fn declaring_file<'d>(
    unit: &Unit<Bytes<'d>>,
    entry: &Entry<'d>,
) -> gimli::Result<Option<AttributeValue<Bytes<'d>>>> {
    match entry.attr_value(DW_AT_abstract_origin) {
        Some(AttributeValue::UnitRef(origin)) => {
            Ok(unit.entry(origin)?.attr_value(DW_AT_decl_file))
        }
        _ => Ok(entry.attr_value(DW_AT_decl_file)),
    }
}
