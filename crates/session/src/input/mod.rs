//! From what was typed to checked values. After this nobody asks "was it set?".

mod build;
mod machine;
mod profile;
mod recording;
mod scheduler;
mod settings;
mod target;
mod topology;
mod version;
mod workload;
mod writes;

pub use build::compile_scheduler;
pub use machine::{COSTS_DEFAULT, CPUS_DEFAULT, MachineSpec, SEED_DEFAULT, machine_config};
pub use profile::{Profile, host_cpus, read_profiles};
pub use recording::{Recording, analyse_recording_watched, read_recording, read_recording_watched};
pub use scheduler::{
    Scheduler, SchedulerObject, Sets, Sizes, find_object, parameter_sets, split_set,
};
pub use settings::{Variant, at_settings, one_variant, variants};
pub use target::{OWN_SCHEDULER, Target, is_knob, split_knobs};
pub use topology::{TOPOLOGY_FORMAT, topology_value};
pub use version::check_version;
pub use workload::{find_workload, find_workload_noted, lock_model};
pub use writes::{global_writes, resize_writes};

use crate::failure::Failure;

/// A length of time with its unit (`20ms`), ns.
///
/// # Errors
/// If it is no such length; `flag` is who the message speaks of.
pub fn parse_time(flag: &str, text: &str) -> Result<u64, Failure> {
    fairground_workload::parse_time(text)
        .map_err(|e| Failure::new(format_args!("{flag}: {}", e.message)).help(e.help))
}

/// The length of a run, ns: the one that is asked for, or else the workload's own.
///
/// # Errors
/// If it is no length, or none at all.
pub fn duration_ns(asked: Option<&str>, default_ns: u64) -> Result<u64, Failure> {
    match asked.map(|text| parse_time("--duration", text)).transpose()? {
        Some(0) => Err(Failure::new("--duration 0 leaves nothing to measure")),
        Some(ns) => Ok(ns),
        None => Ok(default_ns),
    }
}
