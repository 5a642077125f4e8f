//! CPUs as the real-time class sees them: their deadline servers, what runs there, and where a task may go.

use super::server::Demand;
use crate::cpuset::CpuMask;
use crate::events::{CpuEvent, EventHandle};
use crate::kernel::{Kernel, Slot};
use crate::topology::CpuPlace;

impl Kernel {
    /// A task of the scheduler is runnable on a CPU: its deadline server is there for it.
    pub(crate) fn start_server(&mut self, cpu: u32) {
        let demand = self.rt.servers[cpu as usize].start(self.clock.now_ns());
        self.serve(cpu, demand);
    }

    /// A task of the scheduler, or the idle task, ran on a CPU for so many ns up to now.
    pub(crate) fn consume_server(&mut self, cpu: u32, ran_ns: u64, by_idle: bool) {
        let now_ns = self.clock.now_ns();
        let demand = self.rt.servers[cpu as usize].consume(now_ns, ran_ns, by_idle);
        self.serve(cpu, demand);
    }

    /// The timer of a CPU's server expires.
    pub(crate) fn expire_server(&mut self, cpu: u32) {
        let demand = self.rt.servers[cpu as usize].expire(self.clock.now_ns());
        self.serve(cpu, demand);
    }

    fn serve(&mut self, cpu: u32, demand: Demand) {
        if let Some(at_ns) = demand.timer_ns {
            let at_ns = at_ns.max(self.clock.now_ns());
            self.events.arm(EventHandle::Cpu(cpu, CpuEvent::Server), at_ns);
        }
        if demand.resched {
            self.resched_curr(cpu);
        }
    }

    /// The real-time priority of what a CPU runs; 0 for a task of the scheduler and the idle task.
    pub(crate) fn running_priority(&self, cpu: u32) -> u8 {
        self.cpus[cpu as usize].curr().map_or(0, |slot| self.task(slot).rt.priority())
    }

    /// `pick_next_pushable_task`, or, with a CPU, `pick_highest_pushable_task`: the first task of a run queue that does
    /// not run and may run elsewhere, or on that CPU.
    pub(crate) fn pushable(&self, cpu: u32, to: Option<u32>) -> Option<Slot> {
        let curr = self.cpus[cpu as usize].curr();
        self.rt.of_cpu(cpu).find(|slot| {
            let task = self.task(*slot);
            Some(*slot) != curr && task.allowed_count > 1 && to.is_none_or(|to| task.allows(to))
        })
    }

    /// `find_lowest_rq`: of the CPUs with the lowest priority, below that of the task, on which it may run, the
    /// nearest: its own, the executing one if no other is nearer, or the next one in turn. `None`: there is none, or
    /// the task may run on one CPU only.
    pub(crate) fn find_lowest_cpu(&mut self, slot: Slot) -> Option<u32> {
        let task = self.task(slot);
        let (own, priority) = (task.cpu, task.rt.priority());
        if task.allowed_count <= 1 {
            return None;
        }
        let allowed = self.usable(slot);
        let lowest = allowed.iter().map(|cpu| self.rt.highest(cpu)).min()?;
        if lowest >= priority {
            return None;
        }
        let mut mask = CpuMask::EMPTY;
        allowed.iter().filter(|cpu| self.rt.highest(*cpu) == lowest).for_each(|cpu| mask.set(cpu));
        if mask.test(own) {
            return Some(own);
        }
        let this = mask.test(self.this_cpu).then_some(self.this_cpu);
        for is_near in DOMAINS {
            let here = self.topology.place(own).unwrap_or_default();
            let near =
                |cpu: u32| self.topology.place(cpu).is_some_and(|there| is_near(&here, &there));
            if let Some(this) = this.filter(|this| near(*this)) {
                return Some(this);
            }
            let mut within = CpuMask::EMPTY;
            mask.iter().filter(|cpu| near(*cpu)).for_each(|cpu| within.set(cpu));
            if !within.is_empty() {
                return self.any_distribute(&within);
            }
        }
        None
    }
}

/// The scheduling domains of a CPU, the smallest first: whether another one is in it.
const DOMAINS: [fn(&CpuPlace, &CpuPlace) -> bool; 4] =
    [|a, b| a.core == b.core, |a, b| a.llc == b.llc, |a, b| a.node == b.node, |_, _| true];
