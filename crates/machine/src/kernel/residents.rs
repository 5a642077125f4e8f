//! Tasks that every kernel has and that never run here: the first process, and the kernel's own threads.
//!
//! Programs find them by pid (`bpf_task_from_pid`), for the root of the control groups or to know the kernel's threads.
//! They sleep during the whole run, and no callback is about them; walks over tasks do not meet them.

use fairground_bpf::{Memory, Trap};

use super::fixtures::write_comm;
use super::{Kernel, write_mask};
use crate::cgroup::CgroupRef;
use crate::cpuset::CpuMask;
use crate::layout::offsets::task as field;

/// Those that exist once, by pid from 1 on.
const FIRST: [&str; 2] = ["init", "kthreadd"];
/// Those of each CPU, in the order of their pids: the stopper, the thread of soft interrupts, a worker.
const OF_CPU: [&str; 3] = ["migration/", "ksoftirqd/", "kworker/"];

/// `TASK_INTERRUPTIBLE`.
const INTERRUPTIBLE: u32 = 1;
/// `PF_KTHREAD`, and `PF_NO_SETAFFINITY` of a thread of one CPU.
const PF_KTHREAD: u32 = 0x0020_0000;
const PF_NO_SETAFFINITY: u32 = 0x0400_0000;
/// `p->prio` at nice 0; of the stopper.
const PRIO_NORMAL: u32 = 120;
const PRIO_STOP: u32 = 0;
/// `SCHED_FIFO`, which the stopper has for user space.
const SCHED_FIFO: u32 = 1;

/// How many there are on a machine of so many CPUs; their pids count from 1.
pub(crate) fn count(cpus: u32) -> u32 {
    FIRST.len() as u32 + OF_CPU.len() as u32 * cpus
}

/// The CPU of a thread, by its pid; `None`: it has all.
pub(crate) fn cpu_of(pid: u32) -> Option<u32> {
    pid.checked_sub(1 + FIRST.len() as u32).map(|nth| nth / OF_CPU.len() as u32)
}

fn comm(pid: u32) -> String {
    let nth = pid as usize - 1;
    let Some(cpu) = cpu_of(pid) else { return FIRST[nth].to_owned() };
    match OF_CPU[(nth - FIRST.len()) % OF_CPU.len()] {
        "kworker/" => format!("kworker/{cpu}:0"),
        name => format!("{name}{cpu}"),
    }
}

impl Kernel {
    /// Writes what programs see of them.
    pub(crate) fn write_residents(&self, mem: &Memory) -> Result<(), Trap> {
        let init = self.tasks.resident(1).unwrap_or(0);
        for pid in 1..=count(self.nr_cpus()) {
            let Some(addr) = self.tasks.resident(pid) else { break };
            let (name, cpu) = (comm(pid), cpu_of(pid));
            let parent = if pid <= FIRST.len() as u32 { self.cpus[0].idle_addr } else { init };
            let is_stopper = name.starts_with(OF_CPU[0]);
            let prio = if is_stopper { PRIO_STOP } else { PRIO_NORMAL };
            let bound = if cpu.is_some() { PF_NO_SETAFFINITY } else { 0 };
            let flags = if pid == 1 { 0 } else { PF_KTHREAD | bound };
            let allowed = cpu.map_or(self.all_cpus, CpuMask::one);
            for (at, value) in [
                (field::PID, pid),
                (field::TGID, pid),
                (field::STATE, INTERRUPTIBLE),
                (field::FLAGS, flags),
                (field::PRIO, prio),
                (field::NORMAL_PRIO, prio),
                (field::STATIC_PRIO, PRIO_NORMAL),
                (field::POLICY, if is_stopper { SCHED_FIFO } else { 0 }),
                (field::THREAD_INFO_CPU, cpu.unwrap_or(0)),
                (field::NR_CPUS_ALLOWED, allowed.count()),
            ] {
                mem.store_u32(addr + at, value)?;
            }
            mem.store_u64(addr + field::MM, if pid == 1 { addr } else { 0 })?;
            mem.store_u64(addr + field::GROUP_LEADER, addr)?;
            for at in [field::REAL_PARENT, field::PARENT] {
                mem.store_u64(addr + at, parent)?;
            }
            write_mask(mem, addr + field::CPUS_MASK, &allowed)?;
            mem.store_u64(addr + field::CPUS_PTR, addr + field::CPUS_MASK)?;
            self.cgroups.publish_in(mem, addr, CgroupRef::ROOT)?;
            write_comm(mem, addr, &name)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pids_count_from_one_without_a_gap() {
        let names: Vec<String> = (1..=count(2)).map(comm).collect();
        let of_cpus = ["migration/0", "ksoftirqd/0", "kworker/0:0", "migration/1", "ksoftirqd/1"];
        assert_eq!(names[..2], ["init", "kthreadd"]);
        assert_eq!(names[2..7], of_cpus);
        assert_eq!(names[7..], ["kworker/1:0"]);
        assert_eq!([cpu_of(2), cpu_of(3), cpu_of(8)], [None, Some(0), Some(1)]);
    }
}
