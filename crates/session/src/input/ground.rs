//! `--on`: where a workload runs.

use std::fmt;

use fairground_machine::Setting;
use fairground_realkernel::catalogue;
use fairground_realkernel::job::Knob;

use crate::failure::Failure;

/// A ground.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ground {
    /// The simulated machine.
    Sim,
    /// The kernel of this machine.
    Host,
    /// A kernel in a virtual machine, by its name in the catalogue; empty when `--kernel` names a file.
    Vm(String),
}

/// What `--sched` calls a kernel's own scheduler.
pub const OWN_SCHEDULER: &str = "kernel";
/// What a setting of a real kernel itself starts with.
const KNOB_PREFIX: &str = "kernel.";

impl Ground {
    /// Reads `sim`, `host`, `vm:KERNEL`, or `vm`.
    pub fn parse(text: &str) -> Result<Ground, Failure> {
        match text.split_once(':') {
            None if text == "sim" => Ok(Ground::Sim),
            None if text == "host" => Ok(Ground::Host),
            None if text == "vm" => Ok(Ground::Vm(String::new())),
            Some(("vm", kernel)) if !kernel.is_empty() => Ok(Ground::Vm(kernel.to_owned())),
            _ => Err(Failure::new(format_args!("--on: there is no ground `{text}`")).help(
                "give `sim`, `host`, or `vm:KERNEL`; `fairground kernels list` names the kernels",
            )),
        }
    }

    /// Whether a real kernel schedules there.
    pub fn is_real(&self) -> bool {
        *self != Ground::Sim
    }

    /// Whether it takes a scheduler of sched_ext, as far as can be told before.
    pub fn takes_schedulers(&self) -> bool {
        match self {
            Ground::Vm(kernel) => catalogue::takes_schedulers(kernel).unwrap_or(true),
            Ground::Sim | Ground::Host => true,
        }
    }

    /// The schedulers that run there when none is named.
    pub fn default_scheduler(&self) -> &'static str {
        if self.is_real() { OWN_SCHEDULER } else { "cfs" }
    }
}

impl fmt::Display for Ground {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ground::Sim => f.write_str("sim"),
            Ground::Host => f.write_str("host"),
            Ground::Vm(kernel) if kernel.is_empty() => f.write_str("vm"),
            Ground::Vm(kernel) => write!(f, "vm:{kernel}"),
        }
    }
}

/// Whether a setting is one of a real kernel itself.
pub fn is_knob(name: &str) -> bool {
    name.starts_with(KNOB_PREFIX)
}

/// Takes the settings of a real kernel itself (`kernel.NAME`) from those of a scheduler.
pub fn split_knobs(settings: Vec<Setting>) -> (Vec<Setting>, Vec<Knob>) {
    let (knobs, settings): (Vec<_>, Vec<_>) =
        settings.into_iter().partition(|setting| is_knob(&setting.name));
    let knobs = knobs.into_iter().map(|setting| Knob {
        name: setting.name[KNOB_PREFIX.len()..].to_owned(),
        value: setting.value,
        at_ns: setting.at_ns,
    });
    (settings, knobs.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ground_is_read_as_it_is_written() {
        for text in ["sim", "host", "vm", "vm:6.1", "vm:7.2-rt"] {
            assert_eq!(Ground::parse(text).expect(text).to_string(), text);
        }
        for text in ["", "vm:", "simulation", "host:1", "6.1"] {
            assert!(Ground::parse(text).is_err(), "{text}");
        }
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
    }
}
