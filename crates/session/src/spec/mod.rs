//! One description of a run, in words: the command line, experiment files, the Python module and results are views of
//! it.
//!
//! A field is an option of the command line (`lead_in`: `--lead-in`), a key of an experiment and a keyword of Python;
//! its doc comment is the option's help. What the words mean is checked in one place, [`RunSpec::resolve`].

mod choices;
mod groups;
mod resolve;
mod words;

pub use choices::{
    EngineChoice, KernelAbiChoice, LocksChoice, NullLoadsChoice, TimersChoice, VmModeChoice,
};
pub(crate) use groups::ALL_VARIABLES;
pub use groups::{
    BUFFER_KIB_DEFAULT, COSTS_DEFAULT, CPUS_DEFAULT, INSTRUCTION_NS_DEFAULT, LocksSpec,
    MachineSpec, SEED_DEFAULT, SchedulerSpec, TargetSpec, TopologySpec, VariablesSpec,
};
pub(crate) use resolve::HZ_CHOICES;
pub use resolve::{HZ_DEFAULT, Resolved};
pub use words::BadWord;

use clap::Args;
use serde::{Deserialize, Serialize};

/// A run, or several that differ in target, scheduler or settings.
#[derive(Clone, Debug, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default)]
pub struct RunSpec {
    /// A workload: a name (`slice:16`), several joined by `+`, or a file: TOML, or JSON of rt-app. `workload list`
    /// names them
    pub workload: String,
    /// Where it runs.
    #[command(flatten)]
    #[serde(flatten)]
    pub target: TargetSpec,
    /// What schedules it.
    #[command(flatten)]
    #[serde(flatten)]
    pub scheduler: SchedulerSpec,
    /// What is shown and required of its variables.
    #[command(flatten)]
    #[serde(flatten)]
    pub variables: VariablesSpec,
    /// The machine.
    #[command(flatten)]
    #[serde(flatten)]
    pub machine: MachineSpec,
    /// What its locks are.
    #[command(flatten)]
    #[serde(flatten)]
    pub locks: LocksSpec,
}
