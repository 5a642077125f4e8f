//! Control groups: their place in the fluid schedule, and tasks that move between them.

use super::{Accounting, fresh_figures};
use crate::Figures;
use crate::states::{State, Task};
use fairground_trace::{CgroupId, Trace};

/// `cpu.weight` of a group whose weight the trace does not know (`CGROUP_WEIGHT_DFL`).
const WEIGHT_DEFAULT: u32 = 100;

impl Accounting {
    /// Enters the tree into the fluid schedule. A parent that does not precede its child is damage; the root takes its
    /// place.
    pub(super) fn set_up_cgroups(&mut self, trace: &Trace) {
        for (index, info) in trace.cgroups().iter().enumerate() {
            let weight = info.weight.unwrap_or(WEIGHT_DEFAULT);
            self.cgroup_weights.push(info.weight);
            if index > 0 {
                let parent = info.parent.map_or(0, CgroupId::index);
                let parent = if parent < index { parent } else { 0 };
                let weight = self.group_weight(weight);
                self.services.add_group(parent, weight);
            }
        }
    }

    /// A group's weight beside those of tasks: 100 is as much as nice 0 (`sched_weight_from_cgroup`).
    fn group_weight(&self, weight: u32) -> u32 {
        let nice_0 = u64::from(self.weights.weight(Some(0)));
        let scaled = (u64::from(weight) * nice_0 + 50) / 100;
        u32::try_from(scaled).unwrap_or(u32::MAX).max(1)
    }

    pub(super) fn on_cgroup_weight(&mut self, cgroup: CgroupId, weight: u32) {
        if cgroup == CgroupId::ROOT {
            return;
        }
        self.cgroup_weights[cgroup.index()] = Some(weight);
        let weight = self.group_weight(weight);
        self.services.set_group_weight(self.at_ns, cgroup.index(), weight);
    }

    /// The task's figures up to here are those of its old group; from here on they are the new one's.
    pub(super) fn on_cgroup_move(&mut self, task: &Task, to: CgroupId) {
        let id = task.id.index();
        if id == 0 || self.tasks[id].cgroup == to.index() {
            return;
        }
        if task.state != State::Initial {
            self.close_task(id, task.time_kind());
        }
        if task.state.is_queued() {
            self.read_services(id, false);
        }
        self.end_piece(id);
        self.tasks[id].cgroup = to.index();
        self.services.change_cgroup(id, to.index());
        if task.state.is_queued() {
            self.services.join(self.at_ns, id, task.cpu);
        }
    }

    /// Keeps what the task got and did in its present group, and begins anew.
    fn end_piece(&mut self, id: usize) {
        let task = &mut self.tasks[id];
        task.complete_samples();
        let (window_ns, cpus) = (task.figures.window_ns, task.figures.cpus);
        let mut figures = std::mem::replace(&mut task.figures, fresh_figures(window_ns, cpus));
        let served = self.services.served(id);
        figures.fluid_ns = served.machine_ns;
        (figures.lag_max_ns, figures.lead_max_ns) = (served.lag_max_ns, served.lead_max_ns);
        task.moved_run_ns += figures.run_ns;
        let before: u64 = task.pieces.iter().filter_map(|(_, piece)| piece.migrations).sum();
        figures.migrations = Some(task.migrations - before);
        task.pieces.push((task.cgroup, figures));
    }

    /// At the end: the figures of a task that moved are those of all its groups together.
    pub(super) fn join_pieces(&mut self, id: usize) {
        if self.tasks[id].pieces.is_empty() {
            return;
        }
        let task = &mut self.tasks[id];
        let before: u64 = task.pieces.iter().filter_map(|(_, piece)| piece.migrations).sum();
        task.figures.migrations = Some(task.migrations - before);
        task.pieces.push((task.cgroup, task.figures.clone()));
        let mut whole = Figures::default();
        for (_, piece) in &task.pieces {
            whole.absorb(piece);
        }
        whole.members.sort_unstable();
        whole.tasks = 1;
        task.figures = whole;
    }
}
