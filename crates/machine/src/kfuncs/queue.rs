//! Creates, destroys and inspects dispatch queues.

use fairground_bpf::Memory;

use super::{Ret, int, s32};
use crate::abi::{dsq, errno};
use crate::dsq::DsqError;
use crate::dsq::DsqRef;
use crate::kernel::{Kernel, Slot};

/// `SCX_REENQ_ANY`: every task; the same as no flag.
const REENQ_ANY: u64 = 1;

/// `NUMA_NO_NODE`.
const ANY_NODE: i64 = -1;

/// `s32 scx_bpf_create_dsq(dsq_id, node)`.
pub(super) fn create(k: &mut Kernel, _: &Memory, [id, node, ..]: [u64; 5]) -> Ret {
    let node = int(node);
    let nodes = i64::from(k.topology.nodes());
    if node >= nodes || (node < 0 && node != ANY_NODE) || id & dsq::FLAG_BUILTIN != 0 {
        return Ok(s32(errno::EINVAL));
    }
    Ok(match k.queues.create_user(id) {
        Ok(_) => 0,
        Err(DsqError::Exists) => s32(errno::EEXIST),
        Err(_) => s32(errno::ENOMEM),
    })
}

/// `scx_bpf_destroy_dsq(dsq_id)`.
pub(super) fn destroy(k: &mut Kernel, _: &Memory, [id, ..]: [u64; 5]) -> Ret {
    k.destroy_dsq(id);
    Ok(0)
}

/// `s32 scx_bpf_dsq_nr_queued(dsq_id)`.
pub(super) fn nr_queued(k: &mut Kernel, _: &Memory, [id, ..]: [u64; 5]) -> Ret {
    let queue = if id == dsq::LOCAL {
        Some(k.cpus[k.this_cpu as usize].local)
    } else if id & dsq::LOCAL_ON == dsq::LOCAL_ON {
        let cpu = k.named_cpu(i64::from((id & dsq::LOCAL_CPU_MASK) as u32 as i32), "");
        cpu.map(|cpu| k.cpus[cpu as usize].local)
    } else {
        k.queues.user(id)
    };
    Ok(queue.map_or(s32(errno::ENOENT), |queue| u64::from(k.queues.len(queue))))
}

/// `struct task_struct *scx_bpf_dsq_peek(dsq_id)` (6.19): the first task of a user queue, or NULL.
pub(super) fn peek(k: &mut Kernel, _: &Memory, [id, ..]: [u64; 5]) -> Ret {
    if id & dsq::FLAG_BUILTIN != 0 {
        k.error(format!("peeking disallowed on builtin DSQ {id:#x}"));
        return Ok(0);
    }
    let Some(queue) = k.queues.user(id) else {
        k.error(format!("peeking non-existent DSQ {id:#x}"));
        return Ok(0);
    };
    Ok(k.queues.first(queue).map_or(0, |number| k.task(Slot(number)).addr))
}

/// `scx_bpf_dsq_reenq(dsq_id, flags)` (7.1): the tasks of a local or user queue go to the scheduler again, with
/// `SCX_ENQ_REENQ`, once the callback is over.
pub(super) fn reenqueue(k: &mut Kernel, _: &Memory, [id, flags, ..]: [u64; 5]) -> Ret {
    if flags & !REENQ_ANY != 0 {
        k.error(format!("invalid SCX_REENQ flags {flags:#x}"));
        return Ok(0);
    }
    let this = k.this_cpu;
    let queue = match id {
        dsq::LOCAL => Some(DsqRef::Local(this)),
        _ if id & dsq::LOCAL_ON == dsq::LOCAL_ON => {
            let cpu = i64::from((id & dsq::LOCAL_CPU_MASK) as u32 as i32);
            k.named_cpu(cpu, "in scx_bpf_dsq_reenq()").map(DsqRef::Local)
        }
        _ => k.queues.user(id).map(|queue| DsqRef::User(queue, id)),
    };
    match queue {
        Some(queue) => k.ask_again(queue, true),
        None => k.error(format!("DSQ {id:#x} cannot be re-enqueued: it is no local or user queue")),
    }
    Ok(0)
}
