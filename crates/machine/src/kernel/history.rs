//! The scheduler's last callbacks: what the report of a failure shows.

use fairground_trace::{CallbackKind, TaskId};

/// Callbacks that are kept; the oldest are overwritten. A power of two.
const CALLS_KEPT: usize = 256;

/// One callback.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Called {
    pub(crate) time_ns: u64,
    /// The task that it was about; the idle task: none.
    pub(crate) task: TaskId,
    pub(crate) cpu: u32,
    pub(crate) kind: CallbackKind,
}

/// A ring of the last callbacks of all CPUs.
#[derive(Debug)]
pub(crate) struct CallHistory {
    ring: Box<[Called; CALLS_KEPT]>,
    calls: usize,
}

impl Default for CallHistory {
    fn default() -> Self {
        let none = Called { time_ns: 0, task: TaskId::IDLE, cpu: 0, kind: CallbackKind::Other };
        CallHistory { ring: Box::new([none; CALLS_KEPT]), calls: 0 }
    }
}

impl CallHistory {
    /// Adds a callback that begins.
    #[inline]
    pub(crate) fn push(&mut self, called: Called) {
        self.ring[self.calls % CALLS_KEPT] = called;
        self.calls += 1;
    }

    /// The callbacks that are kept, the latest first.
    pub(crate) fn latest(&self) -> impl Iterator<Item = &Called> {
        let first = self.calls.saturating_sub(CALLS_KEPT);
        (first..self.calls).rev().map(|call| &self.ring[call % CALLS_KEPT])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_overwritten() {
        let mut history = CallHistory::default();
        assert_eq!(history.latest().count(), 0);
        for time_ns in 0..CALLS_KEPT as u64 + 3 {
            let kind = CallbackKind::Tick;
            history.push(Called { time_ns, task: TaskId::IDLE, cpu: 0, kind });
        }
        let times: Vec<_> = history.latest().map(|called| called.time_ns).collect();
        assert_eq!(times.len(), CALLS_KEPT);
        assert_eq!((times[0], times[CALLS_KEPT - 1]), (CALLS_KEPT as u64 + 2, 3));
    }
}
