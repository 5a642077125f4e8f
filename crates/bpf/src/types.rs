//! The types of the kernel that an object is linked against, for CO-RE relocations.

use crate::btf::{Btf, Kind, Member, Type, parse};
use crate::error::LoadError;

/// A type in a [`TargetTypes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeRef(pub(crate) u32);

/// One member of a structure or union, for [`TargetTypes::structure`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    name: &'a str,
    bit_offset: u32,
    bits: u32,
    ty: TypeRef,
}

impl<'a> Field<'a> {
    /// A member at a byte offset. An empty name makes an anonymous structure or union.
    pub fn at(name: &'a str, byte_offset: u32, ty: TypeRef) -> Self {
        Self { name, bit_offset: byte_offset.saturating_mul(8), bits: 0, ty }
    }

    /// Its name; empty for an anonymous structure or union.
    pub fn name(&self) -> &str {
        self.name
    }

    /// A bit field of `bits` bits at bit `bit_offset` of the structure.
    pub fn bits(name: &'a str, bit_offset: u32, bits: u32, ty: TypeRef) -> Self {
        Self { name, bit_offset, bits, ty }
    }
}

/// The types of the kernel that an object is linked against.
///
/// A builder: add the types of members before the structures. [`TargetTypes::declare`] declares the target of a
/// pointer in advance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetTypes {
    pub(crate) btf: Btf,
}

impl Default for TargetTypes {
    fn default() -> Self {
        Self::new()
    }
}

impl TargetTypes {
    /// A kernel without types.
    pub fn new() -> Self {
        Self { btf: Btf::empty() }
    }

    /// The types of a real kernel: the bytes of its `/sys/kernel/btf/vmlinux`. `name` is the file name in errors.
    ///
    /// # Errors
    /// The bytes are not valid BTF.
    pub fn from_btf(name: &str, bytes: &[u8]) -> Result<Self, LoadError> {
        match parse::parse(bytes) {
            Ok((btf, _)) => Ok(Self { btf }),
            Err(fault) => Err(fault.in_file(name)),
        }
    }

    fn add(&mut self, name: &str, kind: Kind) -> TypeRef {
        TypeRef(self.btf.push(Type { name: name.into(), kind }))
    }

    /// An unsigned integer of `size` bytes.
    pub fn unsigned(&mut self, name: &str, size: u32) -> TypeRef {
        self.integer(name, size, false)
    }

    /// A signed integer of `size` bytes.
    pub fn signed(&mut self, name: &str, size: u32) -> TypeRef {
        self.integer(name, size, true)
    }

    fn integer(&mut self, name: &str, size: u32, signed: bool) -> TypeRef {
        let bits = size.saturating_mul(8);
        self.add(name, Kind::Int { size, bits, signed, boolean: false })
    }

    /// The one-byte `bool` (`_Bool`).
    pub fn boolean(&mut self) -> TypeRef {
        self.add("_Bool", Kind::Int { size: 1, bits: 8, signed: false, boolean: true })
    }

    /// `to *`.
    pub fn pointer(&mut self, to: TypeRef) -> TypeRef {
        self.add("", Kind::Pointer(to.0))
    }

    /// `void *`.
    pub fn void_pointer(&mut self) -> TypeRef {
        self.add("", Kind::Pointer(0))
    }

    /// `of[count]`.
    pub fn array(&mut self, of: TypeRef, count: u32) -> TypeRef {
        self.add("", Kind::Array { of: of.0, count })
    }

    /// `typedef of name`.
    pub fn typedef(&mut self, name: &str, of: TypeRef) -> TypeRef {
        self.add(name, Kind::Typedef(of.0))
    }

    /// Declares `struct name;` as the target of pointers. [`TargetTypes::structure`] of the same name completes it.
    pub fn declare(&mut self, name: &str) -> TypeRef {
        match self.find_composite(name) {
            Some(id) => TypeRef(id),
            None => self.add(name, Kind::Forward),
        }
    }

    /// `struct name` of `size` bytes with its members at stated offsets.
    pub fn structure(&mut self, name: &str, size: u32, fields: &[Field<'_>]) -> TypeRef {
        self.composite(name, false, size, fields)
    }

    /// `union name` of `size` bytes.
    pub fn union(&mut self, name: &str, size: u32, fields: &[Field<'_>]) -> TypeRef {
        self.composite(name, true, size, fields)
    }

    /// `struct name` with its members laid out in order by the rules of C on a 64-bit machine.
    pub fn structure_in_order(&mut self, name: &str, fields: &[(&str, TypeRef)]) -> TypeRef {
        let mut offset = 0u32;
        let mut align = 1u32;
        let mut placed = Vec::with_capacity(fields.len());
        for (name, ty) in fields {
            let field_align = self.btf.align_of(ty.0).max(1);
            offset = offset.next_multiple_of(field_align);
            placed.push(Field::at(name, offset, *ty));
            offset = offset.saturating_add(self.size_of_type(*ty));
            align = align.max(field_align);
        }
        self.structure(name, offset.next_multiple_of(align), &placed)
    }

    fn composite(&mut self, name: &str, union: bool, size: u32, fields: &[Field<'_>]) -> TypeRef {
        let members = fields
            .iter()
            .map(|field| Member {
                name: field.name.into(),
                of: field.ty.0,
                bit_offset: field.bit_offset,
                bits: field.bits,
            })
            .collect();
        let kind = Kind::Composite { union, size, members };
        match self.find_forward(name) {
            Some(id) => {
                self.btf.replace(id, Type { name: name.into(), kind });
                TypeRef(id)
            }
            None => self.add(name, kind),
        }
    }

    /// `enum name` of `size` bytes. The constants' values are sign-extended if `signed`.
    pub fn enumeration(
        &mut self,
        name: &str,
        size: u32,
        signed: bool,
        values: &[(&str, i64)],
    ) -> TypeRef {
        let values = values.iter().map(|(name, value)| ((*name).into(), *value)).collect();
        self.add(name, Kind::Enum { size, signed, values })
    }

    fn find_composite(&self, name: &str) -> Option<u32> {
        self.btf
            .named(name)
            .find(|id| matches!(self.btf.get(*id).kind, Kind::Forward | Kind::Composite { .. }))
    }

    fn find_forward(&self, name: &str) -> Option<u32> {
        if name.is_empty() {
            return None;
        }
        self.btf.named(name).find(|id| matches!(self.btf.get(*id).kind, Kind::Forward))
    }

    /// Bytes of a type; 0 for a declared structure that was never completed.
    pub fn size_of_type(&self, ty: TypeRef) -> u32 {
        self.btf.size_of(ty.0).and_then(|size| u32::try_from(size).ok()).unwrap_or(0)
    }

    /// Bytes of the structure, union, enumeration, typedef or integer `name`.
    pub fn size_of(&self, name: &str) -> Option<u32> {
        let id = self.btf.named(name).next()?;
        self.btf.size_of(id).and_then(|size| u32::try_from(size).ok())
    }

    /// Byte offset and size of a member: `offset_of("task_struct", "scx.slice")`. Members of anonymous structures are
    /// found by their own name, as in C.
    pub fn offset_of(&self, structure: &str, path: &str) -> Option<(u32, u32)> {
        let (offset, size) = self.btf.member_on(self.find_composite(structure)?, path)?;
        Some((offset, u32::try_from(size).ok()?))
    }
}
