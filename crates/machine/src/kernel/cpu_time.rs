//! How long a CPU has run tasks, and how long its idle task.

/// The time of one CPU, booked up to the last switch or tick.
#[derive(Debug, Default)]
pub(crate) struct CpuTime {
    tasks_ns: u64,
    idle_ns: u64,
    /// Up to when the idle task's time is booked, if it runs, ns.
    idle_since_ns: u64,
}

impl CpuTime {
    /// A task has run for so long.
    #[inline]
    pub(crate) fn add_task(&mut self, ns: u64) {
        self.tasks_ns += ns;
    }

    /// The idle task runs from now on; its time before is booked.
    #[inline]
    pub(crate) fn enter_idle(&mut self, now_ns: u64) {
        self.idle_since_ns = now_ns;
    }

    /// Books the time of the idle task, which runs, up to now: how long that was, ns.
    #[inline]
    pub(crate) fn book_idle(&mut self, now_ns: u64) -> u64 {
        let rested_ns = now_ns - self.idle_since_ns;
        self.idle_ns += rested_ns;
        self.idle_since_ns = now_ns;
        rested_ns
    }

    /// Time of tasks that is booked, ns.
    pub(crate) fn tasks_ns(&self) -> u64 {
        self.tasks_ns
    }

    /// Time of the idle task up to now, ns; `idle`: it runs.
    pub(crate) fn idle_ns(&self, now_ns: u64, idle: bool) -> u64 {
        self.idle_ns + if idle { now_ns - self.idle_since_ns } else { 0 }
    }

    /// Loses a nanosecond, for tests of the checker.
    #[cfg(test)]
    pub(crate) fn lose_ns(&mut self) {
        self.tasks_ns -= 1;
    }
}
