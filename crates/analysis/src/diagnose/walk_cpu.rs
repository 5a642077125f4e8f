//! A CPU during the walk: what runs on it, what waits in its queue, and what each task in the queue is due.

use fairground_trace::TaskId;

/// Fraction bits of the service per unit of weight.
const FRACTION_BITS: u32 = 20;

/// A slice that a wake-up cut, until the CPU goes to a task that has not just woken up.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenCut {
    pub(super) victim: TaskId,
    pub(super) key: (usize, usize),
}

/// A CPU. `epoch` goes up when its state becomes unknown: what was entered before counts no longer.
#[derive(Clone, Debug, Default)]
pub(super) struct Cpu {
    /// What runs; the idle task counts as known.
    pub(super) running: Option<TaskId>,
    pub(super) since_ns: u64,
    pub(super) epoch: u64,
    pub(super) cut: Option<OpenCut>,
    /// Time of the present stretch in which others waited, ns.
    pub(super) contended_ns: u64,
    now_ns: u64,
    weight: u64,
    waiting: u64,
    queued: u64,
    service: u128,
    load_ns: u128,
}

impl Cpu {
    pub(super) fn new(now_ns: u64) -> Self {
        Self { now_ns, since_ns: now_ns, ..Self::default() }
    }

    /// Brings the sums up to `now_ns`. Call before each change.
    pub(super) fn advance(&mut self, now_ns: u64) {
        let elapsed_ns = now_ns.saturating_sub(self.now_ns);
        self.now_ns = self.now_ns.max(now_ns);
        if elapsed_ns == 0 || self.queued == 0 {
            return;
        }
        self.load_ns += u128::from(elapsed_ns) * u128::from(self.queued);
        self.service += (u128::from(elapsed_ns) << FRACTION_BITS) / u128::from(self.weight.max(1));
        if self.waiting > 0 && self.running.is_some_and(|task| !task.is_idle()) {
            self.contended_ns += elapsed_ns;
        }
    }

    /// Service per unit of weight since the start, with [`FRACTION_BITS`]; up to the last [`Cpu::advance`].
    pub(super) fn service(&self) -> u128 {
        self.service
    }

    /// What a task of this weight is due for an advance of the service, ns.
    pub(super) fn due_ns(weight: u32, service: u128) -> u64 {
        let ns = (service * u128::from(weight)) >> FRACTION_BITS;
        u64::try_from(ns).unwrap_or(u64::MAX)
    }

    pub(super) fn enter(&mut self, weight: u32, waits: bool) {
        self.weight += u64::from(weight);
        self.queued += 1;
        self.waiting += u64::from(waits);
    }

    pub(super) fn leave(&mut self, weight: u32, waits: bool) {
        self.weight = self.weight.saturating_sub(weight.into());
        self.queued = self.queued.saturating_sub(1);
        self.waiting = self.waiting.saturating_sub(waits.into());
    }

    /// Events of this CPU were lost: nothing is known of it.
    pub(super) fn forget(&mut self) {
        (self.weight, self.waiting, self.queued) = (0, 0, 0);
        (self.running, self.cut, self.contended_ns) = (None, None, 0);
        self.epoch += 1;
    }

    /// The mean number of tasks in the queue over a window, in thousandths.
    pub(super) fn load_milli(&self, window_ns: u64) -> u64 {
        let milli = (self.load_ns * 1000).checked_div(window_ns.into()).unwrap_or(0);
        u64::try_from(milli).unwrap_or(u64::MAX)
    }
}
