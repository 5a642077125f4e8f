//! Scheduling passes and ticks: the scheduler is asked, and the CPU goes on with what the caller says.

use fairground_trace::{TaskId, TaskState};

use super::Driven;
use crate::abi::enq;
use crate::flow::{Meter, Pick, Step, Sticky};
use crate::kernel::Slot;
use crate::real_time::Taker;
use crate::{Machine, MachineError, Path};

/// `SCX_DEQ_CORE_SCHED_EXEC`.
const CORE_SCHED_EXEC: u64 = 1 << 32;

/// A pass between the scheduler's choice and what runs then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pass {
    cpu: u32,
    prev: Option<Slot>,
    prev_state: TaskState,
    chosen: Option<Slot>,
    meter: Meter,
    /// A task of a higher class ran before.
    was_taken: bool,
    /// Moves before it.
    moves: usize,
}

impl Driven {
    /// A CPU schedules: which task the scheduler lets run next, [`TaskId::IDLE`] for none. `leaves`: the state in which
    /// the running task leaves; `None`: it is still runnable. [`Driven::run`] or [`Driven::stay`] must follow.
    /// Callbacks: `stopping`, `quiescent` of a task that blocks, `dispatch`.
    ///
    /// # Errors
    /// A fault of the machine.
    pub fn pick(&mut self, cpu: u32, leaves: Option<TaskState>) -> Result<TaskId, MachineError> {
        self.by_clock_of(cpu, |driven| driven.choose(cpu, leaves))
    }

    fn choose(&mut self, cpu: u32, leaves: Option<TaskState>) -> Result<TaskId, MachineError> {
        self.note_moves();
        let machine = &mut self.machine;
        machine.kernel.this_cpu = cpu;
        let leaves = leaves.map(as_blocked);
        let was_taken = std::mem::take(&mut self.taken[cpu as usize]);
        let (meter, moves) = (machine.meter(), self.moves.len());
        let prev = machine.kernel.cpus[cpu as usize].curr();
        let picked = (|| {
            if let (Some(slot), Some(state)) = (prev, leaves) {
                machine.block(slot, state)?;
            }
            machine.pick_next(cpu, prev)
        })();
        let chosen = match picked.map_err(MachineError::Memory)? {
            Pick::Keep => prev,
            Pick::Task(slot) => Some(slot),
            Pick::Idle => None,
        };
        let prev_state = prev.and(leaves).unwrap_or(TaskState::Runnable);
        self.pass = Some(Pass { cpu, prev, prev_state, chosen, meter, was_taken, moves });
        Ok(chosen.map_or(TaskId::IDLE, |slot| self.machine.kernel.task(slot).id))
    }

    /// Ends a pass: the CPU runs `next`, whatever the scheduler chose. Callbacks: `stopping` and `enqueue` of the task
    /// that ran, `update_idle`, `running` of the next.
    ///
    /// # Errors
    /// A fault of the machine.
    pub fn run(&mut self, next: TaskId) -> Result<(), MachineError> {
        let Some(pass) = self.pass.take() else { return Ok(()) };
        self.by_clock_of(pass.cpu, |driven| driven.switch_to(pass, next))
    }

    fn switch_to(&mut self, pass: Pass, next: TaskId) -> Result<(), MachineError> {
        let next = self.slot(next);
        if next != pass.chosen {
            self.send_back(&pass)?;
            if let Some(slot) = pass.prev.filter(|slot| Some(*slot) != next) {
                self.take_slice(slot)?;
            }
            if let Some(slot) = next {
                let kernel = &self.machine.kernel;
                if kernel.runs(slot) && kernel.task(slot).cpu != pass.cpu {
                    self.vacate(slot)?;
                }
                self.quietly(|machine| machine.bring(slot, pass.cpu))?;
            }
        }
        self.told(|machine| {
            let Pass { cpu, prev, prev_state, meter, .. } = pass;
            if pass.was_taken {
                match next {
                    Some(slot) => machine.set_next(slot)?,
                    None => machine.update_idle(cpu, true),
                }
                machine.kernel.rq(cpu).need_resched = false;
                machine.raise_switch(cpu, None, next)?;
                machine.book(Path::Switch, meter);
                machine.enter_next(cpu, (None, TaskState::Runnable), next, 0)?;
            } else if next == prev {
                if next.is_none() {
                    machine.kernel.mark_idle(cpu, true);
                }
                machine.kernel.rq(cpu).need_resched = false;
            } else {
                let again = machine.switch(cpu, prev, prev_state, next, meter)?;
                machine.kernel.rq(cpu).need_resched = again;
            }
            machine.kernel.run_deferred(machine.program.memory(), cpu)
        })
    }

    /// A task of a higher class, which the machine does not have, takes a CPU: what runs there leaves in the state
    /// `leaves`, or, `None`, is put back without a question (`put_prev_task_scx`). The next [`Driven::pick`] on that
    /// CPU gives it back. Callbacks: `stopping`, `quiescent` of a task that blocks; `cpu_release`, or `update_idle`.
    ///
    /// # Errors
    /// A fault of the machine.
    pub fn take_cpu(&mut self, cpu: u32, leaves: Option<TaskState>) -> Result<(), MachineError> {
        if std::mem::replace(&mut self.taken[cpu as usize], true) {
            return Ok(());
        }
        self.by_clock_of(cpu, |driven| driven.leave_to_others(cpu, leaves))
    }

    fn leave_to_others(&mut self, cpu: u32, leaves: Option<TaskState>) -> Result<(), MachineError> {
        self.machine.kernel.this_cpu = cpu;
        let leaves = leaves.map(as_blocked);
        self.told(|machine| {
            let prev = machine.kernel.cpus[cpu as usize].curr();
            if let (Some(slot), Some(state)) = (prev, leaves) {
                machine.block(slot, state)?;
            }
            machine.make_way(cpu, prev, Taker::Unknown)?;
            let state = leaves.unwrap_or(TaskState::Runnable);
            machine.kernel.leave_cpu(machine.program.memory(), prev, state)?;
            let now_ns = machine.kernel.clock.now_ns();
            machine.kernel.book_idle(cpu);
            machine.kernel.rq(cpu).run(None, now_ns);
            machine.kernel.rq(cpu).need_resched = false;
            Ok(())
        })
    }

    /// Ends a pass that did not take place: the CPU goes on with what it runs. A task keeps `slice_ns` of its slice.
    ///
    /// # Errors
    /// A fault of the machine.
    pub fn stay(&mut self, slice_ns: u64) -> Result<(), MachineError> {
        let Some(pass) = self.pass.take() else { return Ok(()) };
        if pass.chosen != pass.prev {
            self.by_clock_of(pass.cpu, |driven| driven.send_back(&pass))?;
        }
        self.machine.kernel.rq(pass.cpu).need_resched = false;
        match pass.prev {
            Some(_) => self.set_slice(pass.cpu, slice_ns),
            None => {
                self.machine.kernel.mark_idle(pass.cpu, true);
                Ok(())
            }
        }
    }

    /// The running task loses its CPU: its slice ends, and the CPU is to schedule (`SCX_KICK_PREEMPT`).
    ///
    /// # Errors
    /// A fault of the machine.
    pub fn preempt(&mut self, cpu: u32) -> Result<(), MachineError> {
        if let Some(slot) = self.machine.kernel.cpus[cpu as usize].curr() {
            self.take_slice(slot)?;
        }
        self.machine.kernel.rq(cpu).need_resched = true;
        Ok(())
    }

    /// A CPU is to schedule, for a reason of the running task's own.
    pub fn ask(&mut self, cpu: u32) {
        self.machine.kernel.rq(cpu).need_resched = true;
    }

    /// `sched_tick` of a CPU that runs a task. Callback: `tick`.
    ///
    /// # Errors
    /// A fault of the machine.
    pub fn tick(&mut self, cpu: u32) -> Result<(), MachineError> {
        self.machine.kernel.this_cpu = cpu;
        self.by_clock_of(cpu, |driven| driven.told(|machine| machine.tick(cpu, true)))
    }

    /// The kernel charges the task that runs on a CPU (`sched_stat_runtime`); another task is not charged.
    ///
    /// # Errors
    /// A fault of the machine.
    pub fn charge(&mut self, cpu: u32, task: TaskId, runtime_ns: u64) -> Result<(), MachineError> {
        let running = self.machine.kernel.cpus[cpu as usize].curr();
        let Some(slot) = running.filter(|slot| self.slot(task) == Some(*slot)) else {
            return Ok(());
        };
        self.advance_clock(cpu, runtime_ns);
        let machine = &mut self.machine;
        machine
            .kernel
            .book(machine.program.memory(), cpu, slot, runtime_ns)
            .map_err(MachineError::Memory)?;
        self.run_late_timers()
    }

    /// `sched_yield` of the running task. Callback: `yield`; without it the slice ends. The CPU schedules next.
    ///
    /// # Errors
    /// A fault of the machine.
    pub fn yields(&mut self, cpu: u32) -> Result<(), MachineError> {
        let Some(slot) = self.machine.kernel.cpus[cpu as usize].curr() else { return Ok(()) };
        self.machine.kernel.this_cpu = cpu;
        self.by_clock_of(cpu, |driven| driven.told(|machine| machine.yield_task(slot)))
    }

    /// The rest of the running task's slice, ns; 0 on an idle CPU.
    ///
    /// # Errors
    /// A fault of the machine.
    pub fn slice_ns(&self, cpu: u32) -> Result<u64, MachineError> {
        let kernel = &self.machine.kernel;
        let Some(slot) = kernel.cpus[cpu as usize].curr() else { return Ok(0) };
        kernel.task(slot).slice(self.machine.program.memory()).map_err(MachineError::Memory)
    }

    /// Sets the slice of the running task.
    ///
    /// # Errors
    /// A fault of the machine.
    pub fn set_slice(&mut self, cpu: u32, slice_ns: u64) -> Result<(), MachineError> {
        let kernel = &self.machine.kernel;
        let Some(slot) = kernel.cpus[cpu as usize].curr() else { return Ok(()) };
        let set = kernel.task(slot).set_slice(self.machine.program.memory(), slice_ns);
        set.map_err(MachineError::Memory)
    }

    fn take_slice(&mut self, slot: Slot) -> Result<(), MachineError> {
        let set = self.machine.kernel.task(slot).set_slice(self.machine.program.memory(), 0);
        set.map_err(MachineError::Memory)
    }

    /// A task leaves the CPU on which it runs, which goes idle: events of the recording are missing.
    pub(super) fn vacate(&mut self, slot: Slot) -> Result<(), MachineError> {
        let cpu = self.machine.kernel.task(slot).cpu;
        let this_cpu = std::mem::replace(&mut self.machine.kernel.this_cpu, cpu);
        self.take_slice(slot)?;
        let meter = self.machine.meter();
        let left = self.quietly(|machine| {
            machine.switch(cpu, Some(slot), TaskState::Runnable, None, meter).map(|_| ())
        });
        self.machine.kernel.this_cpu = this_cpu;
        left
    }

    /// The task that the scheduler chose does not run: it goes back to the scheduler, on the CPU where it was.
    fn send_back(&mut self, pass: &Pass) -> Result<(), MachineError> {
        let Some(slot) = pass.chosen.filter(|slot| Some(*slot) != pass.prev) else { return Ok(()) };
        self.note_moves();
        let id = self.machine.kernel.task(slot).id;
        let since = &self.moves[pass.moves..];
        let home = since.iter().find(|moved| moved.task == id).map(|moved| moved.from);
        self.quietly(|machine| {
            machine.kernel.dispatch_dequeue(slot);
            machine.relocate(slot, home.unwrap_or(pass.cpu))?;
            machine.kernel.task_mut(slot).ddsp = None;
            machine.do_enqueue_task(slot, enq::REENQ | enq::HEAD, Sticky::No)
        })
    }

    /// Carries out a step that is not the scheduler's: what it asks for in it is not done.
    pub(super) fn quietly(
        &mut self,
        step: impl FnOnce(&mut Machine) -> Step,
    ) -> Result<(), MachineError> {
        let asked: Vec<bool> = self.machine.kernel.cpus.iter().map(|rq| rq.need_resched).collect();
        let machine = &mut self.machine;
        let cpu = machine.kernel.this_cpu;
        let result =
            step(machine).and_then(|()| machine.kernel.run_deferred(machine.program.memory(), cpu));
        machine.kernel.kicks.cancel();
        machine.kernel.ipis.clear();
        for (rq, asked) in machine.kernel.cpus.iter_mut().zip(asked) {
            rq.need_resched = asked;
        }
        result.map_err(MachineError::Memory)
    }
}

/// The state in which a task blocks: one that its parent has still to reap is dead (`do_task_dead`; `sched_switch`
/// shows `EXIT_ZOMBIE`).
fn as_blocked(state: TaskState) -> TaskState {
    if state == TaskState::Zombie { TaskState::Dead } else { state }
}

impl Machine {
    /// Makes a task ready to run next on a CPU: taken from the scheduler, from any queue, and from another CPU.
    fn bring(&mut self, slot: Slot, cpu: u32) -> Step {
        if !self.kernel.task(slot).queued {
            self.activate_on(slot, cpu, false)?;
        }
        self.ops_dequeue(slot, CORE_SCHED_EXEC);
        self.kernel.dispatch_dequeue(slot);
        self.kernel.task_mut(slot).ddsp = None;
        self.relocate(slot, cpu)
    }

    /// A runnable task that is in no queue belongs to another CPU now.
    fn relocate(&mut self, slot: Slot, cpu: u32) -> Step {
        let from = self.kernel.task(slot).cpu;
        if from == cpu {
            return Ok(());
        }
        let mem = self.program.memory();
        self.kernel.rq(from).sub_running(mem)?;
        self.kernel.set_task_cpu(mem, slot, cpu)?;
        self.kernel.rq(cpu).add_running(mem)
    }
}
