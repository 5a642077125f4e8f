//! How sleeps begin and end, whatever ends them.

use fairground_bpf::{Memory, Trap};
use fairground_trace::{EventKind, TaskId, TaskState};

use super::{Kernel, Slot};
use crate::SleepTimers;
use crate::events::EventHandle;
use crate::layout::offsets::task as field;

impl Kernel {
    /// When a task is woken whose timer expires at `at_ns`, ns; `at_ns` itself, where timers have that resolution.
    ///
    /// Without high-resolution timers a timer is looked at in each tick, and compared with the clock that the
    /// timekeeping interrupt advances (`hrtimer_run_queues`, `hrtimer_get_softirq_time`: `xtime`). That interrupt is
    /// another one than the CPU's own tick, and advances the clock by whole ticks (`update_wall_time`): what the tick
    /// sees is up to two ticks old, by the phases of the three, and one here. An expiry at that time is not past yet.
    pub(crate) fn sleep_end_ns(&self, at_ns: u64) -> u64 {
        let (now, tick) = (self.clock.now_ns(), self.clock.period_ns());
        if self.sleep_timers == SleepTimers::Hrtimer || at_ns <= now {
            return at_ns;
        }
        (at_ns / tick).saturating_add(2).saturating_mul(tick)
    }

    /// Arms what ends the sleep of a task that leaves the executing CPU in a state: the device's interrupt at that
    /// time, or a timer's. False: that would come before the task could sleep (`do_nanosleep`).
    #[inline]
    pub(crate) fn arm_wakeup(&mut self, slot: Slot, state: TaskState, at_ns: u64) -> bool {
        let by_hrtimer =
            state != TaskState::Uninterruptible && self.sleep_timers == SleepTimers::Hrtimer;
        let slack_ns = if by_hrtimer { self.cost.timer_slack_ns } else { 0 };
        if at_ns.saturating_add(slack_ns) <= self.clock.now_ns() {
            return false;
        }
        if by_hrtimer {
            self.arm_sleep(slot, at_ns);
        } else {
            self.events.arm(EventHandle::Task(slot.0), at_ns);
        }
        true
    }

    /// The task's state becomes `TASK_RUNNING`; a sleep that would end later is forgotten.
    #[inline]
    pub(crate) fn mark_runnable(&mut self, mem: &Memory, slot: Slot) -> Result<(), Trap> {
        let task = self.task_mut(slot);
        task.state = TaskState::Runnable;
        let addr = task.addr;
        mem.store_u32(addr + field::STATE, 0)?;
        mem.store_u32(addr + field::ON_RQ, 1)?;
        match self.sleep_timers {
            SleepTimers::Hrtimer => self.cancel_sleep(slot),
            SleepTimers::Jiffies => self.events.cancel(EventHandle::Task(slot.0)),
        }
        Ok(())
    }

    /// `ttwu_runnable`: the task has called for sleep but is still on its run queue; it will not sleep.
    pub(crate) fn wake_about_to_sleep(&mut self, slot: Slot) -> bool {
        let this = self.this_cpu;
        let task = self.task_mut(slot);
        if !task.about_to_sleep() || task.woken {
            return false;
        }
        task.woken = true;
        let (id, cpu) = (task.id, task.cpu);
        let waker = self.waker();
        self.counters.wakeups += 1;
        self.emit(this, 0, EventKind::Waking { task: id, waker, target_cpu: cpu });
        self.emit(this, 0, EventKind::Wakeup { task: id, target_cpu: cpu });
        self.charge_irqs_off(this, self.cost.wakeup_ns);
        true
    }

    /// Who wakes a task on the executing CPU: its current task, or the idle task where an interrupt does it.
    pub(crate) fn waker(&self) -> TaskId {
        if self.in_interrupt { TaskId::IDLE } else { self.current(self.this_cpu) }
    }

    /// An interrupt at an idle CPU: until it can schedule, the time of leaving the idle state passes.
    pub(crate) fn wake_from_idle(&mut self, cpu: u32) {
        let rq = &self.cpus[cpu as usize];
        if rq.is_idle() && rq.busy_until_ns() <= self.clock.now_ns() {
            self.charge_irqs_off(cpu, self.cost.idle_exit_ns);
        }
    }

    /// Cost of blocking or exiting for the task that runs on the executing CPU, ns.
    fn way_off_ns(&self, slot: Slot) -> u64 {
        let cost_ns = self.cost.block_ns + self.levels(slot) * self.cost.group_block_ns;
        let alone = self.cpus[self.this_cpu as usize].nr_running() <= 1;
        cost_ns.saturating_sub(if alone { self.cost.idle_saving_ns } else { 0 })
    }

    /// Cost of waking a task for the executing CPU, ns: without moving it, and without the scheduler's decision. Another
    /// CPU that is idle activates the task itself (`ttwu_queue_wakelist`): that part is put down for the interrupt that
    /// it gets.
    pub(crate) fn divide_wakeup_ns(&mut self, slot: Slot, cpu: u32) -> u64 {
        let group_ns = self.levels(slot) * self.cost.group_wakeup_ns;
        let whole_ns = self.cost.wakeup_ns + group_ns;
        if !self.is_listed(cpu) || self.cost.wake_list_ns == 0 {
            return whole_ns;
        }
        let there_ns = whole_ns.min(self.cost.wake_list_ns + group_ns);
        self.rq(cpu).wake_list_ns += there_ns;
        whole_ns - there_ns
    }

    /// Whether a task that is woken for this CPU goes to its wake list: it is another one, and idle.
    pub(crate) fn is_listed(&self, cpu: u32) -> bool {
        cpu != self.this_cpu && self.cpus[cpu as usize].is_idle()
    }

    /// The levels of control groups through which a scheduler of fair shares finds a task; 0 for a real-time task.
    fn levels(&self, slot: Slot) -> u64 {
        let task = self.task(slot);
        if task.rt.is_rt() { 0 } else { u64::from(self.cgroups.get(task.cgroup).level) }
    }

    /// The cost of blocking or exiting is charged to the executing CPU before the scheduler is called. True: it is
    /// being charged now.
    pub(crate) fn pays_way_off(&mut self, slot: Slot) -> bool {
        let (cpu, cost_ns) = (self.this_cpu, self.way_off_ns(slot));
        let task = self.task_mut(slot);
        task.blocks = !task.blocks && cost_ns > 0;
        let pays = task.blocks;
        if pays {
            // Interrupts are off from here to the switch and in it.
            self.charge_irqs_off(cpu, cost_ns);
        }
        pays
    }
}
