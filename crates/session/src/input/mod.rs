//! The meaning of single words: schedulers, workloads, targets, topologies, settings, profiles, recordings.

mod assignment;
mod build;
mod host;
mod loaded;
mod loader;
mod map_elements;
mod profile;
mod profile_settings;
mod profiles;
mod published;
mod recording;
mod scheduler;
mod settings;
mod steps;
mod target;
mod topology;
mod unenforced;
mod unusual;
mod version;
mod workload;
mod writes;

pub use build::compile_scheduler;
pub use host::host_topology;
pub use loaded::find_object;
pub use loader::LoaderProgram;
pub(crate) use loader::is_loader;
pub use profile::Profile;
pub use profiles::read_profiles;
pub(crate) use published::is_published;
pub use published::{profile_of, scheduler_store};
pub use recording::{
    Recording, analyse_recording_watched, is_recording, is_workload_file, read_recording,
    read_recording_watched,
};
pub use scheduler::{
    CompileFor, Scheduler, SchedulerObject, Sets, Sizes, parameter_sets, split_set,
};
pub use settings::{Variant, at_settings, one_variant, variants};
pub use target::{OWN_SCHEDULER, Target, is_hotplug, is_knob, split_knobs};
pub use topology::TOPOLOGY_FORMAT;
pub(crate) use topology::{find_topology, topology_table};
pub use version::check_version;
pub use workload::{find_workload, find_workload_noted};
pub use writes::{global_writes, resize_writes};

use crate::failure::Failure;

/// A length of time with its unit (`20ms`), ns.
///
/// # Errors
/// If it is no such length; the message names the option `flag`.
pub fn parse_time(flag: &str, text: &str) -> Result<u64, Failure> {
    fairground_workload::parse_time(text)
        .map_err(|e| Failure::new(format_args!("{flag}: {}", e.message)).help(e.help))
}

/// The same where there may be none.
///
/// # Errors
/// As [`parse_time`].
pub fn parse_time_if(flag: &str, text: Option<&str>) -> Result<Option<u64>, Failure> {
    text.map(|text| parse_time(flag, text)).transpose()
}
