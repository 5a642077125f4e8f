//! Queues and stacks: a ring of values in guest memory.

use super::{E2BIG, ENOENT};
use crate::memory::Memory;
use crate::trap::Trap;

#[derive(Debug)]
pub(crate) struct Queue {
    addr: u64,
    slot: u64,
    bytes: u64,
    capacity: u32,
    first: u32,
    len: u32,
    lifo: bool,
}

impl Queue {
    pub(super) fn new(addr: u64, slot: u64, bytes: u32, capacity: u32, lifo: bool) -> Queue {
        Queue { addr, slot, bytes: u64::from(bytes), capacity, first: 0, len: 0, lifo }
    }

    fn at(&self, position: u32) -> u64 {
        let index = (u64::from(self.first) + u64::from(position)) % u64::from(self.capacity);
        self.addr + index * self.slot
    }

    /// `bpf_map_push_elem`; `replace` drops the oldest of a full map.
    pub(crate) fn push(&mut self, memory: &Memory, value: u64, replace: bool) -> Result<i64, Trap> {
        if self.capacity == 0 {
            return Ok(E2BIG);
        }
        if self.len == self.capacity {
            if !replace {
                return Ok(E2BIG);
            }
            self.first = (self.first + 1) % self.capacity;
            self.len -= 1;
        }
        memory.copy(value, self.at(self.len), self.bytes)?;
        self.len += 1;
        Ok(0)
    }

    /// `bpf_map_peek_elem`, and `bpf_map_pop_elem` if `take`.
    pub(crate) fn peek(&mut self, memory: &Memory, into: u64, take: bool) -> Result<i64, Trap> {
        if self.len == 0 {
            memory.fill(into, self.bytes, 0)?;
            return Ok(ENOENT);
        }
        let position = if self.lifo { self.len - 1 } else { 0 };
        memory.copy(self.at(position), into, self.bytes)?;
        if take {
            self.len -= 1;
            if !self.lifo {
                self.first = (self.first + 1) % self.capacity;
            }
        }
        Ok(0)
    }
}
