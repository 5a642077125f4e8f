//! Schedulers of the catalogue, by name.

use fairground_catalogue::{ENTRIES, Store};
use fairground_realkernel::catalogue::Cache;

use super::{Profile, split_set};
use crate::failure::Failure;

/// The cache of built schedulers.
pub fn scheduler_store() -> Result<Store, Failure> {
    let cache = Cache::open().map_err(Failure::new)?;
    Ok(Store::at(cache.root().join("schedulers")))
}

/// The object file of `NAME` or `NAME@VERSION`; `None` if that is no scheduler of the catalogue.
pub(super) fn object_of(spec: &str) -> Option<Result<String, Failure>> {
    let (name, version) = split_set(spec);
    ENTRIES.iter().find(|entry| entry.name == name)?;
    Some(scheduler_store().and_then(|store| {
        let built = store.cached(name, version).map_err(Failure::new)?;
        Ok(built.object.display().to_string())
    }))
}

/// What the loader of `NAME` or `NAME@VERSION` would set, as its entry says; `None` if that is no scheduler of the
/// catalogue.
pub(super) fn profile_of(spec: &str) -> Option<Result<Profile, Failure>> {
    let entry = ENTRIES.iter().find(|entry| entry.name == split_set(spec).0)?;
    Some(Profile::of_text(format!("catalogue/{}.toml", entry.name).into(), &entry.profile()))
}
