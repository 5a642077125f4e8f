//! The settings of a profile: on every machine, on some of them (`[when.WORD]`), or with an option (`[options.NAME.VALUE]`).

use std::collections::BTreeMap;

use serde::Deserialize;

use super::assignment::ProfileValue;
use super::steps::Step;

/// The settings of a profile or of a part of it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProfileSettings {
    #[serde(default)]
    pub(super) set: BTreeMap<String, ProfileValue>,
    #[serde(default)]
    pub(super) resize: BTreeMap<String, ProfileValue>,
    #[serde(default)]
    pub(super) ops: BTreeMap<String, ProfileValue>,
    #[serde(default)]
    pub(super) maps: BTreeMap<String, BTreeMap<String, ProfileValue>>,
    #[serde(default)]
    pub(super) run: ProfilePrograms,
}

/// Programs of the object that its loader runs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProfilePrograms {
    #[serde(default)]
    pub(super) before: Vec<Step>,
    /// The structure of a task's context, where the object has the arena library of the scx project.
    pub(super) arena_library: Option<String>,
    #[serde(default)]
    pub(super) after: Vec<Step>,
    #[serde(default)]
    pub(super) each_second: Vec<Step>,
    /// Programs to attach to the events of their sections, which begin with `?`.
    #[serde(default)]
    pub(super) attach: Vec<String>,
    /// Programs not to attach.
    #[serde(default)]
    pub(super) detach: Vec<String>,
}

impl ProfileSettings {
    /// Adds what another part sets: its values replace those of the same name, its programs run after those of this
    /// one.
    pub(super) fn add(&mut self, other: &ProfileSettings) {
        let ProfileSettings { set, resize, ops, maps, run } = other.clone();
        self.set.extend(set);
        self.resize.extend(resize);
        self.ops.extend(ops);
        for (map, elements) in maps {
            self.maps.entry(map).or_default().extend(elements);
        }
        self.run.before.extend(run.before);
        self.run.after.extend(run.after);
        self.run.each_second.extend(run.each_second);
        self.run.attach.extend(run.attach);
        self.run.detach.extend(run.detach);
        self.run.arena_library = run.arena_library.or(self.run.arena_library.take());
    }

    /// The names of what it sets, with the value where that is one.
    pub(super) fn names(&self) -> Vec<String> {
        let assigned = |(name, value): (&String, &ProfileValue)| match value.text() {
            Some(value) => format!("{name}={value}"),
            None => name.clone(),
        };
        let values = self.set.iter().chain(&self.resize).chain(&self.ops).map(assigned);
        let programs = [&self.run.before, &self.run.after, &self.run.each_second];
        let programs = programs.into_iter().flatten().map(|step| format!("{}()", step.0.program));
        let attached = self.run.attach.iter().map(|name| format!("{name} attached"));
        let detached = self.run.detach.iter().map(|name| format!("{name} not attached"));
        let maps = self.maps.keys().cloned();
        values.chain(maps).chain(programs).chain(attached).chain(detached).collect()
    }
}
