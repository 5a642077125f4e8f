//! Why a machine cannot be built or cannot go on.

use fairground_bpf::{InstanceError, Trap};
use fairground_trace::Trace;

use crate::{Invariant, SettingError, Violation};

/// Why a machine cannot be built, or why a run ended before its time. A scheduler that misbehaves is no error of this
/// kind: it is ejected, and the run's [`crate::Exit`] says why.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// The configuration asks for something that cannot be simulated.
    #[error("machine: {0}")]
    Config(String),
    /// The workload asks for something that this machine does not have.
    #[error("workload: {0}")]
    Workload(String),
    /// A setting names no tunable, or has a value that it cannot take.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// No memory for another instance of the program.
    #[error("no memory for the scheduler's program: {0}")]
    Instance(#[from] InstanceError),
    /// The memory of the program could not be read or written where the machine keeps its own data.
    #[error("the simulated kernel's own data: {0}")]
    Memory(Trap),
    /// The trace holds as many events as it may ([`crate::MachineConfig::max_events`]), or those of the last step more.
    #[error(
        "the trace is full: {events} events ({megabytes} MB) after {time_ms} ms of simulated time",
        megabytes = events * Trace::BYTES_PER_EVENT / 1_000_000,
        time_ms = time_ns / 1_000_000
    )]
    TraceFull {
        /// The events that it holds.
        events: usize,
        /// The simulated time at which it had to go on, ns.
        time_ns: u64,
    },
    /// An invariant did not hold, seen because [`crate::MachineConfig::check`] was set. But for
    /// [`crate::Invariant::WorkConservation`] and [`crate::Invariant::PickOrder`], which are the scheduler's to keep,
    /// it is a fault of the simulator.
    #[error("{problem}{0}", problem = breach(.0))]
    Invariant(Box<Violation>),
}

/// The rule that was broken: the scheduler's or the simulator's.
fn breach(violation: &Violation) -> &'static str {
    match violation.invariant {
        Invariant::WorkConservation | Invariant::PickOrder => {
            "the scheduler does not keep its promise "
        }
        _ => "the simulator broke its own rule (please report it with the command line) ",
    }
}
