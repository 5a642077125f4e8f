//! Hash maps. Each slot in guest memory holds a key and its value; hash chains and the free list are host data.
//!
//! Iteration goes in the order of slots, so that it depends only on the program's operations.

use std::slice;

use crate::memory::Memory;
use crate::region::Access;
use crate::trap::Trap;

const NONE: u32 = u32::MAX;
const FIRST_BUCKETS: usize = 16;

/// Address and size of the slots.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Guest address of slot 0.
    pub(super) addr: u64,
    /// Bytes of a slot: the key, rounded up to 8, then one value or one per CPU.
    pub(super) slot_bytes: u64,
    /// Bytes of a key.
    pub(super) key_bytes: u32,
    /// Bytes from one CPU's copy of a value to the next CPU's; 0 if all CPUs share one value.
    pub(super) copy_bytes: u64,
    /// Number of slots.
    pub(super) capacity: u32,
    /// A new element evicts the least recently used one when the map is full.
    pub(super) lru: bool,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    hash: u64,
    next: u32,
    used: bool,
    /// Neighbours in the order of use; only for LRU maps.
    newer: u32,
    older: u32,
}

#[derive(Debug)]
pub(super) struct Hash {
    shape: Shape,
    buckets: Vec<u32>,
    links: Vec<Link>,
    free: Vec<u32>,
    len: usize,
    newest: u32,
    oldest: u32,
}

impl Hash {
    pub(super) fn new(shape: Shape) -> Hash {
        let buckets = vec![NONE; FIRST_BUCKETS];
        let (links, free) = (Vec::new(), Vec::new());
        Hash { shape, buckets, links, free, len: 0, newest: NONE, oldest: NONE }
    }

    pub(super) fn key(&self, slot: u32) -> u64 {
        self.shape.addr + u64::from(slot) * self.shape.slot_bytes
    }

    pub(super) fn value(&self, slot: u32, cpu: u32) -> u64 {
        let key = u64::from(self.shape.key_bytes).next_multiple_of(8);
        self.key(slot) + key + u64::from(cpu) * self.shape.copy_bytes
    }

    /// The first used slot from `from` on.
    pub(super) fn next(&self, from: u32) -> Option<u32> {
        let rest = self.links.get(from as usize..)?;
        rest.iter().position(|link| link.used).map(|at| from + at as u32)
    }

    /// The used slot that holds `addr`.
    pub(super) fn slot_at(&self, addr: u64) -> Option<u32> {
        let at = addr.checked_sub(self.shape.addr)?.checked_div(self.shape.slot_bytes)?;
        let link = self.links.get(usize::try_from(at).ok()?)?;
        link.used.then_some(at as u32)
    }

    /// The guest address of the value of a key.
    pub(super) fn lookup(&mut self, memory: &Memory, key: &[u8], cpu: u32) -> Option<u64> {
        self.find(memory, key).map(|slot| self.touched(slot, cpu))
    }

    /// Whether each CPU has its own value of a key.
    pub(super) fn is_per_cpu(&self) -> bool {
        self.shape.copy_bytes > 0
    }

    /// The slot of the element that adding a key evicts.
    pub(super) fn evicted(&self, memory: &Memory, key: &[u8]) -> Option<u32> {
        let is_full = self.shape.lru && self.len == self.shape.capacity as usize;
        (is_full && self.oldest != NONE && self.find(memory, key).is_none()).then_some(self.oldest)
    }

    /// Refuses a key of another size than the map's.
    pub(super) fn check(&self, key: &[u8]) -> Result<(), Trap> {
        let want = self.shape.key_bytes as usize;
        let fits = key.len() == want;
        if fits { Ok(()) } else { Err(Trap::host(format!("the map's key has {want} bytes"))) }
    }

    /// The key at a guest address.
    pub(super) fn guest_key<'m>(&self, memory: &'m Memory, key: u64) -> Result<&'m [u8], Trap> {
        let bytes = self.shape.key_bytes;
        let from = memory.range(key, u64::from(bytes), Access::Read)?;
        // SAFETY: the range is readable. While the key is in use, only `add` writes to guest memory: it copies the
        // key to its slot through `Memory`.
        Ok(unsafe { slice::from_raw_parts(from, bytes as usize) })
    }

    fn slot_key<'m>(&self, memory: &'m Memory, slot: u32) -> &'m [u8] {
        // SAFETY: the memory of all slots is committed at creation.
        unsafe {
            let from = memory.guest().add(self.key(slot) as usize);
            slice::from_raw_parts(from, self.shape.key_bytes as usize)
        }
    }

    /// The slot of a key.
    pub(super) fn find(&self, memory: &Memory, key: &[u8]) -> Option<u32> {
        let hash = hash(key);
        let mut slot = self.buckets[hash as usize & (self.buckets.len() - 1)];
        while slot != NONE {
            let link = &self.links[slot as usize];
            if link.hash == hash && self.slot_key(memory, slot) == key {
                return Some(slot);
            }
            slot = link.next;
        }
        None
    }

    fn touched(&mut self, slot: u32, cpu: u32) -> u64 {
        if self.shape.lru && self.newest != slot {
            self.unlink_use(slot);
            self.link_use(slot);
        }
        self.value(slot, cpu)
    }

    /// Adds an element with a zero value and returns its slot; `None` if the map is full. The key must be absent.
    pub(super) fn add(&mut self, memory: &Memory, key: &[u8]) -> Option<u32> {
        if self.len == self.shape.capacity as usize {
            if !self.shape.lru || self.oldest == NONE {
                return None;
            }
            self.remove(self.oldest);
        }
        if self.len == self.buckets.len() {
            self.grow();
        }
        let hash = hash(key);
        let slot = self.free.pop().unwrap_or(self.links.len() as u32);
        let address = self.key(slot);
        let pad = self.shape.slot_bytes - key.len() as u64;
        let written = memory
            .write(address, key)
            .and_then(|()| memory.fill(address + key.len() as u64, pad, 0));
        debug_assert!(written.is_ok(), "slots are committed");
        let bucket = hash as usize & (self.buckets.len() - 1);
        let next = std::mem::replace(&mut self.buckets[bucket], slot);
        let link = Link { hash, next, used: true, newer: NONE, older: NONE };
        match self.links.get_mut(slot as usize) {
            Some(old) => *old = link,
            None => self.links.push(link),
        }
        self.len += 1;
        if self.shape.lru {
            self.link_use(slot);
        }
        Some(slot)
    }

    /// Deletes the element of a slot.
    pub(super) fn remove(&mut self, slot: u32) {
        let Link { hash, next, .. } = self.links[slot as usize];
        let bucket = hash as usize & (self.buckets.len() - 1);
        if self.buckets[bucket] == slot {
            self.buckets[bucket] = next;
        } else {
            let mut at = self.buckets[bucket];
            while at != NONE && self.links[at as usize].next != slot {
                at = self.links[at as usize].next;
            }
            if at != NONE {
                self.links[at as usize].next = next;
            }
        }
        if self.shape.lru {
            self.unlink_use(slot);
        }
        self.links[slot as usize].used = false;
        self.free.push(slot);
        self.len -= 1;
    }

    fn grow(&mut self) {
        let buckets = self.buckets.len() * 4;
        self.buckets.clear();
        self.buckets.resize(buckets, NONE);
        for (slot, link) in self.links.iter_mut().enumerate().filter(|(_, link)| link.used) {
            let bucket = link.hash as usize & (buckets - 1);
            link.next = std::mem::replace(&mut self.buckets[bucket], slot as u32);
        }
    }

    fn link_use(&mut self, slot: u32) {
        let older = std::mem::replace(&mut self.newest, slot);
        self.links[slot as usize].older = older;
        self.links[slot as usize].newer = NONE;
        match self.links.get_mut(older as usize) {
            Some(link) => link.newer = slot,
            None => self.oldest = slot,
        }
    }

    fn unlink_use(&mut self, slot: u32) {
        let Link { newer, older, .. } = self.links[slot as usize];
        match self.links.get_mut(newer as usize) {
            Some(link) => link.older = older,
            None => self.newest = older,
        }
        match self.links.get_mut(older as usize) {
            Some(link) => link.newer = newer,
            None => self.oldest = newer,
        }
    }
}

/// A multiplicative hash: the same on every run, on every machine of the same byte order.
fn hash(key: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut state = key.len() as u64;
    for chunk in key.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        state = (state ^ u64::from_le_bytes(word)).wrapping_mul(FACTOR);
        state ^= state >> 32;
    }
    state
}
