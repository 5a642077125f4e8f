//! The types of an object's values: members of structures, the values of maps, the arguments of programs.

use std::sync::Arc;

use super::globals::{GlobalType, type_of};
use crate::btf::{Btf, Kind, MAX_TYPE_DEPTH};
use crate::object::Object;

/// Maximum members that one type is searched for, those of anonymous structures and unions included.
const MEMBERS_MAX: u32 = 1 << 16;

/// A structure or union among the types of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeId(pub(super) u32);

/// The types of an object. A clone shares them.
#[derive(Clone, Debug)]
pub struct Types {
    btf: Arc<Btf>,
}

impl Default for Types {
    /// No types.
    fn default() -> Types {
        Types { btf: Arc::new(Btf::empty()) }
    }
}

/// One member of a structure or union.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeMember {
    /// Its name.
    pub name: String,
    /// Its bit offset in the structure.
    pub bit_offset: u64,
    /// Bits of a bit field; 0 for an ordinary member.
    pub bits: u32,
    /// Its size in bytes; of a bit field, of its declared type.
    pub size: u64,
    /// Its type.
    pub ty: GlobalType,
}

impl Types {
    /// The members of a structure or union in the order of the declaration; those of anonymous structures and unions
    /// in it stand in their place, as C names them.
    pub fn members(&self, of: TypeId) -> Vec<TypeMember> {
        let mut found = Vec::new();
        let mut left = MEMBERS_MAX;
        self.collect(of.0, 0, 0, &mut left, &mut found);
        found
    }

    /// Bytes of the structure of that name; `None`: there is none.
    pub fn size_of(&self, structure: &str) -> Option<u64> {
        let is_whole = |id: &u32| matches!(self.btf.get(*id).kind, Kind::Composite { .. });
        self.btf.named(structure).filter(is_whole).find_map(|id| self.btf.size_of(id))
    }

    fn collect(
        &self,
        id: u32,
        start: u64,
        depth: u32,
        left: &mut u32,
        found: &mut Vec<TypeMember>,
    ) {
        let Kind::Composite { members, .. } = &self.btf.get(self.btf.strip_all(id)).kind else {
            return;
        };
        for member in members {
            if *left == 0 || depth > MAX_TYPE_DEPTH {
                return;
            }
            *left -= 1;
            let bit_offset = start + u64::from(member.bit_offset);
            if member.name.is_empty() {
                self.collect(member.of, bit_offset, depth + 1, left, found);
                continue;
            }
            found.push(TypeMember {
                name: member.name.clone(),
                bit_offset,
                bits: member.bits,
                size: self.btf.size_of(member.of).unwrap_or(0),
                ty: type_of(&self.btf, member.of),
            });
        }
    }
}

impl Object {
    /// The types of its values.
    pub fn types(&self) -> Types {
        Types { btf: Arc::clone(&self.btf) }
    }

    /// The type of a map's values: an unsigned integer, if the object names none and they have the size of one.
    /// `None`: there is no such map.
    pub fn map_value(&self, map: &str) -> Option<GlobalType> {
        let map = self.maps.iter().find(|found| found.def.name == map)?;
        Some(match (map.value, map.def.value_size) {
            (Some(id), _) => type_of(&self.btf, id),
            (None, bytes @ (1 | 2 | 4 | 8)) => GlobalType::Int { bits: 8 * bytes, signed: false },
            _ => GlobalType::Other,
        })
    }

    /// The structure to which a program's first parameter points, and its size in bytes: what user space passes to a
    /// `SEC("syscall")` program. `None`: there is no such program, or its parameter is of another kind.
    pub fn argument_of(&self, program: &str) -> Option<(GlobalType, u64)> {
        let prototype = |id| match self.btf.get(id).kind {
            Kind::Function { prototype } => Some(prototype),
            _ => None,
        };
        let prototype = self.btf.named(program).find_map(prototype)?;
        let Kind::Prototype { parameters, .. } = &self.btf.get(prototype).kind else { return None };
        let first = self.btf.strip_all(*parameters.first()?);
        let Kind::Pointer(to) = self.btf.get(first).kind else { return None };
        match type_of(&self.btf, to) {
            ty @ GlobalType::Composite { .. } => Some((ty, self.btf.size_of(to)?)),
            _ => None,
        }
    }
}
