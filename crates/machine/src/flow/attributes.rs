//! Changes of a running task's nice value and affinity, by itself.

use fairground_trace::{EventKind, TaskState};

use super::enqueue::Sticky;
use super::{Machine, Step};
use crate::abi::{self, deq, enq};
use crate::cpuset::CpuMask;
use crate::kernel::{Op, Slot, write_mask};
use crate::layout::offsets::task as field;

impl Machine {
    /// `set_user_nice`. Callbacks: `stopping`, `quiescent`, `set_weight`, `runnable`, `running`; of a task that waits
    /// for a CPU: `dequeue` if the scheduler owned it, `quiescent`, `set_weight`, `runnable`, `enqueue`.
    pub(crate) fn set_nice(&mut self, slot: Slot, nice: i8) -> Step {
        if self.kernel.task(slot).nice == nice {
            return Ok(());
        }
        let insns = self.counted(|machine| {
            machine.dequeue_task(slot, deq::SAVE | deq::NOCLOCK)?;
            machine.kernel.task_mut(slot).nice = nice;
            machine.publish_nice(slot)?;
            let weight = abi::cgroup_weight(abi::nice_weight(nice));
            machine.call_task_with(Op::SetWeight, slot, u64::from(weight));
            machine.restore(slot)
        })?;
        let cpu = self.kernel.this_cpu;
        let task = self.kernel.task(slot).id;
        self.kernel.emit(cpu, 0, EventKind::Nice { task, nice });
        let ns = self.policy_ns(insns);
        self.kernel.charge(cpu, ns);
        Ok(())
    }

    /// `__setparam_fair` (6.12: `__setscheduler_params`): slices of a task's own length. Callbacks as for a nice value.
    pub(crate) fn set_custom_slice(&mut self, slot: Slot, slice_ns: u64) -> Step {
        /// What the kernel lets a task ask for, ns.
        const SLICE_NS: std::ops::RangeInclusive<u64> = 100_000..=100_000_000;
        let insns = self.counted(|machine| {
            machine.dequeue_task(slot, deq::SAVE | deq::NOCLOCK)?;
            let mem = machine.program.memory();
            let task = machine.kernel.task(slot);
            let kept_ns = slice_ns.clamp(*SLICE_NS.start(), *SLICE_NS.end());
            mem.store_u64(task.addr + field::CUSTOM_SLICE_NS, kept_ns)?;
            mem.store_u8(task.addr + field::CUSTOM_SLICE, u8::from(slice_ns != 0))?;
            let weight = abi::cgroup_weight(abi::nice_weight(task.nice));
            machine.call_task_with(Op::SetWeight, slot, u64::from(weight));
            machine.restore(slot)
        })?;
        let ns = self.policy_ns(insns);
        self.kernel.charge(self.kernel.this_cpu, ns);
        Ok(())
    }

    /// `set_load_weight` and `reweight_task_scx`: the weights that follow from a nice value.
    pub(crate) fn publish_nice(&mut self, slot: Slot) -> Step {
        let mem = self.program.memory();
        let task = self.kernel.task(slot);
        let prio = (120 + i32::from(task.nice)) as u32;
        let weight = abi::nice_weight(task.nice);
        for at in [field::PRIO, field::STATIC_PRIO, field::NORMAL_PRIO] {
            mem.store_u32(task.addr + at, prio)?;
        }
        mem.store_u64(task.addr + field::LOAD_WEIGHT, u64::from(weight))?;
        mem.store_u32(task.addr + field::LOAD_INV_WEIGHT, abi::inverse_weight(weight))?;
        mem.store_u32(task.addr + field::SCX_WEIGHT, abi::cgroup_weight(weight))
    }

    /// Puts a task back after a change: a running one through the local queue and on, another one by `ops.enqueue()`.
    pub(crate) fn restore(&mut self, slot: Slot) -> Step {
        let cpu = self.kernel.task(slot).cpu;
        let flags = enq::RESTORE | enq::NOCLOCK;
        if self.kernel.cpus[cpu as usize].curr() == Some(slot) {
            self.enqueue_task(slot, flags, Sticky::Here)?;
            return self.set_next(slot);
        }
        self.enqueue_task(slot, flags, Sticky::No)?;
        self.kernel.run_deferred(self.program.memory(), cpu)
    }

    /// `sched_setaffinity`. Callbacks: `stopping`, `quiescent`, `set_cpumask`, `runnable`, `running`; then, when the
    /// task may not stay where it is, those of [`Machine::leave_forbidden_cpu`].
    pub(crate) fn set_affinity(&mut self, slot: Slot, mask: CpuMask) -> Step {
        let mask = mask.and(&self.kernel.all_cpus);
        if mask.is_empty() {
            // The system call fails with EINVAL and changes nothing.
            return Ok(());
        }
        let insns = self.counted(|machine| {
            machine.dequeue_task(slot, deq::SAVE | deq::NOCLOCK)?;
            machine.publish_affinity(slot, &mask)?;
            if machine.has(Op::SetCpumask) {
                let addr = machine.kernel.task(slot).addr;
                let cids = &machine.kernel.cids;
                let shown = match cids.form {
                    true => cids.write_mask(machine.program.memory(), &mask)?,
                    false => addr + field::CPUS_MASK,
                };
                machine.call(Op::SetCpumask, Some(slot), &[addr, shown]);
            }
            machine.restore(slot)
        })?;
        let ns = self.policy_ns(insns);
        self.kernel.charge(self.kernel.this_cpu, ns);
        let cpu = self.kernel.task(slot).cpu;
        if mask.test(cpu) {
            return Ok(());
        }
        if self.kernel.cpus[cpu as usize].curr() == Some(slot) {
            return self.leave_forbidden_cpu(cpu, slot);
        }
        let target = self.kernel.any_distribute(&mask).unwrap_or(cpu);
        self.move_queued_task(slot, target)
    }

    /// Keeps a task's affinity, and writes it where programs see it.
    pub(crate) fn publish_affinity(&mut self, slot: Slot, mask: &CpuMask) -> Step {
        let all = *mask == self.kernel.all_cpus;
        let task = self.kernel.task_mut(slot);
        task.allowed = if all { None } else { Some(Box::new(*mask)) };
        task.allowed_count = mask.count();
        let (addr, count) = (task.addr, task.allowed_count);
        let mem = self.program.memory();
        write_mask(mem, addr + field::CPUS_MASK, mask)?;
        mem.store_u64(addr + field::CPUS_PTR, addr + field::CPUS_MASK)?;
        mem.store_u32(addr + field::NR_CPUS_ALLOWED, count)
    }

    /// `migration_cpu_stop`: the stopper thread of the CPU preempts the task and moves it to an allowed CPU. Callbacks:
    /// `stopping` (and `enqueue`), `dequeue`, `enqueue` on the new CPU, `dispatch` without a previous task, `running`
    /// of the next. The stopper itself takes no time and is not in the trace.
    fn leave_forbidden_cpu(&mut self, cpu: u32, slot: Slot) -> Step {
        let meter = self.meter();
        self.kernel.counters.affinity_moves += 1;
        self.put_prev(cpu, slot, false)?;
        let mem = self.program.memory();
        self.kernel.leave_cpu(mem, Some(slot), TaskState::Runnable)?;
        let now = self.kernel.clock.now_ns();
        self.kernel.rq(cpu).run(None, now);
        let allowed = self.kernel.allowed(slot);
        let target = self.kernel.any_distribute(&allowed).unwrap_or(cpu);
        self.move_queued_task(slot, target)?;
        self.schedule_after_stop(cpu, Some(slot), meter)
    }
}
