//! The simulator's own rules, checked when [`crate::MachineConfig::check`] is set.

use super::Machine;
use crate::kernel::{Op, OpsState, Phase, ScxState, Slot};

impl Machine {
    /// The order of callbacks for one task: `runnable`, any number of `running` and `stopping` in turn, `quiescent`
    /// (`Documentation/scheduler/sched-ext.rst`, "Task Lifecycle").
    pub(crate) fn check_order(&mut self, op: Op, slot: Slot) {
        let task = self.kernel.task_mut(slot);
        let (needs, then) = match op {
            Op::Runnable => (Phase::Off, Phase::Runnable),
            Op::Running => (Phase::Runnable, Phase::Running),
            Op::Stopping => (Phase::Running, Phase::Runnable),
            Op::Quiescent => (Phase::Runnable, Phase::Off),
            Op::Enqueue => (Phase::Runnable, Phase::Runnable),
            Op::Tick => (Phase::Running, Phase::Running),
            _ => return,
        };
        let found = std::mem::replace(&mut task.phase, then);
        if found != needs {
            let task = self.kernel.describe(slot);
            self.kernel.violate(format!("ops.{op:?} for {task} in phase {found:?}"));
        }
    }

    /// The look at every task and CPU follows each step of a small machine, and every 256th of a large one.
    pub(crate) fn check_is_due(&self) -> bool {
        let size = self.kernel.tasks.len() + self.kernel.cpus.len();
        size <= 64 || self.kernel.counters.steps.is_multiple_of(256)
    }

    /// What must hold between steps, of every task and CPU.
    pub(crate) fn check_state(&mut self) {
        for index in 0..self.kernel.tasks.len() {
            if let Some(what) = self.wrong_with_task(Slot(index as u32)) {
                let task = self.kernel.describe(Slot(index as u32));
                self.kernel.violate(format!("{task} {what}"));
            }
        }
        for cpu in 0..self.kernel.nr_cpus() {
            let rq = &self.kernel.cpus[cpu as usize];
            let idle = rq.is_idle();
            if idle == self.kernel.busy.test(cpu) {
                self.kernel.violate(format!("CPU {cpu} is wrong in the set of busy CPUs"));
            }
            let on_rq = |t: &&crate::kernel::Task| {
                t.scx_state == ScxState::Enabled && t.queued && t.cpu == cpu
            };
            let runnable = self.kernel.tasks.iter().filter(on_rq).count() as u32;
            if runnable != self.kernel.cpus[cpu as usize].nr_running {
                self.kernel.violate(format!("CPU {cpu} counts its runnable tasks wrong"));
            }
            if idle && !self.kernel.queues.is_empty(self.kernel.cpus[cpu as usize].local) {
                let rq = &self.kernel.cpus[cpu as usize];
                if !rq.need_resched {
                    self.kernel.violate(format!(
                        "CPU {cpu} rests while its local queue holds a task: lost wake-up"
                    ));
                }
            }
        }
    }

    fn wrong_with_task(&self, slot: Slot) -> Option<&'static str> {
        let task = self.kernel.task(slot);
        if task.scx_state != ScxState::Enabled {
            return None;
        }
        let queue = self.kernel.queues.queue_of(slot.0);
        let runs = self.kernel.cpus[task.cpu as usize].curr == Some(slot);
        let owned = task.ops_state == OpsState::Queued;
        if !task.queued {
            return (queue.is_some() || owned || runs).then_some("sleeps and is queued or runs");
        }
        let places = u32::from(queue.is_some())
            + u32::from(runs)
            + u32::from(owned)
            + u32::from(task.ddsp.is_some());
        match places {
            0 => Some("is runnable and nowhere: lost"),
            1 => None,
            _ => Some("is in two places"),
        }
    }

    /// At the end: every ns of every CPU was a task's or the idle task's.
    pub(crate) fn check_time(&mut self) {
        let window = self.kernel.now_ns;
        let mut on_cpus = 0;
        for cpu in 0..self.kernel.nr_cpus() {
            let rq = &self.kernel.cpus[cpu as usize];
            on_cpus += rq.exec_ns;
            if rq.exec_ns + rq.idle_ns != window {
                let (exec, idle) = (rq.exec_ns, rq.idle_ns);
                self.kernel.violate(format!(
                    "CPU {cpu}: {exec} ns of tasks and {idle} ns idle are not {window} ns"
                ));
            }
        }
        let of_tasks: u64 = self.kernel.tasks.iter().map(|t| t.sum_exec_ns).sum::<u64>()
            + self.kernel.reaped_exec_ns;
        if on_cpus != of_tasks {
            self.kernel
                .violate(format!("tasks ran {of_tasks} ns, CPUs were busy for {on_cpus} ns"));
        }
    }
}
