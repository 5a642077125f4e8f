//! Queues and stacks: a circular buffer of values in guest memory.

use crate::errno::{E2BIG, ENOENT};
use crate::memory::Memory;
use crate::trap::Trap;

/// A queue, or a stack if `lifo`.
#[derive(Debug)]
pub(crate) struct Queue {
    /// Guest address of the buffer.
    addr: u64,
    /// Bytes from one value to the next.
    stride: u64,
    /// Bytes of a value.
    bytes: u64,
    capacity: u32,
    first: u32,
    len: u32,
    lifo: bool,
}

impl Queue {
    pub(super) fn new(addr: u64, stride: u64, bytes: u32, capacity: u32, lifo: bool) -> Queue {
        Queue { addr, stride, bytes: u64::from(bytes), capacity, first: 0, len: 0, lifo }
    }

    fn at(&self, position: u32) -> u64 {
        let index = (u64::from(self.first) + u64::from(position)) % u64::from(self.capacity);
        self.addr + index * self.stride
    }

    /// `bpf_map_push_elem`: 0 or -E2BIG. `replace` overwrites the oldest value of a full map.
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

    /// `bpf_map_peek_elem`, or `bpf_map_pop_elem` if `take`: 0 or -ENOENT.
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
