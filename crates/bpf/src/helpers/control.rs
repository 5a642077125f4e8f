//! Helpers for locks, per-CPU variables, time and loops.

use super::handles::function;
use super::kfuncs::MAX_LOOPS;
use crate::call::Call;
use crate::env::Host;
use crate::errno::{E2BIG, EINVAL};
use crate::trap::Trap;

/// `bpf_spin_lock`. A program may hold one.
pub(super) fn spin_lock<H: Host>(call: &mut Call<H>) -> Result<u64, Trap> {
    let state = call.state();
    if state.spin_locks > 0 {
        return Err(Trap::helper("bpf_spin_lock while another lock is held"));
    }
    state.spin_locks += 1;
    Ok(0)
}

/// `bpf_spin_unlock`.
pub(super) fn spin_unlock<H: Host>(call: &mut Call<H>) -> Result<u64, Trap> {
    let state = call.state();
    if state.spin_locks == 0 {
        return Err(Trap::helper("bpf_spin_unlock while no lock is held"));
    }
    state.spin_locks -= 1;
    Ok(0)
}

/// `bpf_per_cpu_ptr(addr, cpu)`: a variable of the object or, through the host, of the kernel; NULL for a CPU that does
/// not exist.
pub(super) fn per_cpu_ptr<H: Host>(call: &mut Call<H>, addr: u64, cpu: u64) -> Result<u64, Trap> {
    let state = call.state();
    let layout = &state.program.layout;
    if cpu >= u64::from(state.config.cpus) {
        return Ok(0);
    }
    if addr.wrapping_sub(layout.cpu_base) >= layout.cpu_stride {
        let (memory, host) = call.host();
        let of_kernel = host.per_cpu_variable(memory, addr, cpu as u32);
        return of_kernel.ok_or_else(|| {
            Trap::helper(format!(
                "{addr:#x} is not a per-CPU variable of this object or of the kernel"
            ))
        });
    }
    Ok(addr + cpu * layout.cpu_stride)
}

/// `bpf_jiffies64`: ticks of the configured HZ.
pub(super) fn jiffies64<H: Host>(call: &mut Call<H>, _args: [u64; 5]) -> Result<u64, Trap> {
    let hz = u128::from(call.state().program.hz);
    Ok((u128::from(call.context().now_ns) * hz / 1_000_000_000) as u64)
}

/// `bpf_loop(nr_loops, callback, ctx, flags)`: the number of iterations.
pub(super) fn bpf_loop<H: Host>(call: &mut Call<H>, args: [u64; 5]) -> Result<u64, Trap> {
    let [loops, callback, context, flags, _] = args;
    let loops = u64::from(loops as u32);
    let callback = function(callback)?;
    if flags != 0 {
        return Ok(EINVAL as u64);
    }
    if loops > MAX_LOOPS {
        return Ok(E2BIG as u64);
    }
    for index in 0..loops {
        if call.callback(callback, [index, context, 0, 0, 0])? != 0 {
            return Ok(index + 1);
        }
    }
    Ok(loops)
}
