//! The run queues' clocks, by what the kernel charged.
//!
//! A recorded event is stamped a moment after the kernel read the clock that its decision goes by (`rq_clock_task`).
//! Charges tell that clock to the nanosecond: what a task is charged is the clock's way since the last charge, or since
//! the task came onto its CPU, which was when the task before it was charged. The kernel reads the clock where it
//! charges (`update_curr` follows `update_rq_clock`), so between charges the clock stands. On a CPU that runs no task
//! of the scheduler the clock is the recording's, less what its stamps are late: only how far a clock goes counts, not
//! where it begins. A clock never goes back, and is never
//! ahead of the recording's.

use super::Driven;
use crate::MachineError;
use crate::kernel::Timer;

/// A timer of the scheduler that has expired by the recording's clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct LateTimer {
    timer: Timer,
    time_ns: u64,
}

impl Driven {
    /// The kernel has charged the task that runs on a CPU.
    pub(super) fn advance_clock(&mut self, cpu: u32, runtime_ns: u64) {
        let read_ns = std::mem::take(&mut self.read_ns[cpu as usize]);
        self.move_clock(cpu, runtime_ns.saturating_sub(read_ns));
    }

    /// The kernel has read the clock of a CPU, which has come so far since the task that runs there was charged, and
    /// does not charge it: what it charges next counts from there (`update_curr` of the task's group only).
    pub fn read_clock(&mut self, cpu: u32, since_charge_ns: u64) {
        let read_ns = &mut self.read_ns[cpu as usize];
        let ahead_ns = since_charge_ns.saturating_sub(*read_ns);
        *read_ns += ahead_ns;
        self.move_clock(cpu, ahead_ns);
    }

    fn move_clock(&mut self, cpu: u32, ahead_ns: u64) {
        let clock_ns = &mut self.charged_ns[cpu as usize];
        *clock_ns = (*clock_ns + ahead_ns).min(self.machine.kernel.clock.now_ns());
    }

    /// A timer of the scheduler expires. On a CPU whose clock is told, the kernel handles its interrupt when it charges
    /// the running task.
    pub(super) fn timer_expires(&mut self, number: u32, time_ns: u64) -> Result<(), MachineError> {
        let kernel = &mut self.machine.kernel;
        let Some(timer) = kernel.timers.expire(number, time_ns) else { return Ok(()) };
        if kernel.charges_are_told && kernel.cpus[timer.cpu as usize].curr().is_some() {
            self.late_timers.push(LateTimer { timer, time_ns });
            return Ok(());
        }
        self.run_timer(timer)
    }

    /// Timers whose CPUs' clocks have come as far, or were not charged for too long, fire.
    pub(super) fn run_late_timers(&mut self) -> Result<(), MachineError> {
        let now_ns = self.machine.kernel.clock.now_ns();
        let mut at = 0;
        while let Some(&LateTimer { timer, time_ns }) = self.late_timers.get(at) {
            let clock_ns = self.charged_ns[timer.cpu as usize];
            if clock_ns < time_ns && now_ns < time_ns + self.charged_within_ns {
                at += 1;
                continue;
            }
            self.late_timers.remove(at);
            self.run_timer(timer)?;
        }
        Ok(())
    }

    fn run_timer(&mut self, timer: Timer) -> Result<(), MachineError> {
        self.by_clock_of(timer.cpu, |driven| {
            driven.machine.kernel.this_cpu = timer.cpu;
            driven.told(|machine| machine.run_timer(timer))
        })
    }

    /// Carries out a step by the clock of a CPU's run queue.
    pub(super) fn by_clock_of<T>(
        &mut self,
        cpu: u32,
        step: impl FnOnce(&mut Self) -> Result<T, MachineError>,
    ) -> Result<T, MachineError> {
        if !self.machine.kernel.charges_are_told {
            return step(self);
        }
        self.note_moves();
        let kernel = &mut self.machine.kernel;
        let now_ns = kernel.clock.now_ns();
        let clock_ns = &mut self.charged_ns[cpu as usize];
        if kernel.cpus[cpu as usize].curr().is_none() {
            *clock_ns = (*clock_ns).max(now_ns.saturating_sub(self.stamp_late_ns));
            self.read_ns[cpu as usize] = 0;
        }
        kernel.clock.move_to(*clock_ns);
        let result = step(self);
        // The trace of the machine is in order of time; its clock goes back.
        self.note_moves();
        self.machine.kernel.clock.move_to(now_ns);
        result
    }
}
