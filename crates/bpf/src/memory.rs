//! The host's access to guest memory. Every access is checked against the permissions of its pages.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ptr;

use crate::config::InstanceError;
use crate::region::{Access, GUEST_SIZE, PAGE, Region};
use crate::trap::{Trap, TrapKind};

/// Accesses below this guest address are reported as accesses through NULL.
pub(crate) const NULL_BYTES: u64 = 64 << 10;
/// Granularity in which the heap is committed, bytes.
const HEAP_STEP: u64 = 1 << 20;

/// The memory of one instance. Guest addresses are taken modulo 2³², as generated code takes them.
///
/// Methods take `&self`, because the program writes to this memory, too. Values are little-endian.
#[derive(Debug)]
pub struct Memory {
    guest: *mut u8,
    perms: *const u8,
    region: Region,
    heap_next: Cell<u64>,
    heap_end: Cell<u64>,
    free: RefCell<BTreeMap<(u64, u64), Vec<u64>>>,
}

macro_rules! accessors {
    ($($load:ident $store:ident $type:ty)*) => {$(
        #[doc = concat!("Loads a `", stringify!($type), "`; any alignment.")]
        #[inline]
        pub fn $load(&self, addr: u64) -> Result<$type, Trap> {
            let from = self.at(addr, size_of::<$type>() as u64, Access::Read)?;
            // SAFETY: `at` found the whole range readable.
            Ok(<$type>::from_le(unsafe { from.cast::<$type>().read_unaligned() }))
        }

        #[doc = concat!("Stores a `", stringify!($type), "`; any alignment.")]
        #[inline]
        pub fn $store(&self, addr: u64, value: $type) -> Result<(), Trap> {
            let to = self.at(addr, size_of::<$type>() as u64, Access::ReadWrite)?;
            // SAFETY: `at` found the whole range writable.
            unsafe { to.cast::<$type>().write_unaligned(value.to_le()) };
            Ok(())
        }
    )*};
}

impl Memory {
    pub(crate) fn new(region: Region, heap_start: u64) -> Memory {
        Memory {
            guest: region.guest(),
            perms: region.perms(),
            region,
            heap_next: Cell::new(heap_start),
            heap_end: Cell::new(heap_start),
            free: RefCell::default(),
        }
    }

    accessors! {
        load_u8 store_u8 u8
        load_u16 store_u16 u16
        load_u32 store_u32 u32
        load_u64 store_u64 u64
    }

    /// Prefetches `bytes` bytes from `addr` on.
    #[inline]
    pub(crate) fn prefetch(&self, addr: u64, bytes: u64) {
        crate::hint::lines(self.guest.wrapping_add(addr as u32 as usize), bytes as usize);
    }

    /// Checks that `bytes` bytes at `addr` (at most a page) permit `access`.
    #[inline]
    fn at(&self, addr: u64, bytes: u64, access: Access) -> Result<*mut u8, Trap> {
        let addr = u64::from(addr as u32);
        let page = (addr / PAGE) as usize;
        // SAFETY: the table has an entry for each page of 32-bit addresses, and one after the last.
        let (first, last) = unsafe {
            (*self.perms.add(page), *self.perms.add(((addr + bytes - 1) / PAGE) as usize))
        };
        if first < access as u8 || last < access as u8 {
            return Err(self.refuse(addr, bytes, access));
        }
        // SAFETY: inside the guest part.
        Ok(unsafe { self.guest.add(addr as usize) })
    }

    /// The trap of a forbidden access, with the address of its first forbidden byte.
    #[cold]
    pub(crate) fn refuse(&self, addr: u64, bytes: u64, access: Access) -> Trap {
        let mut bad = addr;
        let end = addr.saturating_add(bytes);
        while bad < end && bad < GUEST_SIZE && self.perm(bad) >= access as u8 {
            bad = (bad / PAGE + 1) * PAGE;
        }
        Trap::new(self.fault_kind(bad, access == Access::ReadWrite))
    }

    /// The kind of trap of a fault at `addr`.
    pub(crate) fn fault_kind(&self, addr: u64, store: bool) -> TrapKind {
        match (store, addr < NULL_BYTES) {
            (false, true) => TrapKind::NullLoad { addr },
            (true, true) => TrapKind::NullStore { addr },
            (false, false) => TrapKind::WildLoad { addr },
            (true, false) if addr < GUEST_SIZE && self.perm(addr) == Access::Read as u8 => {
                TrapKind::ReadOnlyStore { addr }
            }
            (true, false) => TrapKind::WildStore { addr },
        }
    }

    /// Whether the program may load the byte at `addr`.
    pub(crate) fn is_readable(&self, addr: u64) -> bool {
        addr < GUEST_SIZE && self.perm(addr) >= Access::Read as u8
    }

    /// The permission byte of the page of `addr`, which is below 4 GiB.
    fn perm(&self, addr: u64) -> u8 {
        // SAFETY: the table has an entry for each page of 32-bit addresses.
        unsafe { *self.perms.add((addr as u32 as u64 / PAGE) as usize) }
    }

    /// Checks a range of any length. The pointer is valid for `bytes` bytes of that access until the next call of the
    /// program or of a method of this type.
    pub(crate) fn range(&self, addr: u64, bytes: u64, access: Access) -> Result<*mut u8, Trap> {
        let addr = u64::from(addr as u32);
        if bytes > 0 {
            let end = addr.saturating_add(bytes);
            let mut at = addr;
            while at < end {
                if at >= GUEST_SIZE || self.perm(at) < access as u8 {
                    return Err(self.refuse(at, 1, access));
                }
                at = (at / PAGE + 1) * PAGE;
            }
        }
        // SAFETY: a 32-bit address is inside the guest part.
        Ok(unsafe { self.guest.add(addr as usize) })
    }

    /// Fills `into` from guest memory.
    pub fn read(&self, addr: u64, into: &mut [u8]) -> Result<(), Trap> {
        let from = self.range(addr, into.len() as u64, Access::Read)?;
        // SAFETY: the range is readable, and `into` is host memory, so that they cannot overlap.
        unsafe { ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len()) };
        Ok(())
    }

    /// The `bytes` bytes at `addr`.
    pub fn read_vec(&self, addr: u64, bytes: usize) -> Result<Vec<u8>, Trap> {
        self.range(addr, bytes as u64, Access::Read)?;
        let mut out = vec![0; bytes];
        self.read(addr, &mut out)?;
        Ok(out)
    }

    /// Copies `from` into guest memory.
    pub fn write(&self, addr: u64, from: &[u8]) -> Result<(), Trap> {
        let to = self.range(addr, from.len() as u64, Access::ReadWrite)?;
        // SAFETY: the range is writable; a map's key in guest memory may be the source, so they may overlap.
        unsafe { ptr::copy(from.as_ptr(), to, from.len()) };
        Ok(())
    }

    /// Sets `bytes` bytes to `value`.
    pub fn fill(&self, addr: u64, bytes: u64, value: u8) -> Result<(), Trap> {
        let to = self.range(addr, bytes, Access::ReadWrite)?;
        // SAFETY: the range is writable.
        unsafe { ptr::write_bytes(to, value, bytes as usize) };
        Ok(())
    }

    /// Copies `bytes` bytes inside guest memory; the ranges may overlap.
    pub fn copy(&self, from: u64, to: u64, bytes: u64) -> Result<(), Trap> {
        let from = self.range(from, bytes, Access::Read)?;
        let to = self.range(to, bytes, Access::ReadWrite)?;
        // SAFETY: both ranges were checked.
        unsafe { ptr::copy(from, to, bytes as usize) };
        Ok(())
    }

    /// The NUL-terminated string at `addr`, at most `limit` bytes of it, without the NUL; bytes that are not UTF-8 are
    /// replaced.
    pub fn read_str(&self, addr: u64, limit: usize) -> Result<String, Trap> {
        let mut bytes = Vec::new();
        while bytes.len() < limit {
            match self.load_u8(addr.wrapping_add(bytes.len() as u64))? {
                0 => break,
                byte => bytes.push(byte),
            }
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Allocates `bytes` zeroed bytes, aligned to `align` (a power of two up to 4096), that the program can read and
    /// write. They are valid until [`Memory::free`] or the end of the instance.
    pub fn alloc(&self, bytes: u64, align: u64) -> Result<u64, InstanceError> {
        let (bytes, align) = (bytes.max(1), align.max(8));
        if !align.is_power_of_two() || align > PAGE {
            return Err(InstanceError::Align { align });
        }
        if let Some(addr) = self.free.borrow_mut().get_mut(&(bytes, align)).and_then(Vec::pop) {
            // SAFETY: this function returned the range before with the same size, so it is committed and writable.
            unsafe { ptr::write_bytes(self.guest.add(addr as usize), 0, bytes as usize) };
            return Ok(addr);
        }
        let addr = self.heap_next.get().next_multiple_of(align);
        let end = addr.checked_add(bytes).filter(|&end| end <= GUEST_SIZE - 2 * HEAP_STEP);
        let end = end.ok_or(InstanceError::Full { bytes })?;
        if end > self.heap_end.get() {
            let from = self.heap_end.get();
            let to = end.next_multiple_of(HEAP_STEP);
            self.commit(from, to - from, Access::ReadWrite)?;
            self.heap_end.set(to);
        }
        self.heap_next.set(end);
        Ok(addr)
    }

    /// Frees an allocation of [`Memory::alloc`] of the same size and alignment. The address is not checked. A program
    /// that keeps a pointer reads the content of later allocations.
    pub fn free(&self, addr: u64, bytes: u64, align: u64) {
        self.free.borrow_mut().entry((bytes.max(1), align.max(8))).or_default().push(addr);
    }

    /// Allocates an area of whole pages with an inaccessible page on each side.
    pub(crate) fn area(&self, bytes: u64) -> Result<u64, InstanceError> {
        if bytes > GUEST_SIZE {
            return Err(InstanceError::Full { bytes });
        }
        let bytes = bytes.max(1).next_multiple_of(PAGE);
        let addr = self.heap_end.get().checked_add(PAGE).ok_or(InstanceError::Full { bytes })?;
        let end = addr.checked_add(bytes).filter(|&end| end <= GUEST_SIZE - 2 * HEAP_STEP);
        let end = end.ok_or(InstanceError::Full { bytes })?;
        self.commit(addr, bytes, Access::ReadWrite)?;
        let heap = (end + PAGE).next_multiple_of(HEAP_STEP);
        self.heap_next.set(heap);
        self.heap_end.set(heap);
        Ok(addr)
    }

    pub(crate) fn commit(
        &self,
        addr: u64,
        bytes: u64,
        access: Access,
    ) -> Result<(), InstanceError> {
        self.region.commit(addr, bytes, access).map_err(InstanceError::Map)
    }

    /// As [`Memory::write`], but writes also to read-only data (`.rodata`).
    pub(crate) fn write_read_only(&self, addr: u64, from: &[u8]) -> Result<(), Trap> {
        if from.is_empty() || self.perm(addr) != Access::Read as u8 {
            return self.write(addr, from);
        }
        self.range(addr, from.len() as u64, Access::Read)?;
        let first = addr / PAGE * PAGE;
        let bytes = (addr + from.len() as u64).next_multiple_of(PAGE) - first;
        let open = self.region.commit(first, bytes, Access::ReadWrite);
        open.map_err(|error| Trap::host(format!("cannot make read-only data writable: {error}")))?;
        self.write(addr, from)?;
        let close = self.region.commit(first, bytes, Access::Read);
        close.map_err(|error| Trap::host(format!("cannot protect read-only data: {error}")))
    }

    /// Guest address 0, for the engines.
    pub(crate) fn guest(&self) -> *mut u8 {
        self.guest
    }

    /// The control block, for the engines.
    pub(crate) fn vm(&self) -> *mut u8 {
        self.region.vm()
    }
}
