//! Iterating over a dispatch queue, and moving the tasks that an iteration meets.

use fairground_bpf::{Memory, Trap};

use super::{Ret, s32};
use crate::abi::{dsq_iter, enq, errno};
use crate::dsq::Cursor;
use crate::kernel::{Kernel, Slot};
use crate::op::kf;

/// The opaque words of a `struct bpf_iter_scx_dsq`: the cursor's number plus 1 (0: none), overrides, slice, vtime.
const CURSOR: u64 = 0;
const OVERRIDES: u64 = 8;
const SLICE: u64 = 16;
const VTIME: u64 = 24;

const HAS_SLICE: u64 = 1;
const HAS_VTIME: u64 = 2;

fn cursor(mem: &Memory, it: u64) -> Result<Option<Cursor>, Trap> {
    let number = mem.load_u64(it + CURSOR)?;
    Ok(number.checked_sub(1).map(|n| Cursor(n as u32)))
}

/// `int bpf_iter_scx_dsq_new(it, dsq_id, flags)`.
pub(super) fn new(k: &mut Kernel, mem: &Memory, [it, id, flags, ..]: [u64; 5]) -> Ret {
    for word in [CURSOR, OVERRIDES] {
        mem.store_u64(it + word, 0)?;
    }
    if flags & !dsq_iter::REV != 0 {
        return Ok(s32(errno::EINVAL));
    }
    let Some(queue) = k.queues.user(id) else { return Ok(s32(errno::ENOENT)) };
    let begun = k.queues.begin(queue, flags & dsq_iter::REV != 0);
    let cursor = begun.map_err(|error| Trap::host(format!("bpf_iter_scx_dsq_new(): {error}")))?;
    mem.store_u64(it + CURSOR, u64::from(cursor.0) + 1)?;
    Ok(0)
}

/// `struct task_struct *bpf_iter_scx_dsq_next(it)`.
pub(super) fn next(k: &mut Kernel, mem: &Memory, [it, ..]: [u64; 5]) -> Ret {
    let Some(cursor) = cursor(mem, it)? else { return Ok(0) };
    let Some(number) = k.queues.advance(cursor) else { return Ok(0) };
    Ok(k.tasks.addr(Slot(number)))
}

/// `bpf_iter_scx_dsq_destroy(it)`.
pub(super) fn destroy(k: &mut Kernel, mem: &Memory, [it, ..]: [u64; 5]) -> Ret {
    if let Some(cursor) = cursor(mem, it)? {
        k.queues.end(cursor);
        mem.store_u64(it + CURSOR, 0)?;
    }
    Ok(0)
}

/// `bool scx_bpf_dsq_move(it, p, dsq_id, enq_flags)`, `scx_bpf_dispatch_from_dsq` in 6.12.
pub(super) fn move_fifo(k: &mut Kernel, mem: &Memory, [it, task, id, flags, _]: [u64; 5]) -> Ret {
    move_task(k, mem, it, task, id, flags)
}

/// `bool scx_bpf_dsq_move_vtime(it, p, dsq_id, enq_flags)`, `scx_bpf_dispatch_vtime_from_dsq` in 6.12.
pub(super) fn move_vtime(k: &mut Kernel, mem: &Memory, [it, task, id, flags, _]: [u64; 5]) -> Ret {
    move_task(k, mem, it, task, id, flags | enq::DSQ_PRIQ)
}

/// `scx_dispatch_from_dsq`: moves a task that the iteration visits, if it is still there.
fn move_task(k: &mut Kernel, mem: &Memory, it: u64, task: u64, id: u64, flags: u64) -> Ret {
    let Some(cursor) = cursor(mem, it)? else { return Ok(0) };
    if !k.permission.is_unlocked() && !k.kf_allowed(kf::DISPATCH) {
        return Ok(0);
    }
    let slot = k.need_task(task, "scx_bpf_dsq_move")?;
    let Some(flags) = k.vet_enq_flags(id, flags) else { return Ok(0) };
    let overrides = mem.load_u64(it + OVERRIDES)?;
    mem.store_u64(it + OVERRIDES, 0)?;
    if !k.queues.visits(cursor, slot.0).is_some_and(|(_, seen)| seen) {
        return Ok(0);
    }
    let cpu = k.this_cpu;
    let target = k.dsq_for_dispatch(cpu, id, slot);
    if overrides & HAS_VTIME != 0 {
        k.task(slot).set_vtime(mem, mem.load_u64(it + VTIME)?)?;
    }
    if overrides & HAS_SLICE != 0 {
        k.task(slot).set_slice(mem, mem.load_u64(it + SLICE)?)?;
    }
    k.move_between(mem, slot, target, flags)?;
    Ok(1)
}

/// `scx_bpf_dsq_move_set_slice(it, slice)`.
pub(super) fn set_slice(_: &mut Kernel, mem: &Memory, [it, slice, ..]: [u64; 5]) -> Ret {
    mem.store_u64(it + SLICE, slice)?;
    mem.store_u64(it + OVERRIDES, mem.load_u64(it + OVERRIDES)? | HAS_SLICE)?;
    Ok(0)
}

/// `scx_bpf_dsq_move_set_vtime(it, vtime)`.
pub(super) fn set_vtime(_: &mut Kernel, mem: &Memory, [it, vtime, ..]: [u64; 5]) -> Ret {
    mem.store_u64(it + VTIME, vtime)?;
    mem.store_u64(it + OVERRIDES, mem.load_u64(it + OVERRIDES)? | HAS_VTIME)?;
    Ok(0)
}
