//! The shared memory as the guest sees it: the memory of a PCI device, mapped through sysfs.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::{Ordering, fence};

use nix::sys::mman::{MapFlags, ProtFlags, mmap};

use crate::channel::{GuestPage, HostPage, INPUT_AT, PAGE_SIZE, PCI_ID};

/// The mapped memory.
pub(super) struct Window {
    start: NonNull<u8>,
    length: u64,
    host: HostPage,
}

impl Window {
    /// Finds the device, maps its memory, and reads the host's page.
    pub(super) fn open() -> Result<Self, String> {
        let device = find()?;
        // Firmware enables the device's memory; a quirk of the kernel may have disabled it.
        let _ = fs::write(device.join("enable"), "1");
        let path = device.join("resource2");
        let fail = |e: io::Error| format!("{}: {e}", path.display());
        let file = OpenOptions::new().read(true).write(true).open(&path).map_err(fail)?;
        let length = file.metadata().map_err(fail)?.len();
        let size = usize::try_from(length).ok().and_then(NonZeroUsize::new);
        let size = size.ok_or_else(|| format!("{}: {length} bytes", path.display()))?;
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a fresh mapping at an address that the kernel chooses; it replaces nothing, and stays until the
        // machine ends.
        let start = unsafe { mmap(None, size, access, MapFlags::MAP_SHARED, &file, 0) };
        let start = start.map_err(|e| fail(e.into()))?.cast::<u8>();
        let mut window =
            Self { start, length, host: HostPage { input_len: 0, output_at: 0, output_room: 0 } };
        let mut page = [0; PAGE_SIZE];
        window.part(0, PAGE_SIZE as u64).read_exact(&mut page).map_err(fail)?;
        window.host =
            HostPage::parse(&page, length).map_err(|e| format!("the host's page: {e}"))?;
        Ok(window)
    }

    /// The host's bundle and its length in bytes.
    pub(super) fn input(&self) -> (impl Read, u64) {
        (self.part(INPUT_AT, self.host.input_len), self.host.input_len)
    }

    /// The space for the results.
    pub(super) fn output(&mut self) -> impl Write {
        self.part(self.host.output_at, self.host.output_room)
    }

    /// Writes the guest's page, its state last.
    pub(super) fn publish(&mut self, page: &GuestPage) {
        let bytes = page.to_bytes();
        let at = PAGE_SIZE as u64;
        let mut start = self.part(at, PAGE_SIZE as u64);
        // The part is as large as the page, so the writes cannot fail.
        let _ = start.write_all(&bytes[..GuestPage::STATE_AT]);
        let mut rest = self.part(at + GuestPage::STATE_AT as u64 + 1, PAGE_SIZE as u64 - 9);
        let _ = rest.write_all(&bytes[GuestPage::STATE_AT + 1..]);
        fence(Ordering::SeqCst);
        let mut state = self.part(at + GuestPage::STATE_AT as u64, 1);
        let _ = state.write_all(&bytes[GuestPage::STATE_AT..=GuestPage::STATE_AT]);
        fence(Ordering::SeqCst);
    }

    /// Fills the guest's page with ones.
    pub(super) fn scribble(&mut self) {
        // The part is as large as the page, so the write cannot fail.
        let _ = self.part(PAGE_SIZE as u64, PAGE_SIZE as u64).write_all(&[0xff; PAGE_SIZE]);
    }

    /// A part of the memory; empty if it exceeds the memory.
    fn part(&self, at: u64, length: u64) -> Part {
        let inside = at.checked_add(length).is_some_and(|end| end <= self.length);
        let (at, left) = if inside { (at, length) } else { (0, 0) };
        // SAFETY: `at` is at most the mapping's length.
        let next = unsafe { self.start.add(at as usize) };
        Part { next, left: left as usize }
    }
}

/// A part of the shared memory, read or written sequentially.
struct Part {
    next: NonNull<u8>,
    left: usize,
}

impl Part {
    fn advance(&mut self, by: usize) {
        // SAFETY: `by` is at most `left`: the pointer stays within the mapping or one past its end.
        self.next = unsafe { self.next.add(by) };
        self.left -= by;
    }
}

impl Read for Part {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = into.len().min(self.left);
        // SAFETY: `count` bytes are within the mapping and within `into`; the host writes here only before the boot.
        unsafe { self.next.copy_to_nonoverlapping(NonNull::from(&mut *into).cast(), count) };
        self.advance(count);
        Ok(count)
    }
}

impl Write for Part {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(self.left);
        // SAFETY: `count` bytes are within the mapping and within `bytes`; nothing else in the guest maps this memory.
        unsafe { self.next.copy_from_nonoverlapping(NonNull::from(bytes).cast(), count) };
        self.advance(count);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The device's folder in sysfs.
fn find() -> Result<PathBuf, String> {
    const DEVICES: &str = "/sys/bus/pci/devices";
    let is = |device: &Path, file: &str, id: &str| {
        fs::read_to_string(device.join(file)).is_ok_and(|found| found.trim() == id)
    };
    fs::read_dir(DEVICES)
        .map_err(|e| format!("{DEVICES}: {e}"))?
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .find(|device| is(device, "vendor", PCI_ID.0) && is(device, "device", PCI_ID.1))
        .ok_or_else(|| format!("no shared memory (PCI {}:{}) in {DEVICES}", PCI_ID.0, PCI_ID.1))
}
