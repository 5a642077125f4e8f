//! Changes that tasks make to themselves and to cgroups during the run.

use super::draft::Draft;
use super::placement::{affinity, cgroup, nice, weight};
use crate::model::{Op, Program};

/// Changes of one group.
const CHANGES_MAX: u64 = 3;
/// Slices that a task asks for, ns.
const SLICE_NS: (u64, u64) = (200_000, 20_000_000);

/// Puts changes into some of the endless programs.
pub(super) fn change(draft: &mut Draft) {
    for group in 0..draft.workload.tasks.len() {
        if !draft.one_in(4) {
            continue;
        }
        let Some(last) = draft.workload.tasks[group].program.pop() else { continue };
        let mut program = std::mem::take(&mut draft.workload.tasks[group].program);
        let count = draft.prng.between(1, CHANGES_MAX);
        for _ in 0..count {
            let Some(part) = first_part(draft, group, &last, count) else { break };
            program.push(part);
            program.extend(changes(draft));
        }
        program.push(last);
        draft.workload.tasks[group].program = program;
    }
}

/// The beginning of an endless operation: about as much of it as passes until the next change. `None` where it ends.
fn first_part(draft: &mut Draft, group: usize, endless: &Op, changes: u64) -> Option<Op> {
    let wall_ns = draft.moment(10, 70) / changes;
    // Where the CPUs are overloaded, everything takes longer.
    let alone_ns = wall_ns * 100 / draft.load_percent.max(100);
    match (endless, draft.cycles_ns[group]) {
        (Op::RunForever, _) => Some(Op::Run(draft.length(alone_ns))),
        (Op::Loop(None, body), cycle_ns) if cycle_ns > 0 => {
            Some(Op::Loop(Some((alone_ns / cycle_ns).max(1)), body.clone()))
        }
        _ => None,
    }
}

/// One change, with a mark at times: a mark takes CPU time that no workload without one takes.
fn changes(draft: &mut Draft) -> Program {
    let has_cgroups = !draft.workload.cgroups.is_empty();
    let change = match draft.prng.below(6) {
        0 if draft.cpus > 1 => Op::SetAffinity(affinity(draft)),
        1 if has_cgroups => Op::SetCgroup(cgroup(draft)),
        2 | 3 if has_cgroups => {
            let changed = cgroup(draft);
            Op::SetCgroupWeight(changed, weight(draft))
        }
        4 => Op::SetSlice(draft.magnitude(SLICE_NS.0, SLICE_NS.1)),
        _ => Op::SetNice(nice(draft)),
    };
    match draft.one_in(4) {
        true => vec![Op::Mark("change".to_owned()), change],
        false => vec![change],
    }
}
