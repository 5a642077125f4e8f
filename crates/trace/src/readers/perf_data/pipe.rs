//! A `perf.data` that perf wrote into a pipe (`perf record -o -`): attributes, features and the kernel's descriptions
//! are records among the others. They are put where a file has them, so that one reader reads both.
//!
//! ```text
//! "PERFILE2" 16(8)
//! records: type(4) misc(2) size(2, with these eight bytes) …
//!   attribute (64):    perf_event_attr, then its event numbers
//!   tracing data (66): size(4); the descriptions follow the record, padded to eight bytes
//!   feature (80):      its number(8), then what a file has of it
//! ```

use std::collections::BTreeMap;

use super::super::binary::{Endian, Why};

/// The size of the head, by which this form is recognised.
pub(super) const HEAD_BYTES: u64 = 16;

const RECORD_ATTRIBUTE: u32 = 64;
const RECORD_TRACING_DATA: u32 = 66;
const RECORD_FEATURE: u32 = 80;
const FEATURE_TRACING_DATA: u64 = 1;
const FEATURES: u64 = 256;
const FILE_HEAD_BYTES: usize = 104;
/// Attributes are given this size: the parts that are used lie in it.
const ATTRIBUTE_BYTES: usize = 64;

/// The parts of the input.
#[derive(Default)]
struct Parts<'a> {
    /// Attributes with their event numbers.
    attributes: Vec<(&'a [u8], &'a [u8])>,
    features: BTreeMap<u64, &'a [u8]>,
    /// All other records.
    data: Vec<u8>,
}

/// Makes a file of the bytes of a pipe.
pub(super) fn to_file(bytes: &[u8], endian: Endian) -> Result<Vec<u8>, Why> {
    let parts = parts(bytes, endian)?;
    if parts.attributes.is_empty() {
        return Err("it was written into a pipe, and holds no attributes".to_owned());
    }
    let number = |value: u64| match endian {
        Endian::Little => value.to_le_bytes(),
        Endian::Big => value.to_be_bytes(),
    };
    let each = ATTRIBUTE_BYTES + 16;
    let numbers_at = FILE_HEAD_BYTES + each * parts.attributes.len();
    let numbers_bytes: usize = parts.attributes.iter().map(|(_, numbers)| numbers.len()).sum();
    let data_at = numbers_at + numbers_bytes;
    let mut out = bytes[..8].to_vec();
    let attributes_bytes = each * parts.attributes.len();
    let (head, data) = (FILE_HEAD_BYTES as u64, parts.data.len() as u64);
    for word in [head, each as u64, head, attributes_bytes as u64, data_at as u64, data, 0, 0] {
        out.extend(number(word));
    }
    for first in (0..FEATURES).step_by(64) {
        let set = parts.features.keys().filter(|bit| (first..first + 64).contains(bit));
        out.extend(number(set.fold(0, |word, bit| word | 1 << (bit - first))));
    }
    let mut at = numbers_at;
    for (attribute, numbers) in &parts.attributes {
        out.extend(*attribute);
        out.extend([number(at as u64), number(numbers.len() as u64)].concat());
        at += numbers.len();
    }
    parts.attributes.iter().for_each(|(_, numbers)| out.extend(*numbers));
    out.extend(&parts.data);
    let mut at = out.len() + 16 * parts.features.len();
    for feature in parts.features.values() {
        out.extend([number(at as u64), number(feature.len() as u64)].concat());
        at += feature.len();
    }
    parts.features.values().for_each(|feature| out.extend(*feature));
    Ok(out)
}

fn parts(bytes: &[u8], endian: Endian) -> Result<Parts<'_>, Why> {
    let mut parts = Parts::default();
    let mut at = HEAD_BYTES as usize;
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let head = endian.u32(rest, 0).zip(endian.u16(rest, 6));
        let whole = head.and_then(|(kind, size)| {
            let size = usize::from(size);
            Some((kind, rest.get(8..size).filter(|_| size >= 8)?))
        });
        let Some((kind, body)) = whole else {
            // The reader of records says what is cut off.
            parts.data.extend(rest);
            break;
        };
        let record_bytes = 8 + body.len();
        at += record_bytes;
        match kind {
            RECORD_ATTRIBUTE => {
                let size = endian.u32(body, 4).unwrap_or(0) as usize;
                let split = body.split_at_checked(size).filter(|_| size >= ATTRIBUTE_BYTES);
                let (attribute, numbers) =
                    split.ok_or_else(|| format!("byte {at}: an attribute is cut off"))?;
                parts.attributes.push((&attribute[..ATTRIBUTE_BYTES], numbers));
            }
            RECORD_FEATURE => {
                let feature = endian.u64(body, 0).filter(|feature| *feature < FEATURES);
                parts.features.extend(feature.zip(body.get(8..)));
            }
            RECORD_TRACING_DATA => {
                let size = endian.u32(body, 0).unwrap_or(0) as usize;
                let described = bytes.get(at..at.saturating_add(size)).ok_or_else(|| {
                    format!("byte {at}: the kernel's descriptions of events are cut off")
                })?;
                parts.features.insert(FEATURE_TRACING_DATA, described);
                at += size.next_multiple_of(8);
            }
            _ => parts.data.extend(&rest[..record_bytes]),
        }
    }
    Ok(parts)
}
