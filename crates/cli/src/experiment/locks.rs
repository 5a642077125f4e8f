//! `locks`: what the workload's locks are, and one run beside another.

use std::fmt;

use fairground_session::LocksChoice;
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

use super::sweep::Sweep;
use super::{Figures, file::RunEntry};

/// `locks = "rt"`, or a list: one run for each.
#[derive(Clone, Debug)]
pub(super) struct Locks(Vec<LocksChoice>);

impl Locks {
    /// The one model; `None`: there are several. Of a run's or a sweep's list [`each_model`] has made one each.
    pub(super) fn one(&self) -> Option<LocksChoice> {
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

fn model<E: Error>(word: &str) -> Result<LocksChoice, E> {
    LocksChoice::parse(word).map_err(E::custom)
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

/// A run for each model of its list.
pub(super) fn runs(entries: Vec<RunEntry>) -> Vec<RunEntry> {
    each_model(entries, |run| (&mut run.name, &mut run.locks, &mut run.against))
}

/// A sweep for each model of its list.
pub(super) fn sweeps(sweeps: Vec<Sweep>) -> Vec<Sweep> {
    each_model(sweeps, |sweep| (&mut sweep.name, &mut sweep.locks, &mut sweep.against))
}

/// What an entry is called, its locks, and which other one it is held against.
type Parts<'e> = (&'e mut String, &'e mut Option<Locks>, &'e mut Option<String>);

/// In the place of an entry with a list one for each model, called after it, and each but the first beside the first.
fn each_model<E: Clone>(entries: Vec<E>, parts: fn(&mut E) -> Parts<'_>) -> Vec<E> {
    let mut each = Vec::new();
    for mut entry in entries {
        let models = parts(&mut entry).1.as_ref().map_or(&[][..], |locks| &locks.0).to_vec();
        if models.len() < 2 {
            each.push(entry);
            continue;
        }
        for model in &models {
            let mut own = entry.clone();
            let (name, locks, against) = parts(&mut own);
            if model != &models[0] {
                *against = Some(format!("{name}, {}", models[0].word()));
            }
            *name = format!("{name}, {}", model.word());
            *locks = Some(Locks(vec![*model]));
            each.push(own);
        }
    }
    each
}

impl Figures {
    /// Enters by how many % each figure differs from another column's: `change.METRIC`.
    pub(crate) fn compare(&mut self, base: &Figures) {
        for (metric, percent) in self.changes(base) {
            self.insert(&format!("change.{metric}"), &[percent]);
        }
    }
}
