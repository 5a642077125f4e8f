//! Changes of tasks by an operator: from outside the machine, at no cost but that of the scheduler's callbacks.

use super::{Machine, Step};
use crate::changes::TaskChange;
use crate::kernel::Slot;

impl Machine {
    /// Changes every living task of a group of the workload, in the order of their pids. A move to a cgroup is one of
    /// all tasks or of none. Callbacks: those of the same change by the task itself.
    pub(crate) fn change_tasks(&mut self, spec: usize, change: TaskChange) -> Step {
        let slots = self.living(spec);
        if let TaskChange::Cgroup(cgroup) = change {
            return self.on_cpu(0, |machine| machine.move_to_cgroup(&slots, cgroup));
        }
        for slot in slots {
            if self.kernel.exit.is_some() || !self.lives_in(slot, spec) {
                continue;
            }
            // A task that runs is interrupted on its CPU.
            let cpu = if self.kernel.runs(slot) { self.kernel.task(slot).cpu } else { 0 };
            self.on_cpu(cpu, |machine| match change {
                TaskChange::Cpus(cpus) => machine.set_affinity(slot, cpus),
                TaskChange::Nice(nice) => machine.set_nice(slot, nice),
                TaskChange::Policy(policy) => machine.set_policy(slot, policy),
                TaskChange::Cgroup(_) => Ok(()),
            })?;
        }
        Ok(())
    }

    /// The living tasks of a group, in the order of their pids.
    fn living(&self, spec: usize) -> Vec<Slot> {
        let all = self.kernel.tasks.slots();
        let mut slots: Vec<Slot> = all.filter(|slot| self.lives_in(*slot, spec)).collect();
        slots.sort_unstable_by_key(|slot| self.kernel.task(*slot).pid);
        slots
    }

    fn lives_in(&self, slot: Slot, spec: usize) -> bool {
        let task = self.kernel.task(slot);
        task.is_scheduled() && !task.exiting && self.actors.spec(task.actor) == spec
    }
}
