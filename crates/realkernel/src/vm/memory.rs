//! The host's side of the shared memory: an anonymous file.
//!
//! It has no name, so nothing remains if the program is killed. QEMU opens it through the program's `/proc/PID/fd`.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use super::VmError;
use crate::channel::{
    BundleError, Entry, GuestPage, HostPage, INPUT_AT, PAGE_SIZE, PageError, entry_size,
    read_bundle, write_bundle,
};
use crate::child::nameless_file;

/// The shared memory.
#[derive(Debug)]
pub(super) struct SharedMemory {
    file: File,
    page: HostPage,
    size: u64,
}

impl SharedMemory {
    /// Creates it with `files` for the guest and space for `room` bytes of results.
    pub(super) fn new(files: &[(String, Vec<u8>)], room: u64) -> Result<Self, VmError> {
        let make = || -> io::Result<Self> {
            let input_len =
                4 + files.iter().map(|(n, c)| entry_size(n, c.len() as u64)).sum::<u64>();
            let output_at = (INPUT_AT + input_len).next_multiple_of(PAGE_SIZE as u64);
            // The size of a PCI device's memory is a power of two.
            let size = (output_at + room).next_power_of_two();
            let page = HostPage { input_len, output_at, output_room: size - output_at };
            let file = nameless_file()?;
            file.set_len(size)?;
            let entries = files
                .iter()
                .map(|(name, content)| Entry {
                    name,
                    length: content.len() as u64,
                    content: Box::new(content.as_slice()),
                })
                .collect();
            let mut bundle = Vec::new();
            write_bundle(&mut bundle, entries)?;
            file.write_all_at(&page.to_bytes(), 0)?;
            file.write_all_at(&bundle, INPUT_AT)?;
            Ok(Self { file, page, size })
        };
        make().map_err(VmError::io("make the memory that the guest shares"))
    }

    /// Its size, bytes.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// The path with which a child of this process opens it.
    pub(super) fn path(&self) -> String {
        path_of(&self.file)
    }

    /// The guest's current page.
    pub(super) fn guest(&self) -> Result<GuestPage, PageError> {
        let mut page = [0; PAGE_SIZE];
        if self.file.read_exact_at(&mut page, PAGE_SIZE as u64).is_err() {
            return Err(PageError::Magic);
        }
        GuestPage::parse(&page, self.page.output_room)
    }

    /// Reads the guest's bundle of `length` bytes; `file` opens the target of each file.
    pub(super) fn results<W: io::Write>(
        &self,
        length: u64,
        file: impl FnMut(&str) -> io::Result<W>,
    ) -> Result<Vec<String>, BundleError> {
        read_bundle(At { file: &self.file, next: self.page.output_at }, length, file)
    }
}

/// The path with which a child of this process opens an anonymous file.
pub(super) fn path_of(file: &File) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())
}

/// Reads a file from an offset.
struct At<'a> {
    file: &'a File,
    next: u64,
}

impl Read for At<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(into, self.next)?;
        self.next += count as u64;
        Ok(count)
    }
}
