//! What a run's trace says of its origin ([`Origin`]), so that a recording tells what made it.

use fairground_machine::{MachineConfig, Setting, SleepTimers};
use fairground_realkernel::job::KernelInfo;
use fairground_trace::{Origin, OriginTarget};

use crate::input::{SchedulerObject, parameter_sets, split_set};

/// The origin of a simulated run of a scheduler with `settings` beyond its parameter set and profile.
pub(crate) fn simulated_origin(
    object: &SchedulerObject,
    settings: &[Setting],
    machine: &MachineConfig,
) -> Origin {
    let timers = match machine.timers {
        SleepTimers::Hrtimer => "hrtimer",
        SleepTimers::Jiffies => "jiffies",
    };
    let changed = machine.cost.changes().map(|(name, value)| (name.to_owned(), value));
    Origin {
        target: Some(OriginTarget::Simulated),
        kernel: None,
        hz: Some(machine.hz),
        timers: Some(timers.to_owned()),
        costs: Some(machine.cost.preset_name().to_owned()),
        cost: changed.collect(),
        topology: Some(machine.topology.to_string()),
        ..with_scheduler(object, settings)
    }
}

/// The origin of a run on a real kernel under a scheduler with `settings` beyond its parameter set and profile, or
/// (without one) under the kernel's own. What the kernel's recording says itself is kept.
pub fn kernel_origin(
    recorded: Origin,
    kernel: &KernelInfo,
    object: Option<(&SchedulerObject, &[Setting])>,
) -> Origin {
    let (scheduler, settings) = match object {
        Some((object, settings)) => {
            let Origin { scheduler, settings, .. } = with_scheduler(object, settings);
            (scheduler, settings)
        }
        None => (Some(crate::OWN_SCHEDULER.to_owned()), Vec::new()),
    };
    Origin {
        target: Some(OriginTarget::Kernel),
        scheduler,
        settings,
        kernel: Some(kernel.release.clone()),
        hz: kernel.hz.or(recorded.hz),
        features: kernel.features.clone(),
        tunables: kernel.tunables.clone(),
        ..recorded
    }
}

/// The scheduler and what was set before the run, without the values that its parameter set stands for.
fn with_scheduler(object: &SchedulerObject, settings: &[Setting]) -> Origin {
    let (_, set) = split_set(&object.label);
    let values = set.map_or(0, |set| parameter_sets(&object.object).get(set).map_or(0, Vec::len));
    let beyond = object.settings.iter().skip(values).chain(settings);
    let initial = beyond.filter(|setting| setting.at_ns.is_none());
    Origin {
        scheduler: Some(object.label.clone()),
        settings: initial.map(|setting| (setting.name.clone(), setting.value.clone())).collect(),
        ..Origin::default()
    }
}
