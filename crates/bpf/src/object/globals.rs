//! The global variables of an object (a scheduler's tunables, switches and statistics), from BTF.

use std::collections::BTreeMap;

use super::data::AddressMap;
use super::elf::Elf;
use super::maps::ObjectMap;
use super::types::TypeId;
use super::variables::variables;
use crate::btf::{Btf, Kind, MAX_TYPE_DEPTH};
use crate::error::Fault;
use crate::limits;
use crate::linked::MapKind;

/// One global variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Global {
    /// Its name.
    pub name: String,
    /// The data map that holds it: an index into [`Linked::maps`](crate::Linked::maps).
    pub map: usize,
    /// Its byte offset in the map's value.
    pub offset: u64,
    /// Its size in bytes.
    pub size: u64,
    /// Its type.
    pub ty: GlobalType,
    /// It is in `.rodata`: only user space can write it, before the program is loaded.
    pub read_only: bool,
    /// It is declared `volatile`. The compiler folds a plain `const` variable into the code, so that changing it has no
    /// effect.
    pub volatile: bool,
    /// The strings of its `btf_decl_tag` attributes, in the order of the declaration.
    pub tags: Vec<String>,
}

impl Global {
    /// Whether changing this variable has an effect.
    pub fn is_settable(&self) -> bool {
        !self.read_only || self.volatile
    }
}

/// The type of a global variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GlobalType {
    /// `bool`, one byte.
    Bool,
    /// An integer.
    Int {
        /// 8, 16, 32, 64 or 128.
        bits: u32,
        /// Whether it is signed.
        signed: bool,
    },
    /// An enumeration.
    Enum {
        /// Its tag; empty if it has none.
        name: String,
        /// 8, 16, 32 or 64.
        bits: u32,
        /// Whether a value is negative.
        signed: bool,
        /// Its constants in the order of the declaration.
        values: Vec<(String, i64)>,
    },
    /// An array.
    Array {
        /// The element's type.
        of: Box<GlobalType>,
        /// Bytes of an element.
        element_size: u64,
        /// Elements.
        count: u64,
        /// The elements are `char`.
        text: bool,
    },
    /// A structure or union.
    Composite {
        /// Its tag; empty if it has none.
        name: String,
        /// Whether it is a union.
        union: bool,
        /// The members as [`Types::members`](super::Types::members) takes them.
        id: TypeId,
    },
    /// A pointer.
    Pointer,
    /// A floating-point number, or a type without values: bytes.
    Other,
}

/// Reads the global variables of a file, sorted by map and offset.
pub(crate) fn read(
    elf: &Elf<'_>,
    btf: &Btf,
    addresses: &AddressMap<'_>,
    maps: &[ObjectMap],
) -> Result<Vec<Global>, Fault> {
    let mut tags = tags_by_variable(btf);
    let mut found = Vec::new();
    let mut constants = 0;
    for (section, map) in &addresses.data {
        let read_only = maps[*map].def.kind == MapKind::Data { read_only: true };
        for variable in variables(elf, btf, *section)? {
            limits::check("global variables", found.len() as u64 + 1, limits::MAX_GLOBALS)?;
            constants += constants_of(btf, variable.of);
            limits::check(
                "constants of global variables",
                constants,
                limits::MAX_GLOBAL_CONSTANTS,
            )?;
            found.push(Global {
                name: variable.name.to_owned(),
                map: *map,
                offset: variable.offset,
                size: variable.size,
                ty: type_of(btf, variable.of),
                read_only,
                volatile: is_volatile(btf, variable.of),
                tags: tags.remove(&variable.id).unwrap_or_default(),
            });
        }
    }
    found.sort_by(|a, b| (a.map, a.offset, &a.name).cmp(&(b.map, b.offset, &b.name)));
    Ok(found)
}

/// The declaration tags of whole variables, in the order of the type information.
fn tags_by_variable(btf: &Btf) -> BTreeMap<u32, Vec<String>> {
    let mut tags: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for (_, ty) in btf.iter() {
        if let Kind::DeclTag { of, component: -1 } = ty.kind {
            tags.entry(of).or_default().push(ty.name.clone());
        }
    }
    tags
}

/// Whether a variable, or the elements of an array, are `volatile`.
fn is_volatile(btf: &Btf, mut id: u32) -> bool {
    for _ in 0..MAX_TYPE_DEPTH {
        id = match btf.get(id).kind {
            Kind::Volatile(_) => return true,
            Kind::Const(of) | Kind::Restrict(of) | Kind::TypeTag(of) | Kind::Typedef(of) => of,
            Kind::Array { of, .. } => of,
            _ => return false,
        };
    }
    false
}

/// Constants of the enumeration that a variable is, or is an array of.
fn constants_of(btf: &Btf, id: u32) -> u64 {
    match &btf.get(btf.strip_arrays(id)).kind {
        Kind::Enum { values, .. } => values.len() as u64,
        _ => 0,
    }
}

/// Whether a type is `char`, which has the same encoding as a signed byte.
fn is_char(btf: &Btf, id: u32) -> bool {
    let ty = btf.get(btf.strip_qualifiers(id));
    ty.name == "char" && matches!(ty.kind, Kind::Int { size: 1, .. })
}

pub(super) fn type_of(btf: &Btf, id: u32) -> GlobalType {
    let ty = btf.get(btf.strip_all(id));
    match &ty.kind {
        Kind::Int { boolean: true, .. } => GlobalType::Bool,
        Kind::Int { size, signed, .. } => GlobalType::Int { bits: size * 8, signed: *signed },
        Kind::Enum { size, signed, values } => GlobalType::Enum {
            name: ty.name.clone(),
            bits: size * 8,
            signed: *signed,
            values: values.clone(),
        },
        // Type information refuses arrays that nest deeper than `MAX_TYPE_DEPTH`.
        Kind::Array { of, count } => GlobalType::Array {
            of: Box::new(type_of(btf, *of)),
            element_size: btf.size_of(*of).unwrap_or(0),
            count: u64::from(*count),
            text: is_char(btf, *of),
        },
        Kind::Composite { union, .. } => GlobalType::Composite {
            name: ty.name.clone(),
            union: *union,
            id: TypeId(btf.strip_all(id)),
        },
        Kind::Pointer(_) => GlobalType::Pointer,
        _ => GlobalType::Other,
    }
}
