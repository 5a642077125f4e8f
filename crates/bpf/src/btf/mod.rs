//! BTF, the type information of BPF objects (`Documentation/bpf/btf.rst` describes the format).

pub(crate) mod ext;
pub(crate) mod parse;

use std::collections::BTreeMap;
use std::ops::Bound;

/// Maximum nesting of types; deeper ones are treated as a cycle.
pub(crate) const MAX_TYPE_DEPTH: u32 = 64;

/// A type graph. Identifier 0 is `void`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Btf {
    types: Vec<Type>,
    by_name: BTreeMap<String, Vec<u32>>,
}

/// One type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Type {
    pub(crate) name: String,
    pub(crate) kind: Kind,
}

/// The kind of a type. A `u32` is the identifier of another type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Void,
    Int { size: u32, bits: u32, signed: bool, boolean: bool },
    Pointer(u32),
    Array { of: u32, count: u32 },
    Composite { union: bool, size: u32, members: Vec<Member> },
    Enum { size: u32, signed: bool, values: Vec<(String, i64)> },
    Forward,
    Typedef(u32),
    Volatile(u32),
    Const(u32),
    Restrict(u32),
    TypeTag(u32),
    Function { prototype: u32 },
    Prototype { returns: u32, parameters: Vec<u32> },
    Variable { of: u32 },
    Section { variables: Vec<SectionVariable> },
    Float { size: u32 },
    DeclTag { of: u32, component: i32 },
}

/// One member of a structure or union.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) of: u32,
    pub(crate) bit_offset: u32,
    /// Width of a bit field; 0 for an ordinary member.
    pub(crate) bits: u32,
}

/// One variable of a data section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SectionVariable {
    pub(crate) variable: u32,
    pub(crate) offset: u32,
    pub(crate) size: u32,
}

impl Btf {
    /// A graph that contains only `void`.
    pub(crate) fn empty() -> Self {
        Self {
            types: vec![Type { name: String::new(), kind: Kind::Void }],
            by_name: BTreeMap::new(),
        }
    }

    pub(crate) fn push(&mut self, ty: Type) -> u32 {
        let id = self.types.len() as u32;
        if !ty.name.is_empty() {
            self.by_name.entry(ty.name.clone()).or_default().push(id);
        }
        self.types.push(ty);
        id
    }

    /// Replaces a type with another of the same name.
    pub(crate) fn replace(&mut self, id: u32, ty: Type) {
        if let Some(slot) = self.types.get_mut(id as usize) {
            debug_assert_eq!(slot.name, ty.name, "a replaced type keeps its name");
            *slot = ty;
        }
    }

    pub(crate) fn len(&self) -> u32 {
        self.types.len() as u32
    }

    /// The type of an identifier; `void` if there is none.
    pub(crate) fn get(&self, id: u32) -> &Type {
        self.types.get(id as usize).unwrap_or(&self.types[0])
    }

    /// All types, with their identifiers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Type)> {
        self.types.iter().enumerate().map(|(id, ty)| (id as u32, ty))
    }

    /// Identifiers of the types of exactly this name, in the order of the file.
    pub(crate) fn named(&self, name: &str) -> impl Iterator<Item = u32> + '_ {
        self.by_name.get(name).into_iter().flatten().copied()
    }

    /// Names with a given prefix, sorted, with their types.
    pub(crate) fn names_from<'a>(
        &'a self,
        prefix: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a [u32])> + 'a {
        self.by_name
            .range::<str, _>((Bound::Included(prefix), Bound::Unbounded))
            .take_while(move |(name, _)| name.starts_with(prefix))
            .map(|(name, ids)| (name.as_str(), ids.as_slice()))
    }

    /// The type without qualifiers and tags; keeps typedefs.
    pub(crate) fn strip_qualifiers(&self, id: u32) -> u32 {
        self.strip(id, false)
    }

    /// The type without qualifiers, tags and typedefs.
    pub(crate) fn strip_all(&self, id: u32) -> u32 {
        self.strip(id, true)
    }

    /// The element type of a possibly nested array, or the type itself, without qualifiers and typedefs.
    pub(crate) fn strip_arrays(&self, id: u32) -> u32 {
        let mut id = self.strip_all(id);
        for _ in 0..MAX_TYPE_DEPTH {
            let Kind::Array { of, .. } = self.get(id).kind else { break };
            id = self.strip_all(of);
        }
        id
    }

    fn strip(&self, mut id: u32, typedefs: bool) -> u32 {
        for _ in 0..MAX_TYPE_DEPTH {
            id = match self.get(id).kind {
                Kind::Volatile(of) | Kind::Const(of) | Kind::Restrict(of) | Kind::TypeTag(of) => of,
                Kind::Typedef(of) if typedefs => of,
                _ => return id,
            };
        }
        0
    }

    /// Bytes of a type; `None` for types without a size, and for cycles.
    pub(crate) fn size_of(&self, id: u32) -> Option<u64> {
        let mut id = id;
        let mut times = 1u64;
        for _ in 0..MAX_TYPE_DEPTH {
            id = self.strip_all(id);
            let size = match &self.get(id).kind {
                Kind::Int { size, .. }
                | Kind::Composite { size, .. }
                | Kind::Enum { size, .. }
                | Kind::Float { size } => u64::from(*size),
                Kind::Pointer(_) => 8,
                Kind::Array { of, count } => {
                    times = times.checked_mul(u64::from(*count))?;
                    id = *of;
                    continue;
                }
                Kind::Variable { of } => {
                    id = *of;
                    continue;
                }
                _ => return None,
            };
            return size.checked_mul(times);
        }
        None
    }

    /// Alignment of a type in bytes by the rules of C.
    pub(crate) fn align_of(&self, id: u32) -> u32 {
        self.align_at(id, 0)
    }

    fn align_at(&self, id: u32, depth: u32) -> u32 {
        if depth > MAX_TYPE_DEPTH {
            return 1;
        }
        match &self.get(self.strip_all(id)).kind {
            Kind::Int { size, .. } | Kind::Enum { size, .. } | Kind::Float { size } => *size,
            Kind::Pointer(_) => 8,
            Kind::Array { of, .. } => self.align_at(*of, depth + 1),
            Kind::Composite { members, .. } => {
                let aligns = members.iter().map(|member| self.align_at(member.of, depth + 1));
                aligns.max().unwrap_or(1)
            }
            _ => 1,
        }
    }

    /// Byte offset and size of a member by its path through structures: `scx.slice`.
    pub(crate) fn member_on(&self, mut id: u32, path: &str) -> Option<(u32, u64)> {
        let mut bits = 0u32;
        for part in path.split('.') {
            let (offset, of) = self.member_at(id, part, 0)?;
            bits = bits.checked_add(offset)?;
            id = of;
        }
        Some((bits / 8, self.size_of(id)?))
    }

    /// Bit offset and type of a member by name; searches anonymous members, too.
    fn member_at(&self, id: u32, name: &str, depth: u32) -> Option<(u32, u32)> {
        let Kind::Composite { members, .. } = &self.get(self.strip_all(id)).kind else {
            return None;
        };
        if depth > MAX_TYPE_DEPTH {
            return None;
        }
        members.iter().find_map(|member| {
            if member.name == name {
                return Some((member.bit_offset, member.of));
            }
            if !member.name.is_empty() {
                return None;
            }
            let (offset, of) = self.member_at(member.of, name, depth + 1)?;
            Some((member.bit_offset.checked_add(offset)?, of))
        })
    }
}
