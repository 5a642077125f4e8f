//! The union of two workloads.

use crate::cgroups::{self, Cgroup, ROOT};
use crate::model::{CgroupId, TaskSpec, Workload};
use crate::objects::ObjectKind;
use crate::operations::renumber;

/// Adds the objects of one workload to another. One whose name is taken gets another name.
pub(crate) fn join(into: &mut Workload, mut part: Workload) {
    join_cgroups(into, &mut part);
    for task in &mut part.tasks {
        renumber_task(task, &|kind, index| match kind {
            ObjectKind::Cgroup => index,
            kind => index + into.count(kind),
        });
    }
    append(&mut into.tasks, part.tasks, |task| &mut task.name);
    append(&mut into.pipes, part.pipes, |pipe| &mut pipe.name);
    append(&mut into.conditions, part.conditions, |condition| &mut condition.name);
    append(&mut into.barriers, part.barriers, |barrier| &mut barrier.name);
    append(&mut into.locks, part.locks, |lock| &mut lock.name);
    append(&mut into.queues, part.queues, |queue| &mut queue.name);
    append(&mut into.timers, part.timers, |timer| &mut timer.name);
    into.hangs |= part.hangs;
    into.description = format!("{}; {}", into.description, part.description);
}

/// Appends named objects to others of their kind.
fn append<T>(into: &mut Vec<T>, part: Vec<T>, name: fn(&mut T) -> &mut String) {
    let mut taken: Vec<String> = into.iter_mut().map(|known| name(known).clone()).collect();
    for mut thing in part {
        let free = free_name(taken.iter(), std::mem::take(name(&mut thing)));
        name(&mut thing).clone_from(&free);
        taken.push(free);
        into.push(thing);
    }
}

/// The name, or `name-2`, `name-3` …
pub(crate) fn free_name<'n>(
    taken: impl Iterator<Item = &'n String> + Clone,
    name: String,
) -> String {
    let is_free = |candidate: &String| !taken.clone().any(|taken| taken == candidate);
    let others = (2_usize..).map(|number| format!("{name}-{number}"));
    let mut candidates = std::iter::once(name.clone()).chain(others);
    candidates.find(is_free).unwrap_or(name)
}

/// Makes one tree of the cgroups of both; `part` has none afterwards. A top-level name that both have gets another name
/// in the part.
fn join_cgroups(into: &mut Workload, part: &mut Workload) {
    if part.cgroups.is_empty() {
        return;
    }
    let below_root =
        |workload: &Workload| -> Vec<Cgroup> { workload.cgroups.iter().skip(1).cloned().collect() };
    let mut all = below_root(into);
    let taken: Vec<String> = all.iter().map(|cgroup| top(&cgroup.path).to_owned()).collect();
    let mut part_paths = vec![ROOT.to_owned()];
    for cgroup in below_root(part) {
        let name = top(&cgroup.path);
        let below = &cgroup.path[name.len()..];
        let path = format!("{}{below}", free_name(taken.iter(), name.to_owned()));
        part_paths.push(path.clone());
        all.push(Cgroup { path, ..cgroup });
    }
    let into_paths: Vec<String> = into.cgroups.iter().map(|c| c.path.clone()).collect();
    let list = cgroups::tree(all);
    for (tasks, paths) in [(&mut into.tasks, into_paths), (&mut part.tasks, part_paths)] {
        let map: Vec<CgroupId> =
            paths.iter().map(|path| cgroups::find(&list, path).unwrap_or(0)).collect();
        for task in tasks {
            task.cgroup = task.cgroup.map(|cgroup| map[cgroup]);
            renumber_task(task, &|kind, index| match kind {
                ObjectKind::Cgroup => map[index],
                _ => index,
            });
        }
    }
    into.cgroups = list;
    part.cgroups = Vec::new();
}

fn top(path: &str) -> &str {
    path.split_once('/').map_or(path, |(top, _)| top)
}

fn renumber_task(task: &mut TaskSpec, map: &impl Fn(ObjectKind, usize) -> usize) {
    renumber(&mut task.program, map);
    renumber(&mut task.on_signal, map);
}
