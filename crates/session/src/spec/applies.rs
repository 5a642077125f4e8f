//! The targets on which an option has an effect, and the refusal of one that has none.

use super::RunSpec;
use super::option::{OptionGroup, OptionRow};
use crate::failure::Failure;
use crate::input::Target;

/// A set of kinds of targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Targets(u8);

impl Targets {
    /// The simulated machine.
    pub const SIM: Targets = Targets(1);
    /// Kernels in virtual machines.
    pub const VM: Targets = Targets(2);
    /// This machine's kernel.
    pub const HOST: Targets = Targets(4);
    /// Every real kernel.
    pub const REAL: Targets = Targets::VM.and(Targets::HOST);
    /// Every target.
    pub const EVERYWHERE: Targets = Targets::SIM.and(Targets::REAL);

    /// Those of both sets.
    pub const fn and(self, other: Targets) -> Targets {
        Targets(self.0 | other.0)
    }

    /// Whether a target is one of them.
    pub fn have(self, target: &Target) -> bool {
        let kind = match target {
            Target::Sim => Targets::SIM,
            Target::Vm(_) => Targets::VM,
            Target::Host => Targets::HOST,
        };
        self.0 & kind.0 != 0
    }

    /// The words for each kind, as `--on` takes them: `sim`, `vm`, `host`.
    pub fn words(self) -> Vec<&'static str> {
        let all = [(Targets::SIM, "sim"), (Targets::VM, "vm"), (Targets::HOST, "host")];
        all.into_iter().filter(|(kind, _)| self.0 & kind.0 != 0).map(|(_, word)| word).collect()
    }

    /// The targets in a sentence, and one of them as `--on` takes it.
    fn described(self) -> (&'static str, &'static str) {
        match self {
            Targets::SIM => ("the simulator", "sim"),
            Targets::VM => ("virtual machines", "vm:newest"),
            Targets::HOST => ("this machine's kernel", "host"),
            Targets::REAL => ("real kernels", "vm:newest"),
            _ => ("the simulator and virtual machines", "sim"),
        }
    }
}

/// Refuses an option, by its name in files, that has no effect on any target of a run.
///
/// # Errors
/// With the option, the targets, and what to do.
pub(super) fn check_effect(
    name: &str,
    applies: Targets,
    instead: Option<&str>,
    targets: &[Target],
) -> Result<(), Failure> {
    if targets.iter().any(|target| applies.have(target)) {
        return Ok(());
    }
    Err(refused(name, applies, instead, targets))
}

fn refused(name: &str, applies: Targets, instead: Option<&str>, targets: &[Target]) -> Failure {
    let flag = format!("--{}", name.replace('_', "-"));
    let (only, add) = applies.described();
    let on: Vec<String> = targets.iter().map(Target::to_string).collect();
    let instead = instead.map(|instead| format!("; {instead}")).unwrap_or_default();
    Failure::new(format_args!("{flag} applies to {only} only, and the run is on {}", on.join(", ")))
        .help(format_args!("leave {flag} out, or add `{add}` to --on{instead}"))
}

impl RunSpec {
    /// Refuses options that have no effect on the targets, or without another option.
    pub(super) fn check_effects(&self, targets: &[Target]) -> Result<(), Failure> {
        let stated = self.stated();
        for row in RunSpec::options().filter(|row| stated.contains_key(row.name)) {
            let flag = row.long().unwrap_or(row.name);
            let everywhere = targets.iter().all(|target| row.targets.have(target));
            if row.exclusive && !everywhere {
                return Err(refused(flag, row.targets, row.instead, targets));
            }
            check_effect(flag, row.targets, row.instead, targets)?;
            let long = |name: &str| long_of(name).unwrap_or_default();
            if let Some(other) = row.requires.filter(|other| !stated.contains_key(*other)) {
                let other = long(other);
                return Err(Failure::new(format_args!("--{flag} means nothing without --{other}"))
                    .help(format_args!("add --{other}, or leave --{flag} out")));
            }
            if let Some(other) = row.conflicts.filter(|other| stated.contains_key(*other)) {
                let other = long(other);
                return Err(Failure::new(format_args!(
                    "--{flag} and --{other} exclude each other"
                ))
                .help("leave one of them out"));
            }
        }
        Ok(())
    }

    /// The same run without the options that have no effect on its targets, as files state them for all of their runs.
    /// What it `keeps`, by name in files, [`RunSpec::resolve`] refuses.
    ///
    /// # Errors
    /// If a target is none.
    pub fn for_its_targets(self, keeps: impl Fn(&str) -> bool) -> Result<RunSpec, Failure> {
        let targets = self.targets()?;
        let mut words = self.stated();
        let applies = |row: &OptionRow| match row.exclusive {
            true => targets.iter().all(|target| row.targets.have(target)),
            false => targets.iter().any(|target| row.targets.have(target)),
        };
        let left_out = RunSpec::options().filter(|row| !applies(row) && !keeps(row.name));
        left_out.for_each(|row| drop(words.remove(row.name)));
        RunSpec::from_words(&words).map_err(Failure::new)
    }
}

fn long_of(name: &str) -> Option<&'static str> {
    RunSpec::options().find(|row| row.name == name)?.long()
}
