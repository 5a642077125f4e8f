//! Tasks that are made, woken, changed, and that end.

use fairground_trace::TaskId;
use fairground_workload::{CpuList, SchedPolicy};

use super::Driven;
use crate::abi::{deq, wake};
use crate::actors::ActorId;
use crate::cgroup::CgroupRef;
use crate::cpuset::CpuMask;
use crate::flow::{Birth, Step};
use crate::kernel::Slot;
use crate::{Machine, MachineError};

/// A task to be made.
#[derive(Clone, Debug)]
pub struct NewTask<'a> {
    /// Its number in the recording.
    pub task: TaskId,
    /// Its parent, if that is a task of the recording.
    pub parent: Option<TaskId>,
    /// `p->comm`, at most 15 bytes of it.
    pub comm: &'a str,
    /// −20…19.
    pub nice: i8,
    /// The CPUs on which it may run, as inclusive ranges; `None`: any.
    pub allowed_cpus: Option<&'a [(u32, u32)]>,
    /// Its control group, by its number in the recording.
    pub cgroup: u32,
}

/// How a task is woken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wake {
    /// For the first time (`wake_up_new_task`).
    pub is_new: bool,
    /// The waker is about to sleep (`WF_SYNC`).
    pub sync: bool,
    /// In an interrupt.
    pub in_interrupt: bool,
}

/// The CPU on which the scheduler places a task that wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The CPU.
    pub cpu: u32,
    /// Whether there was a choice: a task that may run on one CPU only has none.
    pub was_asked: bool,
}

impl Driven {
    /// Makes a task: it exists and does not run. Callbacks: `init_task`, `enable`, `set_weight`.
    ///
    /// # Errors
    /// A fault of the machine. A scheduler that refuses the task is no longer in charge ([`Driven::exit`]).
    pub fn create(&mut self, cpu: u32, new: &NewTask<'_>) -> Result<(), MachineError> {
        self.machine.kernel.this_cpu = cpu;
        let parent = new.parent.and_then(|parent| self.slot(parent));
        let actor = ActorId(self.births);
        self.births += 1;
        let slot = self.told(|machine| machine.make_told_task(actor, parent, new))?;
        self.tasks[new.task.index()] = slot;
        Ok(())
    }

    /// `select_task_rq` on a CPU: where a task that sleeps, or is new, is to run. Callback: `select_cpu`. `None`: it
    /// does not exist.
    ///
    /// # Errors
    /// A fault of the machine.
    pub fn place(
        &mut self,
        cpu: u32,
        task: TaskId,
        how: Wake,
    ) -> Result<Option<Placement>, MachineError> {
        let Some(slot) = self.slot(task) else { return Ok(None) };
        self.machine.kernel.this_cpu = cpu;
        let kind = if how.is_new { wake::FORK } else { wake::TTWU };
        let flags = kind | if how.sync { wake::SYNC } else { 0 };
        let prev_cpu = if how.is_new { cpu } else { self.machine.kernel.task(slot).cpu };
        let placed = self.told(|machine| {
            machine.maybe_in_interrupt(how.in_interrupt, |machine| {
                machine.select_task_rq(slot, prev_cpu, flags)
            })
        })?;
        Ok(Some(Placement { cpu: placed.0, was_asked: placed.1 }))
    }

    /// A task does not go where the scheduler placed it: a direct dispatch is dropped, and a CPU that is idle counts as
    /// idle.
    ///
    /// # Errors
    /// A fault of the machine.
    pub fn withdraw(&mut self, task: TaskId, placed: Placement) -> Result<(), MachineError> {
        let Some(slot) = self.slot(task) else { return Ok(()) };
        let kernel = &mut self.machine.kernel;
        kernel.task_mut(slot).ddsp = None;
        let asked = kernel.cpus[placed.cpu as usize].need_resched;
        if self.is_idle(placed.cpu) && !asked {
            self.machine.kernel.mark_idle(placed.cpu, true);
        }
        Ok(())
    }

    /// Queues a task for the CPU `to`, wherever the scheduler placed it. Callbacks: `runnable`, `enqueue`. Nothing
    /// happens to a task that is runnable or does not exist.
    ///
    /// # Errors
    /// A fault of the machine.
    pub fn wake(
        &mut self,
        cpu: u32,
        task: TaskId,
        to: u32,
        placement: Option<Placement>,
        how: Wake,
    ) -> Result<(), MachineError> {
        let Some(slot) = self.slot(task) else { return Ok(()) };
        if self.machine.kernel.task(slot).queued {
            return Ok(());
        }
        self.machine.kernel.this_cpu = cpu;
        if let Some(placed) = placement.filter(|placed| placed.cpu != to) {
            self.withdraw(task, placed)?;
        }
        let selected = placement.is_some_and(|placed| placed.was_asked);
        self.by_clock_of(to, |driven| {
            driven.told(|machine| {
                machine.maybe_in_interrupt(how.in_interrupt, |machine| match how.is_new {
                    true => machine.activate_new(slot, to),
                    false => machine.activate_on(slot, to, selected),
                })?;
                machine.kernel.run_deferred(machine.program.memory(), to)
            })
        })
    }

    /// Moves a task that waits to the queue of another CPU, as a change of its affinity does. Callbacks: `dequeue`,
    /// `enqueue`. A task that sleeps goes along without a callback; one that runs stays.
    ///
    /// # Errors
    /// A fault of the machine.
    pub fn move_task(&mut self, task: TaskId, to: u32) -> Result<(), MachineError> {
        let Some(slot) = self.slot(task) else { return Ok(()) };
        if self.machine.kernel.runs(slot) || self.machine.kernel.task(slot).cpu == to {
            return Ok(());
        }
        self.quietly(|machine| match machine.kernel.task(slot).queued {
            true => machine.move_queued_task(slot, to),
            false => machine.kernel.set_task_cpu(machine.program.memory(), slot, to),
        })
    }

    /// `set_user_nice`, on a CPU.
    ///
    /// # Errors
    /// A fault of the machine.
    pub fn set_nice(&mut self, cpu: u32, task: TaskId, nice: i8) -> Result<(), MachineError> {
        let Some(slot) = self.slot(task) else { return Ok(()) };
        self.machine.kernel.this_cpu = cpu;
        let at = self.machine.kernel.task(slot).cpu;
        self.by_clock_of(at, |driven| driven.told(|machine| machine.set_nice(slot, nice)))
    }

    /// `sched_setattr` of a task's own slice length, ns (0: the scheduler's), on a CPU. Callbacks as for a nice value.
    ///
    /// # Errors
    /// A fault of the machine.
    pub fn set_slice_length(
        &mut self,
        cpu: u32,
        task: TaskId,
        slice_ns: u64,
    ) -> Result<(), MachineError> {
        let Some(slot) = self.slot(task) else { return Ok(()) };
        self.machine.kernel.this_cpu = cpu;
        let at = self.machine.kernel.task(slot).cpu;
        self.by_clock_of(at, |driven| {
            driven.told(|machine| machine.set_custom_slice(slot, slice_ns))
        })
    }

    /// A task may run on these CPUs, given as ranges; where it goes then the recording says. Callbacks: `set_cpumask`
    /// and those of a task that is taken out of its queue and put back.
    ///
    /// # Errors
    /// A fault of the machine.
    pub fn set_affinity(
        &mut self,
        cpu: u32,
        task: TaskId,
        cpus: &[(u32, u32)],
    ) -> Result<(), MachineError> {
        let Some(slot) = self.slot(task) else { return Ok(()) };
        let mask = CpuMask::from_list(&CpuList(cpus.to_vec()));
        let mask = mask.and(&self.machine.kernel.all_cpus);
        if mask.is_empty() {
            return Ok(());
        }
        self.machine.kernel.this_cpu = cpu;
        let at = self.machine.kernel.task(slot).cpu;
        self.by_clock_of(at, |driven| driven.told(|machine| machine.allow(slot, &mask)))
    }

    /// `cgroup_migrate` of one task, on a CPU. Callbacks: `cgroup_prep_move`, `cgroup_move` and those between.
    ///
    /// # Errors
    /// A fault of the machine.
    pub fn move_to_cgroup(&mut self, cpu: u32, task: TaskId, to: u32) -> Result<(), MachineError> {
        let Some(slot) = self.slot(task) else { return Ok(()) };
        self.machine.kernel.this_cpu = cpu;
        let at = self.machine.kernel.task(slot).cpu;
        self.by_clock_of(at, |driven| {
            driven.told(|machine| machine.move_to_cgroup(&[slot], CgroupRef(to)))
        })
    }

    /// `cpu.weight` of a control group changes. Callback: `cgroup_set_weight`.
    ///
    /// # Errors
    /// A fault of the machine.
    pub fn set_cgroup_weight(
        &mut self,
        cpu: u32,
        cgroup: u32,
        weight: u32,
    ) -> Result<(), MachineError> {
        self.machine.kernel.this_cpu = cpu;
        self.by_clock_of(cpu, |driven| {
            driven.told(|machine| machine.set_cgroup_weight(CgroupRef(cgroup), weight))
        })
    }

    /// `exit_signals`: a task is exiting, and runs on until it leaves its CPU dead.
    ///
    /// # Errors
    /// A fault of the machine.
    pub fn begin_exit(&mut self, task: TaskId) -> Result<(), MachineError> {
        let Some(slot) = self.slot(task) else { return Ok(()) };
        self.machine.kernel.task_mut(slot).exiting = true;
        self.told(|machine| machine.kernel.task(slot).publish_exiting(machine.program.memory()))
    }

    /// `sched_ext_free`: a task that has left its CPU dead is gone. Callbacks: `disable`, `exit_task`. A task that runs
    /// or waits, because events are missing, leaves its CPU or its queue first.
    ///
    /// # Errors
    /// A fault of the machine.
    pub fn remove(&mut self, task: TaskId) -> Result<(), MachineError> {
        let Some(slot) = self.slot(task) else { return Ok(()) };
        if self.machine.kernel.runs(slot) {
            self.vacate(slot)?;
        }
        self.quietly(|machine| machine.dequeue_task(slot, deq::SLEEP))?;
        self.told(|machine| {
            machine.exit_task(slot);
            machine.reap(slot);
            Ok(())
        })?;
        self.tasks[task.index()] = None;
        Ok(())
    }
}

impl Machine {
    /// `copy_process`, without the wake-up. `None`: the scheduler refused the task.
    fn make_told_task(
        &mut self,
        actor: ActorId,
        parent: Option<Slot>,
        new: &NewTask<'_>,
    ) -> Step<Option<Slot>> {
        let all = self.kernel.all_cpus;
        let allowed = new.allowed_cpus.map(|ranges| CpuList(ranges.to_vec()));
        let allowed = allowed.map(|list| CpuMask::from_list(&list).and(&all));
        let (slot, pid) = self.kernel.tasks.take_place();
        let birth = Birth {
            id: new.task,
            actor,
            pid,
            comm: new.comm,
            policy: SchedPolicy::Other,
            nice: new.nice,
            cgroup: CgroupRef(new.cgroup),
            allowed: allowed.filter(|mask| !mask.is_empty()).unwrap_or(all),
        };
        self.put_task(slot, parent, &birth)?;
        if !self.init_task(slot)? {
            return Ok(None);
        }
        self.enable_task(slot)?;
        self.kernel.task_mut(slot).state = fairground_trace::TaskState::Sleeping;
        Ok(Some(slot))
    }

    fn maybe_in_interrupt<T>(
        &mut self,
        interrupt: bool,
        step: impl FnOnce(&mut Self) -> Step<T>,
    ) -> Step<T> {
        if interrupt { self.in_interrupt(step) } else { step(self) }
    }
}
