//! The start of a run with a lead-in: as the runner starts the tasks of a real run (`fork_first` and `release` of the crate `kernel`).
//!
//! The runner is of a class above the scheduler's, on CPU 0. It forks the tasks one after another; each goes to the next CPU, gets ready and
//! sleeps before the next is forked. When the lead-in is over it wakes them all, in the order of their birth, in one system call (`FUTEX_WAKE`). While
//! it is on the CPU that CPU is not idle, and what is to run there waits until it is gone. It takes no time of its own but for the
//! wake-ups and, after the last one, for its way to sleep, and is not in the trace.
//!
//! A scheduler that goes by loads over time knows a CPU by what was there before, and a fair one where a task stands by who runs when it
//! wakes up. So in the presets that stand for recorded kernels the runner is a task: it computes as long as its process does, at the same times,
//! and is on its CPU when it wakes the others.

use std::collections::VecDeque;

use fairground_trace::TaskState;
use fairground_workload::{Duration, Op, Program, TaskSpec, Timer, TimerId, Workload};

use super::housekeeping::other_task;
use super::{Machine, Step};
use crate::actors::ActorId;
use crate::cpuset::CpuMask;
use crate::events::Slot as EventSlot;
use crate::kernel::{Slot, Stage, agenda};
use crate::{CostModel, MachineConfig};

/// Between two forks, at most, ns: so long the runner of a real run takes for one.
const FORK_GAP_NS: u64 = 2_650_000;
/// After the last one, at most, ns, and no more than a tenth of the lead-in: until all have gone to sleep.
const SETTLE_NS: u64 = 31_400_000;
/// When the anchor starts to do anything, and the runner's process goes on.
const NEVER_NS: u64 = u64::MAX;
/// Where the runner is.
const CPU: u32 = 0;
/// What the runner of a real run computes for a fork, ns, most of it before.
const FORKING_NS: u64 = 1_650_000;
/// Of that, once the task is there, ns.
const FORKED_NS: u64 = 190_000;
/// What a task executes until it is ready to be let go, ns.
const READY_NS: u64 = 950_000;
/// What it computes after the last one, a while later, to read the account of each task, ns each.
const READING_NS: u64 = 280_000;
/// How long it sleeps before that, ns.
const READS_AFTER_NS: u64 = 5_000_000;
/// So long before the end of the lead-in its timer wakes it, ns.
const COMES_BEFORE_NS: u64 = 65_000;
/// What it computes then, ns: more than from there until it wakes the first one. While it wakes tasks nothing of it passes.
const RELEASING_NS: u64 = 30_000;
/// The process that it forks before all tasks, and that only sleeps: the first task is placed on another CPU.
const ANCHOR: &str = "anchor";
/// Its own.
const RUNNER: &str = "runner";

/// Adds what the runner of a real run is to the scheduler beside the tasks, where the costs are those of a recorded kernel: the anchor, and
/// itself. The workload has `own` groups of its own.
pub(crate) fn add_runner(workload: &mut Workload, own: usize, config: &MachineConfig) {
    if config.lead_in_ns == 0 || !config.cost.has_house() {
        return;
    }
    let anchor = other_task(ANCHOR, None, Vec::new());
    workload.tasks.push(TaskSpec { start_ns: None, ..anchor });
    if let Some(launch) = Launch::new(workload, own, config.lead_in_ns) {
        let program = launch.program(workload.timers.len());
        workload.timers.push(Timer::new(RUNNER, launch.gap_ns.max(1)));
        workload.tasks.push(other_task(RUNNER, Some(CPU), program));
    }
}

/// What the runner has still to do.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    /// Groups of which there is something to fork, the next one last: its place in the workload, when it starts (ns), and how many.
    groups: Vec<(usize, u64, u32)>,
    /// Between two forks, ns.
    gap_ns: u64,
    /// Between the last and the end of the lead-in, ns.
    settle_ns: u64,
    lead_in_ns: u64,
    /// Those that it wakes.
    asleep: VecDeque<ActorId>,
    /// It is on its CPU, without a task.
    present: bool,
    /// Tasks of the workload that it has forked.
    forked: u32,
    /// As what the task is born that it is forking.
    birth: Option<Birth>,
    /// The group of its task that is to come before the end of the lead-in.
    task: Option<usize>,
}

/// What a task that the runner forks has until it is ready.
#[derive(Clone, Copy, Debug)]
struct Birth {
    /// `None`: its own.
    nice: Option<i8>,
    /// The only CPU on which it may run.
    cpu: Option<u32>,
}

impl Launch {
    /// `None` without a lead-in. The forks of the workload's `own` groups, behind the anchor, are spread evenly over it, or its end.
    pub(crate) fn new(workload: &Workload, own: usize, lead_in_ns: u64) -> Option<Launch> {
        let tasks = workload.tasks.iter().enumerate();
        let mut groups: Vec<_> = tasks
            .clone()
            .take(own)
            .rev()
            .filter(|(_, task)| task.count > 0)
            .filter_map(|(spec, task)| Some((spec, task.start_ns?, task.count)))
            .collect();
        // Of the tasks that are not the workload's it alone does not start by itself.
        let anchor = tasks.clone().skip(own).find(|(_, task)| task.start_ns.is_none());
        let runner = other_task(RUNNER, None, Vec::new()).name;
        let task = tasks.skip(own).find(|(_, task)| task.name == runner).map(|(spec, _)| spec);
        groups.extend(anchor.map(|(spec, _)| (spec, NEVER_NS, 1)));
        let tasks: u64 = groups.iter().map(|(_, _, count)| u64::from(*count)).sum();
        let settle_ns = SETTLE_NS.min(lead_in_ns / 10);
        let launch = Launch {
            groups,
            gap_ns: ((lead_in_ns - settle_ns) / tasks.max(1)).min(FORK_GAP_NS),
            settle_ns,
            lead_in_ns,
            asleep: VecDeque::new(),
            present: false,
            forked: 0,
            birth: None,
            task,
        };
        (lead_in_ns > 0).then_some(launch)
    }

    /// When the runner's process computes before it wakes the tasks. By a timer it is there at each fork: where a new task goes hangs on
    /// what is on its parent's CPU.
    fn program(&self, timer: TimerId) -> Program {
        let run = |ns| Op::Run(Duration::Fixed(ns));
        let sleep = |ns| Op::Sleep(Duration::Fixed(ns));
        let forking_ns = FORKING_NS.min(self.gap_ns);
        let (tasks, first_ns) = (self.tasks(), self.first_ns() + FORKED_NS);
        let rounds = vec![run(forking_ns), Op::TimerWait(timer, self.gap_ns.max(1))];
        // Not the anchor's.
        let reading_ns = (READING_NS * tasks.saturating_sub(1)).min(self.settle_ns / 2);
        vec![
            sleep(first_ns.saturating_sub(forking_ns)),
            Op::TimerStart(timer),
            Op::Loop(Some(tasks), rounds),
            sleep(READS_AFTER_NS.min(self.settle_ns / 4)),
            run(reading_ns),
            sleep(NEVER_NS),
            run(RELEASING_NS),
            sleep(NEVER_NS),
        ]
    }

    /// Whether there are tasks that wait for it.
    pub(crate) fn has_to_wake(&self) -> bool {
        !self.asleep.is_empty()
    }

    /// When it forks the first one, ns.
    pub(crate) fn first_ns(&self) -> u64 {
        self.lead_in_ns - self.settle_ns - self.gap_ns * self.tasks()
    }

    /// How many tasks it has still to fork.
    pub(crate) fn tasks(&self) -> u64 {
        self.groups.iter().map(|(_, _, count)| u64::from(*count)).sum()
    }

    /// The next task that it forks: its group, and when that starts, ns.
    fn take(&mut self) -> Option<(usize, u64)> {
        let (spec, start_ns, left) = self.groups.last_mut()?;
        let next = (*spec, *start_ns);
        *left -= 1;
        if *left == 0 {
            self.groups.pop();
        }
        Some(next)
    }
}

impl Machine {
    /// The runner has something to do at this time.
    pub(crate) fn arm_launch(&mut self, at_ns: u64) {
        self.kernel.events.arm(EventSlot::Machine(agenda::LAUNCH), at_ns);
    }

    /// The runner forks a task, or wakes one.
    pub(crate) fn launch_event(&mut self) -> Step {
        let Some(launch) = &mut self.launch else { return Ok(()) };
        let (next, now) = (launch.take(), self.kernel.now_ns);
        let next_ns = match launch.groups.is_empty() {
            true => launch.lead_in_ns - COMES_BEFORE_NS.min(launch.settle_ns),
            false => now + launch.gap_ns,
        };
        if next.is_none() && now < launch.lead_in_ns {
            return self.runner_wakes();
        }
        self.on_cpu(CPU, |machine| {
            machine.runner_comes();
            match next {
                Some((spec, start_ns)) => {
                    machine.arm_launch(next_ns);
                    machine.fork_first(spec, start_ns)
                }
                None => machine.release(),
            }
        })
    }

    /// The first task of a group.
    fn task_of_group(&self, spec: usize) -> Option<Slot> {
        let of_group = |slot: &&Slot| self.actors.spec(self.kernel.task(**slot).actor) == spec;
        self.actor_slots.iter().flatten().find(of_group).copied()
    }

    /// The timer of the runner's task is due, shortly before the lead-in is over.
    fn runner_wakes(&mut self) -> Step {
        let Some(launch) = &self.launch else { return Ok(()) };
        let (lead_in_ns, spec) = (launch.lead_in_ns, launch.task);
        self.arm_launch(lead_in_ns);
        let Some(slot) = spec.and_then(|spec| self.task_of_group(spec)) else { return Ok(()) };
        self.on_cpu(CPU, |machine| {
            machine.wake_from_idle(CPU);
            machine.in_interrupt(|machine| machine.wake_up(slot, false))?;
            machine.kernel.charge_irqs_off(CPU, machine.kernel.cost.timer_irq_ns);
            Ok(())
        })
    }

    /// Forks a task of a group. It sleeps until it is let go or, if its group starts later, until then.
    fn fork_first(&mut self, spec: usize, start_ns: u64) -> Step {
        let actor = self.actors.spawn(spec, None);
        let birth = Birth {
            nice: self.kernel.cost.has_house().then_some(0),
            cpu: (start_ns != NEVER_NS).then(|| self.next_place(actor)),
        };
        self.bear_as(Some(birth));
        self.fork(None, actor)?;
        self.bear_as(None);
        let (Some(slot), Some(launch)) = (self.slot_of(actor), &mut self.launch) else {
            return Ok(());
        };
        let until_ns = (start_ns > 0).then(|| launch.lead_in_ns.saturating_add(start_ns));
        if until_ns.is_none() {
            launch.asleep.push_back(actor);
        }
        self.actors.owe(actor, self.kernel.cost.first_pages_ns);
        self.kernel.task_mut(slot).stage = Stage::Ready(until_ns);
        Ok(())
    }

    /// The CPU of the next task of the workload: its nth of those on which it may run, round about.
    fn next_place(&mut self, actor: ActorId) -> u32 {
        let allowed = self.affinity_of(actor);
        let Some(launch) = &mut self.launch else { return CPU };
        let nth = launch.forked % allowed.count().max(1);
        launch.forked += 1;
        allowed.iter().nth(nth as usize).unwrap_or(CPU)
    }

    fn bear_as(&mut self, birth: Option<Birth>) {
        if let Some(launch) = &mut self.launch {
            launch.birth = birth;
        }
    }

    /// The nice value and the CPUs that a new task begins with.
    pub(crate) fn birth_of(&self, actor: ActorId) -> (i8, CpuMask) {
        let birth = self.launch.as_ref().and_then(|launch| launch.birth);
        let nice =
            birth.and_then(|birth| birth.nice).unwrap_or(self.nices[self.actors.spec(actor)]);
        let cpu = birth.and_then(|birth| birth.cpu);
        (nice, cpu.map_or_else(|| self.affinity_of(actor), CpuMask::one))
    }

    /// A task that was forked does what it has to before it sleeps, and then takes its nice value: until then it has the runner's.
    pub(crate) fn gets_ready(&mut self, slot: Slot, until_ns: Option<u64>) {
        let recorded = self.kernel.cost.has_house();
        self.kernel.task_mut(slot).stage = Stage::Renice(until_ns);
        self.kernel.charge(self.kernel.this_cpu, if recorded { READY_NS } else { 0 });
    }

    /// It is ready.
    pub(crate) fn is_ready(&mut self, slot: Slot, until_ns: Option<u64>) -> Step {
        self.kernel.task_mut(slot).stage = Stage::Block(TaskState::Sleeping, until_ns);
        let actor = self.kernel.task(slot).actor;
        self.set_nice(slot, self.nices[self.actors.spec(actor)])?;
        let allowed = self.affinity_of(actor);
        if allowed.count() > 1 {
            self.set_affinity(slot, allowed)?;
        }
        Ok(())
    }

    /// `wake_up_q`: the next one that sleeps. Between two the CPU is the runner's, and after the last one it goes to sleep until the run is over.
    fn release(&mut self) -> Step {
        let Some(launch) = &mut self.launch else { return Ok(()) };
        let next = launch.asleep.pop_front();
        let (more, present, spec) = (!launch.asleep.is_empty(), launch.present, launch.task);
        if let Some(slot) = next.and_then(|actor| self.slot_of(actor)) {
            self.wake_up(slot, false)?;
        }
        let rq = &self.kernel.cpus[CPU as usize];
        let (curr, at_ns) = (rq.curr, rq.run_start_ns.max(self.kernel.now_ns));
        let is_runner = |slot: &Slot| Some(self.actors.spec(self.kernel.task(*slot).actor)) == spec;
        let runner = curr.filter(is_runner);
        if present || runner.is_some() {
            // Whoever else is there keeps what it has of that by itself. The runner's task makes room when it sleeps.
            self.kernel.rq(CPU).unpreempted = more || runner.is_some();
        }
        let CostModel { syscall_ns, block_ns, .. } = self.kernel.cost;
        match runner {
            _ if more => self.arm_launch(at_ns),
            // It goes to sleep by itself.
            Some(_) => {}
            None if present => self.kernel.charge(CPU, syscall_ns + block_ns),
            None => {}
        }
        Ok(())
    }

    /// The runner takes its CPU from the idle task. (From a task, which is there if the lead-in is short, it takes it for no time.)
    fn runner_comes(&mut self) {
        let free = self.kernel.cpus[CPU as usize].is_idle();
        match &mut self.launch {
            Some(launch) if free && !launch.present => launch.present = true,
            _ => return,
        }
        self.update_idle(CPU, false);
        self.kernel.rq(CPU).need_resched = true;
    }

    /// Whether the runner is on this CPU, and leaves it now.
    pub(crate) fn runner_leaves(&mut self, cpu: u32) -> bool {
        match &mut self.launch {
            Some(launch) if cpu == CPU => std::mem::take(&mut launch.present),
            _ => false,
        }
    }
}
