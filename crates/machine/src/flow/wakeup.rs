//! Waking tasks up.

use fairground_trace::{EventKind, TaskState};

use super::{Machine, Step};
use crate::Path;
use crate::abi::{dsq, enq, wake};
use crate::events::EventHandle;
use crate::kernel::{DirectDispatch, Slot};
use crate::layout::offsets::task as field;
use crate::op::Op;
use crate::tracing::Event;

impl Machine {
    /// `try_to_wake_up` on the executing CPU. Callbacks: `select_cpu`, `runnable`, `enqueue`.
    pub(crate) fn wake_up(&mut self, slot: Slot, sync: bool) -> Step {
        let this = self.kernel.this_cpu;
        let task = self.kernel.task(slot);
        let (id, prev_cpu) = (task.id, task.cpu);
        if task.queued {
            return match self.kernel.wake_about_to_sleep(slot) {
                true => self.at_its_cost(this, |machine| {
                    machine.raise_task(Event::SchedWaking, slot)?;
                    machine.raise_task(Event::SchedWakeup, slot)
                }),
                false => Ok(()),
            };
        }
        if matches!(task.state, TaskState::Dead | TaskState::Runnable) || task.exiting {
            return Ok(());
        }
        let waker = self.kernel.waker();
        if sync && self.kernel.trace_options.callbacks {
            self.kernel.emit(this, 0, EventKind::WakeSync { task: id });
        }
        self.kernel.emit(this, 0, EventKind::Waking { task: id, waker, target_cpu: prev_cpu });
        self.kernel.counters.wakeups += 1;
        let meter = self.meter();
        self.raise_task(Event::SchedWaking, slot)?;
        let flags = wake::TTWU | if sync { wake::SYNC } else { 0 };
        let (cpu, selected) = self.select_task_rq(slot, prev_cpu, flags)?;
        let moving_ns = if cpu != prev_cpu { self.kernel.cost.migration_ns } else { 0 };
        self.activate_on(slot, cpu, selected)?;
        self.raise_task(Event::SchedWakeup, slot)?;
        let insns = self.book(Path::Wakeup, meter);
        self.kernel.emit(this, insns, EventKind::Wakeup { task: id, target_cpu: cpu });
        self.kernel.run_deferred(self.program.memory(), cpu)?;
        let ns = self.kernel.divide_wakeup_ns(slot, cpu) + moving_ns + self.policy_ns(insns);
        self.kernel.charge_irqs_off(this, ns);
        Ok(())
    }

    /// The second half of `try_to_wake_up`: a task is queued for a CPU, which the scheduler `selected` or which was the
    /// only one. Callbacks: `runnable`, `enqueue`.
    pub(crate) fn activate_on(&mut self, slot: Slot, cpu: u32, selected: bool) -> Step {
        let moves = self.kernel.task(slot).cpu != cpu;
        let mem = self.program.memory();
        self.kernel.set_task_cpu(mem, slot, cpu)?;
        self.kernel.mark_runnable(mem, slot)?;
        if moves {
            self.kernel.task_mut(slot).moved_to = Some(cpu);
        }
        self.activate_woken(slot, wakeup_flags(selected, moves))
    }

    /// `select_task_rq`, for a task of the scheduler `select_task_rq_scx`: the CPU for a task that becomes runnable,
    /// and whether the scheduler (or, for it, the core's default choice) was asked: a task that may run on one CPU only
    /// is never asked about. Callback: `select_cpu`.
    pub(crate) fn select_task_rq(
        &mut self,
        slot: Slot,
        prev_cpu: u32,
        wake_flags: u64,
    ) -> Step<(u32, bool)> {
        let task = self.kernel.task(slot);
        if task.allowed_count <= 1 {
            let only = task.allowed.as_ref().and_then(|mask| mask.first()).unwrap_or(prev_cpu);
            return Ok((self.vet_cpu(slot, only)?, false));
        }
        if task.rt.is_rt() {
            let cpu = self.select_cpu_rt(slot, prev_cpu);
            return Ok((self.vet_cpu(slot, cpu)?, true));
        }
        let mut cpu = prev_cpu;
        if self.has(Op::SelectCpu) {
            let (addr, told) = (task.addr, self.kernel.cids.told(prev_cpu));
            self.kernel.direct = DirectDispatch::Open(slot);
            let chosen = self.call(Op::SelectCpu, Some(slot), &[addr, told, wake_flags]);
            self.kernel.direct = DirectDispatch::Closed;
            if let Some(valid) =
                self.kernel.named_cpu(i64::from(chosen as i32), "from ops.select_cpu()")
            {
                cpu = valid;
            }
        } else {
            let (chosen, idle) = self.kernel.select_cpu_default(slot, prev_cpu, wake_flags);
            cpu = chosen;
            if idle {
                self.kernel.set_default_slice(self.program.memory(), slot)?;
                self.kernel.task_mut(slot).ddsp = Some((dsq::LOCAL, 0));
            }
        }
        let vetted = self.vet_cpu(slot, cpu)?;
        self.kernel.counters.select_cpu_fallbacks += u64::from(vetted != cpu);
        let addr = self.kernel.task(slot).addr;
        self.program.memory().store_u32(addr + field::SELECTED_CPU, vetted)?;
        Ok((vetted, true))
    }

    /// The end of `select_task_rq`: the CPU that was chosen if the task may be put there, else another one.
    #[inline]
    fn vet_cpu(&mut self, slot: Slot, cpu: u32) -> Step<u32> {
        if self.kernel.may_be_on(slot, cpu) { Ok(cpu) } else { self.select_fallback(slot) }
    }

    /// An interrupt of the CPU where the task went to sleep ends the sleep.
    ///
    /// Of one that waits for a device it is the device's, and costs as much as a timer's. Any other sleeps without a
    /// high-resolution timer: the tick ends it, which an idle CPU has then too, and which first does what ticks do
    /// (`run_timer_softirq`).
    pub(crate) fn sleep_over(&mut self, slot: Slot) -> Step {
        let by_device = self.kernel.task(slot).state == TaskState::Uninterruptible;
        if !by_device && self.kernel.clock.tick_is_due() {
            let now = self.kernel.clock.now_ns();
            self.kernel.events.arm(EventHandle::Task(slot.0), now);
            return Ok(());
        }
        let cpu = self.kernel.interrupted_cpu(self.kernel.task(slot).cpu);
        self.on_cpu(cpu, |machine| {
            let ns = match (by_device, machine.kernel.cpus[cpu as usize].is_idle()) {
                (true, _) => machine.kernel.cost.timer_irq_ns,
                (false, true) => machine.kernel.cost.tick_ns,
                // A busy CPU's tick is paid for already.
                (false, false) => 0,
            };
            machine.kernel.wake_from_idle(cpu);
            machine.kernel.charge_irqs_off(cpu, ns);
            machine.in_interrupt(|machine| machine.wake_up(slot, false))
        })
    }
}

/// The flags of an enqueue after a wake-up (`ttwu_do_activate`).
fn wakeup_flags(selected: bool, migrated: bool) -> u64 {
    let mut flags = enq::WAKEUP | enq::NOCLOCK;
    if selected {
        flags |= enq::CPU_SELECTED;
    }
    if migrated {
        flags |= enq::MIGRATED;
    }
    flags
}
