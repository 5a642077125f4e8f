//! Maps at run time. Values are in guest memory; the bookkeeping is host data, which the program cannot reach.

mod arena;
mod create;
mod hash;
mod map;
mod queue;
mod ring;
mod storage;

use std::fmt;

use crate::config::{InstanceConfig, InstanceError};
use crate::errno::{E2BIG, EEXIST, EINVAL, ENOENT};
use crate::layout::Layout;
use crate::linked::Linked;
use crate::memory::Memory;
use crate::trap::Trap;
pub(crate) use map::{ElementKey, TaskView};
use map::{Kind, Map};
use queue::Queue;
use ring::{Records, Ring};

/// `BPF_NOEXIST`: only add a new element.
const NOEXIST: u64 = 1;
/// `BPF_EXIST`: only update an existing element.
const EXIST: u64 = 2;
/// `BPF_F_LOCK`: hold the value's spin lock. Ignored, because one thread runs an instance.
const LOCK: u64 = 4;

/// An instance's maps.
pub(crate) struct Maps {
    maps: Vec<Map>,
    views: Vec<TaskView>,
    records: Records,
    /// References that values owned which are gone.
    pub(crate) dropped: Vec<u64>,
    cpus: u32,
}

impl fmt::Debug for Maps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.maps.iter().map(|map| &map.name)).finish()
    }
}

impl Maps {
    /// Creates the maps of an instance in its memory.
    pub(crate) fn new(
        linked: &Linked,
        layout: &Layout,
        memory: &Memory,
        config: &InstanceConfig,
    ) -> Result<Maps, InstanceError> {
        let mut maps = Vec::with_capacity(linked.maps.len());
        for (def, storage) in linked.maps.iter().zip(&layout.maps) {
            let kind = create::kind(def, *storage, layout, memory, config)?;
            let (name, kptrs) = (def.name.clone(), def.kptrs.clone());
            let (value_size, max_entries) = (def.value_size, def.max_entries);
            maps.push(Map { name, value_size, max_entries, kptrs, kind });
        }
        let views = maps.iter_mut().map(Map::task_view).collect();
        let (records, dropped) = (Records::default(), Vec::new());
        Ok(Maps { maps, views, records, dropped, cpus: config.cpus })
    }

    /// One view per map; empty for maps other than task storage. The pointer is valid as long as `self`.
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
            Kind::Array { addr, stride, cpu_stride } => {
                let at = u64::from(memory.load_u32(key)?);
                let found = at < u64::from(map.max_entries);
                let base = *addr + *cpu_stride * u64::from(cpu);
                Ok(if found { base + at * *stride } else { 0 })
            }
            Kind::Hash(hash) => {
                let key = hash.guest_key(memory, key)?;
                Ok(hash.lookup(memory, key, cpu).unwrap_or(0))
            }
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
            Kind::Array { addr, stride, cpu_stride } => {
                let at = <[u8; 4]>::try_from(key).map(u32::from_ne_bytes);
                let at = at.map_err(|_| Trap::host("an array's key has 4 bytes"))?;
                let value = *addr + *cpu_stride * u64::from(cpu) + u64::from(at) * *stride;
                Ok((at < map.max_entries).then_some(value))
            }
            Kind::Hash(hash) => {
                hash.check(key)?;
                Ok(hash.lookup(memory, key, cpu))
            }
            _ => Err(map.refuse("look up a key in")),
        }
    }

    /// As [`Maps::lookup_bytes`]; adds an element of zeros to a hash table that lacks the key.
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
            Kind::Hash(hash) => Ok(hash.add(memory, key).map(|slot| hash.value(slot, cpu))),
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
        self.drop_evicted(memory, index, key)?;
        let map = self.map(index)?;
        let at = match &mut map.kind {
            Kind::Array { .. } => {
                let at = self.lookup(memory, index, key, cpu)?;
                if at == 0 {
                    return Ok(E2BIG);
                }
                if flags == NOEXIST {
                    return Ok(EEXIST);
                }
                at
            }
            Kind::Hash(hash) => {
                let key = hash.guest_key(memory, key)?;
                match (hash.lookup(memory, key, cpu), flags) {
                    (None, EXIST) => return Ok(ENOENT),
                    (None, _) => match hash.add(memory, key) {
                        Some(slot) => hash.value(slot, cpu),
                        None => return Ok(E2BIG),
                    },
                    (Some(_), NOEXIST) => return Ok(EEXIST),
                    (Some(at), _) => at,
                }
            }
            Kind::Queue(queue) => return queue.push(memory, value, flags == EXIST),
            _ => return Err(map.refuse("update")),
        };
        self.drop_owned(memory, index, at)?;
        let map = self.map(index)?;
        memory.copy(value, at, u64::from(map.value_size))?;
        // What a program owns gets into a value by `bpf_kptr_xchg` alone.
        for offset in &map.kptrs {
            memory.store_u64(at + u64::from(*offset), 0)?;
        }
        Ok(0)
    }

    /// The value at a guest address gives up the references that it owns (`bpf_obj_free_fields`).
    fn drop_owned(&mut self, memory: &Memory, index: usize, at: u64) -> Result<(), Trap> {
        for offset in self.maps.get(index).map_or(&[][..], |map| &map.kptrs) {
            let pointer = memory.load_u64(at + u64::from(*offset))?;
            if pointer != 0 {
                memory.store_u64(at + u64::from(*offset), 0)?;
                self.dropped.push(pointer);
            }
        }
        Ok(())
    }

    /// All values of an element of a hash table give up what they own.
    fn drop_slot(&mut self, memory: &Memory, index: usize, slot: u32) -> Result<(), Trap> {
        for cpu in 0..self.cpus {
            let (Kind::Hash(hash) | Kind::Cgroups(hash)) = &self.maps[index].kind else { break };
            if cpu > 0 && !hash.is_per_cpu() {
                break;
            }
            let at = hash.value(slot, cpu);
            self.drop_owned(memory, index, at)?;
        }
        Ok(())
    }

    /// The element that an update of a key evicts gives up what it owns.
    fn drop_evicted(&mut self, memory: &Memory, index: usize, key: u64) -> Result<(), Trap> {
        let map = self.map(index)?;
        if let Kind::Hash(hash) = &map.kind
            && !map.kptrs.is_empty()
            && let Some(slot) = hash.evicted(memory, hash.guest_key(memory, key)?)
        {
            self.drop_slot(memory, index, slot)?;
        }
        Ok(())
    }

    /// Deletes an element of a hash table with what it owns; false if the key is absent.
    fn delete_key(&mut self, memory: &Memory, index: usize, key: &[u8]) -> Result<bool, Trap> {
        let (Kind::Hash(hash) | Kind::Cgroups(hash)) = &self.maps[index].kind else {
            return Ok(false);
        };
        let Some(slot) = hash.find(memory, key) else { return Ok(false) };
        if !self.maps[index].kptrs.is_empty() {
            self.drop_slot(memory, index, slot)?;
        }
        if let Kind::Hash(hash) | Kind::Cgroups(hash) = &mut self.maps[index].kind {
            hash.remove(slot);
        }
        Ok(true)
    }

    /// `bpf_map_delete_elem`: 0 or a negative errno.
    pub(crate) fn delete(&mut self, memory: &Memory, index: usize, key: u64) -> Result<i64, Trap> {
        let map = self.map(index)?;
        match &mut map.kind {
            Kind::Array { .. } => Ok(EINVAL),
            Kind::Hash(hash) => {
                let key = hash.guest_key(memory, key)?;
                Ok(if self.delete_key(memory, index, key)? { 0 } else { ENOENT })
            }
            _ => Err(map.refuse("delete from")),
        }
    }

    /// The first element at position `from` or later: its position, key, and value's guest address.
    pub(crate) fn next(
        &mut self,
        index: usize,
        from: u32,
        cpu: u32,
    ) -> Result<Option<(u32, ElementKey, u64)>, Trap> {
        let map = self.map(index)?;
        match &mut map.kind {
            Kind::Array { addr, stride, cpu_stride } => {
                let value = *addr + *cpu_stride * u64::from(cpu) + u64::from(from) * *stride;
                Ok((from < map.max_entries).then_some((from, ElementKey::Index(from), value)))
            }
            Kind::Hash(hash) => Ok(hash
                .next(from)
                .map(|slot| (slot, ElementKey::Address(hash.key(slot)), hash.value(slot, cpu)))),
            _ => Err(map.refuse("iterate over")),
        }
    }

    /// The queue or stack `index`.
    pub(crate) fn queue(&mut self, index: usize) -> Result<&mut Queue, Trap> {
        let map = self.map(index)?;
        match map.kind {
            Kind::Queue(ref mut queue) => Ok(queue),
            _ => Err(map.refuse("push to or pop from")),
        }
    }

    /// The ring buffer `index`, and the records for the host.
    pub(crate) fn ring(&mut self, index: usize) -> Result<(&mut Ring, &mut Records), Trap> {
        let Maps { maps, records, .. } = self;
        let map = maps.get_mut(index).ok_or_else(|| Trap::helper(format!("no map {index}")))?;
        match map.kind {
            Kind::Ring(ref mut ring) => Ok((ring, records)),
            _ => Err(map.refuse("reserve in")),
        }
    }

    /// The ring buffer in which `sample` is reserved.
    pub(crate) fn ring_of(&mut self, sample: u64) -> Option<(usize, &mut Ring, &mut Records)> {
        let Maps { maps, records, .. } = self;
        let ring = maps.iter_mut().enumerate().find_map(|(index, map)| match &mut map.kind {
            Kind::Ring(ring) if ring.is_open(sample) => Some((index, ring)),
            _ => None,
        });
        ring.map(|(index, ring)| (index, ring, records))
    }

    /// Adds a record of a perf event array; false if the host's buffer is full.
    pub(crate) fn perf_event(&mut self, index: usize, bytes: Vec<u8>) -> Result<bool, Trap> {
        let map = self.map(index)?;
        match map.kind {
            Kind::PerfEvents => Ok(self.records.push(index, bytes)),
            _ => Err(map.refuse("send perf events through")),
        }
    }

    /// `bpf_arena_alloc_pages`: the guest address of the first run of `pages` free pages, or 0.
    pub(crate) fn arena_alloc(
        &mut self,
        memory: &Memory,
        index: usize,
        pages: u32,
    ) -> Result<u64, Trap> {
        let map = self.map(index)?;
        match &mut map.kind {
            Kind::Arena(arena) => arena.alloc(memory, pages),
            _ => Err(map.refuse("allocate pages in")),
        }
    }

    /// `bpf_arena_free_pages`.
    pub(crate) fn arena_free(&mut self, index: usize, addr: u64, pages: u32) -> Result<(), Trap> {
        let map = self.map(index)?;
        match &mut map.kind {
            Kind::Arena(arena) => arena.free(addr, pages),
            _ => return Err(map.refuse("free pages in")),
        }
        Ok(())
    }

    /// Takes the records for the host, oldest first, with the index of their map.
    pub(crate) fn take_records(&mut self) -> Vec<(usize, Vec<u8>)> {
        self.records.take()
    }

    /// Key and value address of the element that contains the byte at `addr`, in an array or a hash table without
    /// per-CPU values.
    pub(crate) fn element_at(&mut self, index: usize, addr: u64) -> Option<(ElementKey, u64)> {
        let map = self.maps.get_mut(index)?;
        match &map.kind {
            Kind::Array { addr: base, stride, .. } => {
                let at = addr.checked_sub(*base)?.checked_div(*stride)?;
                let at = u32::try_from(at).ok().filter(|&at| at < map.max_entries)?;
                Some((ElementKey::Index(at), base + u64::from(at) * stride))
            }
            Kind::Hash(hash) => {
                let slot = hash.slot_at(addr)?;
                Some((ElementKey::Address(hash.key(slot)), hash.value(slot, 0)))
            }
            _ => None,
        }
    }
}
