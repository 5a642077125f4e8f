//! Maps at run time: values lie in guest memory, the book-keeping lies with the host, out of the program's reach.

mod arena;
mod create;
mod hash;
mod queue;
mod ring;
mod storage;

use std::fmt;

use crate::instance::{InstanceConfig, InstanceError};
use crate::layout::Layout;
use crate::linked::Linked;
use crate::memory::Memory;
use crate::trap::Trap;
use crate::vm::TaskView;
use arena::Arena;
use hash::Hash;
use queue::Queue;
use ring::{Records, Ring};

pub(crate) const ENOENT: i64 = -2;
pub(crate) const E2BIG: i64 = -7;
pub(crate) const ENOMEM: i64 = -12;
pub(crate) const EEXIST: i64 = -17;
pub(crate) const EINVAL: i64 = -22;

/// `BPF_NOEXIST`: update only what is not there.
const NOEXIST: u64 = 1;
/// `BPF_EXIST`: update only what is there.
const EXIST: u64 = 2;
/// `BPF_F_LOCK`: hold the value's lock; one thread needs none.
const LOCK: u64 = 4;

/// An instance's maps.
pub(crate) struct Maps {
    maps: Vec<Map>,
    views: Vec<TaskView>,
    records: Records,
    cpus: u32,
}

struct Map {
    name: String,
    value_size: u32,
    max_entries: u32,
    kind: Kind,
}

enum Kind {
    Array {
        addr: u64,
        slot: u64,
        cpu_stride: u64,
    },
    Hash(Hash),
    Tasks {
        values: u64,
        slot: u64,
        present: Vec<u8>,
    },
    Cgroups(Hash),
    Queue(Queue),
    Ring(Ring),
    PerfEvents,
    Arena(Arena),
    /// Handles of maps, or NULL.
    Maps(Vec<u64>),
}

impl fmt::Debug for Maps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.maps.iter().map(|map| &map.name)).finish()
    }
}

/// An element met on a walk over a map.
#[derive(Clone, Copy, Debug)]
pub(crate) enum KeyAt {
    /// An array's index.
    Index(u32),
    /// The guest address of the key.
    Address(u64),
}

impl Maps {
    pub(crate) fn new(
        linked: &Linked,
        layout: &Layout,
        memory: &Memory,
        config: &InstanceConfig,
    ) -> Result<Maps, InstanceError> {
        let mut maps = Vec::with_capacity(linked.maps.len());
        for (def, place) in linked.maps.iter().zip(&layout.places) {
            let kind = create::kind(def, *place, layout, memory, config)?;
            let name = def.name.clone();
            maps.push(Map { name, value_size: def.value_size, max_entries: def.max_entries, kind });
        }
        let views = maps.iter_mut().map(Map::task_view).collect();
        Ok(Maps { maps, views, records: Records::default(), cpus: config.cpus })
    }

    pub(crate) fn task_views(&self) -> *const TaskView {
        self.views.as_ptr()
    }

    fn map(&mut self, index: usize) -> Result<&mut Map, Trap> {
        self.maps.get_mut(index).ok_or_else(|| Trap::helper(format!("no map {index}")))
    }

    /// `bpf_map_lookup_elem`: the value's guest address, or 0.
    #[inline]
    pub(crate) fn lookup(
        &mut self,
        memory: &Memory,
        index: usize,
        key: u64,
        cpu: u32,
    ) -> Result<u64, Trap> {
        let map = self.map(index)?;
        match &mut map.kind {
            Kind::Array { addr, slot, cpu_stride } => {
                let at = u64::from(memory.load_u32(key)?);
                let found = at < u64::from(map.max_entries);
                let base = *addr + *cpu_stride * u64::from(cpu);
                Ok(if found { base + at * *slot } else { 0 })
            }
            Kind::Hash(hash) => hash.lookup(memory, key, cpu),
            Kind::Maps(maps) => Ok(maps.get(memory.load_u32(key)? as usize).copied().unwrap_or(0)),
            _ => Err(map.refuse("look up a key in")),
        }
    }

    /// As [`Maps::lookup`], with a key in host memory.
    pub(crate) fn lookup_bytes(
        &mut self,
        memory: &Memory,
        index: usize,
        key: &[u8],
        cpu: u32,
    ) -> Result<Option<u64>, Trap> {
        if cpu >= self.cpus {
            return Err(Trap::host(format!("CPU {cpu} of {}", self.cpus)));
        }
        let map = self.map(index)?;
        match &mut map.kind {
            Kind::Array { addr, slot, cpu_stride } => {
                let at = <[u8; 4]>::try_from(key).map(u32::from_ne_bytes);
                let at = at.map_err(|_| Trap::host("an array's key has 4 bytes"))?;
                let value = *addr + *cpu_stride * u64::from(cpu) + u64::from(at) * *slot;
                Ok((at < map.max_entries).then_some(value))
            }
            Kind::Hash(hash) => hash.lookup_bytes(memory, key, cpu),
            _ => Err(map.refuse("look up a key in")),
        }
    }

    /// As [`Maps::lookup_bytes`]; a hash table gets an element of zeros where it has none.
    pub(crate) fn entry_bytes(
        &mut self,
        memory: &Memory,
        index: usize,
        key: &[u8],
        cpu: u32,
    ) -> Result<Option<u64>, Trap> {
        if let Some(found) = self.lookup_bytes(memory, index, key, cpu)? {
            return Ok(Some(found));
        }
        match &mut self.map(index)?.kind {
            Kind::Hash(hash) => {
                let slot = hash.insert_bytes(memory, key)?;
                Ok(slot.map(|slot| hash.value(slot, cpu)))
            }
            _ => Ok(None),
        }
    }

    /// `bpf_map_update_elem`: 0 or a negative errno.
    pub(crate) fn update(
        &mut self,
        memory: &Memory,
        index: usize,
        key: u64,
        value: u64,
        flags: u64,
        cpu: u32,
    ) -> Result<i64, Trap> {
        let flags = flags & !LOCK;
        if flags > EXIST {
            return Ok(EINVAL);
        }
        let map = self.map(index)?;
        let bytes = u64::from(map.value_size);
        match &mut map.kind {
            Kind::Array { .. } => {
                let at = self.lookup(memory, index, key, cpu)?;
                if at == 0 {
                    return Ok(E2BIG);
                }
                if flags == NOEXIST {
                    return Ok(EEXIST);
                }
                memory.copy(value, at, bytes)?;
                Ok(0)
            }
            Kind::Hash(hash) => {
                let found = hash.lookup(memory, key, cpu)?;
                let at = match (found, flags) {
                    (0, EXIST) => return Ok(ENOENT),
                    (0, _) => match hash.insert(memory, key)? {
                        Some(slot) => hash.value(slot, cpu),
                        None => return Ok(E2BIG),
                    },
                    (_, NOEXIST) => return Ok(EEXIST),
                    (at, _) => at,
                };
                memory.copy(value, at, bytes)?;
                Ok(0)
            }
            Kind::Queue(queue) => queue.push(memory, value, flags == EXIST),
            _ => Err(map.refuse("update")),
        }
    }

    /// `bpf_map_delete_elem`: 0 or a negative errno.
    pub(crate) fn delete(&mut self, memory: &Memory, index: usize, key: u64) -> Result<i64, Trap> {
        let map = self.map(index)?;
        match &mut map.kind {
            Kind::Array { .. } => Ok(EINVAL),
            Kind::Hash(hash) => Ok(if hash.delete(memory, key)? { 0 } else { ENOENT }),
            _ => Err(map.refuse("delete from")),
        }
    }

    /// The next element of a walk, from position `from` on: its position, key, and value.
    pub(crate) fn next(
        &mut self,
        index: usize,
        from: u32,
        cpu: u32,
    ) -> Result<Option<(u32, KeyAt, u64)>, Trap> {
        let map = self.map(index)?;
        match &mut map.kind {
            Kind::Array { addr, slot, cpu_stride } => {
                let value = *addr + *cpu_stride * u64::from(cpu) + u64::from(from) * *slot;
                Ok((from < map.max_entries).then_some((from, KeyAt::Index(from), value)))
            }
            Kind::Hash(hash) => Ok(hash
                .next(from)
                .map(|slot| (slot, KeyAt::Address(hash.key(slot)), hash.value(slot, cpu)))),
            _ => Err(map.refuse("walk over")),
        }
    }

    pub(crate) fn queue(&mut self, index: usize) -> Result<&mut Queue, Trap> {
        let map = self.map(index)?;
        let refusal = map.refuse("push to or pop from");
        if let Kind::Queue(queue) = &mut map.kind { Ok(queue) } else { Err(refusal) }
    }

    /// A ring buffer, and where its records go.
    pub(crate) fn ring(&mut self, index: usize) -> Result<(&mut Ring, &mut Records), Trap> {
        let Maps { maps, records, .. } = self;
        let map = maps.get_mut(index).ok_or_else(|| Trap::helper(format!("no map {index}")))?;
        if !matches!(map.kind, Kind::Ring(_)) {
            return Err(map.refuse("reserve in"));
        }
        match &mut map.kind {
            Kind::Ring(ring) => Ok((ring, records)),
            _ => Err(Trap::helper("not a ring buffer")),
        }
    }

    /// The ring buffer that reserved `sample`.
    pub(crate) fn ring_of(&mut self, sample: u64) -> Option<(usize, &mut Ring, &mut Records)> {
        let Maps { maps, records, .. } = self;
        let ring = maps.iter_mut().enumerate().find_map(|(index, map)| match &mut map.kind {
            Kind::Ring(ring) if ring.is_open(sample) => Some((index, ring)),
            _ => None,
        });
        ring.map(|(index, ring)| (index, ring, records))
    }

    /// One record of a perf event array; false if too many wait.
    pub(crate) fn perf_event(&mut self, index: usize, bytes: Vec<u8>) -> Result<bool, Trap> {
        let map = self.map(index)?;
        match map.kind {
            Kind::PerfEvents => Ok(self.records.push(index, bytes)),
            _ => Err(map.refuse("send perf events through")),
        }
    }

    pub(crate) fn take_records(&mut self) -> Vec<(usize, Vec<u8>)> {
        self.records.take()
    }

    /// Which element of a map of single values holds the byte at `addr`: its position, key and value.
    pub(crate) fn element_at(&mut self, index: usize, addr: u64) -> Option<(KeyAt, u64)> {
        let map = self.maps.get_mut(index)?;
        match &map.kind {
            Kind::Array { addr: base, slot, .. } => {
                let at = addr.checked_sub(*base)?.checked_div(*slot)?;
                let at = u32::try_from(at).ok().filter(|&at| at < map.max_entries)?;
                Some((KeyAt::Index(at), base + u64::from(at) * slot))
            }
            Kind::Hash(hash) => {
                let slot = hash.slot_at(addr)?;
                Some((KeyAt::Address(hash.key(slot)), hash.value(slot, 0)))
            }
            _ => None,
        }
    }
}

impl Map {
    #[cold]
    fn refuse(&self, what: &str) -> Trap {
        Trap::helper(format!("cannot {what} map `{}`: it is of another kind", self.name))
    }

    fn task_view(&mut self) -> TaskView {
        match &mut self.kind {
            Kind::Tasks { values, present, .. } => {
                TaskView { values: *values, present: present.as_mut_ptr() }
            }
            _ => TaskView { values: 0, present: std::ptr::null_mut() },
        }
    }
}
