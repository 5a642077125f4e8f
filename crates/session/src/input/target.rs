//! `--on`: where a workload runs.

use std::fmt;

use fairground_machine::Setting;
use fairground_realkernel::job::Knob;
use fairground_realkernel::packages;

use crate::failure::Failure;

/// Where a workload runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The simulated machine.
    Sim,
    /// The kernel of this machine.
    Host,
    /// a kernel in a virtual machine, by its name; empty when `--kernel` names a file.
    Vm(String),
}

/// The name of a kernel's own scheduler for `--sched`.
pub const OWN_SCHEDULER: &str = "kernel";
/// The start of a setting of a real kernel itself.
const KNOB_PREFIX: &str = "kernel.";

impl Target {
    /// Reads `sim`, `host`, `vm:KERNEL`, or `vm`.
    pub fn parse(text: &str) -> Result<Target, Failure> {
        match text.split_once(':') {
            None if text == "sim" => Ok(Target::Sim),
            None if text == "host" => Ok(Target::Host),
            None if text == "vm" => Ok(Target::Vm(String::new())),
            Some(("vm", kernel)) if !kernel.is_empty() => Ok(Target::Vm(kernel.to_owned())),
            _ => Err(Failure::new(format_args!("--on: there is no target `{text}`")).help(
                "give `sim`, `host`, or `vm:KERNEL`; `fairground kernels list` names the kernels",
            )),
        }
    }

    /// Whether a real kernel schedules there.
    pub fn is_real(&self) -> bool {
        *self != Target::Sim
    }

    /// Whether its kernel has sched_ext; true where that is not known before the boot.
    pub fn takes_schedulers(&self) -> bool {
        match self {
            Target::Vm(kernel) => packages::takes_schedulers(kernel).unwrap_or(true),
            Target::Sim | Target::Host => true,
        }
    }

    /// The preset of costs that was measured on its kernel, or on the nearest one, where a guest's clock counts
    /// instructions. `None`: no preset is of that machine.
    pub fn cost_preset(&self) -> Option<&'static str> {
        match self {
            Target::Vm(kernel) if kernel == "6.1" || kernel.starts_with("6.1-") => {
                Some("linux-6.1")
            }
            Target::Vm(_) if self.takes_schedulers() => Some("linux-7.2-scx"),
            Target::Vm(_) => Some("linux-7.2"),
            Target::Sim | Target::Host => None,
        }
    }

    /// The schedulers that run there when none is named.
    pub fn default_scheduler(&self) -> &'static str {
        if self.is_real() { OWN_SCHEDULER } else { "cfs" }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Sim => f.write_str("sim"),
            Target::Host => f.write_str("host"),
            Target::Vm(kernel) if kernel.is_empty() => f.write_str("vm"),
            Target::Vm(kernel) => write!(f, "vm:{kernel}"),
        }
    }
}

/// Whether a setting takes a CPU offline or brings it back (`cpu.N.online`), which every target can do.
pub fn is_hotplug(name: &str) -> bool {
    let cpu = name.strip_prefix("cpu.").and_then(|rest| rest.strip_suffix(".online"));
    cpu.is_some_and(|cpu| cpu.starts_with(|first: char| first.is_ascii_digit()))
}

/// Whether a setting is one of a real kernel itself.
pub fn is_knob(name: &str) -> bool {
    name.starts_with(KNOB_PREFIX)
}

/// Takes the settings of a real kernel itself (`kernel.NAME`, `cpu.N.online`) from those of a scheduler.
pub fn split_knobs(settings: Vec<Setting>) -> (Vec<Setting>, Vec<Knob>) {
    let (knobs, settings): (Vec<_>, Vec<_>) =
        settings.into_iter().partition(|s| is_knob(&s.name) || is_hotplug(&s.name));
    let knobs = knobs.into_iter().map(|setting| Knob {
        name: setting.name.strip_prefix(KNOB_PREFIX).unwrap_or(&setting.name).to_owned(),
        value: setting.value,
        at_ns: setting.at_ns,
    });
    (settings, knobs.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_read_as_it_is_written() {
        for text in ["sim", "host", "vm", "vm:6.1", "vm:7.2-rt"] {
            assert_eq!(Target::parse(text).expect(text).to_string(), text);
        }
        for text in ["", "vm:", "simulation", "host:1", "6.1"] {
            assert!(Target::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn costs_are_those_of_a_guests_kernel() {
        let preset = |text| Target::parse(text).expect(text).cost_preset();
        assert_eq!(preset("vm:6.1"), Some("linux-6.1"));
        assert_eq!(preset("vm:6.12"), Some("linux-7.2"));
        for text in ["vm:7.2", "vm:newest-rt", "vm"] {
            assert_eq!(preset(text), Some("linux-7.2-scx"), "{text}");
        }
        assert_eq!((preset("sim"), preset("host")), (None, None));
    }

    #[test]
    fn settings_of_the_kernel_are_told_apart() {
        let settings = vec![Setting::initial("a", "1"), Setting::at(5, "kernel.LAST_BUDDY", "off")];
        let (settings, knobs) = split_knobs(settings);
        assert_eq!(settings, [Setting::initial("a", "1")]);
        assert_eq!(
            knobs,
            [Knob { name: "LAST_BUDDY".to_owned(), value: "off".to_owned(), at_ns: Some(5) }]
        );
        let (settings, knobs) = split_knobs(vec![
            Setting::initial("cpu.x", "1"),
            Setting::at(5, "cpu.12.online", "off"),
        ]);
        assert_eq!(settings, [Setting::initial("cpu.x", "1")]);
        assert_eq!(knobs[0].name, "cpu.12.online");
    }
}
