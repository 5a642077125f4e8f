//! From what was typed to checked values. After this nobody asks "was it set?".

mod build;
mod ground;
mod machine;
mod profile;
mod recording;
mod scheduler;
mod settings;
mod topology;
mod workload;
mod writes;

pub(crate) use build::compile_scheduler;
pub(crate) use ground::{Ground, OWN_SCHEDULER, is_knob, split_knobs};
pub(crate) use machine::{CPUS_DEFAULT, machine_config};
pub(crate) use profile::{Profile, host_cpus, read_profiles};
pub(crate) use recording::{Recording, read_recording};
pub(crate) use scheduler::{
    Scheduler, SchedulerObject, Sizes, find_object, parameter_sets, split_set,
};
pub(crate) use settings::{Variant, at_settings, one_variant, variants};
pub(crate) use topology::topology_value;
pub(crate) use workload::{find_workload, find_workload_noted, find_workload_with, say};
pub(crate) use writes::{global_writes, resize_writes};

use crate::failure::Failure;

/// A length of time with its unit, ns.
pub(crate) fn parse_time(flag: &str, text: &str) -> Result<u64, Failure> {
    fairground_workload::parse_time(text)
        .map_err(|e| Failure::new(format_args!("{flag}: {}", e.message)).help(e.help))
}
