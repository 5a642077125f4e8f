//! Inserting tasks into dispatch queues, and moving them on.

use fairground_bpf::{Memory, Trap};

use super::Ret;
use crate::abi::{dsq, enq};
use crate::dsq::DsqRef;
use crate::kernel::{Kernel, Slot};
use crate::op::kf;

/// `scx_dispatch_preamble`: which callbacks may dispatch, and what; the task, and the flags that count.
fn preamble(
    k: &mut Kernel,
    (task, dsq_id, enq_flags): (u64, u64, u64),
    kfunc: &str,
) -> Result<Option<(Slot, u64)>, Trap> {
    if !k.kf_allowed(kf::ENQUEUE | kf::DISPATCH) {
        return Ok(None);
    }
    if task == 0 {
        k.error("called with NULL task");
        return Ok(None);
    }
    if enq_flags & enq::INTERNAL_MASK != 0 {
        k.error(format!("invalid enq_flags {enq_flags:#x}"));
        return Ok(None);
    }
    let Some(enq_flags) = k.vet_enq_flags(dsq_id, enq_flags) else { return Ok(None) };
    k.need_task(task, kfunc).map(|slot| Some((slot, enq_flags)))
}

/// A slice of 0 keeps what is left, at least 1 ns.
fn apply_slice(k: &Kernel, mem: &Memory, slot: Slot, slice_ns: u64) -> Result<(), Trap> {
    let task = k.task(slot);
    let slice_ns = if slice_ns != 0 { slice_ns } else { task.slice(mem)?.max(1) };
    task.set_slice(mem, slice_ns)
}

/// `bool scx_bpf_dsq_insert(p, dsq_id, slice, enq_flags)`, `scx_bpf_dispatch` in 6.12.
pub(super) fn insert(k: &mut Kernel, mem: &Memory, [task, dsq, slice, flags, _]: [u64; 5]) -> Ret {
    let call = preamble(k, (task, dsq, flags), "scx_bpf_dsq_insert")?;
    let Some((slot, flags)) = call else { return Ok(0) };
    apply_slice(k, mem, slot, slice)?;
    k.dispatch_commit(slot, dsq, flags);
    Ok(1)
}

/// `scx_bpf_dsq_insert_vtime(p, dsq_id, slice, vtime, enq_flags)`, `scx_bpf_dispatch_vtime` in 6.12.
pub(super) fn insert_vtime(
    k: &mut Kernel,
    mem: &Memory,
    [task, dsq, slice, vtime, flags]: [u64; 5],
) -> Ret {
    let call = preamble(k, (task, dsq, flags), "scx_bpf_dsq_insert_vtime")?;
    let Some((slot, flags)) = call else { return Ok(0) };
    apply_slice(k, mem, slot, slice)?;
    k.task(slot).set_vtime(mem, vtime)?;
    k.dispatch_commit(slot, dsq, flags | enq::DSQ_PRIQ);
    Ok(1)
}

/// The same with its arguments in a structure (6.19).
pub(super) fn insert_vtime_args(k: &mut Kernel, mem: &Memory, [task, args, ..]: [u64; 5]) -> Ret {
    let mut word = [0; 4];
    for (at, value) in word.iter_mut().enumerate() {
        *value = mem.load_u64(args + at as u64 * 8)?;
    }
    let [dsq, slice, vtime, flags] = word;
    insert_vtime(k, mem, [task, dsq, slice, vtime, flags])
}

/// `scx_bpf_dispatch_nr_slots()`.
pub(super) fn nr_slots(k: &mut Kernel, _: &Memory, _: [u64; 5]) -> Ret {
    if !k.kf_allowed(kf::DISPATCH) {
        return Ok(0);
    }
    Ok(k.buffer.free())
}

/// `scx_bpf_dispatch_cancel()`.
pub(super) fn cancel(k: &mut Kernel, _: &Memory, _: [u64; 5]) -> Ret {
    if k.kf_allowed(kf::DISPATCH) && !k.buffer.cancel() {
        k.error("dispatch buffer underflow");
    }
    Ok(0)
}

/// `bool scx_bpf_dsq_move_to_local(dsq_id)`, `scx_bpf_consume` in 6.12.
pub(super) fn move_to_local(k: &mut Kernel, mem: &Memory, [dsq_id, ..]: [u64; 5]) -> Ret {
    move_to_local_with(k, mem, [dsq_id, 0, 0, 0, 0])
}

/// `bool scx_bpf_dsq_move_to_local___v2(dsq_id, enq_flags)` (7.1).
pub(super) fn move_to_local_with(
    k: &mut Kernel,
    mem: &Memory,
    [dsq_id, enq_flags, ..]: [u64; 5],
) -> Ret {
    if !k.kf_allowed(kf::DISPATCH) {
        return Ok(0);
    }
    if enq_flags & enq::INTERNAL_MASK != 0 {
        k.error(format!("invalid enq_flags {enq_flags:#x}"));
        return Ok(0);
    }
    let Some(enq_flags) = k.vet_enq_flags(dsq::LOCAL, enq_flags) else { return Ok(0) };
    let cpu = k.this_cpu;
    k.flush_dispatch_buffer(mem, cpu)?;
    let Some(dsq) = k.queues.user(dsq_id) else {
        k.error(format!("invalid DSQ ID 0x{dsq_id:016x}"));
        return Ok(0);
    };
    let moved = k.consume(mem, cpu, dsq, enq_flags)?;
    if moved {
        k.buffer.count_move();
    }
    Ok(u64::from(moved))
}

/// `u32 scx_bpf_reenqueue_local()`, only from `ops.cpu_release()`: the number of tasks in the CPU's local queue, which
/// go to the scheduler again once the callback is over.
pub(super) fn reenqueue_local(k: &mut Kernel, mem: &Memory, _: [u64; 5]) -> Ret {
    if !k.kf_allowed(kf::CPU_RELEASE) {
        return Ok(0);
    }
    reenqueue_local_anywhere(k, mem, [0; 5])?;
    Ok(u64::from(k.queues.len(k.cpus[k.this_cpu as usize].local)))
}

/// `scx_bpf_reenqueue_local___v2()` (6.19): the same from any callback.
pub(super) fn reenqueue_local_anywhere(k: &mut Kernel, _: &Memory, _: [u64; 5]) -> Ret {
    k.ask_again(DsqRef::Local(k.this_cpu), true);
    Ok(0)
}

/// `bool scx_bpf_sub_dispatch(cgroup_id)` (7.1): no cgroup has a scheduler of its own.
pub(super) fn sub_dispatch(_: &mut Kernel, _: &Memory, _: [u64; 5]) -> Ret {
    Ok(0)
}
