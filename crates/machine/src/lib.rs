//! The simulated machine that a compiled sched_ext scheduler runs in.
//!
//! ```text
//! Object ──Policy::load──► Policy ─┐
//! MachineConfig ───────────────────┼─Machine::new──► Machine ──run_until──► … ──finish──► RunResult
//! settings, Workload ──────────────┘                          {trace, exit, log, counters}
//! ```
//!
//! The machine is deterministic: it has no thread, no global state, reads no clock and no file. Time is simulated, in
//! nanoseconds. Which step of which kernel function each part follows, and what is not modelled, is in
//! `docs/reference/simulator.md`.

pub mod abi;
pub mod actors;
mod cgroup;
mod changes;
mod check;
mod config;
mod control;
mod cost;
mod counters;
mod cpuset;
mod driven;
mod dsq;
mod dump;
mod error;
mod events;
mod exit;
mod flow;
mod heap;
mod idle_cpus;
mod inspect;
mod interface;
mod kernel;
mod kfuncs;
mod layout;
mod machine;
mod mostly_sorted;
mod op;
mod policy;
pub(crate) use fairground_workload::prng;
mod real_time;
mod settings;
mod setup;
mod starts;
mod topology;
mod tracing;

pub use abi::ECODE_ACT_RESTART;
pub use check::{Invariant, Violation};
pub use config::{MAX_EVENTS_DEFAULT, MachineConfig, SleepTimers, TraceOptions};
pub use cost::{CostDescription, CostError, CostModel, CostParameter};
pub use counters::{Counters, Path, PathCost};
pub use driven::{Driven, NewTask, Placement, Wake};
pub use error::{MachineError, SetupError};
pub use exit::{Dump, Exit, ExitKind, Origin, PastCall, Waiting, WaitingPlace};
pub use fairground_bpf::{Engine, NullLoads};
pub use inspect::TaskView;
pub use interface::{
    Feature, InterfacePart, KernelAbi, Since, State, UnknownRelease, ops_flags,
    parts as interface_parts,
};
pub use kernel::PrintedLine;
pub use machine::{Machine, RunResult};
pub use policy::{Policy, PolicyError, is_kernel_constant, lacks, never_called};
pub use settings::{
    Expectation, Meanings, NamedValue, Patch, Setting, SettingError, Unmet, Value, VariableChange,
    VariablePart, Words, is_number, root_of,
};
pub use setup::{MapContent, ProgramRun, SavedValue, Setup};
pub use topology::{CpuPlace, Topology, TopologyError};
pub use tracing::{TracingProgram, TracingState, tracing_programs};
