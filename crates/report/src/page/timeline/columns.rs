//! Lanes as text: columns of variable-length numbers (LEB128), each compressed (deflate) and in base64.

use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;

use super::merge::Drawn;

/// The slices of all lanes, one lane after the other. By column, as equal numbers then stand beside each other.
#[derive(Default)]
pub(super) struct Columns {
    /// Ns since the end of the slice before in the lane, or since the timeline's begin.
    pub(super) gaps: Numbers,
    pub(super) lengths: Numbers,
    /// Twice the value, plus one where the slice stands for several.
    pub(super) values: Numbers,
    pub(super) bys: Numbers,
}

impl Columns {
    pub(super) fn of(start_ns: u64, lanes: &[Vec<Drawn>]) -> Self {
        let mut columns = Self::default();
        for lane in lanes {
            let mut last_ns = start_ns;
            for Drawn { slice, is_several } in lane {
                columns.gaps.put(slice.start_ns.saturating_sub(last_ns));
                columns.lengths.put(slice.length_ns());
                columns.values.put(u64::from(slice.value) << 1 | u64::from(*is_several));
                columns.bys.put(u64::from(slice.by));
                last_ns = slice.end_ns;
            }
        }
        columns
    }
}

/// Numbers, seven bits a byte, the lowest first.
#[derive(Default)]
pub(super) struct Numbers(Vec<u8>);

impl Numbers {
    pub(super) fn put(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// The differences of rising numbers, the first to `from`.
    pub(super) fn put_rising(&mut self, from: u64, values: impl Iterator<Item = u64>) {
        let mut last = from;
        for value in values {
            self.put(value.saturating_sub(last));
            last = value;
        }
    }

    pub(super) fn packed(&self) -> String {
        let mut packed = DeflateEncoder::new(Vec::new(), Compression::default());
        // A vector has always room.
        let _ = packed.write_all(&self.0);
        STANDARD.encode(packed.finish().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::timeline::{Activity, Slice};

    #[test]
    fn each_column_has_a_number_for_each_slice() {
        let slice = Slice::of_task(5, 299, Activity::Woken, 2, 200);
        let lane = vec![Drawn { slice, is_several: false }];
        let columns = Columns::of(0, &[lane.clone(), lane]);
        assert_eq!(columns.gaps.0, [5, 5]);
        // 294 = 0x126.
        assert_eq!(columns.lengths.0, [0xa6, 2, 0xa6, 2]);
        // CPU 2, and the second kind, twice.
        assert_eq!(columns.values.0, [34, 34]);
        assert_eq!(columns.bys.0, [0xc8, 1, 0xc8, 1]);
    }

    #[test]
    fn what_is_packed_is_deflated() {
        let mut numbers = Numbers::default();
        numbers.put_rising(10, [10, 12, 300].into_iter());
        let packed = STANDARD.decode(numbers.packed()).expect("base64");
        let mut bytes = Vec::new();
        let mut inflate = flate2::write::DeflateDecoder::new(&mut bytes);
        inflate.write_all(&packed).and_then(|()| inflate.try_finish()).expect("deflate");
        drop(inflate);
        assert_eq!(bytes, [0, 2, 0xa0, 2]);
    }
}
