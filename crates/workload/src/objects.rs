//! The objects of a workload, which operations name by index.

use crate::model::Workload;

/// A kind of object that a workload lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectKind {
    /// [`Workload::tasks`].
    Task,
    /// [`Workload::pipes`].
    Pipe,
    /// [`Workload::queues`].
    Queue,
    /// [`Workload::locks`].
    Lock,
    /// [`Workload::conditions`].
    Condition,
    /// [`Workload::barriers`].
    Barrier,
    /// [`Workload::timers`].
    Timer,
    /// [`Workload::cgroups`].
    Cgroup,
}

impl ObjectKind {
    /// The kinds whose objects have a name of their own, without cgroups, which have a path.
    pub(crate) const NAMED: [ObjectKind; 7] = [
        ObjectKind::Pipe,
        ObjectKind::Queue,
        ObjectKind::Lock,
        ObjectKind::Timer,
        ObjectKind::Condition,
        ObjectKind::Barrier,
        ObjectKind::Task,
    ];

    /// Its name in messages.
    pub fn word(self) -> &'static str {
        match self {
            ObjectKind::Task => "task",
            ObjectKind::Pipe => "pipe",
            ObjectKind::Queue => "queue",
            ObjectKind::Lock => "lock",
            ObjectKind::Condition => "condition",
            ObjectKind::Barrier => "barrier",
            ObjectKind::Timer => "timer",
            ObjectKind::Cgroup => "cgroup",
        }
    }
}

impl Workload {
    /// The number of objects of a kind.
    pub fn count(&self, kind: ObjectKind) -> usize {
        match kind {
            ObjectKind::Task => self.tasks.len(),
            ObjectKind::Pipe => self.pipes.len(),
            ObjectKind::Queue => self.queues.len(),
            ObjectKind::Lock => self.locks.len(),
            ObjectKind::Condition => self.conditions.len(),
            ObjectKind::Barrier => self.barriers.len(),
            ObjectKind::Timer => self.timers.len(),
            ObjectKind::Cgroup => self.cgroups.len(),
        }
    }

    /// The name of an object, the path of a cgroup.
    ///
    /// # Panics
    /// When there is no such object: the references of a checked workload exist.
    pub(crate) fn name_of(&self, kind: ObjectKind, index: usize) -> &str {
        match kind {
            ObjectKind::Task => &self.tasks[index].name,
            ObjectKind::Pipe => &self.pipes[index].name,
            ObjectKind::Queue => &self.queues[index].name,
            ObjectKind::Lock => &self.locks[index].name,
            ObjectKind::Condition => &self.conditions[index].name,
            ObjectKind::Barrier => &self.barriers[index].name,
            ObjectKind::Timer => &self.timers[index].name,
            ObjectKind::Cgroup => &self.cgroups[index].path,
        }
    }
}
