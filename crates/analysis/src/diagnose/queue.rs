//! The queue of a CPU: how many tasks stand in it and what each of them is due.

use crate::fluid::{CpuFluid, FRACTION_BITS};
use fairground_trace::TaskId;

/// A slice that a wake-up cut, until the CPU goes to a task that has not just woken up.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenCut {
    pub(super) victim: TaskId,
    /// The group that cut, and the victim's.
    pub(super) key: (usize, usize),
}

/// The tasks on one CPU, the running one included.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    /// Goes up when the state of the CPU becomes unknown: tasks that were entered before count no longer.
    pub(super) epoch: u64,
    pub(super) cut: Option<OpenCut>,
    /// Time of the present stretch in which other tasks waited, ns.
    pub(super) contended_ns: u64,
    /// A task runs.
    busy: bool,
    now_ns: u64,
    waiting: u64,
    queued: u64,
    fluid: CpuFluid,
    service: u128,
    load_ns: u128,
}

impl Queue {
    pub(super) fn new(now_ns: u64) -> Self {
        let mut queue = Self { now_ns, ..Self::default() };
        queue.fluid.advance(now_ns);
        queue
    }

    /// Brings the sums up to `now_ns`. Call before each change.
    pub(super) fn advance(&mut self, now_ns: u64) {
        let elapsed_ns = now_ns.saturating_sub(self.now_ns);
        self.now_ns = self.now_ns.max(now_ns);
        self.service = self.fluid.advance(now_ns);
        self.load_ns += u128::from(elapsed_ns) * u128::from(self.queued);
        if self.waiting > 0 && self.busy {
            self.contended_ns += elapsed_ns;
        }
    }

    /// Service per unit of weight at the last [`Queue::advance`]: meaningful as a difference within an epoch.
    pub(super) fn service(&self) -> u128 {
        self.service
    }

    /// The time that a task of this weight is due for an advance of the service, ns.
    pub(super) fn due_ns(weight: u32, service: u128) -> u64 {
        let ns = service.saturating_mul(weight.into()) >> FRACTION_BITS;
        u64::try_from(ns).unwrap_or(u64::MAX)
    }

    pub(super) fn enter(&mut self, weight: u32, waits: bool) {
        self.fluid.add(weight);
        self.queued += 1;
        self.waiting += u64::from(waits);
    }

    /// A task that was entered in this epoch leaves.
    pub(super) fn leave(&mut self, weight: u32, waits: bool) {
        self.fluid.remove(weight);
        self.queued -= 1;
        self.waiting -= u64::from(waits);
    }

    /// Another task runs from now on, or none.
    pub(super) fn set_busy(&mut self, busy: bool) {
        (self.busy, self.contended_ns) = (busy, 0);
    }

    /// Events of this CPU were lost: nothing is known of it.
    pub(super) fn forget(&mut self, now_ns: u64) {
        self.advance(now_ns);
        let (epoch, load_ns) = (self.epoch + 1, self.load_ns);
        *self = Self { epoch, load_ns, ..Self::new(now_ns) };
    }

    /// The mean number of tasks in the queue over a window, in thousandths.
    pub(super) fn load_milli(&self, window_ns: u64) -> u64 {
        let milli = (self.load_ns * 1000).checked_div(window_ns.into()).unwrap_or(0);
        u64::try_from(milli).unwrap_or(u64::MAX)
    }
}
