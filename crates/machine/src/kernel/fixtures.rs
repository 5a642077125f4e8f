//! The machine and new tasks as programs see them, in guest memory.

use fairground_bpf::{Memory, Trap};

use super::{Kernel, Slot, write_mask};
use crate::abi;
use crate::cpuset::CpuMask;
use crate::layout::offsets::{list_head, rq as rq_field, task as field};

impl Kernel {
    /// Writes what programs see of the machine itself: masks, run queues, idle tasks.
    pub(crate) fn write_fixtures(&self, mem: &Memory) -> Result<(), Trap> {
        write_mask(mem, self.masks.possible, &self.all_cpus)?;
        write_mask(mem, self.masks.online, &self.online.mask)?;
        for (cpu, rq) in (0..).zip(&self.cpus) {
            let idle = rq.idle_addr;
            mem.store_u32(rq.addr + rq_field::CPU, cpu)?;
            mem.store_u64(rq.addr + rq_field::CURR, idle)?;
            mem.store_u64(rq.addr + rq_field::IDLE, idle)?;
            write_comm(mem, idle, &format!("swapper/{cpu}"))?;
            mem.store_u32(idle + field::PRIO, 120)?;
            mem.store_u32(idle + field::STATIC_PRIO, 120)?;
            mem.store_u32(idle + field::THREAD_INFO_CPU, cpu)?;
            mem.store_u32(idle + field::NR_CPUS_ALLOWED, 1)?;
            mem.store_u64(idle + field::CPUS_PTR, idle + field::CPUS_MASK)?;
            write_mask(mem, idle + field::CPUS_MASK, &CpuMask::one(cpu))?;
        }
        self.write_residents(mem)
    }

    /// Writes what programs see of a new task.
    pub(crate) fn write_new_task(
        &self,
        mem: &Memory,
        slot: Slot,
        parent: Option<Slot>,
        comm: &str,
    ) -> Result<(), Trap> {
        let task = self.task(slot);
        let addr = task.addr;
        let parent = parent.map_or(self.cpus[0].idle_addr, |slot| self.task(slot).addr);
        mem.fill(addr, field::SIZE, 0)?;
        task.set_slice(mem, abi::SLICE_DFL_NS)?;
        for at in [field::PID, field::TGID] {
            mem.store_u32(addr + at, task.pid)?;
        }
        for at in [field::REAL_PARENT, field::PARENT] {
            mem.store_u64(addr + at, parent)?;
        }
        for at in [field::GROUP_LEADER, field::MM] {
            mem.store_u64(addr + at, addr)?;
        }
        // The list of the threads of its process has the task alone.
        let (node, head) = (addr + field::THREAD_NODE, addr + field::SIGNAL_STRUCT);
        mem.store_u64(addr + field::SIGNAL, head)?;
        for (at, other) in [(node, head), (head, node)] {
            mem.store_u64(at + list_head::NEXT, other)?;
            mem.store_u64(at + list_head::PREV, other)?;
        }
        for at in [field::START_TIME, field::START_BOOTTIME] {
            mem.store_u64(addr + at, self.clock.now_ns())?;
        }
        mem.store_u32(addr + field::SELECTED_CPU, task.cpu)?;
        mem.store_u64(addr + field::SCX_TID, self.tasks.tid(task.pid))?;
        self.publish_cgroup(mem, slot)?;
        mem.store_u32(addr + field::THREAD_INFO_CPU, task.cpu)?;
        write_comm(mem, addr, comm)
    }

    /// Keeps a task's affinity, and writes it where programs see it.
    pub(crate) fn set_allowed(
        &mut self,
        mem: &Memory,
        slot: Slot,
        mask: &CpuMask,
    ) -> Result<(), Trap> {
        let all = *mask == self.all_cpus;
        let task = self.task_mut(slot);
        task.allowed = if all { None } else { Some(Box::new(*mask)) };
        task.allowed_count = mask.count();
        let (addr, count) = (task.addr, task.allowed_count);
        write_mask(mem, addr + field::CPUS_MASK, mask)?;
        mem.store_u64(addr + field::CPUS_PTR, addr + field::CPUS_MASK)?;
        mem.store_u32(addr + field::NR_CPUS_ALLOWED, count)
    }
}

/// Writes `p->comm`, cut to 15 bytes.
pub(super) fn write_comm(mem: &Memory, addr: u64, comm: &str) -> Result<(), Trap> {
    let bytes = comm.as_bytes();
    let mut text = [0; 16];
    let len = bytes.len().min(15);
    text[..len].copy_from_slice(&bytes[..len]);
    mem.write(addr + field::COMM, &text)
}
