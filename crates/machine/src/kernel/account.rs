//! Time on a CPU: what runs, what is paid for kernel work, and when the CPU's own event is due.

use fairground_bpf::{Memory, Trap};
use fairground_trace::{EventKind, TaskState};

use super::{Kernel, Rq, Slot, Stage, agenda};
use crate::abi;
use crate::events::{CpuEvent, EventHandle};
use crate::layout::offsets::{self, sched_info, task as field};

impl Kernel {
    /// `update_curr_scx`: books the time since the last booking to the running task, and takes it off its slice.
    #[inline(always)]
    pub(crate) fn update_curr(&mut self, mem: &Memory, cpu: u32) -> Result<(), Trap> {
        match self.cpus[cpu as usize].curr() {
            Some(slot) if self.tasks[slot].exec_start_ns != self.clock.now_ns() => {
                self.book_time(mem, cpu, slot)
            }
            _ => Ok(()),
        }
    }

    fn book_time(&mut self, mem: &Memory, cpu: u32, slot: Slot) -> Result<(), Trap> {
        let now = self.clock.now_ns();
        let task = &mut self.tasks[slot];
        debug_assert!(
            now >= task.exec_start_ns || self.charges_are_told,
            "the clock of a run queue goes back"
        );
        let passed = now.saturating_sub(task.exec_start_ns);
        task.exec_start_ns = now;
        let delta = if self.charges_are_told { 0 } else { passed };
        self.book(mem, cpu, slot, delta)
    }

    /// Books time to a task that runs on a CPU, and takes it off its slice.
    pub(crate) fn book(
        &mut self,
        mem: &Memory,
        cpu: u32,
        slot: Slot,
        delta: u64,
    ) -> Result<(), Trap> {
        let now = self.clock.now_ns();
        let task = &mut self.tasks[slot];
        task.sum_exec_ns += delta;
        self.cpus[cpu as usize].time.add_task(delta);
        mem.store_u64(task.addr + field::SUM_EXEC, task.sum_exec_ns)?;
        mem.store_u64(task.addr + field::EXEC_START, now)?;
        if task.rt.is_rt() {
            return Ok(());
        }
        let slice = task.slice(mem)?;
        if slice != abi::SLICE_INF && slice != 0 {
            task.set_slice(mem, slice - slice.min(delta))?;
        }
        if self.rt.is_used() {
            self.consume_server(cpu, delta, false);
        }
        Ok(())
    }

    /// Subtracts what the running task computed up to now from its burst.
    #[inline]
    pub(crate) fn settle(&mut self, cpu: u32) {
        let now = self.clock.now_ns();
        let rq = &mut self.cpus[cpu as usize];
        let ran = rq.take_computed(now);
        if ran == 0 {
            return;
        }
        let Some(slot) = rq.curr() else { return };
        let task = &mut self.tasks[slot];
        if let Stage::Compute(left) = &mut task.stage
            && *left != u64::MAX
        {
            *left = left.saturating_sub(ran);
            task.begins = false;
        }
    }

    /// Kernel work occupies a CPU for so long.
    #[inline]
    pub(crate) fn charge(&mut self, cpu: u32, ns: u64) {
        let now = self.clock.now_ns();
        self.cpus[cpu as usize].occupy(now, ns);
    }

    /// Sets the CPU's own event; `u64::MAX`: none.
    #[inline(always)]
    pub(crate) fn arm_cpu(&mut self, cpu: u32, at_ns: u64) {
        if !self.cpus[cpu as usize].note_armed(at_ns) {
            return;
        }
        let slot = EventHandle::Cpu(cpu, CpuEvent::Burst);
        if at_ns == u64::MAX {
            self.events.cancel(slot);
        } else {
            self.events.arm(slot, at_ns);
        }
    }

    /// `set_task_cpu`: moves a task's association to another CPU's run queue.
    pub(crate) fn set_task_cpu(&mut self, mem: &Memory, slot: Slot, cpu: u32) -> Result<(), Trap> {
        let from = self.task(slot).cpu;
        if from == cpu {
            return Ok(());
        }
        let this_cpu = self.this_cpu;
        let task = self.task_mut(slot);
        task.cpu = cpu;
        task.nr_migrations += 1;
        let (addr, id, migrations) = (task.addr, task.id, task.nr_migrations);
        mem.store_u64(addr + field::NR_MIGRATIONS, migrations)?;
        mem.store_u32(addr + field::THREAD_INFO_CPU, cpu)?;
        mem.store_u32(addr + field::WAKE_CPU, cpu)?;
        self.counters.migrations += 1;
        self.emit(this_cpu, 0, EventKind::Migrate { task: id, from_cpu: from, to_cpu: cpu });
        Ok(())
    }

    /// `set_task_runnable`: from now on, or from its last such time that did not end in running, the watchdog watches
    /// it.
    #[inline]
    pub(crate) fn set_task_runnable(&mut self, mem: &Memory, slot: Slot) -> Result<(), Trap> {
        let (now, jiffies) = (self.clock.now_ns(), self.clock.jiffies());
        let task = self.task_mut(slot);
        task.waiting = true;
        if !task.reset_runnable_at {
            return Ok(());
        }
        task.runnable_at_ns = now;
        task.reset_runnable_at = false;
        mem.store_u64(task.addr + field::RUNNABLE_AT, jiffies)
    }

    /// Updates a task that is switched away from.
    pub(crate) fn leave_cpu(
        &mut self,
        mem: &Memory,
        prev: Option<Slot>,
        state: TaskState,
    ) -> Result<(), Trap> {
        let Some(slot) = prev else { return Ok(()) };
        let now = self.clock.now_ns();
        let task = self.task_mut(slot);
        task.left_at_ns = now;
        let addr = task.addr;
        mem.store_u32(addr + field::ON_CPU, 0)?;
        if state == TaskState::Runnable {
            task.nivcsw += 1;
            mem.store_u64(addr + field::NIVCSW, task.nivcsw)
        } else {
            task.nvcsw += 1;
            mem.store_u64(addr + field::NVCSW, task.nvcsw)
        }
    }

    /// Updates the CPU for the switch to a task, or to the idle task.
    pub(crate) fn enter_cpu(
        &mut self,
        mem: &Memory,
        cpu: u32,
        next: Option<Slot>,
    ) -> Result<(), Trap> {
        self.book_idle(cpu);
        let now = self.clock.now_ns();
        self.cpus[cpu as usize].run(next, now);
        let addr = self.curr_addr(cpu);
        if next.is_some() {
            self.busy.set(cpu);
            mem.store_u32(addr + field::ON_CPU, 1)?;
            self.count_arrival(mem, next, now)?;
        } else {
            self.busy.clear(cpu);
        }
        mem.store_u64(self.cpus[cpu as usize].addr + offsets::rq::CURR, addr)
    }

    /// `sched_info_arrive`: the times that a task has run, and how long it has waited for that, ns; where the
    /// scheduler's object reads them.
    fn count_arrival(&self, mem: &Memory, next: Option<Slot>, now_ns: u64) -> Result<(), Trap> {
        let Some(task) = next.filter(|_| self.keeps_sched_info).map(|slot| self.task(slot)) else {
            return Ok(());
        };
        let delay_ns = now_ns.saturating_sub(task.runnable_at_ns);
        for (at, more) in [(sched_info::PCOUNT, 1), (sched_info::RUN_DELAY, delay_ns)] {
            let at = task.addr + field::SCHED_INFO + at;
            mem.store_u64(at, mem.load_u64(at)?.wrapping_add(more))?;
        }
        Ok(())
    }

    /// Books the time of the idle task, if it runs, up to now.
    pub(crate) fn book_idle(&mut self, cpu: u32) {
        let now = self.clock.now_ns();
        let rq = &mut self.cpus[cpu as usize];
        if rq.is_idle() {
            let rested = rq.time.book_idle(now);
            if self.rt.is_used() {
                self.consume_server(cpu, rested, true);
            }
        }
    }

    /// Refills a slice that is used up: no other task waits for the CPU, or the task is about to run.
    #[inline]
    pub(crate) fn refill_slice(&mut self, mem: &Memory, slot: Slot) -> Result<(), Trap> {
        let task = self.task(slot);
        if task.slice(mem)? == 0 {
            self.counters.slice_refills += 1;
            self.set_default_slice(mem, slot)?;
        }
        Ok(())
    }

    /// `refill_task_slice_dfl`.
    pub(crate) fn set_default_slice(&mut self, mem: &Memory, slot: Slot) -> Result<(), Trap> {
        self.counters.default_slices += 1;
        self.task(slot).set_slice(mem, abi::SLICE_DFL_NS)
    }

    /// Whether there is a task and some of its slice is left.
    #[inline]
    pub(crate) fn has_slice(&self, mem: &Memory, slot: Option<Slot>) -> Result<bool, Trap> {
        let Some(slot) = slot else { return Ok(false) };
        Ok(self.task(slot).slice(mem)? != 0)
    }

    /// A CPU whose scheduling passes make no progress (at one instant, or, where it `rests`, repeatedly from the idle
    /// task to the idle task) continues only in steps of simulated time, so that the watchdog detects it.
    #[inline]
    pub(crate) fn limit_passes(&mut self, cpu: u32, rests: bool) {
        let now = self.clock.now_ns();
        if self.rq(cpu).count_pass(now, rests) {
            self.charge(cpu, Rq::VAIN_PASS_NS);
        }
    }

    /// Arms the tick for the next multiple of its period, if it is not armed: some CPU is busy from now on.
    #[inline]
    pub(crate) fn arm_tick(&mut self) {
        let at_ns = self.clock.start_tick();
        self.plan(agenda::TICK, at_ns);
    }

    /// Puts an event of the whole machine on the [`agenda`], if there is a time for it.
    #[inline]
    pub(crate) fn plan(&mut self, what: u32, at_ns: Option<u64>) {
        if let Some(at_ns) = at_ns {
            self.events.arm(EventHandle::Machine(what), at_ns);
        }
    }

    /// The CPU of a task that spun does something else now, once the kernel's work there is done.
    pub(crate) fn look_again(&mut self, slot: Slot) {
        let cpu = self.task(slot).cpu;
        let at_ns = self.cpus[cpu as usize].busy_until_ns().max(self.clock.now_ns());
        self.arm_cpu(cpu, at_ns);
    }

    /// Cost of a task's arrival on a CPU, beyond the switch: being moved, unless the CPU that woke it has paid
    /// for that.
    pub(crate) fn arrival_cost(&mut self, slot: Slot, cpu: u32) -> u64 {
        let task = self.task_mut(slot);
        let (last, moved_to) = (task.ran_on.replace(cpu), task.moved_to.take());
        match last {
            Some(last) if last != cpu && moved_to != Some(cpu) => self.cost.migration_ns,
            _ => 0,
        }
    }
}
