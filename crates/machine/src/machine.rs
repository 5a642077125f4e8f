//! A machine that runs a workload under a scheduler.

use std::collections::BTreeMap;

use fairground_bpf::Instance;
use fairground_trace::{EventKind, Label, TaskState, Trace};
use fairground_workload::{SchedPolicy, Workload};

use crate::actors::{ActorId, Actors, Effect};
use crate::cgroup::{CgroupRef, Control};
use crate::changes::{Change, Target, patch};
use crate::events::{CpuEvent, EventHandle};
use crate::kernel::{Kernel, PrintedLine, Slot, Stage, agenda};
use crate::layout::offsets;
use crate::starts::{Start, Starts};
use crate::{Counters, Exit, ExitKind, MachineConfig, MachineError, Policy, Setting, Waiting};

/// Events at one instant of simulated time, at most: a scheduler whose kicks or timers lead to more does not let time
/// pass.
const STEPS_AT_ONCE_MAX: u32 = 1 << 24;

/// Below this number of tasks the host's caches hold everything.
const PREPARED_TASKS_MIN: usize = 1024;

/// Result of a step: a trap here is a fault of the machine's own accesses, not of the scheduler's.
pub(crate) type Step<T = ()> = Result<T, fairground_bpf::Trap>;

/// The result of a run.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// The events.
    pub trace: Trace,
    /// How the scheduler's time in charge ended: [`crate::ExitKind::Unregistered`] without a failure.
    pub exit: Exit,
    /// Output of the scheduler, line by line.
    pub log: Vec<PrintedLine>,
    /// Counters of the machine.
    pub counters: Counters,
    /// The tasks that were runnable and did not run at the end, the one that had waited longest first.
    pub waiting: Vec<Waiting>,
}

/// A simulated machine with a scheduler in charge and a workload to run.
#[derive(Debug)]
pub struct Machine {
    pub(crate) kernel: Kernel,
    pub(crate) program: Instance<Kernel>,
    pub(crate) policy: Policy,
    pub(crate) actors: Actors,
    pub(crate) effects: Vec<Effect>,
    pub(crate) labels: Vec<Label>,
    /// The locks' names in the trace, once they were waited for.
    pub(crate) lock_labels: Vec<Option<Label>>,
    /// Scheduling policies of the groups.
    pub(crate) policies: Vec<SchedPolicy>,
    /// Nice values of the groups.
    pub(crate) nices: Vec<i8>,
    /// The cgroups in which tasks of the groups begin; `None`: that of the parent.
    pub(crate) first_cgroups: Vec<Option<CgroupRef>>,
    pub(crate) starts: Starts,
    pub(crate) changes: Vec<Change>,
    /// Names of the workload's groups of tasks, for settings that come during the run.
    pub(crate) group_names: Vec<String>,
    pub(crate) carry_ps: u64,
    /// The promise of work conservation, if there is one.
    pub(crate) idle_bound_ns: Option<u64>,
    pub(crate) watchdog_ns: u64,
    pub(crate) max_events: usize,
    pub(crate) init_task_args: u64,
    pub(crate) exit_task_args: u64,
    /// Guest address of the arguments of `cpu_release`, if the scheduler has it.
    pub(crate) release_args: u64,
    pub(crate) cgroup_init_args: u64,
    /// Guest address of the context of programs that are called at events, if there are any.
    pub(crate) trace_context: u64,
    /// Values that programs of the loader left in their contexts, by name.
    pub(crate) saved: BTreeMap<String, u64>,
    /// `ops.init()` has succeeded.
    pub(crate) initialized: bool,
    /// The program ended in a trap; it is not called any more.
    pub(crate) broken: bool,
    pub(crate) finished: bool,
    /// The tasks that were runnable and did not run when the scheduler's time in charge ended.
    pub(crate) waiting: Vec<Waiting>,
    pub(crate) stepwise: bool,
    pub(crate) failure: Option<MachineError>,
}

impl Machine {
    /// Builds a machine, loads the scheduler (`init()` runs), applies `settings`, and makes the workload ready to
    /// start.
    ///
    /// # Errors
    /// An invalid configuration, setting or workload. A scheduler that fails in its `init()` is not an error here: the
    /// run then ends at time 0, and its [`Exit`] has the cause.
    pub fn new(
        config: &MachineConfig,
        policy: &Policy,
        settings: &[Setting],
        workload: &Workload,
    ) -> Result<Machine, MachineError> {
        let mut machine = Machine::assemble(config, policy, settings, workload)?;
        machine.load().map_err(MachineError::Memory)?;
        machine.outcome()?;
        Ok(machine)
    }

    /// Makes every end of kernel work an event of its own, also where a task only continues its computation: slower,
    /// and the same except for the order of two CPUs that act at the same nanosecond. For tests, which compare both
    /// ways.
    pub fn set_stepwise(&mut self) {
        self.stepwise = true;
    }

    /// Simulated time so far, ns.
    pub fn now_ns(&self) -> u64 {
        self.kernel.clock.now_ns()
    }

    /// Why the scheduler is no longer in charge; `None` while it is.
    pub fn exit(&self) -> Option<&Exit> {
        self.kernel.exit.as_ref()
    }

    /// Counters of the machine so far.
    pub fn counters(&self) -> Counters {
        let mut counters = self.kernel.counters.clone();
        counters.insns = self.program.insns();
        counters
    }

    /// The trace so far.
    pub fn trace(&self) -> &Trace {
        &self.kernel.trace
    }

    /// Removes the events of the trace so far. Their number does not count for [`MachineConfig::max_events`] any more.
    /// Not for a machine that checks itself ([`MachineConfig::check`]): it reads them.
    pub fn clear_events(&mut self) {
        debug_assert!(!self.kernel.check, "the checker reads the events");
        self.kernel.trace.clear_events();
    }

    /// Output of the scheduler so far.
    pub fn log(&self) -> &[PrintedLine] {
        self.kernel.log.lines()
    }

    /// Simulates up to and including `until_ns`. Ends earlier when the scheduler is ejected; then [`Machine::exit`]
    /// says why.
    ///
    /// # Errors
    /// A workload that makes no progress in time, or a fault of the simulator.
    pub fn run_until(&mut self, until_ns: u64) -> Result<(), MachineError> {
        while self.take_event(until_ns)? {}
        self.kernel.write_due();
        self.outcome()
    }

    /// Simulates up to and including `until_ns`, and handles `events` events at most. Returns whether it is there.
    ///
    /// # Errors
    /// As [`Machine::run_until`].
    pub fn run_some(&mut self, until_ns: u64, events: u64) -> Result<bool, MachineError> {
        for _ in 0..events {
            if !self.take_event(until_ns)? {
                self.kernel.write_due();
                return self.outcome().map(|()| true);
            }
        }
        Ok(false)
    }

    /// One event. False: none is left up to that time, or the run is over.
    #[inline]
    fn take_event(&mut self, until_ns: u64) -> Result<bool, MachineError> {
        if self.finished {
            return Ok(false);
        }
        if self.kernel.exit.is_some() {
            self.disable().map_err(MachineError::Memory)?;
            return Ok(false);
        }
        let Some((time_ns, slot)) = self.kernel.events.pop_until(until_ns) else {
            let end_ns = self.kernel.clock.now_ns().max(until_ns);
            self.kernel.clock.move_to(end_ns);
            return Ok(false);
        };
        let events = self.kernel.trace.len();
        if events >= self.max_events {
            self.finished = true;
            return Err(MachineError::TraceFull { events, time_ns });
        }
        if self.kernel.clock.step_to(time_ns) == STEPS_AT_ONCE_MAX {
            self.kernel.error(format!("more than {STEPS_AT_ONCE_MAX} events at one instant"));
        }
        self.kernel.counters.steps += 1;
        self.prepare_next();
        self.handle(slot).map_err(MachineError::Memory)?;
        if !self.kernel.left_custody.is_empty() {
            self.tell_left();
        }
        self.kernel.flush_ipis();
        if self.failure.is_some() || self.kernel.check {
            self.outcome()?;
        }
        Ok(true)
    }

    /// Prefetches the data of the next event before the current one is handled: with many tasks, one that ends a sleep
    /// is in no cache.
    #[inline]
    fn prepare_next(&self) {
        if self.kernel.tasks.len() < PREPARED_TASKS_MIN {
            return;
        }
        let slot = match self.kernel.events.expected() {
            Some(EventHandle::Task(number)) => Some(Slot(number)),
            Some(EventHandle::Cpu(cpu, event)) => {
                let rq = &self.kernel.cpus[cpu as usize];
                rq.timers.prefetch();
                if event == CpuEvent::Timer { rq.timers.first() } else { rq.curr() }
            }
            _ => None,
        };
        let Some(slot) = slot else { return };
        self.kernel.prefetch(slot);
        self.actors.prefetch(slot.0);
        let place = self.kernel.tasks.reserved() as usize + slot.index();
        self.program.prefetch_task(place, offsets::TASK_HOT_BYTES);
    }

    #[inline]
    pub(crate) fn handle(&mut self, slot: EventHandle) -> Step {
        match slot {
            EventHandle::Cpu(cpu, CpuEvent::Burst) => self.cpu_event(cpu),
            EventHandle::Cpu(cpu, CpuEvent::Resched) => self.resched_event(cpu),
            EventHandle::Cpu(cpu, CpuEvent::Signal) => self.signal_event(cpu),
            EventHandle::Cpu(cpu, CpuEvent::Timer) => self.timer_due(cpu),
            EventHandle::Cpu(cpu, CpuEvent::Server) => self.server_event(cpu),
            EventHandle::Task(number) => self.sleep_over(Slot(number)),
            EventHandle::Timer(number) => self.timer_event(number),
            EventHandle::Machine(agenda::TICK) => self.tick_event(),
            EventHandle::Machine(agenda::SETTING) => self.setting_event(),
            EventHandle::Machine(agenda::START) => self.start_event(),
            EventHandle::Machine(agenda::LEAD_IN) => self.begin_lead_in(),
            EventHandle::Machine(agenda::PROGRAMS) => self.programs_event(),
            EventHandle::Machine(agenda::WATCHDOG) => {
                self.check_for_stall();
                self.arm_watchdog();
                Ok(())
            }
            EventHandle::Machine(_) => Ok(()),
        }
    }

    /// A setting takes effect, between two steps of the machine and at no cost to it.
    fn setting_event(&mut self) -> Step {
        let now = self.kernel.clock.now_ns();
        while let Some(change) = self.changes.pop_if(|change| change.at_ns <= now) {
            match change.target {
                Target::Global { global, patches } => {
                    patch(&mut self.program, &self.policy.globals[global], &patches)?;
                    let label = self.kernel.trace.intern(&change.text);
                    self.kernel.emit(0, 0, EventKind::Param { label });
                }
                Target::Cgroup { cgroup, control } => {
                    self.on_cpu(0, |machine| machine.set_cgroup(cgroup, control))?;
                    if !matches!(control, Control::Weight(_)) {
                        let label = self.kernel.trace.intern(&change.text);
                        self.kernel.emit(0, 0, EventKind::Param { label });
                    }
                }
                Target::Online(change) => {
                    self.on_cpu(0, |machine| machine.request_hotplug(change))?;
                }
                Target::Tasks { spec, change } => self.change_tasks(spec, change)?,
            }
        }
        self.kernel.plan(agenda::SETTING, self.changes.last().map(|change| change.at_ns));
        Ok(())
    }

    /// Groups of the workload start: from outside the machine, on CPU 0. Without a lead-in their tasks are made now, at
    /// no cost; with one they exist and sleep, and are woken.
    fn start_event(&mut self) -> Step {
        let now = self.kernel.clock.now_ns();
        while let Some(start) = self.starts.take_due(now) {
            if self.starts.lead_in_ns == 0 {
                self.make_tasks(start, Stage::Advance)?;
            } else {
                self.wake_group(start.spec)?;
            }
            if self.kernel.exit.is_some() {
                return Ok(());
            }
        }
        self.kernel.plan(agenda::START, self.starts.next_ns());
        Ok(())
    }

    /// Makes the tasks of a group, which begin with a stage.
    fn make_tasks(&mut self, start: Start, stage: Stage) -> Step {
        for _ in 0..start.count {
            let actor = self.actors.spawn(start.spec, None);
            self.on_cpu(0, |machine| {
                machine.fork(None, actor)?;
                if let Some(slot) = machine.kernel.tasks.of_actor(actor) {
                    machine.kernel.task_mut(slot).stage = stage;
                }
                Ok(())
            })?;
            if self.kernel.exit.is_some() {
                break;
            }
        }
        Ok(())
    }

    /// The lead-in begins: all tasks that will start are made, and sleep until they are woken at their time.
    fn begin_lead_in(&mut self) -> Step {
        let starts: Vec<Start> = self.starts.iter().collect();
        let asleep = Stage::Block(TaskState::Sleeping, None);
        starts.into_iter().try_for_each(|start| self.make_tasks(start, asleep))
    }

    /// Wakes the tasks of a group, in the order of creation.
    fn wake_group(&mut self, spec: usize) -> Step {
        let of_group = |slot: &Slot| self.actors.spec(self.kernel.task(*slot).actor) == spec;
        let group: Vec<Slot> = self.kernel.tasks.by_actor().filter(of_group).collect();
        self.on_cpu(0, |machine| {
            // From outside of the machine, not by the task that CPU 0 runs.
            machine.kernel.in_interrupt = true;
            let woken = group.into_iter().try_for_each(|slot| machine.wake_up(slot, false));
            machine.kernel.in_interrupt = false;
            woken
        })
    }

    /// Reports what went wrong in the last step.
    pub(crate) fn outcome(&mut self) -> Result<(), MachineError> {
        if let Some(error) = self.failure.take() {
            self.finished = true;
            return Err(error);
        }
        if self.kernel.check && !self.finished {
            let in_vain = waits_in_vain(&self.actors, &self.starts);
            self.kernel.check_step(&in_vain, self.idle_bound_ns);
        }
        match self.kernel.violation.take() {
            Some(violation) => {
                self.finished = true;
                Err(MachineError::Invariant(Box::new(violation)))
            }
            None => Ok(()),
        }
    }

    /// Takes the scheduler out, if it is still in charge. Its variables can be read afterwards
    /// ([`Machine::content`]).
    ///
    /// # Errors
    /// As [`Machine::run_until`].
    pub fn stop(&mut self) -> Result<(), MachineError> {
        self.close_accounts().map_err(MachineError::Memory)?;
        if !self.finished {
            self.check_for_stall();
            self.kernel.exit(ExitKind::Unregistered, 0, String::new());
            self.disable().map_err(MachineError::Memory)?;
        }
        Ok(())
    }

    /// Takes the scheduler out, if it is still in charge, and returns the result of the run.
    ///
    /// # Errors
    /// As [`Machine::run_until`].
    pub fn finish(mut self) -> Result<RunResult, MachineError> {
        self.stop()?;
        self.kernel.write_all();
        self.outcome()?;
        let end = self.kernel.clock.now_ns();
        self.kernel.trace.end_ns = end;
        let counters = self.counters();
        let Kernel { trace, log, exit, .. } = self.kernel;
        let exit = exit.unwrap_or_else(|| unreachable!("`disable` leaves an exit"));
        Ok(RunResult { trace, exit, log: log.into_lines(), counters, waiting: self.waiting })
    }

    /// Books the time of the current tasks, and checks that no time is missing.
    fn close_accounts(&mut self) -> Step {
        for cpu in 0..self.kernel.nr_cpus() {
            self.kernel.update_curr(self.program.memory(), cpu)?;
            self.kernel.book_idle(cpu);
        }
        if self.kernel.check {
            self.kernel.check_time(&waits_in_vain(&self.actors, &self.starts));
        }
        Ok(())
    }
}

/// Why an actor that sleeps will never be woken, as far as can be seen; told whether its timer is set.
fn waits_in_vain(
    actors: &Actors,
    starts: &Starts,
) -> impl Fn(ActorId, bool) -> Option<&'static str> {
    move |actor, armed| {
        let armed = armed || starts.holds_back(actors.spec(actor));
        actors.why_it_waits_in_vain(actor, armed)
    }
}
