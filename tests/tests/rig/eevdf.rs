//! The accounting of `eevdf`, as tests read it.

use super::callbacks::{Callbacks, Task};

/// A CPU's `cpu_queues` entry (`struct eevdf_queue`), the part that tests use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    pub zero: u64,
    pub sum: i64,
    pub weight: u64,
    pub curr_vruntime: u64,
    pub curr_deadline: u64,
    pub curr_vprot: u64,
    pub curr_slice_ns: u64,
    pub curr_pid: u32,
    pub curr_weight: u32,
    pub delayed: u32,
}

impl Queue {
    /// Reads it through a function that returns the entry's 64-bit words.
    pub fn read(word: impl Fn(usize) -> u64) -> Queue {
        Queue {
            zero: word(0),
            sum: word(1) as i64,
            weight: word(2),
            curr_vruntime: word(3),
            curr_deadline: word(4),
            curr_vprot: word(5),
            curr_slice_ns: word(6),
            curr_pid: (word(14) >> 32) as u32,
            curr_weight: word(15) as u32,
            delayed: (word(20) >> 32) as u32,
        }
    }

    pub fn total_weight(&self) -> i128 {
        i128::from(self.weight) + if self.curr_pid != 0 { i128::from(self.curr_weight) } else { 0 }
    }

    /// sum((v - zero) * w) over all queued entities.
    pub fn total_sum(&self) -> i128 {
        let curr = i128::from(self.curr_vruntime.wrapping_sub(self.zero) as i64);
        i128::from(self.sum)
            + if self.curr_pid != 0 { curr * i128::from(self.curr_weight) } else { 0 }
    }

    /// V, rounded down.
    pub fn average(&self) -> u64 {
        match self.total_weight() {
            0 => self.zero,
            weight => self.zero.wrapping_add(self.total_sum().div_euclid(weight) as u64),
        }
    }

    /// V − v.
    pub fn vlag(&self, vruntime: u64) -> i64 {
        self.average().wrapping_sub(vruntime) as i64
    }

    /// Exactly: v is at most V before rounding.
    pub fn is_eligible(&self, vruntime: u64) -> bool {
        self.total_sum()
            >= i128::from(vruntime.wrapping_sub(self.zero) as i64) * self.total_weight()
    }
}

/// A task's value in the map `task_ctx` (`struct eevdf_task`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entity {
    pub vruntime: u64,
    pub deadline: u64,
    pub vlag: i64,
    pub slice_ns: u64,
    pub cpu: u32,
    pub weight: u32,
    pub delayed: u32,
    pub is_new: bool,
    pub rel_deadline: bool,
}

impl Entity {
    /// Reads it through a function that returns the value's 64-bit words.
    pub fn read(word: impl Fn(usize) -> u64) -> Entity {
        Entity {
            vruntime: word(0),
            deadline: word(1),
            vlag: word(2) as i64,
            slice_ns: word(3),
            cpu: word(4) as u32,
            weight: word(5) as u32,
            delayed: (word(6) >> 32) as u32,
            is_new: word(7) as u32 != 0,
            rel_deadline: word(8) as u32 != 0,
        }
    }
}

pub fn queue(kernel: &Callbacks) -> Queue {
    Queue::read(|word| kernel.word("cpu_queues", word))
}

pub fn entity(kernel: &Callbacks, task: Task) -> Entity {
    Entity::read(|word| kernel.storage(task, word))
}

/// Whether a sleeping task is delayed: its entity is queued and was not reused. `pid`: its number, counted from 1.
pub fn is_delayed(kernel: &Callbacks, task: Task, pid: u32) -> bool {
    let Some(number) = entity(kernel, task).delayed.checked_sub(1) else { return false };
    let owner = kernel.word("cpu_delayed", number as usize * 4 + 2) as u32;
    queue(kernel).delayed >> number & 1 != 0 && owner == pid
}
