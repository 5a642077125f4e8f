//! The state of tasks and CPUs after the events so far, for formats that repeat it with each event.

use crate::{Event, EventKind, TaskId, TaskInfo, Trace};

/// The priority that is printed for nice 0 (`DEFAULT_PRIO`).
const PRIO_OF_NICE_0: i32 = 120;
/// For a task whose class is unknown: no class has this priority.
const PRIO_OF_UNKNOWN: i32 = 99;

/// A trace at the moment of one of its events.
pub(super) struct View<'a> {
    pub(super) trace: &'a Trace,
    prio: Vec<i32>,
    running: Vec<TaskId>,
}

impl<'a> View<'a> {
    pub(super) fn new(trace: &'a Trace) -> Self {
        let prio = trace.tasks().iter().map(first_prio).collect();
        Self { trace, prio, running: Vec::new() }
    }

    /// Applies an event. A writer calls it after it has named the task that ran before.
    pub(super) fn note(&mut self, event: &Event) {
        match event.kind {
            EventKind::Nice { task, nice } => {
                self.set_prio(task, PRIO_OF_NICE_0 + i32::from(nice));
            }
            EventKind::RtPrio { task, prio } => self.set_prio(task, prio.prio()),
            // A CPU beyond the trace's count is damage; it has no running task.
            EventKind::Switch { next, .. } if event.cpu < self.trace.cpus => {
                let index = event.cpu as usize;
                if self.running.len() <= index {
                    self.running.resize(index + 1, TaskId::IDLE);
                }
                self.running[index] = next;
            }
            _ => {}
        }
    }

    /// The task that the event's line names first: the one that caused it, else the one that ran on its CPU.
    pub(super) fn running(&self, event: &Event) -> TaskId {
        match event.kind {
            EventKind::Switch { prev, .. } => prev,
            EventKind::Waking { waker, .. } if !waker.is_idle() => waker,
            EventKind::Fork { parent, .. } => parent,
            EventKind::Exit { task } | EventKind::Tick { task } | EventKind::Stack { task, .. } => {
                task
            }
            _ => self.running.get(event.cpu as usize).copied().unwrap_or(TaskId::IDLE),
        }
    }

    pub(super) fn pid(&self, task: TaskId) -> u32 {
        self.trace.tasks()[task.index()].pid
    }

    pub(super) fn prio(&self, task: TaskId) -> i32 {
        if task.is_idle() {
            return PRIO_OF_NICE_0;
        }
        self.prio[task.index()]
    }

    fn set_prio(&mut self, task: TaskId, prio: i32) {
        self.prio.get_mut(task.index()).into_iter().for_each(|entry| *entry = prio);
    }

    /// The path of a cgroup; that of the root where it is unknown.
    pub(super) fn cgroup_path(&self, cgroup: crate::CgroupId) -> &'a str {
        self.trace.cgroups().get(cgroup.index()).map_or("/", |cgroup| &cgroup.path)
    }
}

/// The kernel's priority of a task at its first appearance.
fn first_prio(task: &TaskInfo) -> i32 {
    let normal = task.nice.map(|nice| PRIO_OF_NICE_0 + i32::from(nice));
    normal.or(task.rt_prio.map(|prio| prio.prio())).unwrap_or(PRIO_OF_UNKNOWN)
}
