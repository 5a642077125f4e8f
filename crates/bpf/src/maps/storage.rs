//! Task storage and cgroup storage.

use super::Maps;
use super::map::Kind;
use crate::errno::ENOENT;
use crate::memory::Memory;
use crate::trap::Trap;

impl Maps {
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
        let Kind::Tasks { values, stride, present } = &mut map.kind else {
            return Err(map.refuse("look up a task in"));
        };
        let Some(here) = present.get_mut(task) else { return Ok(0) };
        let at = *values + task as u64 * *stride;
        if *here == 0 {
            if !create {
                return Ok(0);
            }
            memory.fill(at, *stride, 0)?;
            if initial != 0 {
                memory.copy(initial, at, bytes)?;
            }
            *here = 1;
        }
        Ok(at)
    }

    /// Prefetches the values of task number `task`.
    #[inline]
    pub(crate) fn prefetch_task(&self, memory: &Memory, task: usize) {
        for map in &self.maps {
            if let Kind::Tasks { values, stride, .. } = &map.kind {
                memory.prefetch(*values + task as u64 * *stride, *stride);
            }
        }
    }

    /// The guest address of the value of task number `task`, if it has one.
    pub(crate) fn task_value(&self, index: usize, task: usize) -> Option<u64> {
        let Kind::Tasks { values, stride, present } = &self.maps.get(index)?.kind else {
            return None;
        };
        (*present.get(task)? == 1).then(|| *values + task as u64 * *stride)
    }

    /// `bpf_task_storage_delete`: 0, or -ENOENT.
    pub(crate) fn task_storage_delete(
        &mut self,
        memory: &Memory,
        index: usize,
        task: usize,
    ) -> Result<i64, Trap> {
        let map = self.map(index)?;
        let Kind::Tasks { values, stride, present } = &mut map.kind else {
            return Err(map.refuse("delete a task from"));
        };
        let had = present.get_mut(task).is_some_and(|here| std::mem::take(here) == 1);
        if had {
            let at = *values + task as u64 * *stride;
            self.drop_owned(memory, index, at)?;
        }
        Ok(if had { 0 } else { ENOENT })
    }

    /// Deletes a task's values from every task-storage map, with what they own.
    pub(crate) fn task_storage_free(&mut self, memory: &Memory, task: usize) {
        for index in 0..self.maps.len() {
            if matches!(self.maps[index].kind, Kind::Tasks { .. }) {
                // Values are in committed memory.
                let deleted = self.task_storage_delete(memory, index, task);
                debug_assert!(deleted.is_ok(), "{deleted:?}");
            }
        }
    }

    /// `bpf_cgrp_storage_get`: the value of the cgroup at `cgroup`, created if `create`.
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
        if let Some(at) = hash.lookup(memory, &key, 0) {
            return Ok(at);
        }
        if !create {
            return Ok(0);
        }
        let Some(slot) = hash.add(memory, &key) else { return Ok(0) };
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
        if !matches!(map.kind, Kind::Cgroups(_)) {
            return Err(map.refuse("delete a cgroup from"));
        }
        let had = self.delete_key(memory, index, &cgroup.to_ne_bytes())?;
        Ok(if had { 0 } else { ENOENT })
    }

    /// Deletes a cgroup's values from every cgroup-storage map, with what they own.
    pub(crate) fn cgroup_storage_free(&mut self, memory: &Memory, cgroup: u64) {
        for index in 0..self.maps.len() {
            if matches!(self.maps[index].kind, Kind::Cgroups(_)) {
                let deleted = self.cgroup_storage_delete(memory, index, cgroup);
                debug_assert!(deleted.is_ok(), "{deleted:?}");
            }
        }
    }
}
