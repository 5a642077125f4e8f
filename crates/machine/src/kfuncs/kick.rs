//! Kicking CPUs, and their performance targets.

use fairground_bpf::Memory;

use super::{Kfunc, Ret, int};
use crate::abi::CPUPERF_ONE;
use crate::kernel::Kernel;

pub(super) const KFUNCS: &[Kfunc] = &[
    ("scx_bpf_kick_cpu", kick_cpu),
    ("scx_bpf_cpuperf_cap", cpuperf_cap),
    ("scx_bpf_cpuperf_cur", cpuperf_cap),
    ("scx_bpf_cpuperf_set", cpuperf_set),
];

/// `scx_bpf_kick_cpu(cpu, flags)`.
fn kick_cpu(k: &mut Kernel, _: &Memory, [cpu, flags, ..]: [u64; 5]) -> Ret {
    k.kick(int(cpu), flags);
    Ok(0)
}

/// `u32 scx_bpf_cpuperf_cap(cpu)` and `scx_bpf_cpuperf_cur(cpu)`: all CPUs run at the same, full speed.
fn cpuperf_cap(k: &mut Kernel, _: &Memory, [cpu, ..]: [u64; 5]) -> Ret {
    k.cpu_valid(int(cpu), "");
    Ok(u64::from(CPUPERF_ONE))
}

/// `scx_bpf_cpuperf_set(cpu, perf)`: checked; the speed of a CPU does not change.
fn cpuperf_set(k: &mut Kernel, _: &Memory, [cpu, perf, ..]: [u64; 5]) -> Ret {
    let perf = perf as u32;
    if perf > CPUPERF_ONE {
        k.error(format!("Invalid cpuperf target {perf} for CPU {}", int(cpu)));
        return Ok(0);
    }
    k.cpu_valid(int(cpu), "");
    Ok(0)
}
