//! Reading the `.BTF.ext` section: CO-RE relocations and source lines.

use super::parse::{Reader, Strings, part, read_preamble};
use crate::error::Fault;

/// One CO-RE relocation (`struct bpf_core_relo` of the UAPI).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CoreRelocation {
    /// Byte offset of the instruction in its section.
    pub(crate) offset: u32,
    /// The type from which the access starts, in the object's own type information.
    pub(crate) root: u32,
    /// Indices of array elements, members or constants, from the root on.
    pub(crate) access: Vec<u32>,
    /// `enum bpf_core_relo_kind`.
    pub(crate) kind: u32,
}

/// A record of one section.
pub(crate) type OfSection<T> = Vec<(String, Vec<T>)>;

/// Indices of an access string at most: libbpf's `BPF_CORE_SPEC_MAX_LEN`.
const MAX_ACCESS: usize = 64;
/// Bytes of the header that has the CO-RE part.
const HEADER_WITH_CORE_BYTES: u32 = 32;

/// Reads the CO-RE relocations, by section.
pub(crate) fn parse(
    bytes: &[u8],
    strings: Strings<'_>,
) -> Result<OfSection<CoreRelocation>, Fault> {
    let mut reader = Reader::new(".BTF.ext", bytes, 0);
    let header = read_preamble(&mut reader)?;
    if header < HEADER_WITH_CORE_BYTES {
        return Ok(Vec::new());
    }
    let (_function_info, _line_info) = (reader.take(8)?, reader.take(8)?);
    let (offset, length) = (reader.u32()?, reader.u32()?);
    if length == 0 {
        return Ok(Vec::new());
    }
    let (records, base) = part(".BTF.ext", bytes, header, offset, length)?;
    let mut reader = Reader::new(".BTF.ext", records, base);
    let record_bytes = reader.u32()?;
    if !(16..=256).contains(&record_bytes) {
        return Err(reader.fault(format!("relocations of {record_bytes} bytes each")));
    }
    let mut found = Vec::new();
    while !reader.is_at_end() {
        let (name, count) = (reader.u32()?, reader.u32()?);
        let Some(section) = strings.get(name) else {
            return Err(reader.fault("a section's name lies outside of the strings"));
        };
        let mut relocations = Vec::new();
        for _ in 0..count {
            relocations.push(read_relocation(&mut reader, strings, record_bytes)?);
        }
        found.push((section.to_owned(), relocations));
    }
    Ok(found)
}

fn read_relocation(
    reader: &mut Reader<'_>,
    strings: Strings<'_>,
    record_bytes: u32,
) -> Result<CoreRelocation, Fault> {
    let (offset, root, access, kind) = (reader.u32()?, reader.u32()?, reader.u32()?, reader.u32()?);
    reader.take(record_bytes as usize - 16)?;
    let access = strings.get(access).and_then(parse_access);
    let Some(access) = access else {
        return Err(reader.fault("a relocation's access string is damaged"));
    };
    Ok(CoreRelocation { offset, root, access, kind })
}

/// `"0:1:2"` → `[0, 1, 2]`.
fn parse_access(text: &str) -> Option<Vec<u32>> {
    let indices: Vec<u32> = text
        .split(':')
        .take(MAX_ACCESS + 1)
        .map(|index| index.parse().ok())
        .collect::<Option<_>>()?;
    (indices.len() <= MAX_ACCESS).then_some(indices)
}
