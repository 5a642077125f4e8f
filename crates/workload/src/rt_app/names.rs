//! Objects that events name; they exist because they are named.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::cgroups;
use crate::limits::CGROUP_WEIGHT_DEFAULT;
use crate::model::{Barrier, Cgroup, Condition, Lock, LockKind, Queue, TaskSpec, Timer, Workload};
use crate::spans::Spans;

/// Names of one kind, in the order of their first use.
#[derive(Debug, Default)]
pub(super) struct Kind {
    indices: BTreeMap<String, usize>,
    list: Vec<(String, Range<usize>)>,
}

impl Kind {
    /// The index of a name.
    pub(super) fn index(&mut self, name: &str, span: &Range<usize>) -> usize {
        if let Some(&index) = self.indices.get(name) {
            return index;
        }
        self.indices.insert(name.to_owned(), self.list.len());
        self.list.push((name.to_owned(), span.clone()));
        self.list.len() - 1
    }

    fn list<T>(&self, spans: &mut Vec<Range<usize>>, make: impl Fn(usize, String) -> T) -> Vec<T> {
        spans.extend(self.list.iter().map(|(_, span)| span.clone()));
        self.list.iter().enumerate().map(|(index, (name, _))| make(index, name.clone())).collect()
    }
}

/// All names.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub(super) locks: Kind,
    pub(super) conditions: Kind,
    pub(super) semaphores: Kind,
    pub(super) barriers: Kind,
    /// The number of tasks of each barrier.
    pub(super) comers: Vec<u64>,
    pub(super) timers: Vec<(Timer, Range<usize>)>,
    pub(super) timer_names: BTreeSet<String>,
    /// Their indexes, by name in the file and mode (relative or not).
    pub(super) timer_indices: BTreeMap<(String, bool), usize>,
    /// Timers that an event calls absolute, by thread and name.
    pub(super) absolute: BTreeSet<(Option<usize>, String)>,
    /// The group that a fork of a thread starts, by the thread's name.
    pub(super) forked: BTreeMap<String, usize>,
    /// Paths without the leading `/`, with the first location of each.
    pub(super) cgroups: BTreeMap<String, Range<usize>>,
    /// Their tree, once all threads have been read.
    pub(super) tree: Vec<Cgroup>,
}

impl Names {
    /// The index of a cgroup; `None` when there is only the root.
    pub(super) fn cgroup(&self, path: &str) -> Option<usize> {
        cgroups::find(&self.tree, if path.is_empty() { cgroups::ROOT } else { path })
    }

    /// The cgroups, including parents.
    pub(super) fn cgroup_tree(&self) -> Vec<Cgroup> {
        if self.cgroups.is_empty() {
            return Vec::new();
        }
        let below = self.cgroups.keys().filter(|path| !path.is_empty());
        cgroups::tree(below.map(|path| (path.clone(), CGROUP_WEIGHT_DEFAULT)).collect())
    }

    /// Adds all named objects to the workload.
    pub(super) fn fill(&self, workload: &mut Workload, spans: &mut Spans, pi_enabled: bool) {
        let kind = if pi_enabled { LockKind::RtMutex } else { LockKind::Mutex };
        workload.locks = self.locks.list(&mut spans.locks, |_, name| Lock {
            name,
            kind,
            adaptive: true,
            steal: true,
        });
        workload.conditions =
            self.conditions.list(&mut spans.conditions, |_, name| Condition { name });
        workload.queues = self.semaphores.list(&mut spans.queues, |_, name| Queue {
            name,
            capacity: None,
            initial: 0,
        });
        workload.barriers = self.barriers.list(&mut spans.barriers, |index, name| Barrier {
            name,
            count: u32::try_from(self.comers[index]).unwrap_or(u32::MAX),
        });
        workload.timers = self.timers.iter().map(|(timer, _)| timer.clone()).collect();
        spans.timers = self.timers.iter().map(|(_, span)| span.clone()).collect();
        workload.cgroups = self.tree.clone();
        let location = |cgroup: &Cgroup| self.cgroups.get(&cgroup.path).cloned().unwrap_or(0..0);
        spans.cgroups = workload.cgroups.iter().map(location).collect();
    }
}

/// A group of a thread's tasks, without its program.
pub(super) fn group(name: String, count: u32, start_ns: Option<u64>) -> TaskSpec {
    TaskSpec {
        name,
        count,
        nice: 0,
        cpus: None,
        cgroup: None,
        start_ns,
        program: Vec::new(),
        on_signal: Vec::new(),
    }
}
