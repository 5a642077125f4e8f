//! Parses the `.BTF` section.

use super::{Btf, Kind, MAX_TYPE_DEPTH, Member, SectionVariable, Type};
use crate::error::{Fault, LoadCause};
use crate::limits::{self, MAX_TEXT_BYTES, TextBudget};

const MAGIC: u16 = 0xeb9f;
const HEADER_BYTES: usize = 24;
/// Bit of `info`: an enumeration is signed, or the members of a structure encode bit fields.
const KIND_FLAG: u32 = 1 << 31;

/// Reads little-endian words from a byte slice.
pub(crate) struct Reader<'d> {
    bytes: &'d [u8],
    at: usize,
    /// Offset of `bytes` in the section, for error messages.
    base: usize,
    section: &'static str,
}

impl<'d> Reader<'d> {
    pub(crate) fn new(section: &'static str, bytes: &'d [u8], base: usize) -> Self {
        Self { bytes, at: 0, base, section }
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'d [u8], Fault> {
        let end = self.at.checked_add(count).filter(|end| *end <= self.bytes.len());
        let Some(end) = end else {
            return Err(self.fault("it ends in the middle of an entry"));
        };
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Fault> {
        let word = self.take(4)?;
        Ok(u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
    }

    pub(crate) fn fault(&self, text: impl Into<String>) -> Fault {
        self.at(LoadCause::BadBtf(text.into()))
    }

    pub(crate) fn at(&self, cause: LoadCause) -> Fault {
        Fault::at_section(self.section, (self.base + self.at) as u64, cause)
    }
}

/// The string table.
#[derive(Debug)]
pub(crate) struct Strings<'d> {
    bytes: &'d [u8],
    budget: TextBudget,
}

impl<'d> Strings<'d> {
    /// The string at an offset.
    pub(crate) fn get(&self, offset: u32) -> Result<&'d str, LoadCause> {
        let bad =
            || LoadCause::BadBtf("a name is outside of the string table or is not UTF-8".into());
        let rest = self.bytes.get(offset as usize..).ok_or_else(bad)?;
        let window = &rest[..rest.len().min(MAX_TEXT_BYTES + 1)];
        let Some(end) = window.iter().position(|byte| *byte == 0) else {
            self.budget.take(window.len())?;
            return Err(bad());
        };
        self.budget.take(end)?;
        std::str::from_utf8(&rest[..end]).map_err(|_| bad())
    }
}

/// Bytes `offset..offset + length` of a section after its header.
pub(crate) fn part<'d>(
    section: &'static str,
    bytes: &'d [u8],
    header: u32,
    offset: u32,
    length: u32,
) -> Result<(&'d [u8], usize), Fault> {
    let start = header as usize + offset as usize;
    let found = bytes.get(start..start + length as usize);
    let cause = || LoadCause::BadBtf("a part of it is outside of the section".into());
    found.map(|part| (part, start)).ok_or_else(|| Fault::at_section(section, 0, cause()))
}

/// Reads the common start of both sections' headers: magic, version, flags and header length. Returns the length.
pub(crate) fn read_preamble(reader: &mut Reader<'_>) -> Result<u32, Fault> {
    let first = reader.u32()?;
    if first as u16 == MAGIC.swap_bytes() {
        return Err(reader.fault("it is big-endian"));
    }
    if first as u16 != MAGIC {
        return Err(reader.fault("it does not begin with the BTF magic"));
    }
    if first >> 16 & 0xff != 1 {
        return Err(reader.fault(format!("version {} is not known", first >> 16 & 0xff)));
    }
    reader.u32()
}

/// Parses a `.BTF` section.
pub(crate) fn parse(bytes: &[u8]) -> Result<(Btf, Strings<'_>), Fault> {
    let mut reader = Reader::new(".BTF", bytes, 0);
    let header = read_preamble(&mut reader)?;
    if (header as usize) < HEADER_BYTES {
        return Err(reader.fault("its header is too short"));
    }
    let (type_offset, type_length) = (reader.u32()?, reader.u32()?);
    let (string_offset, string_length) = (reader.u32()?, reader.u32()?);
    let (types, base) = part(".BTF", bytes, header, type_offset, type_length)?;
    let (strings, _) = part(".BTF", bytes, header, string_offset, string_length)?;
    let strings = Strings { bytes: strings, budget: TextBudget::new() };
    let mut reader = Reader::new(".BTF", types, base);
    let mut btf = Btf::empty();
    while !reader.is_at_end() {
        limits::check("types", u64::from(btf.len()), limits::MAX_TYPES)?;
        let ty = read_type(&mut reader, &strings)?;
        btf.push(ty);
    }
    check(&btf)?;
    Ok((btf, strings))
}

fn read_type(reader: &mut Reader<'_>, strings: &Strings<'_>) -> Result<Type, Fault> {
    let (name_offset, info, word) = (reader.u32()?, reader.u32()?, reader.u32()?);
    let name = strings.get(name_offset).map_err(|cause| reader.at(cause))?;
    let count = (info & 0xffff) as usize;
    let flag = info & KIND_FLAG != 0;
    let kind = match info >> 24 & 0x1f {
        1 => read_int(reader, word)?,
        2 => Kind::Pointer(word),
        3 => {
            let (of, _index, count) = (reader.u32()?, reader.u32()?, reader.u32()?);
            Kind::Array { of, count }
        }
        number @ (4 | 5) => {
            let members = read_members(reader, strings, count, flag)?;
            Kind::Composite { union: number == 5, size: word, members }
        }
        number @ (6 | 19) => read_enum(reader, strings, count, flag, word, number == 19)?,
        7 => Kind::Forward,
        8 => Kind::Typedef(word),
        9 => Kind::Volatile(word),
        10 => Kind::Const(word),
        11 => Kind::Restrict(word),
        12 => Kind::Function { prototype: word },
        13 => {
            let mut parameters = Vec::with_capacity(count);
            for _ in 0..count {
                let _name = reader.u32()?;
                parameters.push(reader.u32()?);
            }
            Kind::Prototype { returns: word, parameters }
        }
        14 => {
            let _linkage = reader.u32()?;
            Kind::Variable { of: word }
        }
        15 => read_section(reader, count)?,
        16 => Kind::Float { size: word },
        17 => Kind::DeclTag { of: word, component: reader.u32()? as i32 },
        18 => Kind::TypeTag(word),
        number => return Err(reader.fault(format!("kind {number} of a type is not known"))),
    };
    Ok(Type { name: name.to_owned(), kind })
}

fn read_int(reader: &mut Reader<'_>, size: u32) -> Result<Kind, Fault> {
    let encoding = reader.u32()?;
    if !matches!(size, 1 | 2 | 4 | 8 | 16) {
        return Err(reader.fault(format!("an integer of {size} bytes")));
    }
    let flags = encoding >> 24 & 0xf;
    Ok(Kind::Int { size, bits: encoding & 0xff, signed: flags & 1 != 0, boolean: flags & 4 != 0 })
}

fn read_name(reader: &mut Reader<'_>, strings: &Strings<'_>) -> Result<String, Fault> {
    let offset = reader.u32()?;
    strings.get(offset).map(str::to_owned).map_err(|cause| reader.at(cause))
}

fn read_members(
    reader: &mut Reader<'_>,
    strings: &Strings<'_>,
    count: usize,
    bit_fields: bool,
) -> Result<Vec<Member>, Fault> {
    let mut members = Vec::with_capacity(count);
    for _ in 0..count {
        let name = read_name(reader, strings)?;
        let (of, offset) = (reader.u32()?, reader.u32()?);
        let (bit_offset, bits) =
            if bit_fields { (offset & 0xff_ffff, offset >> 24) } else { (offset, 0) };
        members.push(Member { name, of, bit_offset, bits });
    }
    Ok(members)
}

fn read_enum(
    reader: &mut Reader<'_>,
    strings: &Strings<'_>,
    count: usize,
    signed: bool,
    size: u32,
    is_64_bit: bool,
) -> Result<Kind, Fault> {
    let mut values = Vec::with_capacity(count);
    for _ in 0..count {
        let name = read_name(reader, strings)?;
        let low = reader.u32()?;
        let value = match (is_64_bit, signed) {
            (true, _) => (u64::from(reader.u32()?) << 32 | u64::from(low)) as i64,
            (false, true) => i64::from(low as i32),
            (false, false) => i64::from(low),
        };
        values.push((name, value));
    }
    if !matches!(size, 1 | 2 | 4 | 8) {
        return Err(reader.fault(format!("an enumeration of {size} bytes")));
    }
    Ok(Kind::Enum { size, signed, values })
}

fn read_section(reader: &mut Reader<'_>, count: usize) -> Result<Kind, Fault> {
    let mut variables = Vec::with_capacity(count);
    for _ in 0..count {
        let (variable, offset, size) = (reader.u32()?, reader.u32()?, reader.u32()?);
        variables.push(SectionVariable { variable, offset, size });
    }
    Ok(Kind::Section { variables })
}

/// Checks that all referenced types exist and that no type contains itself.
fn check(btf: &Btf) -> Result<(), Fault> {
    for (id, ty) in btf.iter() {
        for referred in references(&ty.kind) {
            if referred >= btf.len() {
                return Err(bad(
                    id,
                    ty,
                    format!("refers to type {referred}, which does not exist"),
                ));
            }
        }
    }
    let mut depths = vec![None; btf.len() as usize];
    for (id, ty) in btf.iter() {
        if depth_of(btf, id, &mut depths, 0).is_none() {
            return Err(bad(id, ty, "contains itself, or nests too deep".into()));
        }
    }
    Ok(())
}

fn bad(id: u32, ty: &Type, what: String) -> Fault {
    let name = if ty.name.is_empty() { "anonymous" } else { &ty.name };
    LoadCause::BadBtf(format!("type {id} ({name}) {what}")).into()
}

fn references(kind: &Kind) -> Vec<u32> {
    match kind {
        Kind::Pointer(of) | Kind::DeclTag { of, .. } => vec![*of],
        Kind::Function { prototype } => vec![*prototype],
        Kind::Prototype { returns, parameters } => {
            parameters.iter().copied().chain([*returns]).collect()
        }
        Kind::Section { variables } => variables.iter().map(|entry| entry.variable).collect(),
        other => contained(other),
    }
}

/// The types that a type contains or qualifies. These references must not form a cycle.
fn contained(kind: &Kind) -> Vec<u32> {
    match kind {
        Kind::Array { of, .. }
        | Kind::Typedef(of)
        | Kind::Volatile(of)
        | Kind::Const(of)
        | Kind::Restrict(of)
        | Kind::TypeTag(of)
        | Kind::Variable { of } => vec![*of],
        Kind::Composite { members, .. } => members.iter().map(|member| member.of).collect(),
        _ => Vec::new(),
    }
}

/// The nesting depth of a type; `None` above [`MAX_TYPE_DEPTH`], hence for a cycle. Visits each type once.
fn depth_of(btf: &Btf, id: u32, depths: &mut [Option<u32>], level: u32) -> Option<u32> {
    if let Some(depth) = depths[id as usize] {
        return (level + depth <= MAX_TYPE_DEPTH).then_some(depth);
    }
    if level > MAX_TYPE_DEPTH {
        return None;
    }
    let mut depth = 0;
    for inner in contained(&btf.get(id).kind) {
        depth = depth.max(depth_of(btf, inner, depths, level + 1)? + 1);
    }
    depths[id as usize] = Some(depth);
    Some(depth)
}
