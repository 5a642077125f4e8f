//! The simulator's invariants, checked if [`crate::MachineConfig::check`] is set: after each step what it touched, and
//! periodically everything.

use fairground_trace::{TaskId, TaskState};

use super::{Kernel, OpsState, Phase, Slot};
use crate::actors::ActorId;
use crate::check::{Finding, Invariant, Violation, Whereabouts};
use crate::events::EventHandle;
use crate::op::Op;

/// The least steps between two checks of everything; more on a machine with more tasks and CPUs, so that the cost of a
/// step does not grow with them.
const STEPS_BETWEEN_FULL_LOOKS: u32 = 64;

/// Why an actor sleeps for ever, if it does; the other argument says whether a timer will end its sleep.
type WaitsInVain<'a> = &'a dyn Fn(ActorId, bool) -> Option<&'static str>;

impl Kernel {
    /// The order of callbacks for one task: `runnable`, any number of `running` and `stopping` in turn, `quiescent`
    /// (`Documentation/scheduler/sched-ext.rst`, "Task Lifecycle").
    pub(crate) fn check_order(&mut self, op: Op, slot: Slot) {
        let task = self.task_mut(slot);
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
            self.violate(Invariant::CallbackOrder, Some(slot), what);
        }
    }

    /// Checks the tasks and CPUs that the last step touched, and periodically all.
    pub(crate) fn check_step(&mut self, in_vain: WaitsInVain<'_>, idle_bound_ns: Option<u64>) {
        self.audit_trace();
        let mut cpus = std::mem::take(&mut self.checker.cpus);
        cpus.push(self.this_cpu);
        while let Some(number) = self.checker.take_touched() {
            self.check_task(Slot(number), in_vain, &mut cpus);
        }
        for cpu in cpus.drain(..) {
            self.check_cpu(cpu);
        }
        self.checker.cpus = cpus;
        if self.checker.until_full == 0 {
            let size = self.tasks.len() + self.cpus.len();
            self.checker.until_full = (size as u32).max(STEPS_BETWEEN_FULL_LOOKS);
            self.check_everything(in_vain);
        }
        self.checker.until_full -= 1;
        if let Some(bound_ns) = idle_bound_ns {
            self.check_idle(bound_ns);
        }
    }

    /// Passes the events since the last check to the audit.
    pub(crate) fn audit_trace(&mut self) {
        // The trace was emptied between two steps: the audit cannot go on.
        if self.trace.len() < self.checker.audited {
            return;
        }
        for event in self.trace.events_in(self.checker.audited..usize::MAX) {
            if let Err(finding) = self.checker.audit_event(&event) {
                return self.found(finding);
            }
        }
    }

    fn check_everything(&mut self, in_vain: WaitsInVain<'_>) {
        let mut cpus = Vec::new();
        for slot in self.tasks.slots() {
            self.checker.touch(slot.0);
            self.check_life(slot);
        }
        while let Some(number) = self.checker.take_touched() {
            self.check_task(Slot(number), in_vain, &mut cpus);
        }
        for cpu in 0..self.nr_cpus() {
            self.check_cpu(cpu);
            self.check_cpu_time(cpu);
        }
    }

    /// Checks a task, and adds the CPUs whose counts it is in now or was in before.
    fn check_task(&mut self, slot: Slot, in_vain: WaitsInVain<'_>, cpus: &mut Vec<u32>) {
        if let Some((invariant, what)) = self.wrong_with_task(slot, in_vain) {
            self.violate(invariant, Some(slot), what.to_owned());
        }
        let task = self.task(slot);
        let runnable = task.is_scheduled() && task.queued;
        let cpu = task.cpu;
        let before = self.checker.count(slot.0, runnable.then_some(cpu));
        cpus.push(cpu);
        cpus.extend(before.filter(|before| *before != cpu));
    }

    fn wrong_with_task(
        &self,
        slot: Slot,
        in_vain: WaitsInVain<'_>,
    ) -> Option<(Invariant, &'static str)> {
        let task = self.task(slot);
        if !task.is_scheduled() {
            return None;
        }
        let queue = self.queues.queue_of(slot.0);
        let runs = self.runs(slot);
        let owned = task.ops_state == OpsState::Queued;
        if runs && !task.allows(task.cpu) {
            return Some((Invariant::Affinity, "it runs on a CPU that it may not run on"));
        }
        if !task.queued {
            if queue.is_some() || owned || runs {
                return Some((Invariant::TwoPlaces, "it sleeps, and is queued or runs"));
            }
            let armed =
                task.timer.is_some() || self.events.armed(EventHandle::Task(slot.0)).is_some();
            let why = (task.state == TaskState::Sleeping).then(|| in_vain(task.actor, armed));
            return why.flatten().map(|why| (Invariant::LostWakeup, why));
        }
        let places = u32::from(queue.is_some())
            + u32::from(runs)
            + u32::from(owned)
            + u32::from(task.ddsp.is_some());
        let queue_of_rt = self.rt.is_used() && self.rt.of_cpu(task.cpu).any(|other| other == slot);
        if queue_of_rt != (task.queued && task.rt.is_rt()) {
            return Some((Invariant::TwoPlaces, "it is in the run queue of another class"));
        }
        let places = if queue_of_rt { places + u32::from(!runs) } else { places };
        match places {
            0 => Some((Invariant::TaskLost, "it is runnable and nowhere")),
            1 => None,
            _ => Some((Invariant::TwoPlaces, "it is in two places")),
        }
    }

    fn check_cpu(&mut self, cpu: u32) {
        let rq = &self.cpus[cpu as usize];
        let (idle, counted) = (rq.is_idle(), rq.nr_running());
        if !self.is_online(cpu) && (!idle || counted > 0) {
            let what = format!("it is offline, and has {counted} runnable tasks");
            self.violate_cpu(Invariant::Offline, cpu, what);
        }
        let rq = &self.cpus[cpu as usize];
        if idle && !rq.need_resched && !self.queues.is_empty(rq.local) {
            let what = "it is idle while its local queue holds a task".to_owned();
            self.violate_cpu(Invariant::LostWakeup, cpu, what);
        }
        if idle == self.busy.test(cpu) {
            let what = "the set of busy CPUs is wrong about it".to_owned();
            self.violate_cpu(Invariant::Count, cpu, what);
        }
        let runnable = self.checker.runnable(cpu);
        if runnable != counted {
            let what = format!("it counts {counted} runnable tasks, and has {runnable}");
            self.violate_cpu(Invariant::Count, cpu, what);
        }
    }

    /// Run + idle = time so far.
    fn check_cpu_time(&mut self, cpu: u32) {
        let now = self.clock.now_ns();
        let rq = &self.cpus[cpu as usize];
        let running_ns = rq.curr().map_or(0, |slot| now - self.task(slot).exec_start_ns);
        let exec = rq.time.tasks_ns() + running_ns;
        let idle = rq.time.idle_ns(now, rq.is_idle());
        if exec + idle != now {
            let what = format!("{exec} ns of tasks and {idle} ns idle are not {now} ns");
            self.violate_cpu(Invariant::CpuTime, cpu, what);
        }
    }

    /// Run + wait + sleep = lifetime, and the trace's run time is the kernel's, except for the time of the decisions
    /// that led to the task's switches: the trace gives it to the previous task, the kernel's accounting to the next.
    fn check_life(&mut self, slot: Slot) {
        let now = self.clock.now_ns();
        let task = self.task(slot);
        if !task.is_scheduled() {
            return;
        }
        let runs = self.runs(slot);
        let booked_ns = task.sum_exec_ns + if runs { now - task.exec_start_ns } else { 0 };
        let life = self.checker.audit.life(task.id);
        let (told_ns, missing_ns) = (life.run_ns(now), life.missing_ns(now));
        let ahead_ns = life.ahead_ns() + self.late.ahead_ns(task.id, now);
        if told_ns.checked_add_signed(ahead_ns) != Some(booked_ns) || missing_ns != 0 {
            let what = format!(
                "it ran {booked_ns} ns by the kernel's accounting and {told_ns} ns by the trace, where \
                 {ahead_ns} ns more are due to decisions; {missing_ns} ns of its lifetime are missing"
            );
            self.violate(Invariant::TaskTime, Some(slot), what);
        }
    }

    /// At the end: all time of every CPU belongs to a task or the idle task, and no task's time is missing.
    pub(crate) fn check_time(&mut self, in_vain: WaitsInVain<'_>) {
        self.audit_trace();
        self.check_everything(in_vain);
        let on_cpus: u64 = self.cpus.iter().map(|rq| rq.time.tasks_ns()).sum();
        let of_tasks: u64 =
            self.tasks.iter().map(|(_, t)| t.sum_exec_ns).sum::<u64>() + self.reaped_exec_ns;
        if on_cpus != of_tasks {
            let what = format!("tasks ran {of_tasks} ns, CPUs were busy for {on_cpus} ns");
            self.violate(Invariant::CpuTime, None, what);
        }
    }

    /// Work conservation: whether a CPU is idle and a task that may run there waits, both for longer than the bound.
    /// Checked four times in each bound, so a violation is detected at most a quarter of the bound late. A switch that
    /// is decided counts, though the trace does not have it yet.
    fn check_idle(&mut self, bound_ns: u64) {
        let now = self.clock.now_ns();
        if now < self.checker.next_idle_look_ns {
            return;
        }
        self.checker.next_idle_look_ns = now + (bound_ns / 4).max(1);
        let audit = &self.checker.audit;
        let resting: Vec<u32> = (0..self.nr_cpus())
            .filter(|cpu| {
                let on = audit.cpus[*cpu as usize];
                let since_ns = on.since_ns.max(self.cpus[*cpu as usize].online_since_ns);
                let rests = on.task == TaskId::IDLE && now - since_ns > bound_ns;
                rests && self.is_online(*cpu) && !self.late.has_cpu(*cpu)
            })
            .collect();
        if resting.is_empty() {
            return;
        }
        let breach = self.tasks.slots().find_map(|slot| {
            let task = self.task(slot);
            let life = audit.life(task.id);
            let waits = task.is_scheduled()
                && life.place == Whereabouts::Waiting
                && now - life.since_ns > bound_ns
                && !self.late.has_task(task.id);
            let cpu = resting.iter().copied().find(|cpu| waits && task.allows(*cpu))?;
            Some((slot, cpu, now - life.since_ns, now - audit.cpus[cpu as usize].since_ns))
        });
        if let Some((slot, cpu, waited_ns, rested_ns)) = breach {
            let what = format!(
                "CPU {cpu} has been idle for {rested_ns} ns while the task, which may run there, has \
                 waited for {waited_ns} ns; the bound is {bound_ns} ns"
            );
            self.violate(Invariant::WorkConservation, Some(slot), what);
        }
    }

    /// Notes that a rule was broken, by a task or in general; the run ends with the first one.
    #[cold]
    pub(crate) fn violate(&mut self, invariant: Invariant, slot: Option<Slot>, what: String) {
        let task = slot.map(|slot| self.task(slot));
        let (cpu, task) = (task.map(|task| task.cpu), task.map(|task| task.id));
        self.found(Finding { invariant, cpu, task, what });
    }

    /// Notes that a rule was broken on a CPU.
    #[cold]
    fn violate_cpu(&mut self, invariant: Invariant, cpu: u32, what: String) {
        self.found(Finding { invariant, cpu: Some(cpu), task: None, what });
    }

    fn found(&mut self, finding: Finding) {
        let Finding { invariant, cpu, task, what } = finding;
        let task = task.and_then(|task| self.describe_id(task));
        let time_ns = self.clock.now_ns();
        self.violation.get_or_insert(Violation { time_ns, invariant, cpu, task, what });
    }
}
