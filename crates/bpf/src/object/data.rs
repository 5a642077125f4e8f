//! Where data lies: which section is which map, and what an address in a section means.

use std::collections::BTreeMap;

use super::code::FunctionIndex;
use super::elf::{Content, Elf, Symbol};
use super::maps::{self, ObjectMap};
use super::{BySection, limits};
use crate::btf::{Btf, Kind};
use crate::error::{Fault, LoadCause};
use crate::{MapDef, MapKind};

/// Globals of the arena: clang puts variables of address space 1 here.
const ARENA_SECTION: &str = ".addr_space.1";

/// `max_entries` of an arena counts pages.
const ARENA_PAGE_BYTES: u64 = 4096;

/// What the sections of a file became.
#[derive(Debug)]
pub(crate) struct Places<'a> {
    pub(crate) functions: &'a FunctionIndex,
    /// The map that holds a data section.
    pub(crate) data: BySection<usize>,
    /// Maps by their offset in `.maps`.
    pub(crate) maps: BTreeMap<u64, usize>,
    pub(crate) maps_section: Option<usize>,
}

/// What lies at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Function(usize),
    Map(usize),
    Data { map: usize, offset: u64 },
}

impl Places<'_> {
    /// What lies `addend` bytes behind a symbol that the object defines in `section`.
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
            let text = format!("an address in section {name} (data lies in .data, .rodata, .bss)");
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
pub(crate) fn read(elf: &Elf<'_>, btf: &Btf) -> Result<(Vec<ObjectMap>, Places<'static>), Fault> {
    let mut found = Vec::new();
    let mut data = BySection::new();
    let mut total = 0;
    for (index, section) in elf.sections.iter().enumerate() {
        let Some(read_only) = data_section(&section.name, section.content) else { continue };
        if section.size == 0 {
            continue;
        }
        if elf.section_index(&section.name) != Some(index) {
            let cause = LoadCause::Damaged("there are two sections of this name".into());
            return Err(Fault::at_section(&section.name, 0, cause));
        }
        let initial = section.bytes_in_memory()?;
        total += section.size;
        limits::check("bytes of all data sections", total, limits::MAX_DATA_TOTAL_BYTES)?;
        data.insert(index, found.len());
        found.push(ObjectMap::supported(data_map(&section.name, read_only, initial)));
    }
    let maps_section = elf.section_index(".maps");
    let maps = maps::read(elf, btf, maps_section, &mut found)?;
    read_arena(elf, &mut found, &mut data)?;
    limits::check("maps", found.len() as u64, limits::MAX_MAPS)?;
    Ok((found, Places { functions: FunctionIndex::EMPTY, data, maps, maps_section }))
}

/// The map of a data section.
pub(crate) fn data_map(name: &str, read_only: bool, initial: Vec<u8>) -> MapDef {
    MapDef {
        name: name.to_owned(),
        kind: MapKind::Data { read_only },
        key_size: 4,
        value_size: initial.len() as u32,
        max_entries: 1,
        flags: 0,
        initial,
    }
}

/// Whether a section is data that a program uses, and then whether it is read-only: libbpf's rule, by name.
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

/// Variables of the arena become the first content of the one arena map.
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
        let text = format!("its variables need {needs} pages, `max_entries` says {has}");
        return Err(Fault::at_symbol(&def.name, LoadCause::BadMap(text)));
    }
    def.initial = section.bytes_in_memory()?;
    data.insert(index, arena);
    Ok(())
}

/// A variable with its place, as the type information says.
pub(crate) struct PlacedVariable<'a> {
    /// Identifier of the `Variable` type.
    pub(crate) id: u32,
    pub(crate) name: &'a str,
    /// The type of its value.
    pub(crate) of: u32,
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

/// The variables of a section in the order of the type information, each inside of the section. A symbol says where one
/// lies; without a symbol, the type information does.
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
                let cause = LoadCause::BadBtf("the variable lies outside of its section".into());
                return Err(Fault::at_symbol(&ty.name, cause));
            }
            placed.push(PlacedVariable { id: entry.variable, name: &ty.name, of, offset, size });
        }
    }
    Ok(placed)
}
