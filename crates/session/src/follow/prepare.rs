//! What follows a recording, from words.

use fairground_machine::{MachineConfig, Setting};

use super::{FollowPlan, Followed};
use crate::failure::Failure;
use crate::input::{Recording, Scheduler, one_variant, read_profiles};
use crate::replay::recorded_machine;
use crate::simulate::Watch;
use crate::spec::RunSpec;

/// The options of a run that mean something to a scheduler on a recorded timeline.
const OPTIONS: [&str; 8] =
    ["sched", "set", "profile", "topology", "hz", "seed", "engine", "null_loads"];

/// A scheduler and the machine of a recording, from words.
#[derive(Debug)]
pub struct Follow {
    scheduler: Scheduler,
    settings: Vec<Setting>,
    machine: MachineConfig,
}

impl Follow {
    /// The scheduler of a spec, on the machine of the recording; what the spec states of the machine comes before what
    /// was recorded.
    ///
    /// # Errors
    /// If a word means nothing, or nothing to a recording; if the scheduler cannot be used, or the machine has fewer
    /// CPUs than were recorded.
    pub fn of(spec: &RunSpec, recording: &Recording) -> Result<Follow, Failure> {
        let stated = spec.stated();
        if let Some(name) = stated.keys().find(|name| !OPTIONS.contains(&name.as_str())) {
            let flag = name.replace('_', "-");
            return Err(Failure::new(format_args!("--{flag} means nothing to `follow`"))
                .help(format_args!("a recording has its own; it takes {}", OPTIONS.join(", "))));
        }
        let [sched] = spec.scheduler.sched.as_slice() else {
            return Err(Failure::new("`follow` takes one scheduler").help("name it: --sched eevdf"));
        };
        let recorded = recorded_machine(&spec.machine, &recording.trace);
        let machine = RunSpec { machine: recorded, ..spec.clone() }.simulated_machine()?;
        if machine.cpus() < recording.trace.cpus {
            return Err(Failure::new(format_args!(
                "--topology has {} CPUs, and {} has {}",
                machine.cpus(),
                recording.name,
                recording.trace.cpus
            ))
            .help("give the recorded machine's topology"));
        }
        let profiles = read_profiles(&spec.scheduler.profile, &[sched])?;
        let profile = profiles.iter().find(|profile| profile.is_for(sched));
        let settings = one_variant(&spec.scheduler.set)?.settings;
        if let Some(profile) = profile {
            profile.check(sched, &settings)?;
        }
        let profile = profile.map(|profile| (profile, &machine.topology));
        let scheduler = Scheduler::load(sched, profile, (&spec.scheduler).into())?;
        Ok(Follow { scheduler, settings, machine })
    }

    /// Follows the recording.
    ///
    /// # Errors
    /// As [`FollowPlan::run`].
    pub fn run(self, recording: &Recording, watch: &dyn Watch) -> Result<Followed, Failure> {
        let Follow { scheduler, settings, machine } = self;
        FollowPlan { trace: &recording.trace, scheduler: &scheduler, settings, machine }.run(watch)
    }
}
