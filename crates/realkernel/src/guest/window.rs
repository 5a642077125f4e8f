//! The shared memory as the guest sees it: the memory of a PCI device, mapped through sysfs.

use std::fs::{self, OpenOptions};
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::slice;
use std::sync::atomic::{Ordering, fence};

use nix::sys::mman::{MapFlags, ProtFlags, mmap};

use crate::channel::{GuestPage, HostPage, INPUT_AT, PAGE_SIZE, PCI_ID};

/// The mapped memory: the two pages and the bundles of [`HostPage`].
pub(super) struct Window {
    start: NonNull<u8>,
    length: usize,
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
        // SAFETY: the mapping is that long, and the host writes it only before the boot.
        let memory = unsafe { slice::from_raw_parts(start.as_ptr(), size.get()) };
        let page = memory.first_chunk().ok_or_else(|| format!("it has {length} bytes"))?;
        // All parts that the page names, and the two pages, lie within the memory.
        let host = HostPage::parse(page, length).map_err(|e| format!("the host's page: {e}"))?;
        Ok(Self { start, length: size.get(), host })
    }

    /// The host's bundle.
    pub(super) fn input(&self) -> &[u8] {
        self.part(INPUT_AT, self.host.input_len)
    }

    /// The space for the results.
    pub(super) fn output(&mut self) -> &mut [u8] {
        self.part_mut(self.host.output_at, self.host.output_room)
    }

    /// Writes the guest's page, its state last.
    pub(super) fn publish(&mut self, page: &GuestPage) {
        const STATE_AT: usize = GuestPage::STATE_AT;
        let bytes = page.to_bytes();
        let into = self.part_mut(PAGE_SIZE as u64, PAGE_SIZE as u64);
        into[..STATE_AT].copy_from_slice(&bytes[..STATE_AT]);
        into[STATE_AT + 1..].copy_from_slice(&bytes[STATE_AT + 1..]);
        fence(Ordering::SeqCst);
        into[STATE_AT] = bytes[STATE_AT];
        fence(Ordering::SeqCst);
    }

    /// Fills the guest's page with ones.
    pub(super) fn scribble(&mut self) {
        self.part_mut(PAGE_SIZE as u64, PAGE_SIZE as u64).fill(0xff);
    }

    fn part(&self, at: u64, length: u64) -> &[u8] {
        // SAFETY: the mapping is that long and stays; the host writes it only before the boot, apart from `self`
        // nothing in the guest does.
        let all = unsafe { slice::from_raw_parts(self.start.as_ptr(), self.length) };
        &all[at as usize..][..length as usize]
    }

    fn part_mut(&mut self, at: u64, length: u64) -> &mut [u8] {
        // SAFETY: as in `part`.
        let all = unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.length) };
        &mut all[at as usize..][..length as usize]
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
