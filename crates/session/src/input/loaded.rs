//! The scheduler objects that this process has read. Runs of the same object share what is read and compiled of it: a
//! sweep of short runs would otherwise spend most of its time with compiling.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use fairground_bpf::Object;
use fairground_machine::{Policy, PolicyError};
use fairground_realkernel::files::{OBJECT_BYTES_MAX, read_file};
use fairground_suggest::did_you_mean;

use super::build::{SOURCE_END, bytes_of_source};
use super::published::object_of;
use super::scheduler::CompileFor;
use super::split_set;
use crate::failure::Failure;

/// Objects that are kept for further runs; beyond, the one that was used longest ago is dropped.
const KEPT_MAX: usize = 16;

static KEPT: Mutex<Vec<Arc<Loaded>>> = Mutex::new(Vec::new());

/// An object, read, and what it was compiled to.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) object: Arc<Object>,
    /// The bytes that a kernel loads.
    pub(super) bytes: Arc<[u8]>,
    policies: Mutex<Vec<(CompileFor, Policy)>>,
}

impl Loaded {
    /// Its policy for an engine and a kernel, as [`Policy::load_for`].
    pub(super) fn policy(&self, target: CompileFor) -> Result<Policy, PolicyError> {
        // A panic with the lock held leaves the list as it was.
        let mut policies = self.policies.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, policy)) = policies.iter().find(|(of, _)| *of == target) {
            return Ok(policy.clone());
        }
        let policy = Policy::load_for(&self.object, target.engine, target.abi)?;
        policies.push((target, policy.clone()));
        Ok(policy)
    }

    /// Takes the object of this name and these bytes from those that are kept, or reads it.
    fn of(name: &str, bytes: &[u8]) -> Result<Arc<Loaded>, Failure> {
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        // Errors contain the name.
        let is_it = |of: &Arc<Loaded>| of.object.name() == name && *of.bytes == *bytes;
        let loaded = match kept.iter().position(is_it) {
            Some(at) => kept.remove(at),
            None => {
                let object = Arc::new(Object::parse(name, bytes).map_err(Failure::new)?);
                Arc::new(Loaded { object, bytes: bytes.into(), policies: Mutex::default() })
            }
        };
        if kept.len() >= KEPT_MAX {
            kept.remove(0);
        }
        kept.push(Arc::clone(&loaded));
        Ok(loaded)
    }
}

/// The object of a scheduler: one that comes with fairground, an object file, or a source that is compiled now.
pub fn find_object(name: &str) -> Result<Arc<Object>, Failure> {
    read(name).map(|loaded| Arc::clone(&loaded.object))
}

/// The object of `NAME`, `NAME@SET` or a file, or of a published scheduler as `NAME` or `NAME@VERSION`; and the
/// parameter set that is named.
pub(super) fn read_spec(spec: &str) -> Result<(Arc<Loaded>, Option<&str>), Failure> {
    if let Some(path) = object_of(spec) {
        return Ok((read(&path?)?, None));
    }
    let (name, set) = split_set(spec);
    Ok((read(name)?, set))
}

/// The same, with its bytes and what was compiled of it.
pub(super) fn read(name: &str) -> Result<Arc<Loaded>, Failure> {
    if let Some(policy) = fairground_policies::get(name) {
        return Loaded::of(&format!("{name}.bpf.o"), policy.object);
    }
    let is_file_name = name.contains('/') || name.ends_with(".o") || name.ends_with(SOURCE_END);
    if !is_file_name && !Path::new(name).is_file() {
        let names = fairground_policies::all().iter().map(|p| p.name);
        let names = names.chain(fairground_catalogue::ENTRIES.iter().map(|entry| entry.name));
        let help = match did_you_mean(name, names) {
            Some(near) => format!(
                "did you mean `{near}`? `fairground sched list` names them; a file is given as ./{name}"
            ),
            None => format!("`fairground sched list` names them; a file is given as ./{name}"),
        };
        return Err(Failure::new(format_args!("there is no scheduler `{name}`")).help(help));
    }
    if name.ends_with(SOURCE_END) {
        return Loaded::of(name, &bytes_of_source(name)?);
    }
    Loaded::of(name, &read_file(name, OBJECT_BYTES_MAX).map_err(|e| Failure::io(name, &e))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_share_an_object_and_no_more_are_kept_than_the_limit() {
        let [first, again] = [(); 2].map(|()| read("sd").expect("sd comes with fairground"));
        assert!(Arc::ptr_eq(&first, &again));
        assert!(!Arc::ptr_eq(&first, &read("o1").expect("o1 comes with fairground")));
        let object = fairground_policies::get("fifo").expect("it is there").object;
        for number in 0..3 * KEPT_MAX {
            Loaded::of(&format!("{number}.bpf.o"), object).expect("an object");
        }
        assert!(KEPT.lock().expect("no panic").len() <= KEPT_MAX);
        assert!(!Arc::ptr_eq(&first, &read("sd").expect("sd comes with fairground")));
    }

    #[test]
    fn a_file_that_changed_is_read_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("mine.bpf.o");
        let named = |policy: &str| {
            let object = fairground_policies::get(policy).expect("it is there").object;
            std::fs::write(&path, object).expect("it is written");
            let loaded = read(&path.display().to_string()).expect("an object");
            loaded.policy(CompileFor::default()).expect("a scheduler").name().to_owned()
        };
        assert_eq!([named("sd"), named("o1"), named("sd")], ["sd", "o1", "sd"]);
    }
}
