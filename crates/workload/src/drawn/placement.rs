//! Where and with which weight the groups start: nice values, affinities, cgroups, starting times.

use super::draft::Draft;
use crate::cgroups::{Cgroup, tree};
use crate::model::CgroupId;
use crate::units::CpuList;

/// Names of cgroups; the last one lies in the first.
const CGROUPS: [&str; 4] = ["a", "b", "c", "a/d"];

/// Gives each group its place.
pub(super) fn place(draft: &mut Draft) {
    if draft.one_in(3) {
        let count = draft.prng.between(1, CGROUPS.len() as u64) as usize;
        let cgroups = CGROUPS[..count].iter().map(|path| Cgroup::new(*path, weight(draft)));
        draft.workload.cgroups = tree(cgroups.collect::<Vec<_>>());
    }
    for group in 0..draft.workload.tasks.len() {
        let is_forked = draft.workload.tasks[group].start_ns.is_none();
        if draft.one_in(3) {
            draft.workload.tasks[group].nice = nice(draft);
        }
        if draft.cpus > 1 && draft.one_in(4) {
            draft.workload.tasks[group].cpus = Some(affinity(draft));
        }
        let has_cgroups = !draft.workload.cgroups.is_empty();
        if has_cgroups && !is_forked && !draft.one_in(3) {
            draft.workload.tasks[group].cgroup = Some(cgroup(draft));
        }
        if !is_forked && draft.one_in(5) {
            draft.workload.tasks[group].start_ns = Some(draft.moment(1, 25));
        }
    }
}

/// Mostly near 0, sometimes any.
pub(super) fn nice(draft: &mut Draft) -> i8 {
    let reach = draft.pick(&[3, 5, 10, 19]);
    (draft.prng.between(0, 2 * reach) as i64 - reach as i64) as i8
}

/// Some of the CPUs, in one piece.
pub(super) fn affinity(draft: &mut Draft) -> CpuList {
    let last = u64::from(draft.cpus) - 1;
    let from = draft.prng.between(0, last);
    let to = draft.prng.between(from, last);
    CpuList(vec![(from as u32, to as u32)])
}

/// One of the cgroups below the root.
pub(super) fn cgroup(draft: &mut Draft) -> CgroupId {
    draft.prng.between(1, draft.workload.cgroups.len() as u64 - 1) as usize
}

/// A weight around the default of 100.
pub(super) fn weight(draft: &mut Draft) -> u32 {
    draft.magnitude(10, 1_000) as u32
}
