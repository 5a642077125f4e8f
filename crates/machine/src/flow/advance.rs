//! Advances the running task in user space, and applies its effects on others.

use fairground_trace::{EventKind, TaskState};

use super::{Machine, Step};
use crate::MachineError;
use crate::actors::{ActorId, Effect, Need};
use crate::cgroup::CgroupRef;
use crate::events::{CpuEvent, EventHandle};
use crate::kernel::{Slot, Stage};

impl Machine {
    /// The running task has got what it needed: it executes operations until it needs something again.
    pub(crate) fn advance(&mut self, cpu: u32, slot: Slot) -> Step {
        let task = self.kernel.task_mut(slot);
        task.signalled = false;
        let actor = task.actor;
        let mut effects = std::mem::take(&mut self.effects);
        effects.clear();
        let need = match self.actors.advance(actor, self.kernel.clock.now_ns(), &mut effects) {
            Ok(need) => need,
            Err(error) => {
                self.failure = Some(MachineError::Workload(error.to_string()));
                return Ok(());
            }
        };
        self.kernel.task_mut(slot).stage = match need {
            Need::Cpu { ns } => Stage::Compute(ns),
            Need::Touch { bytes } => {
                let task = self.kernel.task(slot).id;
                Stage::Compute(self.kernel.caches.touch(&self.kernel.cost, cpu, task, bytes))
            }
            Need::CpuForever => Stage::Compute(u64::MAX),
            Need::Block => Stage::Block(TaskState::Sleeping, None),
            Need::BlockHard => Stage::Block(TaskState::Uninterruptible, None),
            Need::Io { at_ns } => Stage::Block(TaskState::Uninterruptible, Some(at_ns)),
            Need::Spin => Stage::Compute(u64::MAX),
            Need::SpinOn { owner } => self.spins_on(slot, ActorId(owner as u32)),
            Need::SleepUntil { at_ns } => {
                Stage::Block(TaskState::Sleeping, Some(self.kernel.sleep_end_ns(at_ns)))
            }
            Need::Return => Stage::Advance,
            Need::InCall => Stage::InCall,
            Need::Yield => Stage::Yield,
            Need::Exit => Stage::Exit,
        };
        for effect in &effects {
            self.apply(cpu, slot, *effect)?;
        }
        let wakes = effects.iter().any(|effect| matches!(effect, Effect::Wake { .. }));
        self.effects = effects;
        if wakes && need != Need::InCall { self.leave_call(cpu) } else { Ok(()) }
    }

    /// The way out of a call that wakes a task. Its kicks and interrupts are under way already.
    fn leave_call(&mut self, cpu: u32) -> Step {
        let ns = self.kernel.cost.way_out_ns;
        if ns == 0 {
            return Ok(());
        }
        self.kernel.flush_kicks(self.program.memory())?;
        self.kernel.flush_ipis();
        self.kernel.charge(cpu, ns);
        Ok(())
    }

    fn apply(&mut self, cpu: u32, slot: Slot, effect: Effect) -> Step {
        match effect {
            Effect::Wake { actor, sync } => {
                if let Some(target) = self.kernel.tasks.of_actor(actor) {
                    self.wake_up(target, sync)?;
                    if !self.kernel.is_listed(self.kernel.task(target).cpu) {
                        self.actors.owe(actor, self.kernel.cost.wait_ns);
                    }
                }
                Ok(())
            }
            Effect::Fork { child } => self.fork(Some(slot), child),
            Effect::BeginExit => self.begin_exit(cpu, slot),
            Effect::Signal { actor } => {
                self.signal(actor);
                Ok(())
            }
            Effect::SetNice { nice } => self.set_nice(slot, nice),
            Effect::SetPolicy { policy } => self.set_policy(slot, policy),
            Effect::SetSlice { slice_ns } => self.set_custom_slice(slot, slice_ns),
            Effect::SetAffinity { mask } => {
                let mask = *self.actors.affinity(mask);
                self.set_affinity(slot, mask)
            }
            // `echo 0 > cgroup.procs`, `echo 300 > cpu.weight`.
            Effect::SetCgroup { cgroup } => {
                self.at_its_cost(cpu, |machine| machine.move_to_cgroup(&[slot], CgroupRef(cgroup)))
            }
            Effect::SetCgroupWeight { cgroup, weight } => self
                .at_its_cost(cpu, |machine| machine.set_cgroup_weight(CgroupRef(cgroup), weight)),
            Effect::Preempt { off } => {
                self.kernel.rq(cpu).unpreempted = off;
                Ok(())
            }
            Effect::SpinOver { actor } => {
                self.spin_over(actor);
                Ok(())
            }
            Effect::ContentionBegin { lock, holder, shared } => {
                self.contention_begins(cpu, slot, (lock, shared), holder);
                self.kernel.charge(cpu, self.kernel.cost.mark_ns);
                Ok(())
            }
            Effect::ContentionEnd { .. } | Effect::Mark { .. } => {
                self.emit_effect(cpu, slot, effect);
                self.kernel.charge(cpu, self.kernel.cost.mark_ns);
                Ok(())
            }
            Effect::CallEnter { .. } | Effect::CallExit { .. } => {
                if self.kernel.trace_options.calls {
                    self.emit_effect(cpu, slot, effect);
                }
                Ok(())
            }
            Effect::FutexEnter { op, object } => self.enter_futex(cpu, op, object),
            Effect::FutexExit { op, object, result } => {
                self.exit_futex(cpu, op, object, i64::from(result))
            }
        }
    }

    /// An effect that is an event and nothing else.
    fn emit_effect(&mut self, cpu: u32, slot: Slot, effect: Effect) {
        let task = self.kernel.task(slot).id;
        let kind = match effect {
            Effect::ContentionEnd { lock } => {
                EventKind::ContentionEnd { task, lock: self.lock_label(lock) }
            }
            Effect::Mark { label, value } => {
                EventKind::Mark { task, label: self.labels[label as usize], value }
            }
            Effect::CallEnter { call, object } => EventKind::CallEnter { task, call, object },
            Effect::CallExit { result } => EventKind::CallExit { task, result },
            _ => return,
        };
        self.kernel.emit(cpu, 0, kind);
    }

    /// `signal_wake_up` on a task that computes: one that runs on another CPU is interrupted there (`kick_process`),
    /// one that waits for a CPU handles the signal when it gets one.
    fn signal(&mut self, actor: ActorId) {
        let Some(slot) = self.kernel.tasks.of_actor(actor) else { return };
        let cpu = self.kernel.task(slot).cpu;
        self.kernel.task_mut(slot).signalled = true;
        let rq = &self.kernel.cpus[cpu as usize];
        let (start_ns, armed_ns) = (rq.busy_until_ns(), rq.armed_ns());
        let runs = rq.curr() == Some(slot);
        if !runs {
            self.take_signal(slot);
        } else if cpu != self.kernel.this_cpu
            && !std::mem::replace(&mut self.kernel.rq(cpu).signalled, true)
        {
            self.kernel.counters.ipis += 1;
            let at = self.kernel.ipi_arrival_ns();
            self.kernel.events.arm(EventHandle::Cpu(cpu, CpuEvent::Signal), at);
        }
        if self.kernel.task(slot).begins && start_ns > self.kernel.clock.now_ns() {
            // It handles the signal on its way out of the kernel.
            self.take_signal(slot);
            self.kernel.arm_cpu(cpu, armed_ns.min(start_ns));
        }
    }

    /// A signal's interrupt arrives: the task that runs goes to its handler.
    pub(crate) fn signal_event(&mut self, cpu: u32) -> Step {
        self.on_cpu(cpu, |machine| {
            machine.kernel.rq(cpu).signalled = false;
            machine.kernel.enter_ipi(cpu);
            if let Some(slot) = machine.kernel.cpus[cpu as usize].curr() {
                machine.take_signal(slot);
            }
            Ok(())
        })
    }

    /// Interrupts the computation of a task with a signal; it is advanced the next time that it runs.
    pub(crate) fn take_signal(&mut self, slot: Slot) {
        let task = self.kernel.task_mut(slot);
        if !std::mem::take(&mut task.signalled) {
            return;
        }
        if let Stage::Compute(left) = task.stage {
            (task.stage, task.begins) = (Stage::Advance, false);
            let actor = task.actor;
            self.actors.interrupt(actor, left);
        }
    }
}
