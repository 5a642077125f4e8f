//! Losses of a recorder and of a reader. Every result that comes from the trace shows them.

/// Counts of what is missing from a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// Events that are missing: those that the recorder itself reported as lost, and scheduling events in lines that
    /// could not be read.
    pub lost_events: u64,
    /// Lines or records that could not be read.
    pub unreadable: u64,
    /// Lines or records of a kind that the reader does not use, such as `sched_stat_wait`. The trace lacks nothing
    /// for them.
    pub skipped: u64,
    /// Events older than the previous event of the same CPU. Of a `perf.data` that is analysed while it is read, also
    /// events older than the recorder's rounds allow: they were moved to the end of the events before.
    pub clock_jumps: u64,
    /// Lines that the scheduler's program printed and that were left out: more different ones than
    /// [`Trace::PRINT_LABELS_MAX`](crate::Trace::PRINT_LABELS_MAX).
    pub prints: u64,
    /// Kernel stacks and waits for locks that were left out: more different ones than
    /// [`Trace::STACKS_MAX`](crate::Trace::STACKS_MAX).
    pub stacks: u64,
    /// Times that a pid was reused: it appeared again after its task had died.
    pub pid_reuses: u64,
    /// Switches whose `prev` is not the task that the CPU ran according to the switch before.
    pub broken_switches: u64,
    /// The first problem in words, with its line or byte.
    pub first: Option<String>,
    /// True when the input ended in the middle of a record.
    pub truncated: bool,
}
