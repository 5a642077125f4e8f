//! From words to a run and its analysis.
//!
//! A [`RunSpec`] describes a run in words: `cfs@6.1`, `./mine.bpf.c`, `hogs:3 + sleepers:2`, `2x4x2`,
//! `base_slice_ns=3ms`. It becomes checked values ([`Resolved`]), and those become a run in the simulated machine
//! ([`Plan`]). The command line, experiment files and the Python module share it, so that the same words mean the same
//! run and a mistake gets the same answer ([`Failure`]).
//!
//! ```
//! use fairground_session::{MachineSpec, Plan, RunSpec, Scheduler, Unwatched};
//!
//! let machine = MachineSpec { cpus: Some(2), duration: Some("100ms".to_owned()), ..MachineSpec::default() };
//! let spec = RunSpec { workload: "hogs:3".to_owned(), machine, ..RunSpec::default() };
//! let (workload, _) = spec.find_workload()?;
//! let run = spec.resolve(&workload, false)?;
//! let scheduler = Scheduler::load("cfs@6.1", None, Default::default())?;
//! let outcome = Plan::new(&scheduler, &workload, run.machine, run.duration_ns).run(&Unwatched)?;
//! assert_eq!(outcome.analysis.tasks.len(), 3);
//! # Ok::<(), fairground_session::Failure>(())
//! ```
//!
//! A [`RunPlan`] makes every run of a spec, in the simulated machine and on real kernels: an [`Outcome`] each. The crate
//! prints nothing and draws nothing; a [`Watch`] hears of the progress and may end it.

mod captured;
mod execute;
mod failure;
mod follow;
mod input;
mod origin;
mod outcome;
mod replay;
mod samples;
mod simulate;
mod sources;
mod spec;
mod variables;
mod verdict;

pub use captured::{CapturedDifference, captured_differences, captured_profile, object_within};
pub use execute::{Ran, RunPlan, Simulation, Simulations, one_scheduler};
pub use failure::Failure;
pub use fairground_suggest::did_you_mean;
pub use follow::{
    Agreement, CandidateState, Choice, DecidedBy, Decision, Difference, Differences, Follow,
    FollowPlan, Followed, Kind as DifferenceKind,
};
pub use input::{
    CompileFor, LoaderProgram, OWN_SCHEDULER, Profile, Recording, Scheduler, SchedulerObject, Sets,
    Sizes, TOPOLOGY_FORMAT, Target, Variant, analyse_recording_watched, at_settings, check_version,
    compile_scheduler, find_object, find_workload, find_workload_noted, global_writes,
    host_topology, is_hotplug, is_knob, is_recording, is_workload_file, one_variant,
    parameter_sets, parse_time, parse_time_if, profile_of, read_profiles, read_recording,
    read_recording_watched, resize_writes, scheduler_store, split_knobs, split_set, variants,
};
pub use origin::kernel_origin;
pub use outcome::{Outcome, TargetReport};
pub use replay::{
    Charges, Closeness, Near, OwnScheduler, Replay, nearness, recorded_machine, replay_workload,
    without_pid, worst,
};
pub use samples::TaskNumbers;
pub use simulate::{CHUNK_NS, Plan, Unwatched, Watch};
pub use sources::{Source, sources};
pub use spec::{
    BUFFER_KIB_DEFAULT, BadWord, COSTS_DEFAULT, CPUS_DEFAULT, ChoiceWord, Count, EngineChoice,
    HZ_DEFAULT, INSTRUCTION_NS_DEFAULT, KernelAbiChoice, Kind, LocksChoice, LocksSpec, MachineSpec,
    NamedChoice, NullLoadsChoice, OptionGroup, OptionRow, OptionType, RUN_FORMAT, Resolved,
    RunSpec, SEED_DEFAULT, SchedulerSpec, TargetSpec, Targets, TimersChoice, TopologySpec,
    VariablesSpec, VmModeChoice,
};
pub use variables::Variables;
pub use verdict::{
    EXIT_EJECTED, EXIT_LEFT, EXIT_STALLED, Severity, Verdict, ended, exit_code, never_ran,
    never_ran_tasks,
};
