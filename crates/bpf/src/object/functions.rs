//! The functions of a file: their symbols and extents.

use std::collections::BTreeMap;

use super::elf::{Content, Elf, Symbol};
use crate::error::{Fault, LoadCause};
use crate::limits;

/// Bytes of an instruction slot.
pub(super) const SLOT_BYTES: u64 = 8;

/// The bytes of a function in its section.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    pub(super) section: usize,
    pub(super) start: u64,
    pub(super) bytes: u64,
}

/// The functions of a file, by start offset.
#[derive(Debug)]
pub(crate) struct FunctionIndex {
    pub(super) functions: Vec<(String, Extent)>,
    by_start: BTreeMap<(usize, u64), usize>,
}

impl FunctionIndex {
    /// An index of a file without functions.
    pub(crate) const EMPTY: &'static Self =
        &Self { functions: Vec::new(), by_start: BTreeMap::new() };

    /// Finds the functions of a file, in the order of section and offset. A function with several symbols is named by
    /// the first one in the symbol table.
    pub(crate) fn new(elf: &Elf<'_>) -> Result<Self, Fault> {
        let mut starts: BTreeMap<(usize, u64), &Symbol> = BTreeMap::new();
        for symbol in elf.symbols.iter().filter(|symbol| symbol.function) {
            let Some(section) = symbol.section else { continue };
            starts.entry((section, symbol.value)).or_insert(symbol);
        }
        limits::check("functions", starts.len() as u64, limits::MAX_FUNCTIONS)?;
        let mut index = Self { functions: Vec::new(), by_start: BTreeMap::new() };
        let mut slots = 0u64;
        for ((section, start), symbol) in starts {
            let extent = Extent { section, start, bytes: symbol.size };
            check_extent(elf, &extent).map_err(|cause| Fault::at_symbol(&symbol.name, cause))?;
            slots += extent.bytes / SLOT_BYTES;
            limits::check("instructions", slots, limits::MAX_SLOTS)?;
            index.by_start.insert((section, start), index.functions.len());
            index.functions.push((symbol.name.clone(), extent));
        }
        Ok(index)
    }

    /// The function that starts at a byte of a section.
    pub(crate) fn at(&self, section: usize, start: u64) -> Option<usize> {
        self.by_start.get(&(section, start)).copied()
    }
}

fn check_extent(elf: &Elf<'_>, extent: &Extent) -> Result<(), LoadCause> {
    let section = &elf.sections[extent.section];
    let wrong = |text: &str| {
        let (start, bytes) = (extent.start, extent.bytes);
        let name = &section.name;
        Err(LoadCause::Damaged(format!(
            "a function of {bytes} bytes at {start:#x} of {name} {text}"
        )))
    };
    let end = extent.start.checked_add(extent.bytes);
    if section.content != Content::Code {
        wrong("is not in a code section")
    } else if end.is_none_or(|end| end > section.data.len() as u64) {
        wrong("exceeds the section")
    } else if extent.bytes == 0
        || !extent.start.is_multiple_of(SLOT_BYTES)
        || !extent.bytes.is_multiple_of(SLOT_BYTES)
    {
        wrong("does not consist of whole instructions")
    } else {
        Ok(())
    }
}
