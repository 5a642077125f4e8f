//! Idle CPUs.

use fairground_bpf::{Memory, Trap};

use super::{Ret, int, s32};
use crate::abi::{PICK_IDLE_CORE, PICK_IDLE_IN_NODE, errno};
use crate::cpuset::CpuMask;
use crate::kernel::{Kernel, Slot};
use crate::op::kf;

fn builtin(k: &mut Kernel) -> bool {
    if !k.builtin_idle {
        k.error("built-in idle tracking is disabled");
    }
    k.builtin_idle
}

/// `select_cpu_from_kfunc`: an idle CPU for a task, claimed, within `allowed` if that is given. Callable from
/// `ops.select_cpu()` about its task, from `ops.enqueue()` about tasks of the same run queue, and outside of callbacks
/// that hold a run queue's lock. The error is a negative `errno`.
fn select_cpu(
    k: &mut Kernel,
    slot: Slot,
    (prev, wake_flags, flags): (u64, u64, u64),
    allowed: Option<CpuMask>,
) -> Result<u32, i64> {
    let prev_cpu = k.cpu_valid(int(prev), "").ok_or(errno::EINVAL)?;
    if !builtin(k) {
        return Err(errno::EBUSY);
    }
    if !k.permission.is_unlocked() {
        if !k.kf_allowed(kf::SELECT_CPU) {
            return Err(errno::EINVAL);
        }
        let subject = k.permission.task();
        if subject.is_none_or(|subject| k.task(subject).cpu != k.task(slot).cpu) {
            let task = k.describe(slot);
            k.error(format!("select_cpu kfunc called cross-task on {task}"));
            return Err(errno::EINVAL);
        }
    }
    let found = match (k.task(slot).allowed_count, allowed) {
        // `select_cpu_restricted`: the only CPU, if it is idle.
        (1, allowed) => {
            let only = k.allowed(slot).first();
            let in_mask = |cpu: &u32| allowed.as_ref().is_none_or(|mask| mask.test(*cpu));
            only.filter(in_mask).filter(|cpu| k.idle.claim(*cpu))
        }
        (_, Some(mask)) => {
            let mut allowed = mask.and(&k.allowed(slot));
            if k.idle_per_node && flags & PICK_IDLE_IN_NODE != 0 {
                allowed = allowed.and(k.topology.node(prev_cpu));
            }
            k.select_idle_cpu(&allowed, prev_cpu, wake_flags, flags)
        }
        (_, None) => {
            let (cpu, idle) = k.select_cpu_default(slot, prev_cpu, wake_flags);
            idle.then_some(cpu)
        }
    };
    found.ok_or(errno::EBUSY)
}

/// The same of what is for all nodes together.
fn for_all_nodes(k: &mut Kernel) -> bool {
    if k.idle_per_node {
        k.error("per-node idle tracking is enabled: SCX_OPS_BUILTIN_IDLE_PER_NODE");
        return false;
    }
    builtin(k)
}

/// `s32 scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, is_idle)`.
pub(super) fn select_cpu_dfl(
    k: &mut Kernel,
    mem: &Memory,
    [task, prev, flags, is_idle, _]: [u64; 5],
) -> Ret {
    let slot = k.need_task(task, "scx_bpf_select_cpu_dfl")?;
    let found = select_cpu(k, slot, (prev, flags, 0), None);
    k.idle_masks_changed(mem)?;
    mem.store_u8(is_idle, u8::from(found.is_ok()))?;
    Ok(found.map_or(prev, u64::from))
}

/// `s32 scx_bpf_select_cpu_and(p, prev_cpu, wake_flags, cpus_allowed, flags)` (6.16): an idle CPU of a mask, or -EBUSY.
pub(super) fn select_cpu_and(
    k: &mut Kernel,
    mem: &Memory,
    [task, prev, wake_flags, mask, flags]: [u64; 5],
) -> Ret {
    let slot = k.need_task(task, "scx_bpf_select_cpu_and")?;
    let allowed = k.read_mask(mem, mask)?;
    let found = select_cpu(k, slot, (prev, wake_flags, flags), Some(allowed));
    k.idle_masks_changed(mem)?;
    Ok(found.map_or_else(s32, u64::from))
}

/// The same with its arguments in a structure (6.19): `p, cpus_allowed, args`.
pub(super) fn select_cpu_and_args(
    k: &mut Kernel,
    mem: &Memory,
    [task, mask, args, ..]: [u64; 5],
) -> Ret {
    let prev_cpu = u64::from(mem.load_u32(args)?);
    let (wake_flags, flags) = (mem.load_u64(args + 8)?, mem.load_u64(args + 16)?);
    select_cpu_and(k, mem, [task, prev_cpu, wake_flags, mask, flags])
}

/// `scx_pick_idle_cpu`: claims an idle CPU of a mask.
pub(super) fn pick(
    k: &mut Kernel,
    mem: &Memory,
    allowed: &CpuMask,
    flags: u64,
) -> Result<Option<u32>, Trap> {
    let cpu = k.idle.pick(k.this_cpu, allowed, flags & PICK_IDLE_CORE != 0);
    k.idle_masks_changed(mem)?;
    Ok(cpu)
}

/// `s32 scx_bpf_pick_idle_cpu(cpus_allowed, flags)`.
pub(super) fn pick_idle_cpu(k: &mut Kernel, mem: &Memory, [mask, flags, ..]: [u64; 5]) -> Ret {
    if !for_all_nodes(k) {
        return Ok(s32(errno::EBUSY));
    }
    let allowed = k.read_mask(mem, mask)?;
    let cpu = pick(k, mem, &allowed, flags)?;
    Ok(cpu.map_or(s32(errno::EBUSY), u64::from))
}

/// `s32 scx_bpf_pick_any_cpu(cpus_allowed, flags)`.
pub(super) fn pick_any_cpu(k: &mut Kernel, mem: &Memory, [mask, flags, ..]: [u64; 5]) -> Ret {
    if k.idle_per_node && !for_all_nodes(k) {
        return Ok(s32(errno::EBUSY));
    }
    let allowed = k.read_mask(mem, mask)?;
    let idle = if k.builtin_idle { pick(k, mem, &allowed, flags)? } else { None };
    let cpu = idle.or_else(|| k.any_distribute(&allowed));
    Ok(cpu.map_or(s32(errno::EBUSY), u64::from))
}

/// `bool scx_bpf_test_and_clear_cpu_idle(cpu)`.
pub(super) fn test_and_clear(k: &mut Kernel, mem: &Memory, [cpu, ..]: [u64; 5]) -> Ret {
    if !builtin(k) {
        return Ok(0);
    }
    let Some(cpu) = k.cpu_valid(int(cpu), "") else { return Ok(0) };
    let claimed = k.idle.claim(cpu);
    k.idle_masks_changed(mem)?;
    Ok(u64::from(claimed))
}

fn shown(k: &mut Kernel, mem: &Memory, addr: u64) -> Ret {
    if !for_all_nodes(k) {
        return Ok(k.masks.none);
    }
    k.idle_shown = true;
    k.show_idle_masks(mem)?;
    Ok(addr)
}

/// `const struct cpumask *scx_bpf_get_idle_cpumask()`: is kept up to date until the callback returns.
pub(super) fn get_idle_cpumask(k: &mut Kernel, mem: &Memory, _: [u64; 5]) -> Ret {
    let addr = k.masks.idle_cpu;
    shown(k, mem, addr)
}

/// `const struct cpumask *scx_bpf_get_idle_smtmask()`.
pub(super) fn get_idle_smtmask(k: &mut Kernel, mem: &Memory, _: [u64; 5]) -> Ret {
    let addr = k.masks.idle_smt;
    shown(k, mem, addr)
}

/// `const struct cpumask *scx_bpf_get_possible_cpumask()`.
pub(super) fn possible(k: &mut Kernel, _: &Memory, _: [u64; 5]) -> Ret {
    Ok(k.masks.possible)
}

/// `const struct cpumask *scx_bpf_get_online_cpumask()`: follows what happens.
pub(super) fn online(k: &mut Kernel, _: &Memory, _: [u64; 5]) -> Ret {
    Ok(k.masks.online)
}

/// Gives a reference back; there is none to count.
pub(super) fn put(_: &mut Kernel, _: &Memory, _: [u64; 5]) -> Ret {
    Ok(0)
}
