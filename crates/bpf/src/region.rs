//! The address space of one instance: a reservation that contains every access of a program.
//!
//! ```text
//! perms (1 MiB + 1 page) │ control block (Vm) │ guard 64 KiB │ guest 0 … 4 GiB │ guard 64 KiB
//! ```
//!
//! A guest address is an offset into the guest part. Generated code adds a 32-bit address and a signed 16-bit offset
//! to the start of the guest part, so it cannot reach beyond the guards. Pages are inaccessible until they are
//! committed: an access to any other page faults, and the call ends with a trap. A program cannot access the control
//! block.

use std::io;
use std::ptr;

/// Bytes of a page: the unit of protection.
pub(crate) const PAGE: u64 = 4096;
/// Bytes of the guest address space.
pub(crate) const GUEST_SIZE: u64 = 1 << 32;
/// Bytes of guard before and after the guest part: more than a signed 16-bit offset plus an access of 8 bytes.
const GUARD: u64 = 64 << 10;
/// One permission byte per guest page, and one page so that reading the entry after the last is valid.
const PERMS_SIZE: u64 = GUEST_SIZE / PAGE + PAGE;
/// Bytes of the control block.
const VM_SIZE: u64 = PAGE;
/// From the control block to guest address 0: generated code holds one pointer for both.
pub(crate) const VM_TO_GUEST: u64 = VM_SIZE + GUARD;
/// Bytes of a large page of the host.
const LARGE_PAGE: u64 = 2 << 20;
const TOTAL: u64 = PERMS_SIZE + VM_TO_GUEST + GUEST_SIZE + GUARD;

/// The permitted accesses of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Access {
    /// Loads.
    Read = 1,
    /// Loads and stores.
    ReadWrite = 3,
}

/// A reserved range of address space.
#[derive(Debug)]
pub(crate) struct Region {
    start: *mut u8,
}

impl Region {
    /// Reserves address space; commits the permission table and the control block, both zero.
    pub(crate) fn reserve() -> io::Result<Region> {
        // SAFETY: an anonymous mapping at an address of the kernel's choice touches no existing memory.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                TOTAL as usize,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let region = Region { start: start.cast() };
        region.protect(region.start, PERMS_SIZE + VM_SIZE, libc::PROT_READ | libc::PROT_WRITE)?;
        Ok(region)
    }

    fn protect(&self, from: *mut u8, bytes: u64, protection: i32) -> io::Result<()> {
        // SAFETY: every caller passes a page-aligned range inside this reservation, which no other mapping replaces.
        let status = unsafe { libc::mprotect(from.cast(), bytes as usize, protection) };
        if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Requests huge pages for large areas, whose random accesses would otherwise miss the TLB. Leaves out the first
    /// huge page of an area, so that a small use of it stays small.
    fn prefer_large_pages(&self, addr: u64, bytes: u64) {
        // SAFETY: every caller passes a page-aligned range inside the guest part; the advice changes no content, and
        // a kernel that does not follow it does no harm.
        unsafe {
            let from = self.guest().add(addr as usize);
            libc::madvise(from.cast(), bytes as usize, libc::MADV_HUGEPAGE);
        }
    }

    /// The control block.
    pub(crate) fn vm(&self) -> *mut u8 {
        // SAFETY: within the reservation.
        unsafe { self.start.add(PERMS_SIZE as usize) }
    }

    /// Guest address 0.
    pub(crate) fn guest(&self) -> *mut u8 {
        // SAFETY: within the reservation.
        unsafe { self.start.add((PERMS_SIZE + VM_TO_GUEST) as usize) }
    }

    /// The permission table: one byte per guest page, an [`Access`] or 0.
    pub(crate) fn perms(&self) -> *mut u8 {
        self.start
    }

    /// Makes the pages of `addr .. addr + bytes` accessible (page-aligned; the content stays, fresh pages are zero).
    pub(crate) fn commit(&self, addr: u64, bytes: u64, access: Access) -> io::Result<()> {
        debug_assert!(addr.is_multiple_of(PAGE) && bytes.is_multiple_of(PAGE));
        if addr.checked_add(bytes).is_none_or(|end| end > GUEST_SIZE) {
            return Err(io::Error::from(io::ErrorKind::OutOfMemory));
        }
        let protection = match access {
            Access::Read => libc::PROT_READ,
            Access::ReadWrite => libc::PROT_READ | libc::PROT_WRITE,
        };
        // SAFETY: the range is inside the guest part, as checked above.
        self.protect(unsafe { self.guest().add(addr as usize) }, bytes, protection)?;
        if bytes >= 2 * LARGE_PAGE {
            self.prefer_large_pages(addr + LARGE_PAGE, bytes - LARGE_PAGE);
        }
        // SAFETY: the table has a byte for each page of the guest part.
        unsafe {
            ptr::write_bytes(
                self.perms().add((addr / PAGE) as usize),
                access as u8,
                (bytes / PAGE) as usize,
            );
        }
        Ok(())
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: this value owns the reservation, and all pointers into it borrow from the owner of this value.
        unsafe { libc::munmap(self.start.cast(), TOTAL as usize) };
    }
}
