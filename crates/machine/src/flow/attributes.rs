//! Changes of a task's nice value, slice length and affinity, by itself or by an operator.

use fairground_trace::{EventKind, TaskState, cpu_list_text};

use super::enqueue::Sticky;
use super::{Machine, Step};
use crate::abi::{deq, enq};
use crate::cpuset::CpuMask;
use crate::kernel::Slot;
use crate::layout::offsets::task as field;
use crate::op::Op;
use crate::real_time::Taker;

impl Machine {
    /// `set_user_nice`. Callbacks: `stopping`, `quiescent`, `set_weight`, `runnable`, `running`; of a task that waits
    /// for a CPU: `dequeue` if the scheduler owned it, `quiescent`, `set_weight`, `runnable`, `enqueue`.
    pub(crate) fn set_nice(&mut self, slot: Slot, nice: i8) -> Step {
        if self.kernel.task(slot).nice == nice {
            return Ok(());
        }
        if self.kernel.task(slot).rt.is_rt() {
            // It counts when the task leaves the class.
            self.kernel.task_mut(slot).nice = nice;
            return self.kernel.task(slot).publish_nice(self.program.memory());
        }
        self.reweight(slot, |machine| {
            machine.kernel.task_mut(slot).nice = nice;
            machine.kernel.task(slot).publish_nice(machine.program.memory())
        })?;
        let task = self.kernel.task(slot).id;
        self.kernel.emit(self.kernel.this_cpu, 0, EventKind::Nice { task, nice });
        Ok(())
    }

    /// `__setparam_fair` (6.12: `__setscheduler_params`): slices of a task's own length. Callbacks as for a nice value.
    /// Without effect on a real-time task.
    pub(crate) fn set_custom_slice(&mut self, slot: Slot, slice_ns: u64) -> Step {
        /// The slice lengths that the kernel accepts, ns.
        const SLICE_NS: std::ops::RangeInclusive<u64> = 100_000..=100_000_000;
        if self.kernel.task(slot).rt.is_rt() {
            return Ok(());
        }
        self.reweight(slot, |machine| {
            let mem = machine.program.memory();
            let addr = machine.kernel.task(slot).addr;
            let kept_ns = slice_ns.clamp(*SLICE_NS.start(), *SLICE_NS.end());
            mem.store_u64(addr + field::CUSTOM_SLICE_NS, kept_ns)?;
            mem.store_u8(addr + field::CUSTOM_SLICE, u8::from(slice_ns != 0))
        })?;
        let task = self.kernel.task(slot).id;
        self.kernel.emit(self.kernel.this_cpu, 0, EventKind::Slice { task, slice_ns });
        Ok(())
    }

    /// Dequeues a task, changes it, passes its weight to the scheduler and enqueues it, charged to the running CPU.
    fn reweight(&mut self, slot: Slot, change: impl FnOnce(&mut Self) -> Step) -> Step {
        let queued = self.kernel.task(slot).queued;
        self.at_its_cost(self.kernel.this_cpu, |machine| {
            machine.dequeue_task(slot, deq::SAVE | deq::NOCLOCK)?;
            change(machine)?;
            let weight = machine.kernel.task(slot).weight();
            machine.call_task(Op::SetWeight, slot, Some(weight.into()));
            if queued { machine.restore(slot) } else { Ok(()) }
        })
    }

    /// Enqueues a task after a change: a running one through the local queue and on, another one by `ops.enqueue()`.
    fn restore(&mut self, slot: Slot) -> Step {
        let (cpu, flags) = (self.kernel.task(slot).cpu, enq::RESTORE | enq::NOCLOCK);
        if self.kernel.runs(slot) {
            self.enqueue_task(slot, flags, Sticky::Here)?;
            return self.set_next(slot);
        }
        self.enqueue_task(slot, flags, Sticky::No)?;
        self.kernel.run_deferred(self.program.memory(), cpu)
    }

    /// `sched_setaffinity`. Callbacks: those of [`Machine::allow`]; then, when the task may not stay where it is, those
    /// of [`Machine::leave_forbidden_cpu`]. Fails, and changes nothing, where none of the CPUs is online.
    pub(crate) fn set_affinity(&mut self, slot: Slot, mask: CpuMask) -> Step {
        let mask = mask.and(&self.kernel.all_cpus);
        let usable = mask.and(&self.kernel.online.mask);
        if usable.is_empty() {
            // The system call fails with EINVAL.
            return Ok(());
        }
        self.allow(slot, &mask)?;
        let cpu = self.kernel.task(slot).cpu;
        if mask.test(cpu) {
            return Ok(());
        }
        if self.kernel.runs(slot) {
            return self.leave_forbidden_cpu(cpu, slot);
        }
        if !self.kernel.task(slot).queued {
            // It sleeps, and wakes up where it may run.
            return Ok(());
        }
        let target = self.kernel.any_distribute(&usable).unwrap_or(cpu);
        self.move_queued_task(slot, target)
    }

    /// `do_set_cpus_allowed`: a task may run on these CPUs, and stays where it is. Callbacks: `stopping`, `quiescent`,
    /// `set_cpumask`, `runnable`, `running`.
    pub(crate) fn allow(&mut self, slot: Slot, mask: &CpuMask) -> Step {
        if self.kernel.task(slot).rt.is_rt() {
            // It keeps its place in its queue.
            self.kernel.set_allowed(self.program.memory(), slot, mask)?;
        } else {
            let queued = self.kernel.task(slot).queued;
            self.at_its_cost(self.kernel.this_cpu, |machine| {
                machine.dequeue_task(slot, deq::SAVE | deq::NOCLOCK)?;
                machine.kernel.set_allowed(machine.program.memory(), slot, mask)?;
                machine.tell_cpumask(slot)?;
                if queued { machine.restore(slot) } else { Ok(()) }
            })?;
        }
        let task = self.kernel.task(slot).id;
        let cpus = self.kernel.trace.intern(&cpu_list_text(&mask.ranges()));
        self.kernel.emit(self.kernel.this_cpu, 0, EventKind::Affinity { task, cpus });
        Ok(())
    }

    /// `migration_cpu_stop`: the stopper thread of the CPU preempts the task and moves it to an allowed CPU. Callbacks:
    /// `stopping` (and `enqueue`), `cpu_release`, `dequeue`, `enqueue` on the new CPU, `cpu_acquire`, `dispatch`
    /// without a previous task, `running` of the next. The stopper itself takes no time and is not in the trace.
    fn leave_forbidden_cpu(&mut self, cpu: u32, slot: Slot) -> Step {
        let meter = self.meter();
        self.kernel.counters.affinity_moves += 1;
        self.make_way(cpu, Some(slot), Taker::Stop)?;
        let mem = self.program.memory();
        self.kernel.leave_cpu(mem, Some(slot), TaskState::Runnable)?;
        let now = self.kernel.clock.now_ns();
        self.kernel.rq(cpu).run(None, now);
        let usable = self.kernel.usable(slot);
        let target = self.kernel.any_distribute(&usable).unwrap_or(cpu);
        self.move_queued_task(slot, target)?;
        // `balance_rt`: the stopper has a higher priority than any.
        if self.kernel.rt.is_used() {
            self.pull_rt(cpu)?;
        }
        self.schedule_after_stop(cpu, Some(slot), meter)
    }
}
