//! Maps at run time: values lie in guest memory, the book-keeping lies with the host, out of the program's reach.

mod hash;
mod queue;
mod ring;

use std::fmt;

use crate::instance::{InstanceConfig, InstanceError};
use crate::layout::{Layout, Place, round8};
use crate::linked::{Linked, MapDef, MapKind};
use crate::memory::Memory;
use crate::trap::Trap;
use crate::vm::TaskView;
use hash::{Hash, Shape};
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
    Array { addr: u64, slot: u64, cpu_stride: u64 },
    Hash(Hash),
    Tasks { values: u64, slot: u64, present: Vec<u8> },
    Cgroups(Hash),
    Queue(Queue),
    Ring(Ring),
    PerfEvents,
    Arena(Arena),
}

/// Pages of an arena in use.
pub(crate) struct Arena {
    addr: u64,
    used: Vec<bool>,
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
            let kind = kind(def, *place, layout, memory, config)?;
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

    /// `bpf_task_storage_get`: the value of task number `task`, created if `create`.
    pub(crate) fn task_storage(
        &mut self,
        memory: &Memory,
        index: usize,
        task: usize,
        create: bool,
        initial: u64,
    ) -> Result<u64, Trap> {
        let map = self.map(index)?;
        let bytes = u64::from(map.value_size);
        let Kind::Tasks { values, slot, present } = &mut map.kind else {
            return Err(map.refuse("look up a task in"));
        };
        let Some(here) = present.get_mut(task) else { return Ok(0) };
        let at = *values + task as u64 * *slot;
        if *here == 0 {
            if !create {
                return Ok(0);
            }
            memory.fill(at, *slot, 0)?;
            if initial != 0 {
                memory.copy(initial, at, bytes)?;
            }
            *here = 1;
        }
        Ok(at)
    }

    /// `bpf_task_storage_delete`: 0, or -ENOENT.
    pub(crate) fn task_storage_delete(&mut self, index: usize, task: usize) -> Result<i64, Trap> {
        let map = self.map(index)?;
        let Kind::Tasks { present, .. } = &mut map.kind else {
            return Err(map.refuse("delete a task from"));
        };
        let had = present.get_mut(task).is_some_and(|here| std::mem::take(here) == 1);
        Ok(if had { 0 } else { ENOENT })
    }

    /// Drops a task from every task-storage map.
    pub(crate) fn task_storage_free(&mut self, task: usize) {
        for map in &mut self.maps {
            if let Kind::Tasks { present, .. } = &mut map.kind
                && let Some(here) = present.get_mut(task)
            {
                *here = 0;
            }
        }
    }

    /// `bpf_cgrp_storage_get`, by the cgroup's address.
    pub(crate) fn cgroup_storage(
        &mut self,
        memory: &Memory,
        index: usize,
        cgroup: u64,
        create: bool,
        initial: u64,
    ) -> Result<u64, Trap> {
        let map = self.map(index)?;
        let bytes = u64::from(map.value_size);
        let Kind::Cgroups(hash) = &mut map.kind else {
            return Err(map.refuse("look up a cgroup in"));
        };
        let key = cgroup.to_ne_bytes();
        if let Some(at) = hash.lookup_bytes(memory, &key, 0)? {
            return Ok(at);
        }
        if !create {
            return Ok(0);
        }
        let Some(slot) = hash.insert_bytes(memory, &key)? else { return Ok(0) };
        let at = hash.value(slot, 0);
        if initial != 0 {
            memory.copy(initial, at, bytes)?;
        }
        Ok(at)
    }

    /// `bpf_cgrp_storage_delete`: 0, or -ENOENT.
    pub(crate) fn cgroup_storage_delete(
        &mut self,
        memory: &Memory,
        index: usize,
        cgroup: u64,
    ) -> Result<i64, Trap> {
        let map = self.map(index)?;
        let Kind::Cgroups(hash) = &mut map.kind else {
            return Err(map.refuse("delete a cgroup from"));
        };
        Ok(if hash.delete_bytes(memory, &cgroup.to_ne_bytes())? { 0 } else { ENOENT })
    }

    /// Drops a cgroup from every cgroup-storage map.
    pub(crate) fn cgroup_storage_free(&mut self, memory: &Memory, cgroup: u64) {
        for map in &mut self.maps {
            if let Kind::Cgroups(hash) = &mut map.kind {
                // Only a key of the wrong size is an error, and this one has 8 bytes by construction.
                let _ = hash.delete_bytes(memory, &cgroup.to_ne_bytes());
            }
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

    /// `bpf_arena_alloc_pages`: the first run of `pages` free pages, or 0.
    pub(crate) fn arena_alloc(&mut self, index: usize, pages: u32) -> Result<u64, Trap> {
        let map = self.map(index)?;
        let Kind::Arena(arena) = &mut map.kind else {
            return Err(map.refuse("allocate pages in"));
        };
        if pages == 0 {
            return Ok(0);
        }
        let pages = pages as usize;
        let mut run = 0;
        let end = arena.used.iter().position(|used| {
            run = if *used { 0 } else { run + 1 };
            run == pages
        });
        let Some(end) = end else { return Ok(0) };
        let at = end + 1 - pages;
        arena.used[at..at + pages].fill(true);
        Ok(arena.addr + at as u64 * crate::region::PAGE)
    }

    /// `bpf_arena_free_pages`.
    pub(crate) fn arena_free(&mut self, index: usize, addr: u64, pages: u32) -> Result<(), Trap> {
        let map = self.map(index)?;
        let Kind::Arena(arena) = &mut map.kind else { return Err(map.refuse("free pages in")) };
        let first =
            (u64::from(addr as u32).wrapping_sub(arena.addr) / crate::region::PAGE) as usize;
        for used in arena.used.iter_mut().skip(first).take(pages as usize) {
            *used = false;
        }
        Ok(())
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

fn kind(
    def: &MapDef,
    place: Place,
    layout: &Layout,
    memory: &Memory,
    config: &InstanceConfig,
) -> Result<Kind, InstanceError> {
    let value = round8(def.value_size);
    let key = round8(def.key_size);
    let (addr, slot) = match place {
        Place::Fixed { addr, slot, .. } => (addr, slot),
        Place::PerCpu { offset, slot, .. } => (layout.cpu_base + offset, slot),
        Place::Dynamic => (0, 0),
    };
    let shape = |addr, slot, capacity| Shape {
        addr,
        slot,
        key_bytes: def.key_size,
        value_bytes: value,
        capacity,
        lru: def.kind == MapKind::LruHash,
    };
    Ok(match def.kind {
        MapKind::Data { .. } | MapKind::Array => Kind::Array { addr, slot, cpu_stride: 0 },
        MapKind::PerCpuArray => Kind::Array { addr, slot, cpu_stride: layout.cpu_stride },
        MapKind::Hash | MapKind::LruHash => {
            Kind::Hash(Hash::new(shape(addr, slot, def.max_entries)))
        }
        MapKind::PerCpuHash => {
            let slot = key + value * u64::from(config.cpus);
            let addr = memory.area(slot.saturating_mul(u64::from(def.max_entries)))?;
            Kind::Hash(Hash::new(shape(addr, slot, def.max_entries)))
        }
        MapKind::CgroupStorage => {
            let addr =
                memory.area((8 + value).saturating_mul(u64::from(config.cgroup_capacity)))?;
            let shape = shape(addr, 8 + value, config.cgroup_capacity);
            Kind::Cgroups(Hash::new(Shape { key_bytes: 8, ..shape }))
        }
        MapKind::TaskStorage => {
            let values = memory.area(value.saturating_mul(u64::from(config.task_capacity)))?;
            Kind::Tasks { values, slot: value, present: vec![0; config.task_capacity as usize] }
        }
        MapKind::Queue | MapKind::Stack => {
            let lifo = def.kind == MapKind::Stack;
            Kind::Queue(Queue::new(addr, slot, def.value_size, def.max_entries, lifo))
        }
        MapKind::RingBuf => Kind::Ring(Ring::new(addr, u64::from(def.max_entries))),
        MapKind::PerfEventArray => Kind::PerfEvents,
        MapKind::Arena => Kind::Arena(Arena { addr, used: vec![false; def.max_entries as usize] }),
    })
}
