//! Why a machine cannot be built or cannot go on.

use fairground_bpf::{InstanceError, Trap};
use fairground_trace::Trace;

use crate::{Invariant, SettingError, Violation};

/// Why a machine cannot be built, or why a run ended early. A misbehaving scheduler is not such an error: it is
/// ejected, and the run's [`crate::Exit`] has the cause.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// The configuration cannot be simulated.
    #[error("machine: {0}")]
    Config(String),
    /// The workload requires something that this machine does not have.
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
    /// The trace has reached its limit ([`crate::MachineConfig::max_events`]) or exceeds it by the last step's events.
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
    /// An invariant did not hold; only with [`crate::MachineConfig::check`]. It is a fault of the simulator, except for
    /// [`crate::Invariant::WorkConservation`] and [`crate::Invariant::PickOrder`], which the scheduler promises.
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

/// Why a setup cannot be done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {problem}")]
pub struct SetupError {
    /// The map or program.
    pub what: String,
    /// The fault, and the remedy.
    pub problem: String,
}
