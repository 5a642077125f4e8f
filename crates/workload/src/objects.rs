//! The objects of a workload, which operations name by index.

use crate::model::{Op, Program, Role, Workload};

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

/// The objects that an operation itself names, with their indices, borrowed as the operation is.
macro_rules! objects_of {
    ($op:expr) => {
        match $op {
            Op::Signal(Role::All(task) | Role::One(task, _)) | Op::Fork(task) => {
                [Some((ObjectKind::Task, task)), None]
            }
            Op::PipeWrite(pipe, _) | Op::PipeRead(pipe, _) => {
                [Some((ObjectKind::Pipe, pipe)), None]
            }
            Op::Send(queue) | Op::Receive(queue, _) => [Some((ObjectKind::Queue, queue)), None],
            Op::Lock(lock) | Op::ReadLock(lock) | Op::WriteLock(lock) | Op::Unlock(lock) => {
                [Some((ObjectKind::Lock, lock)), None]
            }
            Op::Notify(index) | Op::NotifyAll(index) => {
                [Some((ObjectKind::Condition, index)), None]
            }
            Op::ConditionWait(index, lock) => {
                [Some((ObjectKind::Condition, index)), Some((ObjectKind::Lock, lock))]
            }
            Op::Barrier(barrier) => [Some((ObjectKind::Barrier, barrier)), None],
            Op::TimerWait(timer, _) | Op::TimerStart(timer) => {
                [Some((ObjectKind::Timer, timer)), None]
            }
            Op::SetCgroup(index) | Op::SetCgroupWeight(index, _) => {
                [Some((ObjectKind::Cgroup, index)), None]
            }
            Op::Run(_)
            | Op::RunForever
            | Op::Touch(_)
            | Op::Busy(_)
            | Op::Sleep(_)
            | Op::Io(_)
            | Op::Signal(Role::Parent)
            | Op::WaitChildren
            | Op::Yield
            | Op::SetNice(_)
            | Op::SetPolicy(_)
            | Op::SetSlice(_)
            | Op::SetAffinity(_)
            | Op::Mark(_)
            | Op::Exit
            | Op::Loop(..) => [None, None],
        }
    };
}

impl Op {
    /// The objects that the operation itself names, without those that a loop's body names.
    pub fn references(&self) -> impl Iterator<Item = (ObjectKind, usize)> + use<> {
        let objects = objects_of!(self).map(|object| object.map(|(kind, index)| (kind, *index)));
        objects.into_iter().flatten()
    }
}

/// Replaces the index of every object that a program names.
pub(crate) fn renumber(program: &mut Program, map: &impl Fn(ObjectKind, usize) -> usize) {
    for op in program {
        for (kind, index) in objects_of!(&mut *op).into_iter().flatten() {
            *index = map(kind, *index);
        }
        if let Op::Loop(_, body) = op {
            renumber(body, map);
        }
    }
}
