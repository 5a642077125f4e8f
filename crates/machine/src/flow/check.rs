//! The simulator's own rules, checked when [`crate::MachineConfig::check`] is set: after each step what it touched, and
//! now and then everything.

use super::Machine;
use crate::check::{Invariant, Whereabouts};
use crate::kernel::{Op, OpsState, Phase, ScxState, Slot};
use fairground_trace::{TaskId, TaskState};

/// At least so many steps lie between two looks at everything; more on a machine with more tasks and CPUs, so that the
/// cost of a step does not grow with them.
const STEPS_BETWEEN_FULL_LOOKS: u32 = 64;

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
            let what = format!("ops.{op:?} in phase {found:?}");
            self.kernel.violate(Invariant::CallbackOrder, Some(slot), what);
        }
    }

    /// What must hold between two steps: of the tasks and CPUs that the last one touched, and in turn of all.
    pub(crate) fn check_step(&mut self) {
        self.audit_trace();
        let mut cpus = std::mem::take(&mut self.kernel.checker.cpus);
        cpus.push(self.kernel.this_cpu);
        while let Some(number) = self.kernel.checker.take_touched() {
            self.check_task(Slot(number), &mut cpus);
        }
        for cpu in cpus.drain(..) {
            self.check_cpu(cpu);
        }
        self.kernel.checker.cpus = cpus;
        if self.kernel.checker.until_full == 0 {
            let size = self.kernel.tasks.len() + self.kernel.cpus.len();
            self.kernel.checker.until_full = (size as u32).max(STEPS_BETWEEN_FULL_LOOKS);
            self.check_everything();
        }
        self.kernel.checker.until_full -= 1;
        if let Some(bound_ns) = self.idle_bound_ns {
            self.check_idle(bound_ns);
        }
    }

    /// Tells the audit what happened since it looked last.
    pub(crate) fn audit_trace(&mut self) {
        let kernel = &mut self.kernel;
        // The trace was emptied between two steps: the audit cannot go on.
        if kernel.trace.len() < kernel.checker.audited {
            return;
        }
        for event in kernel.trace.events_in(kernel.checker.audited..usize::MAX) {
            if let Err(finding) = kernel.checker.audit_event(&event) {
                return kernel.found(finding);
            }
        }
    }

    fn check_everything(&mut self) {
        let mut cpus = Vec::new();
        for slot in self.kernel.tasks.slots() {
            self.kernel.checker.touch(slot.0);
            self.check_life(slot);
        }
        while let Some(number) = self.kernel.checker.take_touched() {
            self.check_task(Slot(number), &mut cpus);
        }
        for cpu in 0..self.kernel.nr_cpus() {
            self.check_cpu(cpu);
            self.check_cpu_time(cpu);
        }
    }

    /// Looks at a task, and names the CPUs whose counts it is in now or was in before.
    fn check_task(&mut self, slot: Slot, cpus: &mut Vec<u32>) {
        if let Some((invariant, what)) = self.wrong_with_task(slot) {
            self.kernel.violate(invariant, Some(slot), what.to_owned());
        }
        let task = self.kernel.task(slot);
        let runnable = task.scx_state == ScxState::Enabled && task.queued;
        let cpu = task.cpu;
        let before = self.kernel.checker.count(slot.0, runnable.then_some(cpu));
        cpus.push(cpu);
        cpus.extend(before.filter(|before| *before != cpu));
    }

    fn wrong_with_task(&self, slot: Slot) -> Option<(Invariant, &'static str)> {
        let task = self.kernel.task(slot);
        if task.scx_state != ScxState::Enabled {
            return None;
        }
        let queue = self.kernel.queues.queue_of(slot.0);
        let runs = self.kernel.cpus[task.cpu as usize].curr() == Some(slot);
        let owned = task.ops_state == OpsState::Queued;
        if runs && !task.allows(task.cpu) {
            return Some((Invariant::Affinity, "it runs on a CPU that it may not run on"));
        }
        if !task.queued {
            if queue.is_some() || owned || runs {
                return Some((Invariant::TwoPlaces, "it sleeps, and is queued or runs"));
            }
            return self.why_it_sleeps_for_ever(slot).map(|why| (Invariant::LostWakeup, why));
        }
        let places = u32::from(queue.is_some())
            + u32::from(runs)
            + u32::from(owned)
            + u32::from(task.ddsp.is_some());
        match places {
            0 => Some((Invariant::TaskLost, "it is runnable and nowhere")),
            1 => None,
            _ => Some((Invariant::TwoPlaces, "it is in two places")),
        }
    }

    fn why_it_sleeps_for_ever(&self, slot: Slot) -> Option<&'static str> {
        let task = self.kernel.task(slot);
        if task.state != TaskState::Sleeping {
            return None;
        }
        let armed = task.timer.is_some()
            || self.kernel.events.armed(crate::events::EventHandle::Task(slot.0)).is_some();
        let armed = armed || self.sleeps_until_start(task.actor);
        self.actors.why_it_waits_in_vain(task.actor, armed)
    }

    fn check_cpu(&mut self, cpu: u32) {
        let rq = &self.kernel.cpus[cpu as usize];
        let (idle, counted) = (rq.is_idle(), rq.nr_running());
        if idle && !rq.needs_resched() && !self.kernel.queues.is_empty(rq.local()) {
            let what = "it rests while its local queue holds a task".to_owned();
            self.kernel.violate_cpu(Invariant::LostWakeup, cpu, what);
        }
        if idle == self.kernel.busy.test(cpu) {
            let what = "it is wrong in the set of busy CPUs".to_owned();
            self.kernel.violate_cpu(Invariant::Count, cpu, what);
        }
        let runnable = self.kernel.checker.runnable(cpu);
        if runnable != counted {
            let what = format!("it counts {counted} runnable tasks, and has {runnable}");
            self.kernel.violate_cpu(Invariant::Count, cpu, what);
        }
    }

    /// Run + idle = time so far.
    fn check_cpu_time(&mut self, cpu: u32) {
        let now = self.kernel.clock.now_ns();
        let rq = &self.kernel.cpus[cpu as usize];
        let running_ns = rq.curr().map_or(0, |slot| now - self.kernel.task(slot).exec_start_ns);
        let exec = rq.time.tasks_ns() + running_ns;
        let idle = rq.time.idle_ns(now, rq.is_idle());
        if exec + idle != now {
            let what = format!("{exec} ns of tasks and {idle} ns idle are not {now} ns");
            self.kernel.violate_cpu(Invariant::CpuTime, cpu, what);
        }
    }

    /// Run + wait + sleep = lifetime, and the trace's run time is the kernel's, but for what the decisions took that
    /// led to the task's switches: the trace gives that to the task that leaves, the kernel's books to the one that
    /// comes.
    fn check_life(&mut self, slot: Slot) {
        let now = self.kernel.clock.now_ns();
        let task = self.kernel.task(slot);
        if task.scx_state != ScxState::Enabled {
            return;
        }
        let runs = self.kernel.cpus[task.cpu as usize].curr() == Some(slot);
        let booked_ns = task.sum_exec_ns + if runs { now - task.exec_start_ns } else { 0 };
        let life = self.kernel.checker.audit.life(task.id);
        let (told_ns, missing_ns) = (life.run_ns(now), life.missing_ns(now));
        let ahead_ns = life.ahead_ns() + self.kernel.late.ahead_ns(task.id, now);
        if told_ns.checked_add_signed(ahead_ns) != Some(booked_ns) || missing_ns != 0 {
            let what = format!(
                "it ran {booked_ns} ns by the kernel's books and {told_ns} ns by the trace, where \
                 {ahead_ns} ns more are due to decisions; {missing_ns} ns of its life are missing"
            );
            self.kernel.violate(Invariant::TaskTime, Some(slot), what);
        }
    }

    /// At the end: every ns of every CPU was a task's or the idle task's, and no task's time got lost.
    pub(crate) fn check_time(&mut self) {
        self.audit_trace();
        self.check_everything();
        let on_cpus: u64 = self.kernel.cpus.iter().map(|rq| rq.time.tasks_ns()).sum();
        let of_tasks: u64 = self.kernel.tasks.iter().map(|(_, t)| t.sum_exec_ns).sum::<u64>()
            + self.kernel.reaped_exec_ns;
        if on_cpus != of_tasks {
            let what = format!("tasks ran {of_tasks} ns, CPUs were busy for {on_cpus} ns");
            self.kernel.violate(Invariant::CpuTime, None, what);
        }
    }

    /// Work conservation: whether a CPU rests and a task that may run there waits, both for longer than the bound.
    /// Looked at four times in each bound, so that a breach is seen a quarter of the bound late at most. A switch that
    /// is decided counts, though the trace does not have it yet.
    fn check_idle(&mut self, bound_ns: u64) {
        let now = self.kernel.clock.now_ns();
        if now < self.kernel.checker.next_idle_look_ns {
            return;
        }
        self.kernel.checker.next_idle_look_ns = now + (bound_ns / 4).max(1);
        let audit = &self.kernel.checker.audit;
        let resting: Vec<u32> = (0..self.kernel.nr_cpus())
            .filter(|cpu| {
                let on = audit.cpus[*cpu as usize];
                let rests = on.task == TaskId::IDLE && now - on.since_ns > bound_ns;
                rests && !self.kernel.late.has_cpu(*cpu)
            })
            .collect();
        if resting.is_empty() {
            return;
        }
        let breach = self.kernel.tasks.slots().find_map(|slot| {
            let task = self.kernel.task(slot);
            let life = audit.life(task.id);
            let waits = task.scx_state == ScxState::Enabled
                && life.place == Whereabouts::Waiting
                && now - life.since_ns > bound_ns
                && !self.kernel.late.has_task(task.id);
            let cpu = resting.iter().copied().find(|cpu| waits && task.allows(*cpu))?;
            Some((slot, cpu, now - life.since_ns, now - audit.cpus[cpu as usize].since_ns))
        });
        if let Some((slot, cpu, waited_ns, rested_ns)) = breach {
            let what = format!(
                "CPU {cpu} has rested for {rested_ns} ns while the task, which may run there, has \
                 waited for {waited_ns} ns; the bound is {bound_ns} ns"
            );
            self.kernel.violate(Invariant::WorkConservation, Some(slot), what);
        }
    }
}
