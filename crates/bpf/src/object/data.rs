//! Data sections, the maps that hold them, and the meaning of an address in a section.

use std::collections::BTreeMap;

use super::elf::{BySection, Content, Elf, Symbol};
use super::functions::FunctionIndex;
use super::maps::{self, ObjectMap};
use crate::btf::Btf;
use crate::error::{Fault, LoadCause};
use crate::limits;
use crate::linked::MapKind;

/// Variables of the arena: clang puts address space 1 here.
const ARENA_SECTION: &str = ".addr_space.1";

/// `max_entries` of an arena counts pages.
const ARENA_PAGE_BYTES: u64 = 4096;

/// Resolves addresses in the sections of a file.
#[derive(Debug)]
pub(crate) struct AddressMap<'a> {
    pub(crate) functions: &'a FunctionIndex,
    /// The map that holds a data section.
    pub(crate) data: BySection<usize>,
    /// Maps by their offset in `.maps`.
    pub(crate) maps: BTreeMap<u64, usize>,
    pub(crate) maps_section: Option<usize>,
}

/// The object at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Function(usize),
    Map(usize),
    Data { map: usize, offset: u64 },
}

impl AddressMap<'_> {
    /// The object at `addend` bytes after a symbol that is defined in `section`.
    pub(crate) fn resolve(
        &self,
        elf: &Elf<'_>,
        symbol: &Symbol,
        section: usize,
        addend: u64,
    ) -> Result<Address, LoadCause> {
        let offset = symbol.value.wrapping_add(addend);
        let name = &elf.sections[section].name;
        if elf.sections[section].content == Content::Code {
            return self.functions.at(section, offset).map(Address::Function).ok_or_else(|| {
                LoadCause::BadRelocation(format!(
                    "no function starts at byte {offset:#x} of {name}"
                ))
            });
        }
        if self.maps_section == Some(section) {
            return self.maps.get(&offset).copied().map(Address::Map).ok_or_else(|| {
                LoadCause::BadRelocation(format!("no map starts at byte {offset:#x} of {name}"))
            });
        }
        let Some(map) = self.data.get(&section) else {
            let text =
                format!("an address in section {name} (data sections are .data, .rodata, .bss)");
            return Err(LoadCause::Unsupported(text));
        };
        if offset >= elf.sections[section].size {
            let size = elf.sections[section].size;
            let text = format!("byte {offset:#x} of {name}, which has {size:#x} bytes");
            return Err(LoadCause::BadRelocation(text));
        }
        Ok(Address::Data { map: *map, offset })
    }
}

/// Reads data sections and map definitions.
pub(crate) fn read(
    elf: &Elf<'_>,
    btf: &Btf,
) -> Result<(Vec<ObjectMap>, AddressMap<'static>), Fault> {
    let mut found = Vec::new();
    let mut data = BySection::new();
    let mut total = 0;
    for (index, section) in elf.sections.iter().enumerate() {
        let Some(read_only) = data_section(&section.name, section.content) else { continue };
        if section.size == 0 {
            continue;
        }
        if elf.section_index(&section.name) != Some(index) {
            let cause = LoadCause::Damaged("two sections have this name".into());
            return Err(Fault::at_section(&section.name, 0, cause));
        }
        let initial = section.content()?.to_vec();
        total += section.size;
        limits::check("bytes of all data sections", total, limits::MAX_DATA_TOTAL_BYTES)?;
        data.insert(index, found.len());
        found.push(ObjectMap::data(&section.name, read_only, section.size, initial));
    }
    let maps_section = elf.section_index(".maps");
    let maps = maps::read(elf, btf, maps_section, &mut found)?;
    read_arena(elf, &mut found, &mut data)?;
    limits::check("maps", found.len() as u64, limits::MAX_MAPS)?;
    Ok((found, AddressMap { functions: FunctionIndex::EMPTY, data, maps, maps_section }))
}

/// Whether a data section is read-only; `None` for other sections. As in libbpf, the name decides.
fn data_section(name: &str, content: Content) -> Option<bool> {
    let is = |stem: &str| {
        name.strip_prefix(stem).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    match content {
        Content::Data if is(".data") => Some(false),
        Content::Data if is(".rodata") => Some(true),
        Content::Zeros if is(".bss") => Some(false),
        _ => None,
    }
}

/// Makes the variables of the arena the initial content of the arena map.
fn read_arena(
    elf: &Elf<'_>,
    maps: &mut [ObjectMap],
    data: &mut BySection<usize>,
) -> Result<(), Fault> {
    let Some(index) = elf.section_index(ARENA_SECTION) else { return Ok(()) };
    let section = &elf.sections[index];
    if section.size == 0 {
        return Ok(());
    }
    let Some(arena) = maps.iter().position(|map| map.def.kind == MapKind::Arena) else {
        let cause = LoadCause::BadMap("variables of an arena, but no arena map".into());
        return Err(Fault::at_section(&section.name, 0, cause));
    };
    let def = &mut maps[arena].def;
    let pages = section.size.div_ceil(ARENA_PAGE_BYTES);
    if pages > u64::from(def.max_entries) {
        let (needs, has) = (pages, def.max_entries);
        let text = format!("its variables need {needs} pages, `max_entries` is {has}");
        return Err(Fault::at_symbol(&def.name, LoadCause::BadMap(text)));
    }
    def.initial = section.content()?.to_vec();
    def.initial.resize(section.size as usize, 0);
    data.insert(index, arena);
    Ok(())
}
