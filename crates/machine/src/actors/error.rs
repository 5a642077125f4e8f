//! The limits of actors, and why a workload cannot go on.

/// Operations that one actor may execute without needing CPU time or having to wait.
pub const MAX_OPS_PER_ADVANCE: u32 = 1 << 20;
/// Operations that all actors together may execute without simulated time passing.
pub const MAX_OPS_PER_INSTANT: u64 = 1 << 26;
/// Loops within loops in one program.
pub const MAX_LOOP_DEPTH: usize = 64;

/// Why the workload cannot go on, or cannot start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ActorError {
    /// One task loops without computing or waiting.
    #[error(
        "task `{task}` executed {MAX_OPS_PER_ADVANCE} operations without computing or waiting: its \
         loop takes no time; put a `run` or a `sleep` into it"
    )]
    EndlessOps {
        /// The task's name.
        task: String,
    },
    /// Tasks keep each other busy without time passing.
    #[error(
        "the tasks executed {MAX_OPS_PER_INSTANT} operations at {time_ns} ns without time passing \
         (`{task}` was the last): let them compute, or choose a cost model in which system calls \
         take time"
    )]
    EndlessInstant {
        /// The task that was advanced last.
        task: String,
        /// When, ns.
        time_ns: u64,
    },
    /// Tasks wait for each other's locks in a cycle.
    #[error("deadlock at {time_ns} ns: {chain}: let all tasks take these locks in the same order")]
    Deadlock {
        /// Which task waits for which lock, and its owner, along the cycle.
        chain: String,
        /// When, ns.
        time_ns: u64,
    },
    /// A task releases a lock that it does not hold, takes one that it holds, or exits with one.
    #[error("task `{task}` {problem} at {time_ns} ns")]
    LockMisuse {
        /// The task's name.
        task: String,
        /// The fault, with the lock's name.
        problem: String,
        /// When, ns.
        time_ns: u64,
    },
    /// The workload forks more tasks than the machine has room for.
    #[error(
        "task `{task}` forks, but {limit} tasks exist already: let children exit, or raise the machine's limit of tasks"
    )]
    TooManyTasks {
        /// The task that forks.
        task: String,
        /// Tasks that may exist at the same time.
        limit: u32,
    },
    /// The workload contradicts itself: it was built by hand and not checked.
    #[error("the workload `{workload}` is inconsistent: {problem}")]
    Inconsistent {
        /// The workload's name.
        workload: String,
        /// The problem.
        problem: String,
    },
}
