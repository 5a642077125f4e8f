//! Map definitions: the variables of section `.maps`. Their types hold all attributes; their bytes are unused.

use std::collections::BTreeMap;

use super::elf::Elf;
use super::kptrs::kptrs;
use super::variables::{PlacedVariable, variables};
use crate::btf::{Btf, Kind, Member};
use crate::error::{Fault, LoadCause};
use crate::linked::{MapDef, MapKind};
use crate::region::PAGE;

/// Maximum elements of an array of maps.
const MAX_MAPS_IN_ARRAY: u32 = 1 << 16;

/// A map as the object declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObjectMap {
    pub(crate) def: MapDef,
    /// The BTF type of its values, if the object names one.
    pub(crate) value: Option<u32>,
}

impl ObjectMap {
    /// The map of a data section.
    pub(super) fn data(name: &str, read_only: bool, size: u64, initial: Vec<u8>) -> Self {
        let def = MapDef {
            name: name.to_owned(),
            kind: MapKind::Data { read_only },
            key_size: 4,
            value_size: size as u32,
            max_entries: 1,
            flags: 0,
            initial,
            kptrs: Vec::new(),
        };
        Self { def, value: None }
    }
}

/// Reads the maps of `.maps`, appends them to `found`, and returns their indices by offset in the section.
pub(crate) fn read(
    elf: &Elf<'_>,
    btf: &Btf,
    section: Option<usize>,
    found: &mut Vec<ObjectMap>,
) -> Result<BTreeMap<u64, usize>, Fault> {
    let mut by_offset = BTreeMap::new();
    if elf.section("maps").is_some_and(|section| section.size > 0) {
        let cause = LoadCause::BadMap("section `maps` holds definitions without types".into());
        return Err(Fault::at_section("maps", 0, cause));
    }
    let Some(section) = section else { return Ok(by_offset) };
    for variable in variables(elf, btf, section)? {
        let map = read_map(btf, variable.name, variable.of)
            .map_err(|cause| Fault::at_symbol(variable.name, cause))?;
        by_offset.insert(variable.offset, found.len());
        found.push(map);
    }
    for variable in variables(elf, btf, section)? {
        fill_array(elf, btf, section, &variable, &by_offset, found)
            .map_err(|cause| Fault::at_symbol(variable.name, cause))?;
    }
    Ok(by_offset)
}

/// Sets the initial elements of an array of maps from the pointers in its member `values`.
fn fill_array(
    elf: &Elf<'_>,
    btf: &Btf,
    section: usize,
    variable: &PlacedVariable<'_>,
    by_offset: &BTreeMap<u64, usize>,
    found: &mut [ObjectMap],
) -> Result<(), LoadCause> {
    let Some(map) = by_offset.get(&variable.offset).and_then(|at| found.get_mut(*at)) else {
        return Ok(());
    };
    if map.def.kind != MapKind::ArrayOfMaps {
        return Ok(());
    }
    map.def.initial = vec![0; 4 * map.def.max_entries as usize];
    let Kind::Composite { members, .. } = &btf.get(btf.strip_all(variable.of)).kind else {
        return Ok(());
    };
    let Some(values) = members.iter().find(|member| member.name == "values") else {
        return Ok(());
    };
    let start = variable.offset + u64::from(values.bit_offset / 8);
    let end = start + 8 * u64::from(map.def.max_entries);
    let relocations = elf.sections[section].relocations.iter();
    for relocation in relocations.filter(|found| (start..end).contains(&found.offset)) {
        let symbol = &elf.symbols[relocation.symbol];
        let inner = by_offset.get(&symbol.value).filter(|_| symbol.section == Some(section));
        let Some(inner) = inner else {
            let text = format!("`values` holds `{}`, which is not a map", symbol.name);
            return Err(LoadCause::BadMap(text));
        };
        let at = (relocation.offset - start) as usize / 8 * 4;
        map.def.initial[at..at + 4].copy_from_slice(&(*inner as u32 + 1).to_le_bytes());
    }
    Ok(())
}

fn read_map(btf: &Btf, name: &str, of: u32) -> Result<ObjectMap, LoadCause> {
    let Kind::Composite { members, .. } = &btf.get(btf.strip_all(of)).kind else {
        return Err(LoadCause::BadMap("it is not a structure".into()));
    };
    let (mut number, mut value) = (None, None);
    let mut def = MapDef {
        name: name.to_owned(),
        kind: MapKind::Array,
        key_size: 0,
        value_size: 0,
        max_entries: 0,
        flags: 0,
        initial: Vec::new(),
        kptrs: Vec::new(),
    };
    for member in members {
        match member.name.as_str() {
            "type" => number = Some(number_of(btf, member)?),
            "max_entries" => def.max_entries = number_of(btf, member)?,
            "map_flags" => def.flags = number_of(btf, member)?,
            "key_size" => def.key_size = number_of(btf, member)?,
            "value_size" => def.value_size = number_of(btf, member)?,
            "key" => def.key_size = size_of(btf, member)?,
            "value" => {
                def.value_size = size_of(btf, member)?;
                value = pointee(btf, member);
            }
            // `values` is read by `fill_array`; instances ignore the others.
            "values" | "numa_node" | "pinning" | "map_extra" => {}
            other => return Err(LoadCause::BadMap(format!("the attribute `{other}` is unknown"))),
        }
    }
    let number = number.ok_or_else(|| LoadCause::BadMap("it has no `type`".into()))?;
    def.kind = kind_of(number);
    def.kptrs = value.map_or_else(Vec::new, |value| kptrs(btf, value));
    if def.kind == MapKind::RingBuf {
        def.max_entries = ring_bytes(def.max_entries)?;
    }
    check(&def)?;
    Ok(ObjectMap { def, value })
}

/// `__uint(name, n)` is a pointer to an array of n elements; `__ulong(name, n)` is an enumeration of one constant.
fn number_of(btf: &Btf, member: &Member) -> Result<u32, LoadCause> {
    let wrong = || LoadCause::BadMap(format!("`{}` is not a __uint()", member.name));
    let number = match &btf.get(btf.strip_qualifiers(member.of)).kind {
        Kind::Pointer(to) => match btf.get(btf.strip_qualifiers(*to)).kind {
            Kind::Array { count, .. } => Some(count),
            _ => None,
        },
        Kind::Enum { values, .. } => {
            values.first().and_then(|(_, value)| u32::try_from(*value).ok())
        }
        _ => None,
    };
    number.ok_or_else(wrong)
}

/// The type that `__type(name, t)` points to.
fn pointee(btf: &Btf, member: &Member) -> Option<u32> {
    match btf.get(btf.strip_qualifiers(member.of)).kind {
        Kind::Pointer(to) => Some(to),
        _ => None,
    }
}

/// `__type(name, t)` is a pointer to t.
fn size_of(btf: &Btf, member: &Member) -> Result<u32, LoadCause> {
    let wrong =
        || LoadCause::BadMap(format!("`{}` is not a __type() of a known size", member.name));
    let to = pointee(btf, member).ok_or_else(wrong)?;
    btf.size_of(to).and_then(|size| u32::try_from(size).ok()).ok_or_else(wrong)
}

/// The supported types of `enum bpf_map_type`.
const KINDS: [(u32, MapKind); 13] = [
    (1, MapKind::Hash),
    (2, MapKind::Array),
    (4, MapKind::PerfEventArray),
    (5, MapKind::PerCpuHash),
    (6, MapKind::PerCpuArray),
    (9, MapKind::LruHash),
    (12, MapKind::ArrayOfMaps),
    (22, MapKind::Queue),
    (23, MapKind::Stack),
    (27, MapKind::RingBuf),
    (29, MapKind::TaskStorage),
    (32, MapKind::CgroupStorage),
    (33, MapKind::Arena),
];

fn kind_of(number: u32) -> MapKind {
    let known = KINDS.iter().find(|(known, _)| *known == number);
    known.map_or(MapKind::Foreign(number), |(_, kind)| *kind)
}

/// A ring buffer's size as libbpf rounds it up (`adjust_ringbuf_sz`): a power of two of whole pages.
fn ring_bytes(declared: u32) -> Result<u32, LoadCause> {
    let rounded = declared.max(PAGE as u32).checked_next_power_of_two();
    rounded.ok_or_else(|| LoadCause::BadMap(format!("a ring buffer of {declared} bytes")))
}

/// The UAPI's number of a kind; 0 for a data section.
pub(crate) fn number_of_kind(kind: MapKind) -> u32 {
    if let MapKind::Foreign(number) = kind {
        return number;
    }
    KINDS.iter().find(|(_, known)| *known == kind).map_or(0, |(number, _)| *number)
}

/// The kernel's requirements of each map type (`map_alloc_check`).
pub(super) fn check(def: &MapDef) -> Result<(), LoadCause> {
    let (key, value, entries) = (def.key_size, def.value_size, def.max_entries);
    let wrong = |text: &str| Err(LoadCause::BadMap(text.into()));
    match def.kind {
        MapKind::Array | MapKind::PerCpuArray | MapKind::ArrayOfMaps if key != 4 => {
            wrong("the key of an array has four bytes")
        }
        MapKind::TaskStorage | MapKind::CgroupStorage if key != 4 => {
            wrong("the key of task or cgroup storage is an `int`")
        }
        MapKind::Hash | MapKind::PerCpuHash | MapKind::LruHash if key == 0 => {
            wrong("a hash table needs a key")
        }
        MapKind::Queue | MapKind::Stack if key != 0 => wrong("a queue or stack has no key"),
        MapKind::RingBuf | MapKind::Arena | MapKind::PerfEventArray | MapKind::Foreign(_) => Ok(()),
        MapKind::ArrayOfMaps if entries > MAX_MAPS_IN_ARRAY => {
            wrong("an array of maps has at most 65,536 elements")
        }
        MapKind::ArrayOfMaps if entries > 0 => Ok(()),
        MapKind::TaskStorage | MapKind::CgroupStorage if value > 0 => Ok(()),
        _ if value == 0 => wrong("it needs a value"),
        _ if entries == 0 => wrong("it needs `max_entries`"),
        _ => Ok(()),
    }
}
