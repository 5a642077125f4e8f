//! Objects that events name; they exist because they are named.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::json::Value;
use crate::cgroups::{self, Cgroup};
use crate::limits::CGROUP_WEIGHT_DEFAULT;
use crate::model::{Barrier, Condition, Lock, LockKind, Queue, Timer, Workload};
use crate::objects::ObjectKind;
use crate::spans::Spans;

/// Prefix of the name of a thread's own timer.
pub(super) const UNIQUE: &str = "unique";

/// Names of one kind, in the order of their first use.
#[derive(Debug, Default)]
struct List {
    indices: BTreeMap<String, usize>,
    list: Vec<(String, Range<usize>)>,
}

impl List {
    fn index(&mut self, name: &str, span: &Range<usize>) -> usize {
        let next = self.list.len();
        let index = *self.indices.entry(name.to_owned()).or_insert(next);
        if index == next {
            self.list.push((name.to_owned(), span.clone()));
        }
        index
    }
}

/// All names.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Locks, conditions, semaphores (as queues) and barriers.
    lists: BTreeMap<ObjectKind, List>,
    /// The number of tasks of each barrier.
    comers: Vec<u64>,
    timers: Vec<(Timer, Range<usize>)>,
    timer_names: BTreeSet<String>,
    /// Their indexes, by name in the file and mode (relative or not).
    timer_indices: BTreeMap<(String, bool), usize>,
    /// Timers that an event calls absolute, by thread and name.
    absolute: BTreeSet<(Option<usize>, String)>,
    /// The group that a fork of a thread starts, by the thread's name.
    pub(super) forked: BTreeMap<String, usize>,
    /// Paths without the leading `/`, with the first location of each.
    pub(super) cgroups: BTreeMap<String, Range<usize>>,
    /// Their tree, once all threads have been read.
    pub(super) tree: Vec<Cgroup>,
}

impl Names {
    /// The index of a name.
    pub(super) fn index(&mut self, kind: ObjectKind, name: &str, span: &Range<usize>) -> usize {
        self.lists.entry(kind).or_default().index(name, span)
    }

    /// So many tasks come to a barrier.
    pub(super) fn come(&mut self, barrier: usize, tasks: u32) {
        self.comers.resize(self.comers.len().max(barrier + 1), 0);
        self.comers[barrier] += u64::from(tasks);
    }

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
        cgroups::tree(below.map(|path| Cgroup::new(path, CGROUP_WEIGHT_DEFAULT)))
    }

    /// Adds all named objects to the workload.
    pub(super) fn fill(self, workload: &mut Workload, spans: &mut Spans, pi_enabled: bool) {
        let kind = if pi_enabled { LockKind::RtMutex } else { LockKind::Mutex };
        for (object, list) in self.lists {
            for (index, (name, span)) in list.list.into_iter().enumerate() {
                spans.push(object, span);
                match object {
                    ObjectKind::Lock => workload.locks.push(Lock::new(name, kind)),
                    ObjectKind::Condition => workload.conditions.push(Condition { name }),
                    ObjectKind::Barrier => {
                        let count = u32::try_from(self.comers[index]).unwrap_or(u32::MAX);
                        workload.barriers.push(Barrier { name, count });
                    }
                    _ => workload.queues.push(Queue::unlimited(name)),
                }
            }
        }
        for (timer, span) in self.timers {
            spans.push(ObjectKind::Timer, span);
            workload.timers.push(timer);
        }
        for cgroup in &self.tree {
            let location = self.cgroups.get(&cgroup.path).cloned();
            spans.push(ObjectKind::Cgroup, location.unwrap_or(0..0));
        }
        workload.cgroups = self.tree;
    }

    /// Records that a timer is absolute: one event that says so suffices, in any position.
    pub(super) fn timer_mode(&mut self, thread: usize, timer: &Value) {
        let text = |key: &str| {
            timer.members().iter().find(|member| member.key == key).and_then(|m| m.value.text())
        };
        if let (Some(name), Some("absolute")) = (text("ref"), text("mode")) {
            self.absolute.insert((scope(thread, name), name.to_owned()));
        }
    }

    /// The index of a timer. Threads whose timers of one name differ in mode have two.
    pub(super) fn timer(
        &mut self,
        thread: usize,
        name: &str,
        period_ns: u64,
        span: &Range<usize>,
    ) -> usize {
        let relative = !self.absolute.contains(&(scope(thread, name), name.to_owned()));
        let key = (name.to_owned(), relative);
        if let Some(&index) = self.timer_indices.get(&key) {
            return index;
        }
        let mut unused = name.to_owned();
        // Terminates: each iteration makes the name longer, and there are finitely many.
        while !self.timer_names.insert(unused.clone()) {
            unused += if relative { "-relative" } else { "-absolute" };
        }
        let timer = Timer { name: unused, period_ns, relative, shared: !name.starts_with(UNIQUE) };
        self.timers.push((timer, span.clone()));
        self.timer_indices.insert(key, self.timers.len() - 1);
        self.timers.len() - 1
    }
}

/// The owner of a timer: one thread, or all.
fn scope(thread: usize, name: &str) -> Option<usize> {
    name.starts_with(UNIQUE).then_some(thread)
}
