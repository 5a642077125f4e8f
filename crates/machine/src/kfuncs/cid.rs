//! CPUs by their topological numbers, and tasks by their own (Linux 7.2).

use fairground_bpf::Memory;

use super::task::cpu_of;
use super::{Ret, int, s32};
use crate::abi::{CPUPERF_ONE, errno};
use crate::kernel::Kernel;

/// `s32 scx_bpf_cpu_to_cid(cpu)`.
pub(super) fn cpu_to_cid(k: &mut Kernel, _: &Memory, [cpu, ..]: [u64; 5]) -> Ret {
    let cpu = k.cpu_valid(int(cpu), "");
    Ok(cpu.map_or(s32(errno::EINVAL), |cpu| u64::from(k.cids.cid_of(cpu))))
}

/// `s32 scx_bpf_cid_to_cpu(cid)`.
pub(super) fn cid_to_cpu(k: &mut Kernel, _: &Memory, [cid, ..]: [u64; 5]) -> Ret {
    Ok(k.cpu_of_cid(int(cid)).map_or(s32(errno::EINVAL), u64::from))
}

/// `scx_bpf_cid_topo(cid, out, out__sz)`: the first number, and the place among its kind, of the core, of the cache and
/// of the node of a CPU. Kernels before the argument `out__sz` have no more members than these.
pub(super) fn cid_topo(k: &mut Kernel, mem: &Memory, [cid, out, bytes, ..]: [u64; 5]) -> Ret {
    let place = k.cpu_of_cid(int(cid)).and_then(|cpu| k.cids.place_of(&k.topology, cpu));
    let members = place.unwrap_or([u32::MAX; 6]);
    let room = usize::try_from(bytes / 4).unwrap_or(usize::MAX);
    for (at, member) in members.into_iter().enumerate().take(room) {
        mem.store_u32(out + 4 * at as u64, member)?;
    }
    Ok(0)
}

/// `s32 scx_bpf_task_cid(p)`: of the CPU of the task's run queue.
pub(super) fn task_cid(k: &mut Kernel, _: &Memory, [task, ..]: [u64; 5]) -> Ret {
    let cpu = cpu_of(k, task, "scx_bpf_task_cid")?;
    Ok(u64::from(k.cids.cid_of(cpu)))
}

/// `s32 scx_bpf_this_cid()`.
pub(super) fn this_cid(k: &mut Kernel, _: &Memory, _: [u64; 5]) -> Ret {
    Ok(u64::from(k.cids.cid_of(k.this_cpu)))
}

/// `u32 scx_bpf_nr_cids()`.
pub(super) fn nr_cids(k: &mut Kernel, _: &Memory, _: [u64; 5]) -> Ret {
    Ok(u64::from(k.nr_cpus()))
}

/// `u32 scx_bpf_nr_online_cids()`.
pub(super) fn nr_online_cids(k: &mut Kernel, _: &Memory, _: [u64; 5]) -> Ret {
    Ok(u64::from(k.online.mask.count()))
}

/// `scx_bpf_kick_cid(cid, flags)`.
pub(super) fn kick_cid(k: &mut Kernel, _: &Memory, [cid, flags, ..]: [u64; 5]) -> Ret {
    if let Some(cpu) = k.cpu_of_cid(int(cid)) {
        k.kick(i64::from(cpu), flags);
    }
    Ok(0)
}

/// `struct task_struct *scx_bpf_cid_curr(cid)`.
pub(super) fn cid_curr(k: &mut Kernel, _: &Memory, [cid, ..]: [u64; 5]) -> Ret {
    Ok(k.cpu_of_cid(int(cid)).map_or(0, |cpu| k.curr_addr(cpu)))
}

/// `u32 scx_bpf_cidperf_cap(cid)` and `scx_bpf_cidperf_cur(cid)`: all CPUs run at the same, full speed.
pub(super) fn cidperf_cap(k: &mut Kernel, _: &Memory, [cid, ..]: [u64; 5]) -> Ret {
    k.cpu_of_cid(int(cid));
    Ok(u64::from(CPUPERF_ONE))
}

/// `scx_bpf_cidperf_set(cid, perf)`: checked; the speed of a CPU does not change.
pub(super) fn cidperf_set(k: &mut Kernel, _: &Memory, [cid, perf, ..]: [u64; 5]) -> Ret {
    let perf = perf as u32;
    if k.cpu_of_cid(int(cid)).is_some() && perf > CPUPERF_ONE {
        k.error(format!("Invalid cpuperf target {perf} for cid {}", int(cid)));
    }
    Ok(0)
}

/// `scx_bpf_cid_override(cpu_to_cid, bytes)`: other numbers for all CPUs, from `ops.init()` alone.
pub(super) fn cid_override(k: &mut Kernel, mem: &Memory, [table, bytes, ..]: [u64; 5]) -> Ret {
    if !k.cids.open {
        k.error("scx_bpf_cid_override() only allowed from ops.init()");
        return Ok(0);
    }
    let (cpus, bytes) = (k.nr_cpus(), bytes as u32);
    if bytes != 4 * cpus {
        k.error(format!("scx_bpf_cid_override: expected {} bytes, got {bytes}", 4 * cpus));
        return Ok(0);
    }
    let mut cid_of = Vec::with_capacity(cpus as usize);
    let mut seen = vec![false; cpus as usize];
    for cpu in 0..cpus {
        let cid = mem.load_u32(table + 4 * u64::from(cpu))?;
        if k.cpu_of_cid(int(u64::from(cid))).is_none() {
            return Ok(0);
        }
        if std::mem::replace(&mut seen[cid as usize], true) {
            k.error(format!("cid {cid} assigned to multiple cpus"));
            return Ok(0);
        }
        cid_of.push(cid);
    }
    k.cids.replace(cid_of);
    Ok(0)
}

/// `struct task_struct *scx_bpf_tid_to_task(tid)`: NULL when no living task has it. Only with `SCX_OPS_TID_TO_TASK`.
pub(super) fn tid_to_task(k: &mut Kernel, _: &Memory, [tid, ..]: [u64; 5]) -> Ret {
    if !k.cids.tids {
        k.error("scx_bpf_tid_to_task() called without SCX_OPS_TID_TO_TASK");
        return Ok(0);
    }
    Ok(k.tasks.of_tid(tid).map_or(0, |slot| k.task(slot).addr))
}
