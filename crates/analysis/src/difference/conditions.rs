//! The conditions under which recordings were made.

use super::Recorded;
use fairground_trace::{Origin, Trace};
use std::collections::BTreeSet;

/// Something that is not the same before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The name of the condition: `scheduler`, `kernel`, `hz`.
    pub what: String,
    /// Its values in the recordings before, with commas.
    pub before: String,
    /// Its values in the recordings after.
    pub after: String,
}

/// A fact of a recording; `None` where it does not say.
type Read = fn(&Trace) -> Option<String>;

/// The conditions that are compared, but for named values.
const FACTS: [(&str, Read); 8] = [
    ("scheduler", |trace| trace.origin.scheduler.clone()),
    ("kernel", |trace| trace.origin.kernel.clone()),
    ("cpus", |trace| Some(trace.cpus.to_string())),
    ("topology", |trace| trace.origin.topology.clone()),
    ("hz", |trace| trace.origin.hz.map(|hz| hz.to_string())),
    ("timers", |trace| trace.origin.timers.clone()),
    ("costs", |trace| trace.origin.costs.clone()),
    ("features", |trace| {
        let features = &trace.origin.features;
        (!features.is_empty()).then(|| features.join(" "))
    }),
];

/// The conditions that differ, as far as every recording states them.
pub(super) fn conditions(before: &[Recorded<'_>], after: &[Recorded<'_>]) -> Vec<Condition> {
    let mut found = Vec::new();
    for (what, read) in FACTS {
        let side = |recorded: &[Recorded<'_>]| {
            recorded.iter().map(|one| read(one.trace)).collect::<Option<Vec<_>>>()
        };
        if let (Some(before), Some(after)) = (side(before), side(after)) {
            found.extend(condition(what, before, after));
        }
    }
    for named in [settings, tunables, costs] {
        let names = before.iter().chain(after).flat_map(|one| named(&one.trace.origin));
        let names: BTreeSet<String> = names.map(|(name, _)| name).collect();
        for name in names {
            let value = |one: &Recorded<'_>| {
                let values = named(&one.trace.origin).into_iter().rev();
                let found = values.into_iter().find(|(known, _)| *known == name);
                found.map_or_else(|| "not set".to_owned(), |(_, value)| value)
            };
            let side = |recorded: &[Recorded<'_>]| recorded.iter().map(value).collect();
            found.extend(condition(&name, side(before), side(after)));
        }
    }
    found
}

fn settings(origin: &Origin) -> Vec<(String, String)> {
    origin.settings.clone()
}

fn tunables(origin: &Origin) -> Vec<(String, String)> {
    origin.tunables.clone()
}

fn costs(origin: &Origin) -> Vec<(String, String)> {
    origin.cost.iter().map(|(name, value)| (name.clone(), value.to_string())).collect()
}

fn condition(what: &str, before: Vec<String>, after: Vec<String>) -> Option<Condition> {
    let [before, after] = [before, after].map(BTreeSet::from_iter);
    let joined = |values: BTreeSet<String>| values.into_iter().collect::<Vec<_>>().join(", ");
    (before != after).then(|| Condition {
        what: what.to_owned(),
        before: joined(before),
        after: joined(after),
    })
}
