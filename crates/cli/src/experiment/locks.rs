//! `locks`: what the workload's locks are, and one run beside another.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

use super::sweep::Sweep;
use super::{Figures, file::RunEntry};
use crate::args::LocksArg;
use crate::failure::did_you_mean;

/// `locks = "rt"`, or a list: one run for each.
#[derive(Clone, Debug)]
pub(super) struct Locks(Vec<LocksArg>);

impl Locks {
    /// The one model; `None`: there are several. Of a run's or a sweep's list [`models`] has made one each.
    pub(super) fn one(&self) -> Option<LocksArg> {
        if let [one] = self.0[..] { Some(one) } else { None }
    }
}

impl<'de> Deserialize<'de> for Locks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Words)
    }
}

/// A word or several.
struct Words;

fn model<E: Error>(word: &str) -> Result<LocksArg, E> {
    let words = || LocksArg::ALL.into_iter().map(LocksArg::word);
    LocksArg::ALL.into_iter().find(|known| known.word() == word).ok_or_else(|| {
        let near = did_you_mean(word, words()).map(|near| format!("; did you mean `{near}`?"));
        let all = words().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
        E::custom(format!("there are no locks `{word}`{}: {all}", near.unwrap_or_default()))
    })
}

impl<'de> Visitor<'de> for Words {
    type Value = Locks;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("`spin`, `rt` or `rt-2006`, or a list of them")
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<Locks, E> {
        Ok(Locks(vec![model(word)?]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Locks, A::Error> {
        let mut models = Vec::new();
        while let Some(word) = list.next_element::<String>()? {
            let model = model(&word)?;
            if models.contains(&model) {
                return Err(A::Error::custom(format!("`{word}` stands twice in `locks`")));
            }
            models.push(model);
        }
        if models.is_empty() {
            return Err(A::Error::custom("`locks` names none"));
        }
        Ok(Locks(models))
    }
}

/// The names and models of what is run once for each model of a list, each but the first beside the first; one without a list stays.
fn models(name: &str, locks: &Locks) -> Vec<(String, Locks, Option<String>)> {
    let called = |model: LocksArg| format!("{name}, {}", model.word());
    let beside = |index: usize| (index > 0).then(|| called(locks.0[0]));
    let each = locks.0.iter().enumerate();
    each.map(|(index, model)| (called(*model), Locks(vec![*model]), beside(index))).collect()
}

/// A run for each model of its list.
pub(super) fn runs(entries: Vec<RunEntry>) -> Vec<RunEntry> {
    let each = entries.into_iter().flat_map(|entry| match &entry.locks {
        Some(locks) if locks.0.len() > 1 => {
            let named = models(&entry.name, locks).into_iter().map(|(name, locks, beside)| {
                let mut own = entry.clone();
                (own.name, own.locks) = (name, Some(locks));
                own.against = beside.or(own.against);
                own
            });
            named.collect()
        }
        _ => vec![entry],
    });
    each.collect()
}

/// A sweep for each model of its list.
pub(super) fn sweeps(sweeps: Vec<Sweep>) -> Vec<Sweep> {
    let each = sweeps.into_iter().flat_map(|sweep| match &sweep.locks {
        Some(locks) if locks.0.len() > 1 => {
            let named = models(&sweep.name, locks).into_iter().map(|(name, locks, beside)| {
                let mut own = sweep.clone();
                (own.name, own.locks) = (name, Some(locks));
                own.against = beside.or(own.against);
                own
            });
            named.collect()
        }
        _ => vec![sweep],
    });
    each.collect()
}

impl Figures {
    /// Enters by how many % each figure differs from another column's: `change.METRIC`.
    pub(crate) fn compare(&mut self, base: &Figures) {
        for (metric, percent) in self.changes(base) {
            self.insert(&format!("change.{metric}"), &[percent]);
        }
    }
}
