//! The tasks when a recording begins ([`StartState`]), taken over when they appear.

use super::build::{Builder, TaskRecord};
use super::collect::Collector;
use super::header::{Remark, own_comment};
use super::text::take_remark;
use crate::{CgroupInfo, StartState, TaskId, TaskInfo};

/// Lines that a state may have.
const LINES_MAX: usize = 1 << 20;

impl Collector<'_> {
    /// Takes over the text of a [`StartState`]. Lines that mean nothing are counted. One that begins with the CPUs is that
    /// of our own writer: its tasks, cgroups and labels are all that the trace has, in their order.
    pub(super) fn start_state(&mut self, text: &str) {
        let is_written = text.starts_with("cpus ");
        let mut state = StartState::default();
        for line in text.lines().take(LINES_MAX) {
            match own_comment(line) {
                Some(remark) if is_written => take_remark(self, remark),
                Some(Remark::Origin { key, value }) => self.origin(&key, &value),
                Some(Remark::Cgroup(cgroup)) => state.cgroups.push(cgroup),
                Some(Remark::Task(task)) => state.tasks.push(task),
                _ => self.unreadable_text("an unknown line of the state at the beginning", line),
            }
        }
        if is_written {
            return;
        }
        self.builder.set_start(state.cgroups, state.tasks);
    }
}

impl Builder<'_> {
    /// The tasks at the beginning, with the indices of their cgroups.
    fn set_start(&mut self, cgroups: Vec<CgroupInfo>, tasks: Vec<TaskInfo>) {
        self.at_start = tasks.into_iter().map(|task| (task.pid, task)).collect();
        self.start_cgroups = cgroups;
        self.has_start = true;
    }

    /// Adds a task to the trace, with what is known of it from the beginning.
    pub(super) fn add_task(&mut self, mut info: TaskInfo, name: &str) -> TaskId {
        let place = info.cgroup.take().map(|cgroup| cgroup.index());
        name.clone_into(&mut info.comm);
        self.known.push(TaskRecord::of_class(info.nice, info.rt_prio));
        let task = self.trace.add_task(info);
        let place = place.filter(|place| *place < self.start_cgroups.len());
        self.start_places.extend(place.map(|place| (task, place)));
        task
    }

    /// A child has its parent's policy, affinity and cgroup (`dup_task_struct`, `cgroup_css_set_fork`), where something
    /// is known from the beginning.
    pub(super) fn inherit(&mut self, parent: TaskId, child: TaskId) {
        if !self.has_start || parent.is_idle() || child.is_idle() {
            return;
        }
        let TaskInfo { policy, allowed_cpus, .. } = &self.trace.tasks()[parent.index()];
        let (policy, allowed_cpus) = (*policy, allowed_cpus.clone());
        let info = self.trace.task_mut(child);
        (info.policy, info.allowed_cpus) = (policy, allowed_cpus);
        match self.known[parent.index()].cgroup {
            Some(moved) => {
                self.known[child.index()].cgroup = Some(moved);
                self.trace.task_mut(child).cgroup = Some(moved);
            }
            None => {
                let place = self.start_places.get(&parent).copied();
                self.start_places.extend(place.map(|place| (child, place)));
            }
        }
    }

    /// Enters the cgroups of the beginning, behind those to which tasks moved.
    pub(super) fn place_tasks(&mut self) {
        let mut places: Vec<_> = std::mem::take(&mut self.start_places).into_iter().collect();
        places.sort_unstable();
        for (task, place) in places {
            let CgroupInfo { path, weight, .. } = self.start_cgroups[place].clone();
            let Some(cgroup) = self.cgroup(&path) else { continue };
            self.trace.task_mut(task).cgroup.get_or_insert(cgroup);
            self.trace.set_cgroup_weight(cgroup, weight);
        }
    }
}
