//! The tasks' own memory in the CPUs' caches.
//!
//! Each CPU has one private cache of [`CostModel::cache_bytes`]. It holds whole lines of tasks, evicted from the task
//! whose last use of its memory is the oldest. The lines of one task are equal: a sweep over more than the cache holds
//! hits the lines that were left, where a real LRU cache would only miss.

use fairground_trace::TaskId;

use crate::CostModel;

/// Bytes of a cache line.
pub(crate) const LINE_BYTES: u64 = 64;

/// Maximum tasks in one cache. Older ones have no lines left.
const MAX_OWNERS: usize = 64;

/// The caches of a machine.
#[derive(Debug, Default)]
pub(crate) struct Caches {
    /// Per CPU: tasks and how many lines of them are there, the latest first. Made when first needed.
    cpus: Vec<Vec<(TaskId, u64)>>,
}

impl Caches {
    /// A task reads `bytes` of its memory once through, on a CPU. Returns the time that this takes, ns.
    pub(crate) fn touch(&mut self, cost: &CostModel, cpu: u32, task: TaskId, bytes: u64) -> u64 {
        let index = cpu as usize;
        if self.cpus.len() <= index {
            self.cpus.resize(index + 1, Vec::new());
        }
        let owners = &mut self.cpus[index];
        let lines = bytes.div_ceil(LINE_BYTES);
        let room = cost.cache_bytes / LINE_BYTES;
        let there = match owners.iter().position(|(owner, _)| *owner == task) {
            Some(at) => owners.remove(at).1,
            None => 0,
        };
        let hits = there.min(lines);
        let kept = lines.max(there).min(room);
        if kept > 0 {
            owners.insert(0, (task, kept));
        }
        let mut left = room;
        owners.retain_mut(|(_, held)| {
            *held = (*held).min(left);
            left -= *held;
            *held > 0
        });
        owners.truncate(MAX_OWNERS);
        let time_ps = u128::from(hits) * u128::from(cost.line_hit_ps)
            + u128::from(lines - hits) * u128::from(cost.line_miss_ps);
        u64::try_from(time_ps / 1_000).unwrap_or(u64::MAX)
    }

    /// A task is gone, and with it its memory.
    pub(crate) fn forget(&mut self, task: TaskId) {
        for owners in &mut self.cpus {
            owners.retain(|(owner, _)| *owner != task);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 16 lines of cache; a hit costs 1 ns, a miss 10 ns.
    fn cost() -> CostModel {
        let mut cost = CostModel::preset("zero").unwrap();
        for (name, value) in
            [("cache_bytes", 1024), ("line_hit_ps", 1_000), ("line_miss_ps", 10_000)]
        {
            cost.set(name, value).unwrap();
        }
        cost
    }

    #[test]
    fn what_is_there_is_cheap_and_what_was_pushed_out_is_not() {
        let (mut caches, cost) = (Caches::default(), cost());
        let mut touch = |cpu, task, bytes| caches.touch(&cost, cpu, TaskId(task), bytes);
        assert_eq!(touch(0, 1, 512), 80, "cold: 8 lines");
        assert_eq!(touch(0, 1, 512), 8, "warm");
        assert_eq!(touch(1, 1, 512), 80, "another CPU");
        assert_eq!(touch(0, 2, 768), 120, "12 lines, which leave 4 of the first task's");
        assert_eq!(touch(0, 1, 512), 4 + 40);
        assert_eq!(touch(0, 2, 768), 8 + 40, "which in turn cost 4 of these");
        assert_eq!(touch(0, 1, 1), 1, "one byte is one line");
    }

    #[test]
    fn more_than_the_cache_holds_stays_partly() {
        let (mut caches, cost) = (Caches::default(), cost());
        assert_eq!(caches.touch(&cost, 0, TaskId(1), 2048), 320);
        assert_eq!(caches.touch(&cost, 0, TaskId(1), 2048), 16 + 160);
        caches.forget(TaskId(1));
        assert_eq!(caches.touch(&cost, 0, TaskId(1), 2048), 320);
    }

    #[test]
    fn without_a_cache_every_line_is_fetched() {
        let (mut caches, mut cost) = (Caches::default(), cost());
        cost.set("cache_bytes", 0).unwrap();
        assert_eq!(caches.touch(&cost, 0, TaskId(1), 640), 100);
        assert_eq!(caches.touch(&cost, 0, TaskId(1), 640), 100);
    }
}
