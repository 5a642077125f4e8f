//! The data sections of a loaded object, as memory that this process shares with the kernel.

use std::ptr::NonNull;

use libbpf_rs::{AsRawLibbpf, MapCore, Object, libbpf_sys};

/// Whether libbpf's map is the data section: it puts the object's name before `.data`, `.bss` and `.rodata`, and leaves
/// other names (`.data.stats`) as they are.
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
            // SAFETY: the map belongs to a loaded object; libbpf keeps a data map in memory as long as the object lives.
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
        // SAFETY: the range lies in the section, which is mapped (see `all`). Programs write it at the same time, so each
        // byte is read once and as it is.
        Some(
            (offset..offset + length)
                .map(|at| unsafe { self.start.add(at).read_volatile() })
                .collect(),
        )
    }

    /// Changes bytes. A number of 1, 2, 4 or 8 bytes at its natural alignment changes at once; nobody sees half of it.
    pub(super) fn write(&mut self, offset: usize, bytes: &[u8]) -> Option<()> {
        self.range(offset, bytes.len())?;
        // SAFETY: the range lies in the section, which is mapped for writing (the caller leaves `.rodata` alone).
        unsafe {
            let place = self.start.add(offset);
            match *bytes {
                [a] => place.write_volatile(a),
                [a, b] if offset.is_multiple_of(2) => {
                    place.cast().write_volatile(u16::from_ne_bytes([a, b]));
                }
                [a, b, c, d] if offset.is_multiple_of(4) => {
                    place.cast().write_volatile(u32::from_ne_bytes([a, b, c, d]));
                }
                [a, b, c, d, e, f, g, h] if offset.is_multiple_of(8) => {
                    place.cast().write_volatile(u64::from_ne_bytes([a, b, c, d, e, f, g, h]));
                }
                _ => {
                    for (at, byte) in bytes.iter().enumerate() {
                        place.add(at).write_volatile(*byte);
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

/// Processes that this one makes do not inherit a section. They have no use for it, and the kernel copies the page table of such a
/// mapping at each fork and tears it down at each end: some 1.5 us a page where an instruction takes 8 ns, 2.4 ms of a workload's fork
/// with the 6.6 MB of `cfs`. Where the kernel refuses, forks are dearer; nothing else changes.
fn keep_from_children(start: NonNull<u8>, size: usize) {
    // SAFETY: libbpf maps a section by itself, from a page's beginning to a page's end; the advice changes no byte of it here.
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
