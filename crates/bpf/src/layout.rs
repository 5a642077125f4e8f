//! Where an object's maps lie in guest memory: the same addresses in every instance, so that code can hold them.
//!
//! ```text
//! 0         NULL: inaccessible, or zeros that can be read
//! 0x100000  stack, then the arguments of the running call
//! 0x200000  data sections, arrays, hash tables, each with an inaccessible page behind it
//! …         per-CPU arrays: CPU 0's block, CPU 1's block, …
//! …         heap: what depends on the instance's configuration, and what the host allocates
//! ```

use crate::error::{Fault, LoadCause};
use crate::linked::{Linked, MapDef, MapKind};
use crate::region::PAGE;

const MAPS_START: u64 = 0x20_0000;
/// Bytes of maps of fixed size, at most: the rest of the region belongs to the host's tasks and to per-CPU data.
const MAPS_LIMIT: u64 = 3 << 30;
const MAP_HANDLE: u64 = 0x6d61_7000 << 32;
const FUNCTION_HANDLE: u64 = 0x6675_6e00 << 32;

/// Where one map's values lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// `slots` slots of `slot` bytes from `addr`.
    Fixed { addr: u64, slot: u64, slots: u64, read_only: bool },
    /// `slots` slots of `slot` bytes in each CPU's block, `offset` bytes into it.
    PerCpu { offset: u64, slot: u64, slots: u64 },
    /// Its place depends on the instance's configuration.
    Dynamic,
}

/// The plan of an object's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// By map.
    pub(crate) places: Vec<Place>,
    /// CPU 0's block.
    pub(crate) cpu_base: u64,
    /// Bytes from a CPU's block to the next.
    pub(crate) cpu_stride: u64,
}

impl Layout {
    pub(crate) fn new(linked: &Linked) -> Result<Layout, Fault> {
        let mut next = MAPS_START;
        let mut cpu_next = 0;
        let mut places = Vec::with_capacity(linked.maps.len());
        for map in &linked.maps {
            let place = place(map, next, cpu_next)?;
            match place {
                Place::Fixed { slot, slots, .. } => {
                    next += (slot * slots).next_multiple_of(PAGE) + PAGE;
                }
                Place::PerCpu { slot, slots, .. } => cpu_next += slot * slots,
                Place::Dynamic => {}
            }
            if next.max(cpu_next) > MAPS_LIMIT {
                return Err(too_large(map));
            }
            places.push(place);
        }
        Ok(Layout { places, cpu_base: next, cpu_stride: cpu_next.next_multiple_of(64) })
    }

    /// The guest address of a byte of a data section (one past its end included, as C allows).
    pub(crate) fn data_address(&self, map: usize, offset: u64) -> Result<u64, String> {
        match self.places.get(map) {
            Some(Place::Fixed { addr, slot, slots, .. }) if offset <= slot * slots => {
                Ok(addr + offset)
            }
            Some(Place::PerCpu { offset: start, slot, slots }) if offset <= slot * slots => {
                Ok(self.cpu_base + start + offset)
            }
            _ => Err(format!("the address of byte {offset} of map {map}, which has none")),
        }
    }

    /// The first address behind the per-CPU blocks.
    pub(crate) fn heap_start(&self, cpus: u32) -> Option<u64> {
        let blocks = self.cpu_stride.checked_mul(u64::from(cpus))?;
        Some(self.cpu_base.checked_add(blocks)?.next_multiple_of(PAGE) + PAGE)
    }
}

fn place(map: &MapDef, addr: u64, offset: u64) -> Result<Place, Fault> {
    let value = round8(map.value_size);
    let slots = u64::from(map.max_entries);
    let fixed = |slot: u64, slots: u64, read_only: bool| {
        let bytes = slot.checked_mul(slots).filter(|&bytes| bytes <= MAPS_LIMIT);
        bytes.map(|_| Place::Fixed { addr, slot, slots, read_only }).ok_or_else(|| too_large(map))
    };
    match map.kind {
        MapKind::Data { read_only } => {
            fixed((map.initial.len() as u64).max(u64::from(map.value_size)), 1, read_only)
        }
        MapKind::Array | MapKind::Queue | MapKind::Stack => fixed(value, slots, false),
        MapKind::Hash | MapKind::LruHash => fixed(round8(map.key_size) + value, slots, false),
        MapKind::RingBuf => fixed(1, slots, false),
        MapKind::Arena => fixed(PAGE, slots, false),
        MapKind::PerCpuArray => {
            fixed(value, slots, false)?;
            Ok(Place::PerCpu { offset, slot: value, slots })
        }
        MapKind::PerCpuHash
        | MapKind::TaskStorage
        | MapKind::CgroupStorage
        | MapKind::PerfEventArray
        | MapKind::ArrayOfMaps => Ok(Place::Dynamic),
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

/// What a program holds as the address of a map: an index that points to no memory.
pub(crate) fn map_handle(index: usize) -> u64 {
    MAP_HANDLE | index as u64
}

/// The map that a handle names.
pub(crate) fn handle_map(handle: u64) -> Option<usize> {
    (handle >> 32 == MAP_HANDLE >> 32).then_some(handle as u32 as usize)
}

/// What a program holds as the address of a function.
pub(crate) fn function_handle(index: usize) -> u64 {
    FUNCTION_HANDLE | index as u64
}

/// The function that a handle names.
pub(crate) fn handle_function(handle: u64) -> Option<usize> {
    (handle >> 32 == FUNCTION_HANDLE >> 32).then_some(handle as u32 as usize)
}
