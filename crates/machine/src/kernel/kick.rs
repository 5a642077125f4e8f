//! Kicks and reschedule interrupts.

use fairground_bpf::{Memory, Trap};

use super::Kernel;
use crate::abi::kick;
use crate::events::{CpuEvent, EventHandle};

/// CPUs that the executing CPU will kick when its interrupts are on again (`cpus_to_kick` and its companions).
#[derive(Debug, Default)]
pub(crate) struct Kicks {
    cpus: Vec<u32>,
    /// By CPU: the flags of its kick; [`KICKED`] marks one without flags.
    flags: Vec<u8>,
}

const KICKED: u8 = 1 << 7;

impl Kicks {
    pub(crate) fn new(cpus: u32) -> Kicks {
        Kicks { cpus: Vec::new(), flags: vec![0; cpus as usize] }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.cpus.is_empty()
    }

    /// Forgets all of them.
    pub(crate) fn cancel(&mut self) {
        for cpu in self.cpus.drain(..) {
            self.flags[cpu as usize] = 0;
        }
    }

    fn add(&mut self, cpu: u32, flags: u8) {
        let entry = &mut self.flags[cpu as usize];
        if *entry == 0 {
            self.cpus.push(cpu);
        }
        *entry |= flags;
    }
}

impl Kernel {
    /// `resched_curr`: the current task of a CPU must leave. Another CPU gets an interrupt; one that is offline does
    /// not.
    pub(crate) fn resched_curr(&mut self, cpu: u32) {
        let is_online = self.is_online(cpu);
        let rq = &mut self.cpus[cpu as usize];
        if rq.need_resched || !is_online {
            return;
        }
        rq.need_resched = true;
        if cpu != self.this_cpu {
            self.counters.ipis += 1;
            self.ipis.push(cpu);
            self.look_on_way_out(cpu);
        }
    }

    /// The current task of another CPU must leave. If it is in the kernel, it does so on its way out, before the
    /// interrupt arrives: the end of the work there is an event after all.
    fn look_on_way_out(&mut self, cpu: u32) {
        let rq = &self.cpus[cpu as usize];
        let Some(slot) = rq.curr() else { return };
        let lapses_ns = rq.timers.lapses_ns().filter(|at_ns| *at_ns > self.clock.now_ns());
        let at_ns = if let Some(at_ns) = lapses_ns {
            at_ns
        } else if self.task(slot).begins && rq.busy_until_ns() > self.clock.now_ns() {
            rq.busy_until_ns()
        } else {
            return;
        };
        let at_ns = at_ns.min(rq.armed_ns());
        self.arm_cpu(cpu, at_ns);
    }

    /// Reschedule interrupts are sent at the end of the kernel work that the executing CPU has been charged so far.
    #[inline]
    pub(crate) fn flush_ipis(&mut self) {
        if !self.ipis.is_empty() {
            self.send_ipis();
        }
    }

    #[inline(never)]
    fn send_ipis(&mut self) {
        let at = self.ipi_arrival_ns();
        for cpu in self.ipis.drain(..) {
            self.events.arm(EventHandle::Cpu(cpu, CpuEvent::Resched), at);
        }
    }

    /// When an interrupt arrives that the executing CPU sends now.
    pub(crate) fn ipi_arrival_ns(&self) -> u64 {
        let sent_ns = self.cpus[self.this_cpu as usize].busy_until_ns().max(self.clock.now_ns());
        sent_ns + self.cost.ipi_ns
    }

    /// An interrupt from another CPU has arrived: the tasks on the wake list are activated.
    pub(crate) fn enter_ipi(&mut self, cpu: u32) {
        let wake_list_ns = std::mem::take(&mut self.rq(cpu).wake_list_ns);
        if wake_list_ns > 0 {
            self.charge_irqs_off(cpu, wake_list_ns);
        }
    }

    /// `can_skip_idle_kick`: the CPU will go through a scheduling pass before it goes idle.
    fn can_skip_idle_kick(&self, cpu: u32) -> bool {
        let rq = &self.cpus[cpu as usize];
        !rq.is_idle() && !rq.in_balance
    }

    /// The CPU under whose run queue's lock the callback runs (`scx_locked_rq`): that of the task that it is about, else
    /// the executing one. `None`: it holds no lock.
    pub(crate) fn locked_cpu(&self) -> Option<u32> {
        let of_task = self.permission.task().map(|slot| self.task(slot).cpu);
        self.permission.is_locked().then(|| of_task.unwrap_or(self.this_cpu))
    }

    /// `scx_bpf_kick_cpu`.
    pub(crate) fn kick(&mut self, cpu: i64, flags: u64) {
        let Some(cpu) = self.cpu_valid(cpu, "") else { return };
        if flags & kick::IDLE != 0 {
            if flags & (kick::PREEMPT | kick::WAIT) != 0 {
                self.error("PREEMPT/WAIT cannot be used with SCX_KICK_IDLE");
            }
            // A run queue that is locked cannot be looked at (`raw_spin_rq_trylock`): that CPU is kicked.
            if self.locked_cpu() == Some(cpu) || !self.can_skip_idle_kick(cpu) {
                self.kicks.add(cpu, kick::IDLE as u8);
            }
        } else {
            self.kicks.add(cpu, KICKED | (flags & (kick::PREEMPT | kick::WAIT)) as u8);
        }
    }

    /// `kick_cpus_irq_workfn`: carries out the kicks, in the order of CPU numbers; first those of busy CPUs, then those
    /// that only an idle CPU gets.
    #[inline]
    pub(crate) fn flush_kicks(&mut self, mem: &Memory) -> Result<(), Trap> {
        if self.kicks.is_empty() { Ok(()) } else { self.send_kicks(mem) }
    }

    #[inline(never)]
    fn send_kicks(&mut self, mem: &Memory) -> Result<(), Trap> {
        let (this_cpu, ns) = (self.this_cpu, self.cost.kick_ns);
        if !self.rq(this_cpu).timers.owe_kicks(ns) {
            self.charge_irqs_off(this_cpu, ns);
        }
        let mut cpus = std::mem::take(&mut self.kicks.cpus);
        cpus.sort_unstable();
        for cpu in &cpus {
            if self.kicks.flags[*cpu as usize] & KICKED != 0 {
                self.kick_one(mem, *cpu)?;
            }
        }
        for cpu in &cpus {
            let flags = std::mem::take(&mut self.kicks.flags[*cpu as usize]);
            if flags & KICKED == 0 && !self.can_skip_idle_kick(*cpu) {
                self.resched_curr(*cpu);
            }
        }
        cpus.clear();
        self.kicks.cpus = cpus;
        Ok(())
    }

    /// `kick_one_cpu`, and the wait for the CPU that follows it.
    fn kick_one(&mut self, mem: &Memory, cpu: u32) -> Result<(), Trap> {
        if self.running_priority(cpu) > 0 || !self.is_online(cpu) {
            // The scheduler has no control over the CPU, or there is none.
            return Ok(());
        }
        let flags = u64::from(self.kicks.flags[cpu as usize]);
        if flags & kick::PREEMPT != 0
            && let Some(curr) = self.cpus[cpu as usize].curr()
        {
            self.task(curr).set_slice(mem, 0)?;
        }
        self.resched_curr(cpu);
        if flags & kick::WAIT != 0 && cpu != self.this_cpu {
            // The kicker spins until the target has rescheduled: until the interrupt arrives there and what the target
            // does in the kernel is done.
            let arrival = self.ipi_arrival_ns().max(self.cpus[cpu as usize].busy_until_ns());
            let this = self.this_cpu;
            self.rq(this).occupy(arrival, 0);
        }
        Ok(())
    }
}
