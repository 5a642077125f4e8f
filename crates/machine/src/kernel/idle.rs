//! Idle CPUs, as `ops.select_cpu()` and the kfuncs see them.

use fairground_bpf::{Memory, Trap};

use super::{Kernel, Slot};
use crate::abi::{PICK_IDLE_CORE, wake};
use crate::cpuset::{CpuMask, MASK_WORDS};
use crate::idle_cpus::SelectCpu;

impl Kernel {
    /// The CPUs on which a task may run (`p->cpus_ptr`), online or not.
    #[inline]
    pub(crate) fn allowed(&self, slot: Slot) -> CpuMask {
        self.task(slot).allowed.as_deref().copied().unwrap_or(self.all_cpus)
    }

    /// A CPU goes idle, or has something to run (`update_builtin_idle`). One that is offline is not there to be found.
    #[inline]
    pub(crate) fn mark_idle(&mut self, cpu: u32, idle: bool) {
        if self.builtin_idle {
            self.idle.update(cpu, idle && self.is_online(cpu));
        }
    }

    /// `scx_select_cpu_dfl`: the default choice of a CPU for a waking task, and whether it is idle and claimed.
    pub(crate) fn select_cpu_default(
        &mut self,
        slot: Slot,
        prev_cpu: u32,
        wake_flags: u64,
    ) -> (u32, bool) {
        if !self.builtin_idle {
            return (prev_cpu, false);
        }
        let (waker_cpu, sync) = (self.this_cpu, self.takes_waker(wake_flags));
        let ask = |allowed| SelectCpu { prev_cpu, waker_cpu, allowed, sync, whole_core: false };
        let found = match self.tasks[slot].allowed.as_deref() {
            Some(allowed) => self.idle.select(&ask(allowed)),
            None => self.idle.select(&ask(&self.all_cpus)),
        };
        (found.unwrap_or(prev_cpu), found.is_some())
    }

    /// Of a synchronous wake-up, whether the waker's CPU may be chosen: the waker is not exiting, and nothing waits
    /// there.
    fn takes_waker(&self, wake_flags: u64) -> Option<bool> {
        let waker = &self.cpus[self.this_cpu as usize];
        let exiting = waker.curr().is_some_and(|curr| self.task(curr).exiting);
        let takes = !exiting && self.queues.is_empty(waker.local);
        (wake_flags & wake::SYNC != 0).then_some(takes)
    }

    /// The same with the flags of `scx_bpf_select_cpu_and`: an idle CPU of a mask, claimed.
    pub(crate) fn select_idle_cpu(
        &mut self,
        allowed: &CpuMask,
        prev_cpu: u32,
        wake_flags: u64,
        flags: u64,
    ) -> Option<u32> {
        let (waker_cpu, sync) = (self.this_cpu, self.takes_waker(wake_flags));
        let whole_core = flags & PICK_IDLE_CORE != 0;
        self.idle.select(&SelectCpu { prev_cpu, waker_cpu, allowed, sync, whole_core })
    }

    /// `cpumask_any_distribute`: the next CPU of a mask after the one that this CPU got last.
    pub(crate) fn any_distribute(&mut self, mask: &CpuMask) -> Option<u32> {
        self.cpus[self.this_cpu as usize].distribute(mask)
    }

    /// Copies the idle masks to where programs see them, once a program has asked for them in this callback.
    pub(crate) fn show_idle_masks(&mut self, mem: &Memory) -> Result<(), Trap> {
        let words = (self.nr_cpus().div_ceil(64) as usize).min(MASK_WORDS);
        for (addr, mask) in
            [(self.masks.idle_cpu, self.idle.cpus()), (self.masks.idle_smt, self.idle.cores())]
        {
            write_words(mem, addr, &mask.words()[..words])?;
        }
        for node in (0..self.topology.nodes()).filter(|_| self.idle_per_node) {
            let here = *self.topology.node_cpus(node);
            for (cores, mask) in [(false, self.idle.cpus()), (true, self.idle.cores())] {
                let mask = mask.and(&here);
                write_words(mem, self.masks.of_node(node, cores), &mask.words()[..words])?;
            }
        }
        Ok(())
    }

    /// A kfunc changed the idle masks while a program may be reading them.
    pub(crate) fn idle_masks_changed(&mut self, mem: &Memory) -> Result<(), Trap> {
        if self.idle_shown { self.show_idle_masks(mem) } else { Ok(()) }
    }

    /// Reads a `struct cpumask`; bits beyond the machine's CPUs are dropped.
    pub(crate) fn read_mask(&self, mem: &Memory, addr: u64) -> Result<CpuMask, Trap> {
        let mut words = [0; MASK_WORDS];
        let cpus = self.nr_cpus();
        for (at, word) in words.iter_mut().enumerate().take(cpus.div_ceil(64) as usize) {
            *word = mem.load_u64(addr + at as u64 * 8)?;
        }
        Ok(CpuMask::from_words(words).and(&self.all_cpus))
    }
}

/// Writes words of a mask.
fn write_words(mem: &Memory, addr: u64, words: &[u64]) -> Result<(), Trap> {
    for (at, word) in words.iter().enumerate() {
        mem.store_u64(addr + at as u64 * 8, *word)?;
    }
    Ok(())
}

/// Writes a whole `struct cpumask`.
pub(crate) fn write_mask(mem: &Memory, addr: u64, mask: &CpuMask) -> Result<(), Trap> {
    write_words(mem, addr, mask.words())
}
