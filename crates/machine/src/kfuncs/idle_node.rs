//! Idle CPUs by NUMA node (6.15), for schedulers with `SCX_OPS_BUILTIN_IDLE_PER_NODE`.

use fairground_bpf::{Memory, Trap};

use super::idle::pick;
use super::{Ret, int, s32};
use crate::abi::{PICK_IDLE_IN_NODE, errno};
use crate::cpuset::CpuMask;
use crate::kernel::Kernel;

/// `NUMA_NO_NODE`.
const NO_NODE: i64 = -1;

/// `validate_node`: the node, or an errno.
fn node_of(k: &mut Kernel, node: u64) -> Result<u32, i64> {
    if !k.idle_per_node {
        k.error("per-node idle tracking is disabled: set SCX_OPS_BUILTIN_IDLE_PER_NODE");
        return Err(errno::EOPNOTSUPP);
    }
    let node = int(node);
    if node == NO_NODE {
        return Err(errno::ENOENT);
    }
    if (0..i64::from(k.topology.nodes())).contains(&node) {
        return Ok(node as u32);
    }
    k.error(format!("invalid node {node}"));
    Err(errno::EINVAL)
}

/// `scx_pick_idle_cpu`: claims an idle CPU of a node, else of the others in the order of their numbers: the machine's
/// nodes are all equally far from each other.
fn pick_from(
    k: &mut Kernel,
    mem: &Memory,
    allowed: &CpuMask,
    node: u32,
    flags: u64,
) -> Result<Option<u32>, Trap> {
    let others = (0..k.topology.nodes()).filter(|other| *other != node);
    let others = others.filter(|_| flags & PICK_IDLE_IN_NODE == 0);
    let nodes: Vec<u32> = std::iter::once(node).chain(others).collect();
    for node in nodes {
        let here = allowed.and(k.topology.node_cpus(node));
        if let Some(cpu) = pick(k, mem, &here, flags)? {
            return Ok(Some(cpu));
        }
    }
    Ok(None)
}

/// `s32 scx_bpf_pick_idle_cpu_node(cpus_allowed, node, flags)`.
pub(super) fn pick_idle_cpu_node(
    k: &mut Kernel,
    mem: &Memory,
    [mask, node, flags, ..]: [u64; 5],
) -> Ret {
    let node = match node_of(k, node) {
        Ok(node) => node,
        Err(errno) => return Ok(s32(errno)),
    };
    let allowed = k.read_mask(mem, mask)?;
    let cpu = pick_from(k, mem, &allowed, node, flags)?;
    Ok(cpu.map_or(s32(errno::EBUSY), u64::from))
}

/// `s32 scx_bpf_pick_any_cpu_node(cpus_allowed, node, flags)`.
pub(super) fn pick_any_cpu_node(
    k: &mut Kernel,
    mem: &Memory,
    [mask, node, flags, ..]: [u64; 5],
) -> Ret {
    let node = match node_of(k, node) {
        Ok(node) => node,
        Err(errno) => return Ok(s32(errno)),
    };
    let allowed = k.read_mask(mem, mask)?;
    let mut cpu = pick_from(k, mem, &allowed, node, flags)?;
    if cpu.is_none() {
        let in_node = flags & PICK_IDLE_IN_NODE != 0;
        let any = if in_node { allowed.and(k.topology.node_cpus(node)) } else { allowed };
        cpu = k.any_distribute(&any);
    }
    Ok(cpu.map_or(s32(errno::EBUSY), u64::from))
}

/// One of the masks of a node, kept up to date until the callback returns.
fn shown(k: &mut Kernel, mem: &Memory, node: u64, cores: bool) -> Ret {
    let Ok(node) = node_of(k, node) else { return Ok(k.masks.none) };
    k.idle_shown = true;
    k.show_idle_masks(mem)?;
    Ok(k.masks.of_node(node, cores))
}

/// `const struct cpumask *scx_bpf_get_idle_cpumask_node(node)`.
pub(super) fn get_idle_cpumask_node(k: &mut Kernel, mem: &Memory, [node, ..]: [u64; 5]) -> Ret {
    shown(k, mem, node, false)
}

/// `const struct cpumask *scx_bpf_get_idle_smtmask_node(node)`.
pub(super) fn get_idle_smtmask_node(k: &mut Kernel, mem: &Memory, [node, ..]: [u64; 5]) -> Ret {
    shown(k, mem, node, true)
}
