//! CPUs that the scheduler loses to a higher class, and gets back.

use crate::dsq::DsqRef;
use crate::flow::{Machine, Step};
use crate::kernel::Slot;
use crate::op::Op;

/// The class that takes a CPU from the scheduler (`enum scx_cpu_preempt_reason`).
#[derive(Clone, Copy, Debug)]
pub(crate) enum Taker {
    /// A task of the real-time class.
    Rt(Slot),
    /// One that the machine does not have, of a class above the scheduler's.
    Unknown,
    /// The stopper thread of the CPU, which the machine does not have as a task.
    Stop,
}

impl Taker {
    /// The size of `struct scx_cpu_release_args`.
    pub(crate) const ARGS_BYTES: u64 = 16;

    /// Its number in the kernel.
    fn reason(self) -> u32 {
        match self {
            Taker::Rt(_) | Taker::Unknown => 0,
            Taker::Stop => 2,
        }
    }
}

impl Machine {
    /// `put_prev_task` for a task of a higher class: what runs leaves the CPU, and is off its run queue if it blocks.
    /// Callbacks: of a runnable task `stopping`, and `enqueue` if its slice is used up, then `cpu_release`; of the idle
    /// task `update_idle`.
    pub(crate) fn make_way(&mut self, cpu: u32, prev: Option<Slot>, taker: Taker) -> Step {
        if self.kernel.uses_immed {
            self.kernel.ask_again(DsqRef::Local(cpu), false);
        }
        let Some(slot) = prev else {
            self.update_idle(cpu, false);
            return Ok(());
        };
        self.put_prev(cpu, slot, false)?;
        if self.kernel.task(slot).rt.is_rt() { Ok(()) } else { self.release_cpu(cpu, taker) }
    }

    /// `switch_class`: once until the scheduler has the CPU again. Callback: `cpu_release`.
    fn release_cpu(&mut self, cpu: u32, taker: Taker) -> Step {
        if std::mem::replace(&mut self.kernel.rq(cpu).released, true) {
            return Ok(());
        }
        if self.has(Op::CpuRelease) {
            let task = match taker {
                Taker::Rt(slot) => self.kernel.task(slot).addr,
                Taker::Unknown | Taker::Stop => self.kernel.cpus[cpu as usize].idle_addr,
            };
            let (mem, args) = (self.program.memory(), self.release_args);
            mem.store_u32(args, taker.reason())?;
            mem.store_u64(args + 8, task)?;
            let told = self.kernel.cids.told(cpu);
            self.call(Op::CpuRelease, None, &[told, args]);
        }
        Ok(())
    }

    /// The scheduler is asked for a task again (`balance_one`). Callback: `cpu_acquire`, if it has lost the CPU.
    #[inline(always)]
    pub(crate) fn acquire_cpu(&mut self, cpu: u32) {
        if self.kernel.cpus[cpu as usize].released {
            self.tell_acquired(cpu);
        }
    }

    #[inline(never)]
    fn tell_acquired(&mut self, cpu: u32) {
        self.kernel.rq(cpu).released = false;
        if self.has(Op::CpuAcquire) {
            let told = self.kernel.cids.told(cpu);
            self.call(Op::CpuAcquire, None, &[told, 0]);
        }
    }
}
