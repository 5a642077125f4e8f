//! Finds out by trying what a machine can do with fairground.
//!
//! An [`Ability`] is a function of fairground that depends on the machine. It requires checks, and each [`Check`]
//! tests one property of a [`World`]: this machine, or one that a test made. A new ability is a line of [`ABILITIES`];
//! a new check is a function of `checks`.

mod abilities;
mod checks;
mod packages;
#[cfg(test)]
mod tests;
mod world;

pub(crate) use abilities::{ABILITIES, Ability};
pub(crate) use world::World;

use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Readiness {
    /// It was tried, and works.
    Ready,
    /// It could not be tried.
    NotMeasured,
    /// It does not work.
    Missing,
}

impl Readiness {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Readiness::Ready => "ready",
            Readiness::NotMeasured => "not measured",
            Readiness::Missing => "missing",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) verdict: Readiness,
    /// The part that is there, or why it does not work.
    pub(crate) found: String,
    /// The remedy: a command, or a sentence where no command does it.
    pub(crate) remedy: Option<String>,
}

impl Finding {
    fn ready(found: impl Into<String>) -> Self {
        Self { verdict: Readiness::Ready, found: found.into(), remedy: None }
    }

    fn missing(found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { verdict: Readiness::Missing, found: found.into(), remedy: Some(remedy.into()) }
    }

    fn not_measured(found: impl Into<String>) -> Self {
        Self { verdict: Readiness::NotMeasured, found: found.into(), remedy: None }
    }
}

#[derive(Debug)]
pub(crate) struct Check {
    /// The part that is checked: `clang`, `tracefs`.
    pub(crate) name: &'static str,
    /// Tests one property of a machine.
    test: fn(&World) -> Finding,
    /// Whether it boots a kernel, for which a thorough examination has the time.
    boots: bool,
}

#[derive(Debug)]
pub(crate) struct Examined {
    pub(crate) ability: &'static Ability,
    /// Each check that it needs, by name, in its order.
    pub(crate) findings: Vec<(&'static str, Finding)>,
}

impl Examined {
    /// As bad as the worst of its checks.
    pub(crate) fn verdict(&self) -> Readiness {
        let all = self.findings.iter().map(|(_, finding)| finding.verdict);
        all.max().unwrap_or(Readiness::NotMeasured)
    }
}

/// Runs each check that the abilities require once; calls `say` with its name before.
pub(crate) fn examine(
    world: &World,
    abilities: &[&'static Ability],
    say: &mut dyn FnMut(&str),
) -> Vec<Examined> {
    let mut known: BTreeMap<&str, Finding> = BTreeMap::new();
    let mut run = |check: &'static Check| {
        let finding = known.entry(check.name).or_insert_with(|| {
            say(&format!("checking: {}", check.name));
            (check.test)(world)
        });
        (check.name, finding.clone())
    };
    let needs = |ability: &'static Ability| {
        ability.needs.iter().filter(|check| world.thorough || !check.boots)
    };
    abilities
        .iter()
        .map(|&ability| Examined {
            ability,
            findings: needs(ability).map(|check| run(check)).collect(),
        })
        .collect()
}
