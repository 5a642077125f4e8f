//! One description of a run, in words: the command line, experiment files, the Python module and results are views of
//! it.
//!
//! Its options are rows of one table, `table.rs`. A row is a field here, an option of the command line (`lead_in`:
//! `--lead-in`), a key of an experiment and a keyword of Python. What the words mean is checked in one place,
//! [`RunSpec::resolve`].

mod applies;
mod choices;
mod option;
mod resolve;
mod schema;
mod table;
mod words;

pub use applies::Targets;
pub use choices::{
    EngineChoice, KernelAbiChoice, LocksChoice, NamedChoice, NullLoadsChoice, TimersChoice,
    VmModeChoice,
};
pub use option::{ChoiceWord, Count, Kind, OptionGroup, OptionRow, OptionType};
pub(crate) use resolve::HZ_CHOICES;
pub use resolve::{HZ_DEFAULT, Resolved};
pub use schema::RUN_FORMAT;
pub(crate) use table::ALL_VARIABLES;
pub use table::{
    BUFFER_KIB_DEFAULT, COSTS_DEFAULT, CPUS_DEFAULT, INSTRUCTION_NS_DEFAULT, LocksSpec,
    MachineSpec, RunSpec, SEED_DEFAULT, SchedulerSpec, TargetSpec, TopologySpec, VariablesSpec,
};
pub use words::BadWord;
