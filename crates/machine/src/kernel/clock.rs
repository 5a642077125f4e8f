//! The machine's clock and its ticks.

/// Simulated time.
#[derive(Debug)]
pub(crate) struct Clock {
    now_ns: u64,
    /// The period of the tick, ns.
    period_ns: u64,
    /// Events since it moved last, but the first.
    at_once: u32,
    /// When the next tick comes, ns; `None`: no CPU is busy.
    next_tick_ns: Option<u64>,
}

impl Clock {
    /// A clock at time 0, with a tick of so many ns.
    pub(crate) fn new(period_ns: u64) -> Clock {
        Clock { now_ns: 0, period_ns, at_once: 0, next_tick_ns: None }
    }

    /// Simulated time, ns.
    #[inline]
    pub(crate) fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Moves the clock to the time of an event: how many came at that instant before it.
    #[inline]
    pub(crate) fn step_to(&mut self, time_ns: u64) -> u32 {
        self.at_once = if time_ns == self.now_ns { self.at_once + 1 } else { 0 };
        self.now_ns = time_ns;
        self.at_once
    }

    /// Moves the clock to a time, without an event.
    #[inline]
    pub(crate) fn move_to(&mut self, time_ns: u64) {
        self.now_ns = time_ns;
    }

    /// The period of the tick, ns.
    pub(crate) fn period_ns(&self) -> u64 {
        self.period_ns
    }

    /// `jiffies`: whole periods of the tick since time 0.
    pub(crate) fn jiffies(&self) -> u64 {
        self.now_ns / self.period_ns
    }

    /// When the last tick came, or would have come, ns.
    pub(crate) fn last_tick_ns(&self) -> u64 {
        self.jiffies() * self.period_ns
    }

    /// Arms a tick at the next multiple of the period: when, ns; `None`: one is armed already.
    #[inline]
    pub(crate) fn start_tick(&mut self) -> Option<u64> {
        if self.next_tick_ns.is_some() {
            return None;
        }
        self.next_tick_ns = Some(self.last_tick_ns() + self.period_ns);
        self.next_tick_ns
    }

    /// The tick comes; none is armed until [`Clock::start_tick`].
    pub(crate) fn tick(&mut self) {
        self.next_tick_ns = None;
    }

    /// Whether a tick is still to come at this instant.
    pub(crate) fn tick_is_due(&self) -> bool {
        self.next_tick_ns == Some(self.now_ns)
    }
}
