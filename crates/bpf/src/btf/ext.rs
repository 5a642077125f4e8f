//! Parses the `.BTF.ext` section: CO-RE relocations and source lines.

use super::parse::{Reader, Strings, part, read_preamble};
use crate::error::{Fault, LoadCause};

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

/// Records by section name.
pub(crate) type OfSection<T> = Vec<(String, Vec<T>)>;

/// Maximum indices of an access string: libbpf's `BPF_CORE_SPEC_MAX_LEN`.
const MAX_ACCESS: usize = 64;
/// Bytes of a header that describes CO-RE relocations.
const HEADER_WITH_CORE_BYTES: u32 = 32;
/// Bytes of a record that this parser reads, and the maximum.
const RECORD_BYTES: u32 = 16;
const MAX_RECORD_BYTES: u32 = 256;
/// The shift of the line number in a word; the column is below it.
const LINE_SHIFT: u32 = 10;

/// The source line of an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LineRecord {
    /// Byte offset of the instruction in its section.
    pub(crate) offset: u32,
    pub(crate) file: String,
    pub(crate) line: u32,
    pub(crate) text: String,
}

/// The content of `.BTF.ext`.
#[derive(Debug, Default)]
pub(crate) struct Extension {
    pub(crate) core: OfSection<CoreRelocation>,
    pub(crate) lines: OfSection<LineRecord>,
}

/// Parses a `.BTF.ext` section.
pub(crate) fn parse(bytes: &[u8], strings: &Strings<'_>) -> Result<Extension, Fault> {
    let mut reader = Reader::new(".BTF.ext", bytes, 0);
    let header = read_preamble(&mut reader)?;
    let _function_info = reader.take(8)?;
    let lines = (reader.u32()?, reader.u32()?);
    let core = match header {
        HEADER_WITH_CORE_BYTES.. => (reader.u32()?, reader.u32()?),
        _ => (0, 0),
    };
    let table = Table { bytes, header, strings };
    Ok(Extension {
        core: table.read(core, |words| {
            let access = parse_access(strings.get(words[2])?)?;
            Ok(CoreRelocation { offset: words[0], root: words[1], access, kind: words[3] })
        })?,
        lines: table.read(lines, |words| {
            let file = strings.get(words[1])?.to_owned();
            let text = strings.get(words[2])?.trim().to_owned();
            Ok(LineRecord { offset: words[0], file, line: words[3] >> LINE_SHIFT, text })
        })?,
    })
}

/// Parses one table: records of four words, or more whose rest is ignored, by code section.
struct Table<'d> {
    bytes: &'d [u8],
    header: u32,
    strings: &'d Strings<'d>,
}

impl Table<'_> {
    fn read<T>(
        &self,
        (offset, length): (u32, u32),
        decode: impl Fn([u32; 4]) -> Result<T, LoadCause>,
    ) -> Result<OfSection<T>, Fault> {
        if length == 0 {
            return Ok(Vec::new());
        }
        let (records, base) = part(".BTF.ext", self.bytes, self.header, offset, length)?;
        let mut reader = Reader::new(".BTF.ext", records, base);
        let record_bytes = reader.u32()?;
        if !(RECORD_BYTES..=MAX_RECORD_BYTES).contains(&record_bytes) {
            return Err(reader.fault(format!("records of {record_bytes} bytes each")));
        }
        let mut found = Vec::new();
        while !reader.is_at_end() {
            let (name, count) = (reader.u32()?, reader.u32()?);
            let section = self.strings.get(name).map_err(|cause| reader.at(cause))?;
            let mut decoded = Vec::new();
            for _ in 0..count {
                let words = [reader.u32()?, reader.u32()?, reader.u32()?, reader.u32()?];
                reader.take((record_bytes - RECORD_BYTES) as usize)?;
                decoded.push(decode(words).map_err(|cause| reader.at(cause))?);
            }
            found.push((section.to_owned(), decoded));
        }
        Ok(found)
    }
}

/// `"0:1:2"` → `[0, 1, 2]`.
fn parse_access(text: &str) -> Result<Vec<u32>, LoadCause> {
    let indices: Option<Vec<u32>> =
        text.split(':').take(MAX_ACCESS + 1).map(|index| index.parse().ok()).collect();
    let indices = indices.filter(|indices| indices.len() <= MAX_ACCESS);
    indices.ok_or_else(|| LoadCause::BadBtf(format!("`{text}` is no access")))
}
