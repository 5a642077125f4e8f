//! Tasks, CPUs and the clock.

use fairground_bpf::{Memory, Trap};

use super::{Ret, int};
use crate::kernel::{Kernel, residents};

/// `bool scx_bpf_task_running(p)`.
pub(super) fn running(k: &mut Kernel, _: &Memory, [task, ..]: [u64; 5]) -> Ret {
    if k.tasks.resident_at(task).is_some() {
        return Ok(0);
    }
    let slot = k.need_task(task, "scx_bpf_task_running")?;
    Ok(u64::from(k.runs(slot)))
}

/// The CPU of a task's run queue; of an idle task, and of a kernel's thread, its own.
pub(super) fn cpu_of(k: &mut Kernel, task: u64, kfunc: &str) -> Result<u32, Trap> {
    if let Some(slot) = k.tasks.at(task) {
        return Ok(k.task(slot).cpu);
    }
    let of_resident = |pid| residents::cpu_of(pid).unwrap_or(0);
    let other = k.tasks.idle_at(task).or_else(|| k.tasks.resident_at(task).map(of_resident));
    match other {
        Some(cpu) => Ok(cpu),
        None => k.need_task(task, kfunc).map(|slot| k.task(slot).cpu),
    }
}

/// `s32 scx_bpf_task_cpu(p)`: the CPU of the task's run queue. An idle task's is its own.
pub(super) fn cpu(k: &mut Kernel, _: &Memory, [task, ..]: [u64; 5]) -> Ret {
    cpu_of(k, task, "scx_bpf_task_cpu").map(u64::from)
}

/// `struct rq *scx_bpf_cpu_rq(cpu)`.
pub(super) fn cpu_rq(k: &mut Kernel, _: &Memory, [cpu, ..]: [u64; 5]) -> Ret {
    Ok(k.cpu_valid(int(cpu), "").map_or(0, |cpu| k.cpus[cpu as usize].addr))
}

/// `struct rq *scx_bpf_locked_rq()` (6.18): the run queue under whose lock the callback runs: that of the task that it
/// is about, else of the executing CPU.
pub(super) fn locked_rq(k: &mut Kernel, _: &Memory, _: [u64; 5]) -> Ret {
    let Some(cpu) = k.locked_cpu() else {
        k.error("scx_bpf_locked_rq() in a callback that holds no run queue's lock");
        return Ok(0);
    };
    Ok(k.cpus[cpu as usize].addr)
}

/// `struct task_struct *scx_bpf_cpu_curr(cpu)` (6.18).
pub(super) fn cpu_curr(k: &mut Kernel, _: &Memory, [cpu, ..]: [u64; 5]) -> Ret {
    Ok(k.cpu_valid(int(cpu), "").map_or(0, |cpu| k.curr_addr(cpu)))
}

/// `bool scx_bpf_task_set_slice(p, slice)` (6.19).
pub(super) fn set_slice(k: &mut Kernel, mem: &Memory, [task, slice, ..]: [u64; 5]) -> Ret {
    let slot = k.need_task(task, "scx_bpf_task_set_slice")?;
    k.task(slot).set_slice(mem, slice)?;
    Ok(1)
}

/// `bool scx_bpf_task_set_dsq_vtime(p, vtime)` (6.19).
pub(super) fn set_vtime(k: &mut Kernel, mem: &Memory, [task, vtime, ..]: [u64; 5]) -> Ret {
    let slot = k.need_task(task, "scx_bpf_task_set_dsq_vtime")?;
    k.task(slot).set_vtime(mem, vtime)?;
    Ok(1)
}

/// `u64 scx_bpf_now()` (6.14): the clock of the run queue while it is valid (`SCX_RQ_CLK_VALID`), else a new reading.
pub(super) fn now(k: &mut Kernel, _: &Memory, _: [u64; 5]) -> Ret {
    Ok(k.clock.now_ns())
}

/// `u32 scx_bpf_nr_cpu_ids()`.
pub(super) fn nr_cpu_ids(k: &mut Kernel, _: &Memory, _: [u64; 5]) -> Ret {
    Ok(u64::from(k.nr_cpus()))
}

/// `u32 scx_bpf_nr_node_ids()` (6.15).
pub(super) fn nr_node_ids(k: &mut Kernel, _: &Memory, _: [u64; 5]) -> Ret {
    Ok(u64::from(k.topology.nodes()))
}

/// `int scx_bpf_cpu_node(cpu)` (6.15).
pub(super) fn cpu_node(k: &mut Kernel, _: &Memory, [cpu, ..]: [u64; 5]) -> Ret {
    Ok(k.cpu_valid(int(cpu), "").map_or(0, |cpu| u64::from(k.topology.node_of(cpu))))
}

/// `struct task_struct *bpf_task_from_pid(pid)`: a task, the first process (1) or a thread of the kernel's; NULL when
/// none has that pid. References are not counted: a task
/// that a program may see lives for as long as the callback.
pub(super) fn from_pid(k: &mut Kernel, _: &Memory, [pid, ..]: [u64; 5]) -> Ret {
    let task = k.tasks.of_pid(pid as u32).map(|slot| k.task(slot).addr);
    Ok(task.or_else(|| k.tasks.resident(pid as u32)).unwrap_or(0))
}

pub(super) fn same(_: &mut Kernel, _: &Memory, [object, ..]: [u64; 5]) -> Ret {
    Ok(object)
}

pub(super) fn nothing(_: &mut Kernel, _: &Memory, _: [u64; 5]) -> Ret {
    Ok(0)
}
