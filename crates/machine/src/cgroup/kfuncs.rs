//! Cgroups.
//!
//! References are not counted: a cgroup lives from before the scheduler is loaded until after it is taken out.

use fairground_bpf::Memory;

use crate::cgroup::CgroupRef;
use crate::kernel::Kernel;
use crate::kfuncs::registers::{Ret, int};
use crate::op::kf;

/// `struct cgroup *scx_bpf_task_cgroup(p)`: the cgroup from the scheduler's point of view. Only about a task that the
/// callback is called for, and not from `ops.dispatch()`, `ops.init_task()` or a callback that may sleep: anything else
/// ejects the scheduler and gives the root, as in the kernel.
pub(crate) fn task_cgroup(k: &mut Kernel, _: &Memory, [task, ..]: [u64; 5]) -> Ret {
    let slot = k.need_task(task, "scx_bpf_task_cgroup")?;
    let allowed = k.kf_allowed_on(kf::RQ_LOCKED, slot);
    let cgroup = if allowed { k.task(slot).cgroup } else { CgroupRef::ROOT };
    Ok(k.cgroups.addr(cgroup))
}

/// `struct cgroup *bpf_cgroup_acquire(cgrp)`.
pub(crate) fn acquire(k: &mut Kernel, _: &Memory, [cgroup, ..]: [u64; 5]) -> Ret {
    k.need_cgroup(cgroup, "bpf_cgroup_acquire")?;
    Ok(cgroup)
}

/// `bpf_cgroup_release(cgrp)`.
pub(crate) fn release(k: &mut Kernel, _: &Memory, [cgroup, ..]: [u64; 5]) -> Ret {
    k.need_cgroup(cgroup, "bpf_cgroup_release")?;
    Ok(0)
}

/// `struct cgroup *bpf_cgroup_ancestor(cgrp, level)`: NULL for a level that it does not have.
pub(crate) fn ancestor(k: &mut Kernel, _: &Memory, [cgroup, level, ..]: [u64; 5]) -> Ret {
    let cgroup = k.need_cgroup(cgroup, "bpf_cgroup_ancestor")?;
    Ok(k.cgroups.ancestor(cgroup, int(level)).map_or(0, |found| k.cgroups.addr(found)))
}

/// `struct cgroup *bpf_cgroup_from_id(id)`: by `cgrp->kn->id`; NULL when there is none.
pub(crate) fn from_id(k: &mut Kernel, _: &Memory, [id, ..]: [u64; 5]) -> Ret {
    Ok(k.cgroups.of_kn_id(id).map_or(0, |found| k.cgroups.addr(found)))
}

/// `long bpf_task_under_cgroup(task, ancestor)`: 1 when the task is in the cgroup or below it.
pub(crate) fn task_under(k: &mut Kernel, _: &Memory, [task, ancestor, ..]: [u64; 5]) -> Ret {
    let cgroup = match k.tasks.resident_at(task) {
        Some(_) => CgroupRef::ROOT,
        None => {
            let slot = k.need_task(task, "bpf_task_under_cgroup")?;
            k.task(slot).cgroup
        }
    };
    let ancestor = k.need_cgroup(ancestor, "bpf_task_under_cgroup")?;
    let level = i64::from(k.cgroups.get(ancestor).level);
    Ok(u64::from(k.cgroups.ancestor(cgroup, level) == Some(ancestor)))
}
