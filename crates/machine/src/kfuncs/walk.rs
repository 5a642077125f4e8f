//! Walks over cgroups (`bpf_iter_css`), the tasks of one (`bpf_iter_css_task`) and all tasks (`bpf_iter_task`). An
//! iterator holds where it is in its own words; what changes during the walk is met as it is then.

use fairground_bpf::{Memory, Trap};

use super::{Ret, s32};
use crate::abi::errno;
use crate::cgroup::{CgroupRef, PostOrder};
use crate::kernel::{Kernel, ScxState, Slot};
use crate::layout::offsets::cgroup as field;

/// `BPF_CGROUP_ITER_DESCENDANTS_PRE`, `_DESCENDANTS_POST`, `_ANCESTORS_UP`.
const DESCENDANTS_PRE: u64 = 2;
const DESCENDANTS_POST: u64 = 3;
const ANCESTORS_UP: u64 = 4;

/// The words of a `struct bpf_iter_css`: the first cgroup plus 1 (0: none); how many were met, or, with children first,
/// the place plus 1 (0: none was met); and the order with the distance of its `struct cgroup_subsys_state` from the
/// cgroup.
const START: u64 = 0;
const MET: u64 = 8;
const ORDER: u64 = 16;
/// The position of the distance in the third word.
const DISTANCE_SHIFT: u32 = 32;

/// The cgroup of a `struct cgroup_subsys_state`, that of the cgroup itself or of its task group, and its distance.
fn css_at(k: &Kernel, css: u64) -> Option<(CgroupRef, u64)> {
    let places = [0, field::TG].into_iter();
    places.filter_map(|distance| Some((k.cgroups.at(css.wrapping_sub(distance))?, distance))).next()
}

/// `int bpf_iter_css_new(it, start, flags)`.
pub(super) fn css_new(k: &mut Kernel, mem: &Memory, [it, start, order, ..]: [u64; 5]) -> Ret {
    mem.store_u64(it + START, 0)?;
    let order = u64::from(order as u32);
    let known = [DESCENDANTS_PRE, DESCENDANTS_POST, ANCESTORS_UP].contains(&order);
    let Some((cgroup, distance)) = css_at(k, start).filter(|_| known) else {
        return Ok(s32(errno::EINVAL));
    };
    mem.store_u64(it + START, u64::from(cgroup.0) + 1)?;
    mem.store_u64(it + MET, 0)?;
    mem.store_u64(it + ORDER, order | distance << DISTANCE_SHIFT)?;
    Ok(0)
}

/// `struct cgroup_subsys_state *bpf_iter_css_next(it)`.
pub(super) fn css_next(k: &mut Kernel, mem: &Memory, [it, ..]: [u64; 5]) -> Ret {
    let Some(start) = mem.load_u64(it + START)?.checked_sub(1) else { return Ok(0) };
    let (start, met) = (CgroupRef(start as u32), mem.load_u64(it + MET)?);
    let order = mem.load_u64(it + ORDER)?;
    let distance = order >> DISTANCE_SHIFT;
    let level = i64::from(k.cgroups.get(start).level);
    let (found, met) = match order & u64::from(u32::MAX) {
        ANCESTORS_UP => (k.cgroups.ancestor(start, level - met as i64), met + 1),
        DESCENDANTS_PRE => (k.cgroups.next_pre_order(start, met), met + 1),
        _ => {
            let place = met
                .checked_sub(1)
                .map(|met| PostOrder { cgroup: CgroupRef(met as u32), opened: (met >> 32) as u32 });
            let next = k.cgroups.next_post_order(start, place);
            let word = |at: PostOrder| (u64::from(at.opened) << 32 | u64::from(at.cgroup.0)) + 1;
            (next.map(|at| at.cgroup), next.map_or(met, word))
        }
    };
    mem.store_u64(it + MET, met)?;
    Ok(found.map_or(0, |cgroup| k.cgroups.addr(cgroup) + distance))
}

/// `*_destroy(it)`: the iterator meets nothing more.
pub(super) fn destroy(_: &mut Kernel, mem: &Memory, [it, ..]: [u64; 5]) -> Ret {
    mem.store_u64(it, 0).map(|()| 0)
}

/// The next living task at or after a place, for which a condition holds.
fn living(k: &Kernel, from: u32, holds: impl Fn(Slot) -> bool) -> Option<Slot> {
    let lives = |slot: &Slot| {
        k.tasks.get(*slot).is_some_and(|task| task.scx_state != ScxState::None) && holds(*slot)
    };
    (from..k.tasks.len() as u32).map(Slot).find(lives)
}

/// `CSS_TASK_ITER_PROCS`, `CSS_TASK_ITER_THREADED`: leaders only, and those of threaded cgroups. Each task is a leader.
const CSS_TASK_FLAGS: [u64; 3] = [0, 1, 3];

/// `int bpf_iter_css_task_new(it, css, flags)`. Its only word: the cgroup plus 1, and the next task's place.
pub(super) fn css_task_new(k: &mut Kernel, mem: &Memory, [it, css, flags, ..]: [u64; 5]) -> Ret {
    let known = CSS_TASK_FLAGS.contains(&u64::from(flags as u32));
    let Some((cgroup, _)) = css_at(k, css).filter(|_| known) else {
        mem.store_u64(it, 0)?;
        return Ok(s32(errno::EINVAL));
    };
    mem.store_u64(it, (u64::from(cgroup.0) + 1) << 32)?;
    Ok(0)
}

/// `struct task_struct *bpf_iter_css_task_next(it)`: the tasks of that cgroup, not of those below.
pub(super) fn css_task_next(k: &mut Kernel, mem: &Memory, [it, ..]: [u64; 5]) -> Ret {
    let word = mem.load_u64(it)?;
    let Some(cgroup) = (word >> 32).checked_sub(1) else { return Ok(0) };
    let is_there = |slot: Slot| u64::from(k.task(slot).cgroup.0) == cgroup;
    let found = living(k, word as u32, is_there);
    let next = found.map_or(k.tasks.len() as u32, |slot| slot.0 + 1);
    mem.store_u64(it, word & !u64::from(u32::MAX) | u64::from(next))?;
    Ok(found.map_or(0, |slot| k.task(slot).addr))
}

/// `BPF_TASK_ITER_ALL_PROCS`, `_ALL_THREADS`: the same here, and `_PROC_THREADS`: the task alone.
const PROC_THREADS: u64 = 2;
/// The words of a `struct bpf_iter_task`: the next task's place plus 1 (0: at the end), and whether only that one is
/// met.
const NEXT: u64 = 0;
const ALONE: u64 = 8;

/// `int bpf_iter_task_new(it, task, flags)`.
pub(super) fn task_new(k: &mut Kernel, mem: &Memory, [it, task, flags, ..]: [u64; 5]) -> Ret {
    let flags = u64::from(flags as u32);
    mem.store_u64(it + NEXT, 0)?;
    let next = match flags {
        PROC_THREADS if task != 0 => k.need_task(task, "bpf_iter_task_new")?.0,
        ..PROC_THREADS => 0,
        _ => return Ok(s32(errno::EINVAL)),
    };
    mem.store_u64(it + NEXT, u64::from(next) + 1)?;
    mem.store_u64(it + ALONE, u64::from(flags == PROC_THREADS))?;
    Ok(0)
}

/// `struct task_struct *bpf_iter_task_next(it)`.
pub(super) fn task_next(k: &mut Kernel, mem: &Memory, [it, ..]: [u64; 5]) -> Result<u64, Trap> {
    let Some(from) = mem.load_u64(it + NEXT)?.checked_sub(1) else { return Ok(0) };
    let found = living(k, from as u32, |_| true);
    let ends = mem.load_u64(it + ALONE)? != 0;
    let next = found.filter(|_| !ends).map_or(0, |slot| u64::from(slot.0) + 2);
    mem.store_u64(it + NEXT, next)?;
    Ok(found.map_or(0, |slot| k.task(slot).addr))
}
