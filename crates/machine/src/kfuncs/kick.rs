//! Kicking CPUs, and their performance targets.

use fairground_bpf::Memory;

use super::{Ret, int};
use crate::abi::CPUPERF_ONE;
use crate::kernel::Kernel;

/// `scx_bpf_kick_cpu(cpu, flags)`.
pub(super) fn kick_cpu(k: &mut Kernel, _: &Memory, [cpu, flags, ..]: [u64; 5]) -> Ret {
    k.kick(int(cpu), flags);
    Ok(0)
}

/// `u32 scx_bpf_cpuperf_cap(cpu)` and `scx_bpf_cpuperf_cur(cpu)`: all CPUs run at the same, full speed.
pub(super) fn cpuperf_cap(k: &mut Kernel, _: &Memory, [cpu, ..]: [u64; 5]) -> Ret {
    k.cpu_valid(int(cpu), "");
    Ok(u64::from(CPUPERF_ONE))
}

/// `scx_bpf_cpuperf_set(cpu, perf)`: checked; the speed of a CPU does not change.
pub(super) fn cpuperf_set(k: &mut Kernel, _: &Memory, [cpu, perf, ..]: [u64; 5]) -> Ret {
    let perf = perf as u32;
    if perf > CPUPERF_ONE {
        k.error(format!("Invalid cpuperf target {perf} for CPU {}", int(cpu)));
        return Ok(0);
    }
    k.cpu_valid(int(cpu), "");
    Ok(0)
}
