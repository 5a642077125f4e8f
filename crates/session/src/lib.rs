//! From words to a run and its analysis.
//!
//! What a person writes — `cfs@6.1`, `./mine.bpf.c`, `hogs:3 + sleepers:2`, `2x4x2`, `base_slice_ns=3ms` — becomes checked values, and
//! those become a run in the simulated machine. Whoever offers runs to people, on a command line or in a program, does it with this
//! crate, so that the same words mean the same run and a mistake gets the same answer ([`Failure`]).
//!
//! ```
//! use fairground_session::{MachineSpec, Plan, Scheduler, Unwatched, find_workload, machine_config};
//!
//! let workload = find_workload("hogs:3")?;
//! let scheduler = Scheduler::load("cfs@6.1", None, Default::default())?;
//! let machine = machine_config(&MachineSpec { cpus: Some(2), ..MachineSpec::default() })?;
//! let outcome = Plan::new(&scheduler, &workload, machine, 100_000_000).run(&Unwatched)?;
//! assert_eq!(outcome.analysis.tasks.len(), 3);
//! # Ok::<(), fairground_session::Failure>(())
//! ```
//!
//! It knows no flags, prints nothing and draws nothing. Real kernels need more than this crate has ([`Outcome`] is what they leave, too).

mod failure;
mod input;
mod outcome;
mod replay;
mod samples;
mod simulate;

pub use failure::{Failure, did_you_mean};
pub use input::{
    COSTS_DEFAULT, CPUS_DEFAULT, Ground, MachineSpec, OWN_SCHEDULER, Profile, Recording,
    SEED_DEFAULT, Scheduler, SchedulerObject, Sets, Sizes, TOPOLOGY_FORMAT, Variant,
    analyse_recording_watched, at_settings, check_version, compile_scheduler, duration_ns,
    find_object, find_workload, find_workload_noted, global_writes, host_cpus, is_knob, lock_model,
    machine_config, one_variant, parameter_sets, parse_time, read_profiles, read_recording,
    read_recording_watched, resize_writes, split_knobs, split_set, topology_value, variants,
};
pub use outcome::{Outcome, Told};
pub use replay::replay_workload;
pub use samples::TaskNumbers;
pub use simulate::{CHUNK_NS, Plan, Unwatched, Watch};
