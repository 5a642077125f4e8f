//! The run queues' clocks, by what the kernel charged.
//!
//! A recorded event is stamped a moment after the kernel read the clock that its decision goes by (`rq_clock_task`).
//! Charges tell that clock to the nanosecond: what a task is charged is the clock's way since the last charge, or since
//! the task came onto its CPU, which was when the task before it was charged. The kernel reads the clock where it
//! charges (`update_curr` follows `update_rq_clock`), so between charges the clock stands. On a CPU that runs no task of
//! the scheduler the clock is the recording's.

use super::Driven;
use crate::MachineError;

impl Driven {
    /// The kernel has charged the task that runs on a CPU.
    pub(super) fn advance_clock(&mut self, cpu: u32, runtime_ns: u64) {
        self.charged_ns[cpu as usize] += runtime_ns;
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
            *clock_ns = now_ns;
        }
        kernel.clock.move_to(*clock_ns);
        let result = step(self);
        // The trace of the machine is in order of time; its clock goes back.
        self.note_moves();
        self.machine.kernel.clock.move_to(now_ns);
        result
    }
}
