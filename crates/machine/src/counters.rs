//! What the machine counted.

use fairground_trace::CallbackKind;

/// Counts of one run. Each is a count of what the simulated kernel did, not an estimate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Switches between different tasks, the idle task included.
    pub switches: u64,
    /// Wake-ups of sleeping tasks, new tasks included.
    pub wakeups: u64,
    /// Moves of a task between the run queues of two CPUs.
    pub migrations: u64,
    /// Timer ticks on busy CPUs.
    pub ticks: u64,
    /// Interrupts that one CPU sent to another.
    pub ipis: u64,
    /// Times that a task was forced off its CPU because its affinity no longer allowed it.
    pub affinity_moves: u64,
    /// Slices that the core filled up because nobody else wanted the CPU.
    pub slice_refills: u64,
    /// Dispatches that the core ignored because the task was no longer the scheduler's to dispatch.
    pub stale_dispatches: u64,
    /// Instructions of the scheduler's program.
    pub insns: u64,
    /// Lines that the scheduler printed beyond those that the log keeps.
    pub log_lines_dropped: u64,
    /// Steps of the simulation (queue entries handled).
    pub steps: u64,
    callbacks: [u64; CallbackKind::ALL.len()],
}

impl Counters {
    /// How often a callback ran.
    pub fn callbacks(&self, kind: CallbackKind) -> u64 {
        self.callbacks[kind as usize]
    }

    pub(crate) fn count_callback(&mut self, kind: CallbackKind) {
        self.callbacks[kind as usize] += 1;
    }
}
