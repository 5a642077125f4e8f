//! The initial state of each type of map.

use super::arena::Arena;
use super::hash::{Hash, Shape};
use super::map::Kind;
use super::queue::Queue;
use super::ring::Ring;
use crate::config::{InstanceConfig, InstanceError};
use crate::layout::{ARENA_PAGES_MAX, Layout, MapStorage, map_handle, round8};
use crate::linked::{MapDef, MapKind};
use crate::memory::Memory;
use crate::region::PAGE;

/// Creates the bookkeeping of a map; takes memory for maps whose size depends on `config`.
pub(super) fn kind(
    def: &MapDef,
    storage: MapStorage,
    layout: &Layout,
    memory: &Memory,
    config: &InstanceConfig,
) -> Result<Kind, InstanceError> {
    let value = round8(def.value_size);
    let key = round8(def.key_size);
    let (addr, stride) = match storage {
        MapStorage::Fixed { addr, stride, .. } => (addr, stride),
        MapStorage::PerCpu { offset, stride, .. } => (layout.cpu_base + offset, stride),
        MapStorage::Dynamic => (0, 0),
    };
    let shape = |addr, slot_bytes, capacity| Shape {
        addr,
        slot_bytes,
        key_bytes: def.key_size,
        copy_bytes: if def.kind == MapKind::PerCpuHash { value } else { 0 },
        capacity,
        lru: def.kind == MapKind::LruHash,
    };
    Ok(match def.kind {
        MapKind::Data { .. } | MapKind::Array => Kind::Array { addr, stride, cpu_stride: 0 },
        MapKind::PerCpuArray => Kind::Array { addr, stride, cpu_stride: layout.cpu_stride },
        MapKind::Hash | MapKind::LruHash => {
            Kind::Hash(Hash::new(shape(addr, stride, def.max_entries)))
        }
        MapKind::PerCpuHash => {
            let slot_bytes = key + value * u64::from(config.cpus);
            let addr = memory.area(slot_bytes.saturating_mul(u64::from(def.max_entries)))?;
            Kind::Hash(Hash::new(shape(addr, slot_bytes, def.max_entries)))
        }
        MapKind::CgroupStorage => {
            let addr =
                memory.area((8 + value).saturating_mul(u64::from(config.cgroup_capacity)))?;
            let shape = shape(addr, 8 + value, config.cgroup_capacity);
            Kind::Cgroups(Hash::new(Shape { key_bytes: 8, ..shape }))
        }
        MapKind::TaskStorage => {
            let values = memory.area(value.saturating_mul(u64::from(config.task_capacity)))?;
            Kind::Tasks { values, stride: value, present: vec![0; config.task_capacity as usize] }
        }
        MapKind::Queue | MapKind::Stack => {
            let lifo = def.kind == MapKind::Stack;
            Kind::Queue(Queue::new(addr, stride, def.value_size, def.max_entries, lifo))
        }
        MapKind::RingBuf => Kind::Ring(Ring::new(addr, u64::from(def.max_entries))),
        MapKind::PerfEventArray => Kind::PerfEvents,
        MapKind::Foreign(number) => Kind::Foreign(number),
        MapKind::ArrayOfMaps => Kind::Maps(handles(&def.initial)),
        MapKind::Arena => {
            // The object's variables occupy the first pages, as in libbpf.
            let own = (def.initial.len() as u64).div_ceil(PAGE);
            let pages = u64::from(def.max_entries).min(ARENA_PAGES_MAX);
            Kind::Arena(Arena::new(addr, pages, own))
        }
    })
}

/// The elements of an array of maps: the handle of a map, or NULL.
fn handles(initial: &[u8]) -> Vec<u64> {
    let handle = |number: u32| number.checked_sub(1).map_or(0, |map| map_handle(map as usize));
    let (numbers, _) = initial.as_chunks();
    numbers.iter().map(|bytes| handle(u32::from_le_bytes(*bytes))).collect()
}
