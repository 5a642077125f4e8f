//! Additions of Android's simpleperf to the format: records of its own among the others, which may be longer than 64
//! KiB, and the kernel's descriptions of events in one of them instead of a feature.
//!
//! ```text
//! type(4), at least 32768; upper half of the size(2); lower half of the size(2), with these eight bytes
//!   tracing data (32777): size(4), the descriptions
//! ```

use std::io::{Read, Seek, SeekFrom};

use super::super::binary::Endian;
use super::chunks::RECORD_HEAD_BYTES;
use super::file::Sections;

/// Records of simpleperf begin here; so many kinds are examined.
const OWN: u32 = 1 << 15;
const OWN_KINDS: u32 = 32;
const TRACING_DATA: u32 = OWN + 9;
/// Records at the beginning of the data among which the descriptions are looked for.
const RECORDS_MAX: u32 = 1 << 12;
/// Bytes of the descriptions.
const TRACING_DATA_BYTES_MAX: u64 = 64 << 20;

/// The size of a record of simpleperf's own, bytes with its head; `None` for any other.
pub(super) fn own_size(kind: u32, head: &[u8], endian: Endian) -> Option<u64> {
    let [upper, lower] = [4, 6].map(|at| endian.u16(head, at).map(u64::from));
    (OWN..OWN + OWN_KINDS).contains(&kind).then_some(upper? << 16 | lower?)
}

/// Finds the descriptions of events in the data.
pub(super) fn tracing_data(input: &mut (impl Read + Seek), sections: &Sections) -> Option<Vec<u8>> {
    let endian = sections.endian;
    let mut at = sections.data_at;
    for _ in 0..RECORDS_MAX {
        input.seek(SeekFrom::Start(at)).ok()?;
        let mut head = [0; RECORD_HEAD_BYTES + 4];
        input.read_exact(&mut head).ok()?;
        let kind = endian.u32(&head, 0)?;
        if kind == TRACING_DATA {
            let size = u64::from(endian.u32(&head, RECORD_HEAD_BYTES)?);
            let mut described = Vec::new();
            input.take(size.min(TRACING_DATA_BYTES_MAX)).read_to_end(&mut described).ok()?;
            return Some(described);
        }
        let size = own_size(kind, &head, endian).or(endian.u16(&head, 6).map(u64::from))?;
        at = at.checked_add(size).filter(|_| size >= RECORD_HEAD_BYTES as u64)?;
    }
    None
}
