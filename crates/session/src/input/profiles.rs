//! The profiles of the schedulers that are run.

use std::path::PathBuf;

use super::profile::Profile;
use super::published::{profile_of, without_options};
use crate::failure::Failure;

/// Reads the profiles that were named, and checks that each is for one of the schedulers. A published scheduler without
/// one has that of its entry.
pub fn read_profiles(paths: &[PathBuf], specs: &[&str]) -> Result<Vec<Profile>, Failure> {
    let mut profiles: Vec<Profile> = Vec::with_capacity(paths.len());
    for path in paths {
        let profile = Profile::read(path)?;
        let (shown, object) = (path.display(), profile.object());
        if !specs.iter().any(|spec| profile.is_for(spec)) {
            return Err(Failure::new(format_args!(
                "{shown} is for `{object}`, and no such object is run"
            ))
            .help(format_args!("add `--sched PATH/{object}.bpf.o`, or leave the profile out")));
        }
        let with_options = |spec: &&&str| profile.is_for(spec) && without_options(spec) != **spec;
        if let Some(spec) = specs.iter().find(with_options) {
            return Err(Failure::new(format_args!(
                "{spec} has options of its entry, and {shown} stands in place of the entry"
            ))
            .help("leave the options out, or the profile"));
        }
        if let Some(other) = profiles.iter().find(|other| other.object() == object) {
            let other = other.path().display();
            return Err(Failure::new(format_args!("{other} and {shown} are both for `{object}`"))
                .help("give one profile for each object"));
        }
        profiles.push(profile);
    }
    for spec in specs {
        if profiles.iter().all(|profile| !profile.is_for(spec)) {
            profiles.extend(profile_of(spec).transpose()?);
        }
    }
    Ok(profiles)
}
