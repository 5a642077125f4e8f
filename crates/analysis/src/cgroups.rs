//! The figures of control groups.

use crate::Figures;
use crate::accounting::TaskAccount;
use crate::figures::jain_index;
use fairground_trace::{CgroupId, Trace};
use std::collections::BTreeSet;

/// The figures of a control group: of all tasks in it and below it, for the time in which they were there.
#[derive(Clone, Debug, PartialEq)]
pub struct CgroupMetrics {
    /// Which group.
    pub cgroup: CgroupId,
    /// Its path.
    pub path: String,
    /// How deep it lies; the root has level 0.
    pub level: u32,
    /// `cpu.weight` at the end of the window; `None` for the root, and where the trace does not say.
    pub weight: Option<u32>,
    /// The figures of its tasks together. [`Figures::tasks`] counts each task that was ever there once. The
    /// figures of one task that moved are divided at the move, so that they do not add up to the window.
    pub figures: Figures,
    /// How evenly its tasks got what they were due: Jain's index over run time / fluid service of its tasks. `None`
    /// when none was due anything.
    pub jain_index: Option<f64>,
}

/// The figures of every group of a trace, in its order.
pub(crate) fn metrics(
    trace: &Trace,
    tasks: &[TaskAccount],
    weights: &[Option<u32>],
) -> Vec<CgroupMetrics> {
    let infos = trace.cgroups();
    let mut groups: Vec<CgroupMetrics> = Vec::with_capacity(infos.len());
    let mut parents: Vec<Option<usize>> = Vec::with_capacity(infos.len());
    for (index, info) in infos.iter().enumerate() {
        let parent = info.parent.map_or(0, CgroupId::index);
        let parent = (index > 0).then_some(if parent < index { parent } else { 0 });
        groups.push(CgroupMetrics {
            cgroup: CgroupId(index as u32),
            path: info.path.clone(),
            level: parent.map_or(0, |parent| groups[parent].level + 1),
            weight: weights[index].filter(|_| index > 0),
            figures: Figures::default(),
            jain_index: None,
        });
        parents.push(parent);
    }
    let mut members: Vec<Vec<Figures>> = vec![Vec::new(); infos.len()];
    for task in tasks.iter().skip(1).filter(|_| !infos.is_empty()) {
        for (group, figures) in inclusive(task, &parents) {
            groups[group].figures.absorb(&figures);
            members[group].push(without_samples(figures));
        }
    }
    for (group, members) in groups.iter_mut().zip(members) {
        group.figures.members.sort_unstable();
        group.jain_index = jain_index(members.iter());
    }
    groups
}

/// The figures of a task in each group that it was in or below, each once.
fn inclusive(task: &TaskAccount, parents: &[Option<usize>]) -> Vec<(usize, Figures)> {
    let above = |from: usize| std::iter::successors(Some(from), |at| parents[*at]);
    if task.pieces.is_empty() {
        return above(task.cgroup).map(|group| (group, task.figures.clone())).collect();
    }
    let all: BTreeSet<usize> = task.pieces.iter().flat_map(|(at, _)| above(*at)).collect();
    let sum = |group: usize| {
        let mut figures = Figures::default();
        for (_, piece) in task.pieces.iter().filter(|(at, _)| above(*at).any(|g| g == group)) {
            figures.absorb(piece);
        }
        figures.tasks = 1;
        (group, figures)
    };
    all.into_iter().map(sum).collect()
}

/// Only what the index needs.
fn without_samples(figures: Figures) -> Figures {
    Figures { run_ns: figures.run_ns, fluid_ns: figures.fluid_ns, ..Figures::default() }
}
