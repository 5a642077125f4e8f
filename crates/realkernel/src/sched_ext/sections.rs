//! The data sections of a loaded object, as memory that this process shares with the kernel.

use std::ptr::NonNull;

use libbpf_rs::{AsRawLibbpf, MapCore, Object, libbpf_sys};

/// The location of a variable in a data section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct VariableLocation {
    /// The variable's name.
    pub(super) variable: String,
    /// The section's name, such as `.data`.
    pub(super) section: String,
    /// Byte offset in the section.
    pub(super) offset: usize,
    /// Bytes.
    pub(super) size: usize,
}

/// Whether a map of libbpf is that data section. libbpf prefixes `.data`, `.bss` and `.rodata` with the object's
/// name, and keeps other names (`.data.stats`).
pub(super) fn is_section(map: &str, section: &str) -> bool {
    let standard = [".data", ".bss", ".rodata"].contains(&section);
    map == section || (standard && map.ends_with(section))
}

/// A data section in memory.
#[derive(Debug)]
pub(super) struct Section {
    map: String,
    start: NonNull<u8>,
    size: usize,
}

impl Section {
    /// The sections of a loaded object.
    ///
    /// # Safety
    /// None of them may be used after the object is gone.
    pub(super) unsafe fn all(object: &mut Object) -> Vec<Section> {
        let mut found = Vec::new();
        for map in object.maps_mut() {
            let name = map.name().to_string_lossy().into_owned();
            if ![".data", ".bss", ".rodata"].iter().any(|part| name.contains(part)) {
                continue;
            }
            let mut size = 0;
            // SAFETY: the map belongs to a loaded object; libbpf keeps a data map in memory as long as the object
            // lives.
            let start = unsafe {
                libbpf_sys::bpf_map__initial_value(map.as_libbpf_object().as_ptr(), &raw mut size)
            };
            if let Some(start) = NonNull::new(start.cast::<u8>()) {
                keep_from_children(start, size as usize);
                found.push(Section { map: name, start, size: size as usize });
            }
        }
        found
    }

    pub(super) fn is(&self, section: &str) -> bool {
        is_section(&self.map, section)
    }

    /// Bytes as they are now; `None` outside of the section.
    pub(super) fn read(&self, offset: usize, length: usize) -> Option<Vec<u8>> {
        self.range(offset, length)?;
        // SAFETY: the range is in the section, which is mapped (see `all`). Programs write it at the same time, so
        // each byte is read once and as it is.
        Some(
            (offset..offset + length)
                .map(|at| unsafe { self.start.add(at).read_volatile() })
                .collect(),
        )
    }

    /// Writes bytes. An aligned integer of 1, 2, 4 or 8 bytes is written atomically.
    pub(super) fn write(&mut self, offset: usize, bytes: &[u8]) -> Option<()> {
        self.range(offset, bytes.len())?;
        // SAFETY: the range is in the section, which is mapped for writing (callers exclude `.rodata`).
        unsafe {
            let target = self.start.add(offset);
            match *bytes {
                [a] => target.write_volatile(a),
                [a, b] if offset.is_multiple_of(2) => {
                    target.cast().write_volatile(u16::from_ne_bytes([a, b]));
                }
                [a, b, c, d] if offset.is_multiple_of(4) => {
                    target.cast().write_volatile(u32::from_ne_bytes([a, b, c, d]));
                }
                [a, b, c, d, e, f, g, h] if offset.is_multiple_of(8) => {
                    target.cast().write_volatile(u64::from_ne_bytes([a, b, c, d, e, f, g, h]));
                }
                _ => {
                    for (at, byte) in bytes.iter().enumerate() {
                        target.add(at).write_volatile(*byte);
                    }
                }
            }
        }
        Some(())
    }

    fn range(&self, offset: usize, length: usize) -> Option<()> {
        (offset.checked_add(length)? <= self.size).then_some(())
    }
}

/// Excludes a section from child processes. They do not use it, and the kernel would copy the page table of the
/// mapping at each fork and tear it down at each exit: about 1.5 µs per page at 8 ns per instruction, 2.4 ms per fork
/// with the 6.6 MB of `cfs`. If the kernel refuses, forks are slower.
fn keep_from_children(start: NonNull<u8>, size: usize) {
    // SAFETY: libbpf maps each section separately, from a page's beginning to a page's end; the advice changes no byte
    // of it here.
    unsafe { libc::madvise(start.as_ptr().cast(), size, libc::MADV_DONTFORK) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_found_by_libbpfs_names() {
        assert!(is_section("sched.data", ".data"));
        assert!(is_section("sched.rodata", ".rodata"));
        assert!(is_section(".data.stats", ".data.stats"));
        assert!(!is_section("sched.rodata", ".data"));
        assert!(!is_section("sched.data.stats", ".data"));
    }
}
