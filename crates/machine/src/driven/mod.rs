//! A machine that is told what happened and asked what its scheduler decides.
//!
//! A [`Driven`] machine has tasks, CPUs and a scheduler in charge, but no workload, no costs and no events of its own
//! except the scheduler's timers: its caller says when a task is made, woken, blocks, yields or exits, when a CPU
//! ticks, and which task each CPU really runs next. Callbacks come in the kernel's order, as in a [`Machine`] that
//! simulates.
//!
//! The caller may continue with something other than the scheduler's decision. The machine then does what the kernel
//! has for that:
//!
//! * Another task runs (`set_next_task_scx` of core scheduling): the task is taken from the scheduler by
//!   `ops.dequeue(SCX_DEQ_CORE_SCHED_EXEC)`, if the scheduler holds it, and runs with the slice that it has. The task
//!   that the scheduler had dispatched goes back to it by `ops.enqueue(SCX_ENQ_REENQ | SCX_ENQ_HEAD)`, as
//!   `scx_bpf_reenqueue_local` does it, on the CPU where it was: left in the local queue it would run next without
//!   another question. `SCX_ENQ_HEAD` keeps its place in a first-in first-out queue.
//! * The running task is preempted against the scheduler's will: it loses its slice, as by `SCX_KICK_PREEMPT`.
//! * The running task stays though the scheduler lets another one run: it keeps the slice that it had.
//! * A woken task goes to another CPU: the direct dispatch is dropped, `ops.enqueue()` sees the task on that CPU
//!   (`select_fallback_rq`), and the CPU that was chosen counts as idle again.

mod clocks;
mod passes;
mod tasks;

use fairground_trace::{EventKind, TaskId, TaskInfo, Trace};
use fairground_workload::{Bandwidth, Cgroup, Workload};

use crate::events::EventHandle;
use crate::flow::Step;
use crate::inspect::TaskView;
use crate::kernel::{Slot, agenda};
use crate::{CostModel, Exit, Machine, MachineConfig, MachineError, Policy, Setting};

use clocks::LateTimer;
use passes::Pass;
pub use tasks::{NewTask, Placement, Wake};

/// Timers of the scheduler that may expire at one instant.
const TIMERS_AT_ONCE_MAX: u32 = 1 << 17;

/// The name of tasks that the recording does not have.
const EARLIER: &str = "earlier";

/// A task that went to another CPU's run queue.
#[derive(Clone, Copy, Debug)]
struct Moved {
    task: TaskId,
    from: u32,
    to: u32,
}

/// A machine that is told what happened. Tasks are named by their numbers in the recording.
#[derive(Debug)]
pub struct Driven {
    machine: Machine,
    /// By number in the recording; `None`: it does not exist.
    tasks: Vec<Option<Slot>>,
    /// The first of the numbers that are not in the recording.
    earliest: TaskId,
    /// Tasks made so far.
    births: u32,
    pass: Option<Pass>,
    /// By CPU: a task of a higher class runs there.
    taken: Vec<bool>,
    /// By CPU: up to when what runs there was charged, ns, where the recording has the kernel's charges.
    charged_ns: Vec<u64>,
    /// By CPU: how much of that was read from the clock and not charged yet, ns.
    read_ns: Vec<u64>,
    /// Timers of the scheduler that have expired on CPUs whose clocks have not come so far yet.
    late_timers: Vec<LateTimer>,
    /// How late a switch is stamped in the recording, ns.
    stamp_late_ns: u64,
    /// A running task is charged at least so often, ns: at each tick.
    charged_within_ns: u64,
    /// Moves that were not taken yet.
    moves: Vec<Moved>,
}

impl Driven {
    /// A machine of this configuration, without costs that are charged, whose tasks and control groups are those of a
    /// recording, and whose clock stands at the beginning of it. Where the recording has the kernel's charges, tasks
    /// have run for what [`Driven::charge`] says, else for the time between their switches; the kernel then has read the
    /// clock up to `stamp_late_ns` before a switch is stamped. No task exists yet; every CPU is idle. `init()` of the
    /// scheduler has run.
    ///
    /// # Errors
    /// An invalid configuration or setting, and more control groups than the machine can hold.
    pub fn new(
        config: &MachineConfig,
        policy: &Policy,
        settings: &[Setting],
        recording: &Trace,
        stamp_late_ns: u64,
    ) -> Result<Driven, MachineError> {
        let mut config = config.clone();
        // The recording's times contain what its machine did. What is not charged remains.
        let newidle_max_ns = config.cost.newidle_max_ns;
        config.cost = CostModel::preset("zero").unwrap_or_else(|_| unreachable!("it exists"));
        config.cost.newidle_max_ns = newidle_max_ns;
        (config.check, config.lead_in_ns) = (false, 0);
        let mut machine = Machine::assemble(&config, policy, settings, &no_tasks(recording))?;
        machine.kernel.clock.move_to(recording.start_ns);
        machine.kernel.charges_are_told =
            recording.events().any(|event| matches!(event.kind, EventKind::Charge { .. }));
        for task in &recording.tasks()[1..] {
            machine.kernel.trace.add_task(task.clone());
        }
        for _ in 0..config.cpus() {
            machine.kernel.trace.add_task(TaskInfo::new(0, EARLIER));
        }
        machine.load().map_err(MachineError::Memory)?;
        let taken = vec![false; config.cpus() as usize];
        let earliest = TaskId(recording.tasks().len() as u32);
        let tasks = vec![None; earliest.index() + config.cpus() as usize];
        let read_ns = vec![0; config.cpus() as usize];
        let charged_ns = vec![recording.start_ns; config.cpus() as usize];
        Ok(Driven {
            machine,
            tasks,
            earliest,
            births: 0,
            pass: None,
            taken,
            charged_ns,
            read_ns,
            late_timers: Vec::new(),
            stamp_late_ns,
            charged_within_ns: config.tick_ns(),
            moves: Vec::new(),
        })
    }

    /// Why the scheduler is no longer in charge; `None` while it is.
    pub fn exit(&self) -> Option<&Exit> {
        self.machine.exit()
    }

    /// The machine, to read what the scheduler keeps ([`Machine::task`], [`Machine::tasks`]).
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Lets time pass: timers of the scheduler that are due expire.
    ///
    /// # Errors
    /// A fault of the machine.
    pub fn advance(&mut self, to_ns: u64) -> Result<(), MachineError> {
        let mut timers = 0;
        while let Some((time_ns, event)) = self.machine.kernel.events.pop_until(to_ns) {
            let now_ns = self.machine.kernel.clock.now_ns();
            if time_ns > now_ns {
                timers = 0;
                self.machine.kernel.clock.move_to(time_ns);
            }
            timers += 1;
            if timers > TIMERS_AT_ONCE_MAX {
                self.machine.kernel.error("its timers do not let time pass");
                break;
            }
            match event {
                EventHandle::Timer(number) => self.timer_expires(number, time_ns)?,
                EventHandle::Machine(agenda::PROGRAMS) => self.told(|machine| {
                    for run in machine.policy.setup.each_second.clone() {
                        machine.run_program(&run);
                    }
                    machine.arm_programs();
                    Ok(())
                })?,
                // The recording says when CPUs tick and tasks wake.
                _ => {}
            }
        }
        let now_ns = self.machine.kernel.clock.now_ns();
        self.machine.kernel.clock.move_to(to_ns.max(now_ns));
        self.run_late_timers()
    }

    /// Whether a CPU is to schedule (`TIF_NEED_RESCHED`): what runs there is to make room, or the idle CPU has
    /// something to run.
    pub fn wants_pass(&self, cpu: u32) -> bool {
        self.machine.kernel.cpus[cpu as usize].need_resched
    }

    /// The number of a task that the recording does not have, one for each CPU: to be made, to have run before the
    /// recording begins, and to be removed.
    pub fn earlier(&self, cpu: u32) -> TaskId {
        TaskId(self.earliest.0 + cpu)
    }

    /// The task that a CPU runs; [`TaskId::IDLE`] for the idle task.
    pub fn running(&self, cpu: u32) -> TaskId {
        self.machine.kernel.current(cpu)
    }

    /// Whether a CPU runs nothing at all: neither a task of the scheduler nor one of a higher class.
    pub fn is_idle(&self, cpu: u32) -> bool {
        self.machine.kernel.cpus[cpu as usize].is_idle() && !self.taken[cpu as usize]
    }

    /// Whether a task of a higher class has a CPU.
    pub fn is_taken(&self, cpu: u32) -> bool {
        self.taken[cpu as usize]
    }

    /// A task as the kernel keeps it, and the 64-bit words `words` of what the scheduler keeps for it
    /// ([`Machine::tasks`]); `None` if it does not exist.
    pub fn read(
        &self,
        task: TaskId,
        words: &[(String, u64)],
    ) -> Option<(TaskView, Vec<Option<u64>>)> {
        self.machine.read_task(self.slot(task)?, words)
    }

    /// Whether a task exists.
    pub fn exists(&self, task: TaskId) -> bool {
        self.slot(task).is_some()
    }

    /// Whether a task runs or waits for a CPU.
    pub fn is_runnable(&self, task: TaskId) -> bool {
        self.slot(task).is_some_and(|slot| self.machine.kernel.task(slot).queued)
    }

    /// The CPU of a task's run queue; `None` if it does not exist.
    pub fn cpu_of(&self, task: TaskId) -> Option<u32> {
        self.slot(task).map(|slot| self.machine.kernel.task(slot).cpu)
    }

    /// Takes the moves of tasks between CPUs since the last time, in their order: the task, and its CPU afterwards.
    pub fn take_moves(&mut self, moves: &mut Vec<(TaskId, u32)>) {
        self.note_moves();
        moves.clear();
        moves.extend(self.moves.drain(..).map(|moved| (moved.task, moved.to)));
    }

    /// Takes the moves out of the machine's trace.
    fn note_moves(&mut self) {
        let trace = &mut self.machine.kernel.trace;
        self.moves.extend(trace.events().filter_map(|event| match event.kind {
            EventKind::Migrate { task, from_cpu, to_cpu } => {
                Some(Moved { task, from: from_cpu, to: to_cpu })
            }
            _ => None,
        }));
        trace.clear_events();
    }

    fn slot(&self, task: TaskId) -> Option<Slot> {
        self.tasks.get(task.index()).copied().flatten()
    }

    /// Carries out a step, and the kicks and re-enqueues that the scheduler asked for in it.
    fn told<T>(&mut self, step: impl FnOnce(&mut Machine) -> Step<T>) -> Result<T, MachineError> {
        let machine = &mut self.machine;
        let cpu = machine.kernel.this_cpu;
        let result = step(machine).and_then(|value| {
            if !machine.kernel.reenqueues.is_empty() {
                machine.run_reenqueues(cpu)?;
            }
            machine.kernel.flush_kicks(machine.program.memory())?;
            Ok(value)
        });
        // A reschedule interrupt takes no time: the caller asks `wants_pass`.
        machine.kernel.ipis.clear();
        result.map_err(MachineError::Memory)
    }
}

/// A workload of no tasks with the control groups of a recording.
fn no_tasks(recording: &Trace) -> Workload {
    let cgroup = |info: &fairground_trace::CgroupInfo| Cgroup {
        path: info.path.clone(),
        parent: info.parent.map(|id| id.index()),
        weight: info.weight.unwrap_or(100),
        max: Bandwidth::NO_LIMIT,
        idle: false,
    };
    let cgroups = recording.cgroups().iter().map(cgroup).collect();
    Workload { duration_ns: 1, cgroups, ..Workload::default() }
}
