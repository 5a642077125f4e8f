//! Changes of tasks: nice values, classes, slices, affinities and control groups.

use fairground_trace::{EventKind, TaskId, TaskState, Trace, parse_cpu_list};

use super::follower::{Follower, MachineResult};

impl Follower<'_> {
    /// Tells the scheduler of a change; other events are none.
    pub(super) fn change(&mut self, trace: &Trace, cpu: u32, kind: EventKind) -> MachineResult {
        match kind {
            EventKind::Nice { task, nice } => {
                if !std::mem::replace(&mut self.of_class[task.index()], true) {
                    self.join_class(trace, task, cpu)?;
                }
                self.driven.set_nice(cpu, task, nice)?;
                self.after_step()
            }
            EventKind::Slice { task, slice_ns } => {
                self.driven.set_slice_length(cpu, task, slice_ns)?;
                self.after_step()
            }
            EventKind::Affinity { task, cpus } => {
                if let Some(cpus) = parse_cpu_list(trace.label(cpus)) {
                    self.driven.set_affinity(cpu, task, &cpus)?;
                }
                self.after_step()
            }
            EventKind::RtPrio { task, .. } => {
                if std::mem::replace(&mut self.of_class[task.index()], false) {
                    self.leave_class(task)?;
                }
                self.after_step()
            }
            EventKind::CgroupMove { task, to, .. } => {
                self.driven.move_to_cgroup(cpu, task, to.0)?;
                self.after_step()
            }
            EventKind::CgroupWeight { cgroup, weight } => {
                self.driven.set_cgroup_weight(cpu, cgroup.0, weight)?;
                self.after_step()
            }
            _ => Ok(()),
        }
    }

    /// A task comes into the scheduler's class. If it runs, the machine resumes it at the next event of its CPU.
    fn join_class(&mut self, trace: &Trace, task: TaskId, cpu: u32) -> MachineResult {
        match self.driven.exists(task) {
            true => Ok(()),
            false => self.create(trace, task, None, cpu),
        }
    }

    /// A task goes into another class: for the scheduler it sleeps.
    fn leave_class(&mut self, task: TaskId) -> MachineResult {
        let Some(cpu) = self.driven.cpu_of(task).filter(|_| self.driven.is_runnable(task)) else {
            return Ok(());
        };
        let running = self.driven.running(cpu);
        if running == task {
            return self.driven.take_cpu(cpu, Some(TaskState::Sleeping));
        }
        let was_taken = self.driven.is_taken(cpu);
        self.driven.pick(cpu, None)?;
        self.driven.run(task)?;
        self.driven.pick(cpu, Some(TaskState::Sleeping))?;
        self.driven.run(running)?;
        if was_taken { self.driven.take_cpu(cpu, None) } else { Ok(()) }
    }
}
