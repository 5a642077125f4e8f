//! `locks`: what the workload's locks are, and one run beside another.

use fairground_session::{LocksChoice, NamedChoice};
use serde::de::{Deserialize, Deserializer, Error};
use toml::Value;

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
        let words = match Value::deserialize(deserializer)? {
            Value::Array(words) => words,
            word => vec![word],
        };
        let mut models = Vec::new();
        for word in words {
            let Value::String(word) = word else {
                return Err(D::Error::custom(format_args!(
                    "invalid type: {} `{word}`, expected `spin`, `rt` or `rt-2006`, or a list of them",
                    word.type_str()
                )));
            };
            let model = LocksChoice::parse(&word).map_err(D::Error::custom)?;
            if models.contains(&model) {
                return Err(D::Error::custom(format_args!("`{word}` stands twice in `locks`")));
            }
            models.push(model);
        }
        match models.is_empty() {
            true => Err(D::Error::custom("`locks` names none")),
            false => Ok(Locks(models)),
        }
    }
}

/// Name of an entry, its locks, and the entry that it is compared with.
pub(super) type Parts<'e> = (&'e mut String, &'e mut Option<Locks>, &'e mut Option<String>);

/// In the place of an entry with a list one for each model, called after it, and each but the first beside the first.
pub(super) fn each_model<E: Clone>(entries: Vec<E>, parts: fn(&mut E) -> Parts<'_>) -> Vec<E> {
    let mut each = Vec::new();
    for mut entry in entries {
        let models = parts(&mut entry).1.as_ref().map_or(&[][..], |locks| &locks.0).to_vec();
        let first = match models.as_slice() {
            [first, _, ..] => *first,
            _ => {
                each.push(entry);
                continue;
            }
        };
        for model in models {
            let mut own = entry.clone();
            let (name, locks, against) = parts(&mut own);
            if model != first {
                *against = Some(format!("{name}, {}", first.word()));
            }
            *name = format!("{name}, {}", model.word());
            *locks = Some(Locks(vec![model]));
            each.push(own);
        }
    }
    each
}
