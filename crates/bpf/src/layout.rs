//! Memory layout of an object: guest addresses that are the same in every instance, so that code can contain them.
//!
//! ```text
//! 0         NULL: inaccessible, or readable zeros
//! 0x100000  stack, then the arguments of the running call
//! 0x200000  data sections, arrays, hash tables, each followed by an inaccessible page
//! …         per-CPU arrays: CPU 0's block, CPU 1's block, …
//! …         heap: maps whose size depends on the instance's configuration, and the host's allocations
//! ```

use crate::error::{Fault, LoadCause};
use crate::linked::{Linked, MapDef, MapKind};
use crate::region::PAGE;

const MAPS_START: u64 = 0x20_0000;
/// Maximum bytes of all maps of fixed size. The rest of the region is for the host's tasks and for per-CPU data.
const MAPS_LIMIT: u64 = 3 << 30;
/// Pages of an arena, 1 GiB of them. Objects declare the whole address space of 4 GiB and allocate a little of it;
/// beyond this, allocation fails as in a full arena.
pub(crate) const ARENA_PAGES_MAX: u64 = 1 << 18;
const MAP_HANDLE: u64 = 0x6d61_7000 << 32;
const FUNCTION_HANDLE: u64 = 0x6675_6e00 << 32;

/// The guest memory of one map's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MapStorage {
    /// `entries` entries of `stride` bytes from `addr`.
    Fixed { addr: u64, stride: u64, entries: u64, read_only: bool },
    /// `entries` entries of `stride` bytes at `offset` in each CPU's block.
    PerCpu { offset: u64, stride: u64, entries: u64 },
    /// Allocated when the instance is created.
    Dynamic,
}

/// The memory layout of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// By index of [`Linked::maps`].
    pub(crate) maps: Vec<MapStorage>,
    /// Guest address of CPU 0's block.
    pub(crate) cpu_base: u64,
    /// Bytes from a CPU's block to the next CPU's.
    pub(crate) cpu_stride: u64,
}

impl Layout {
    /// Assigns addresses to the maps of fixed size, in order.
    ///
    /// # Errors
    /// They exceed `MAPS_LIMIT`.
    pub(crate) fn new(linked: &Linked) -> Result<Layout, Fault> {
        let mut next = MAPS_START;
        let mut cpu_next = 0;
        let mut maps = Vec::with_capacity(linked.maps.len());
        for map in &linked.maps {
            let storage = storage(map, next, cpu_next)?;
            match storage {
                MapStorage::Fixed { stride, entries, .. } => {
                    next += (stride * entries).next_multiple_of(PAGE) + PAGE;
                }
                MapStorage::PerCpu { stride, entries, .. } => cpu_next += stride * entries,
                MapStorage::Dynamic => {}
            }
            if next.max(cpu_next) > MAPS_LIMIT {
                return Err(too_large(map));
            }
            maps.push(storage);
        }
        Ok(Layout { maps, cpu_base: next, cpu_stride: cpu_next.next_multiple_of(64) })
    }

    /// The guest address of a byte of a data section; `offset` may be one past its end, as in C.
    pub(crate) fn data_address(&self, map: usize, offset: u64) -> Result<u64, String> {
        match self.maps.get(map) {
            Some(MapStorage::Fixed { addr, stride, entries, .. }) if offset <= stride * entries => {
                Ok(addr + offset)
            }
            Some(MapStorage::PerCpu { offset: start, stride, entries })
                if offset <= stride * entries =>
            {
                Ok(self.cpu_base + start + offset)
            }
            _ => Err(format!("byte {offset} of map {map} has no address")),
        }
    }

    /// The first guest address of the heap, after the per-CPU blocks; `None` if they overflow.
    pub(crate) fn heap_start(&self, cpus: u32) -> Option<u64> {
        let blocks = self.cpu_stride.checked_mul(u64::from(cpus))?;
        Some(self.cpu_base.checked_add(blocks)?.next_multiple_of(PAGE) + PAGE)
    }
}

fn storage(map: &MapDef, addr: u64, offset: u64) -> Result<MapStorage, Fault> {
    let value = round8(map.value_size);
    let entries = u64::from(map.max_entries);
    let fixed = |stride: u64, entries: u64, read_only: bool| {
        let bytes = stride.checked_mul(entries).filter(|&bytes| bytes <= MAPS_LIMIT);
        let storage = bytes.map(|_| MapStorage::Fixed { addr, stride, entries, read_only });
        storage.ok_or_else(|| too_large(map))
    };
    match map.kind {
        MapKind::Data { read_only } => {
            fixed((map.initial.len() as u64).max(u64::from(map.value_size)), 1, read_only)
        }
        MapKind::Array | MapKind::Queue | MapKind::Stack => fixed(value, entries, false),
        MapKind::Hash | MapKind::LruHash => fixed(round8(map.key_size) + value, entries, false),
        MapKind::RingBuf => fixed(1, entries, false),
        MapKind::Arena => fixed(PAGE, entries.min(ARENA_PAGES_MAX), false),
        MapKind::PerCpuArray => {
            fixed(value, entries, false)?;
            Ok(MapStorage::PerCpu { offset, stride: value, entries })
        }
        MapKind::PerCpuHash
        | MapKind::TaskStorage
        | MapKind::CgroupStorage
        | MapKind::PerfEventArray
        | MapKind::ArrayOfMaps
        | MapKind::Foreign(_) => Ok(MapStorage::Dynamic),
    }
}

fn too_large(map: &MapDef) -> Fault {
    let what = "bytes of all maps";
    let entry = round8(map.key_size) + round8(map.value_size);
    let value = u64::from(map.max_entries).saturating_mul(entry);
    Fault::at_symbol(&map.name, LoadCause::Limit { what, value, limit: MAPS_LIMIT })
}

pub(crate) fn round8(bytes: u32) -> u64 {
    u64::from(bytes).next_multiple_of(8)
}

/// The handle of a map: the value that a program uses as its address. It points to no memory.
pub(crate) fn map_handle(index: usize) -> u64 {
    MAP_HANDLE | index as u64
}

/// The map index of a handle.
pub(crate) fn handle_map(handle: u64) -> Option<usize> {
    (handle >> 32 == MAP_HANDLE >> 32).then_some(handle as u32 as usize)
}

/// The handle of a function: the value that a program uses as its address.
pub(crate) fn function_handle(index: usize) -> u64 {
    FUNCTION_HANDLE | index as u64
}

/// The function index of a handle.
pub(crate) fn handle_function(handle: u64) -> Option<usize> {
    (handle >> 32 == FUNCTION_HANDLE >> 32).then_some(handle as u32 as usize)
}
