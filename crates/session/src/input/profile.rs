//! Profiles (`--profile`): what an object's own loader sets in it on a real kernel.
//!
//! ```toml
//! object = "scx_central"                 # scx_central.bpf.o
//! required = ["nr_cpu_ids", "slice_ns"]  # must be set: here or with --set
//!
//! [set]                                  # variables, as --set takes them
//! nr_cpu_ids = "cpus"                    # the number of CPUs
//! slice_ns = "20ms"
//!
//! [resize]                               # arrays that stand alone in their section: elements
//! cpu_started_at = "cpus"
//!
//! [ops]                                  # integers of the callback table
//! timeout_ms = 5000
//!
//! [maps.limits]                          # elements of arrays and hash tables by their keys
//! 0 = 7                                  # the whole value: a number, or bytes as [1, 2, 3]
//! 1 = { burst = 5, "inner.depth" = 2 }   # members of it
//!
//! [run]                                  # programs (SEC("syscall"))
//! before = ["prepare"]                   # before the scheduler is attached
//! each_second = ["refresh"]
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use fairground_bpf::Object;
use fairground_machine::{MapContent, Setting, Setup};
use fairground_realkernel::job::{MapWrite, SchedulerSetup};
use serde::Deserialize;

use super::published::profile_of;
use super::split_set;
use crate::failure::{Failure, did_you_mean};

/// A profile file, strict: an unknown key is an error with its line.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    object: String,
    #[serde(default)]
    required: Vec<String>,
    #[serde(default)]
    set: BTreeMap<String, Value>,
    #[serde(default)]
    resize: BTreeMap<String, Value>,
    #[serde(default)]
    ops: BTreeMap<String, Value>,
    #[serde(default)]
    maps: BTreeMap<String, BTreeMap<String, Element>>,
    #[serde(default)]
    run: Programs,
}

/// Programs of the object that its loader runs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Programs {
    #[serde(default)]
    before: Vec<String>,
    #[serde(default)]
    each_second: Vec<String>,
}

/// One element of a map.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Element {
    Number(i64),
    Bytes(Vec<u8>),
    Cpus(String),
    Members(BTreeMap<String, Value>),
}

/// A value: a whole number, a switch, or a text, of which `cpus` is the number of CPUs.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Value {
    Switch(bool),
    Number(i64),
    Text(String),
}

/// The section of programs that user space runs.
const SYSCALL: &str = "syscall";
/// The placeholder of the number of CPUs.
const CPUS: &str = "cpus";

/// A profile.
#[derive(Clone, Debug)]
pub struct Profile {
    path: PathBuf,
    file: File,
}

impl Profile {
    /// Reads a profile.
    pub fn read(path: &Path) -> Result<Profile, Failure> {
        let text = fs::read_to_string(path).map_err(|e| Failure::io(path.display(), &e))?;
        Profile::of_text(path.to_owned(), &text)
    }

    /// A profile of this text, from that path.
    pub(super) fn of_text(path: PathBuf, text: &str) -> Result<Profile, Failure> {
        let shown = path.display();
        let file = toml::from_str(text).map_err(|e| {
            Failure::new(format_args!("{shown}: {}", e.to_string().trim_end()))
                .help("docs/howto/third-party-schedulers.md describes the keys of a profile")
        })?;
        Ok(Profile { path, file })
    }

    /// Whether it is for a scheduler, by the name of its file, with a parameter set or without.
    pub fn is_for(&self, spec: &str) -> bool {
        let name = Path::new(split_set(spec).0)
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        let stem = [".bpf.o", ".bpf.c", ".o"].iter().find_map(|end| name.strip_suffix(end));
        stem.unwrap_or(&name) == self.file.object
    }

    /// Applies what concerns the object itself, and returns what it sets in a machine of so many CPUs.
    pub fn apply(&self, object: &mut Object, cpus: u32) -> Result<Vec<Setting>, Failure> {
        let shown = self.path.display();
        for (array, count) in &self.file.resize {
            let count = self.number(array, count, cpus)?;
            object
                .resize_array(array, count)
                .map_err(|e| Failure::new(format_args!("{shown}: [resize] {array}: {e}")))?;
        }
        for (member, value) in &self.file.ops {
            let value = self.number(member, value, cpus)?;
            object
                .set_ops_member(member, value)
                .map_err(|e| Failure::new(format_args!("{shown}: [ops] {member}: {e}")))?;
        }
        for name in self.file.set.keys().chain(&self.file.required) {
            self.known(object, name)?;
        }
        let set = self.file.set.iter();
        Ok(set.map(|(name, value)| Setting::initial(name, &value.text(cpus))).collect())
    }

    /// A required variable that is not set is an error that names it.
    pub fn check(&self, spec: &str, settings: &[Setting]) -> Result<(), Failure> {
        let is_set = |name: &String| {
            self.file.set.contains_key(name)
                || settings.iter().any(|s| s.at_ns.is_none() && s.name.eq_ignore_ascii_case(name))
        };
        match self.file.required.iter().find(|name| !is_set(name)) {
            None => Ok(()),
            Some(name) => Err(Failure::new(format_args!(
                "{spec} cannot run without `{name}`, which {} requires and does not set",
                self.path.display()
            ))
            .help(format_args!(
                "give `--set {name}=VALUE`, or set it in the profile, under [set]"
            ))),
        }
    }

    /// What else it does in each simulated machine of so many CPUs.
    pub fn setup(&self, object: &Object, cpus: u32) -> Result<Setup, Failure> {
        let known: Vec<String> = object.maps().into_iter().map(|map| map.name).collect();
        let mut maps = Vec::new();
        for (map, elements) in &self.file.maps {
            if !known.contains(map) {
                let named = format!("[maps.{map}]: {} has no such map", object.name());
                return Err(self.unknown(object, &named, map, known.iter().map(String::as_str)));
            }
            for (key, element) in elements {
                maps.extend(self.element(object, cpus, map, key, element)?);
            }
        }
        let programs = || object.functions().iter().filter(|found| found.section == SYSCALL);
        let Programs { before, each_second } = self.file.run.clone();
        for name in before.iter().chain(&each_second) {
            if programs().all(|program| program.name != *name) {
                let named = format!(
                    "[run] {name}: {} has no such program (SEC(\"{SYSCALL}\"))",
                    object.name()
                );
                return Err(self.unknown(
                    object,
                    &named,
                    name,
                    programs().map(|p| p.name.as_str()),
                ));
            }
        }
        Ok(Setup { maps, before, each_second })
    }

    /// The same for a real kernel of so many CPUs, with the callback table's integers.
    pub fn real_setup(&self, object: &Object, cpus: u32) -> Result<SchedulerSetup, Failure> {
        let Setup { maps, before, each_second } = self.setup(object, cpus)?;
        let map = |MapContent { map, key, offset, bytes }| MapWrite { map, key, offset, bytes };
        let ops = self.file.ops.iter().map(|(member, value)| {
            Ok::<_, Failure>((member.clone(), self.number(member, value, cpus)?))
        });
        Ok(SchedulerSetup {
            ops: ops.collect::<Result<_, _>>()?,
            maps: maps.into_iter().map(map).collect(),
            before,
            each_second,
        })
    }

    fn element(
        &self,
        object: &Object,
        cpus: u32,
        map: &str,
        key: &str,
        element: &Element,
    ) -> Result<Vec<MapContent>, Failure> {
        let place = format!("{}: [maps.{map}] {key}", self.path.display());
        let key = key.parse::<u64>().map_err(|_| {
            Failure::new(format_args!("{place}: a key is a whole number, and 0 or more"))
        })?;
        let content = |path: &str, number: i64| {
            let (offset, size) = object.map_member(map, path).ok_or_else(|| {
                Failure::new(format_args!("{place}: there is no member `{path}` in its values"))
                    .help(format_args!("`fairground sched show {}` lists its maps", object.name()))
            })?;
            let bytes = number.to_le_bytes();
            let bytes = bytes.get(..size as usize).filter(|kept| fits(number, kept.len()));
            let bytes = bytes.ok_or_else(|| {
                Failure::new(format_args!("{place}: {number} does not fit into {size} bytes"))
                    .help("a value that is no plain number is given as bytes, or by its members")
            })?;
            Ok(MapContent { map: map.to_owned(), key, offset, bytes: bytes.to_vec() })
        };
        match element {
            Element::Number(number) => Ok(vec![content("", *number)?]),
            Element::Cpus(text) if text == CPUS => Ok(vec![content("", i64::from(cpus))?]),
            Element::Cpus(text) => {
                Err(Failure::new(format_args!("{place}: `{text}` is no number"))
                    .help("give a whole number, or \"cpus\" for the number of CPUs"))
            }
            Element::Bytes(bytes) => {
                let (map, bytes) = (map.to_owned(), bytes.clone());
                Ok(vec![MapContent { map, key, offset: 0, bytes }])
            }
            Element::Members(members) => members
                .iter()
                .map(|(path, value)| match value {
                    Value::Switch(on) => content(path, i64::from(*on)),
                    Value::Number(number) => content(path, *number),
                    Value::Text(_) => content(path, self.number(path, value, cpus)? as i64),
                })
                .collect(),
        }
    }

    /// The arrays that it resizes.
    pub fn resized(&self) -> impl Iterator<Item = &str> {
        self.file.resize.keys().map(String::as_str)
    }

    fn known(&self, object: &Object, name: &str) -> Result<(), Failure> {
        if object.global(name).is_some() {
            return Ok(());
        }
        let names = object.globals().iter().filter(|g| g.is_settable()).map(|g| g.name.as_str());
        let named = format!("{} has no variable `{name}`", object.name());
        Err(self.unknown(object, &named, name, names))
    }

    /// Something that the object lacks, with the nearest of what it has.
    fn unknown<'n>(
        &self,
        object: &Object,
        named: &str,
        name: &str,
        names: impl Iterator<Item = &'n str>,
    ) -> Failure {
        let failure = Failure::new(format_args!("{}: {named}", self.path.display()));
        match did_you_mean(name, names) {
            Some(near) => failure.help(format_args!("did you mean `{near}`?")),
            None => failure
                .help(format_args!("`fairground sched show {}` lists what it has", object.name())),
        }
    }

    fn number(&self, name: &str, value: &Value, cpus: u32) -> Result<u64, Failure> {
        let number = match value {
            Value::Number(number) => u64::try_from(*number).ok(),
            Value::Text(text) if text == CPUS => Some(u64::from(cpus)),
            _ => None,
        };
        number.ok_or_else(|| {
            Failure::new(format_args!("{}: `{name}` is no count", self.path.display()))
                .help("give a whole number, or \"cpus\" for the number of CPUs")
        })
    }
}

impl Value {
    fn text(&self, cpus: u32) -> String {
        match self {
            Value::Switch(on) => on.to_string(),
            Value::Number(number) => number.to_string(),
            Value::Text(text) if text == CPUS => cpus.to_string(),
            Value::Text(text) => text.clone(),
        }
    }
}

/// Whether a number fits into so many bytes, signed or unsigned.
fn fits(number: i64, bytes: usize) -> bool {
    let bits = 8 * bytes as u32;
    bits >= 64 || (bits > 0 && (-(1i64 << (bits - 1))..1i64 << bits).contains(&number))
}

/// Reads the profiles that were named, and checks that each is for one of the schedulers. A published scheduler without
/// one has that of its entry.
pub fn read_profiles(paths: &[PathBuf], specs: &[&str]) -> Result<Vec<Profile>, Failure> {
    let mut profiles: Vec<Profile> = Vec::with_capacity(paths.len());
    for path in paths {
        let profile = Profile::read(path)?;
        let (shown, object) = (path.display(), &profile.file.object);
        if !specs.iter().any(|spec| profile.is_for(spec)) {
            return Err(Failure::new(format_args!(
                "{shown} is for `{object}`, and no such object is run"
            ))
            .help(format_args!("add `--sched PATH/{object}.bpf.o`, or leave the profile out")));
        }
        if let Some(other) = profiles.iter().find(|other| other.file.object == *object) {
            let other = other.path.display();
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

/// CPUs that this machine may have (`/sys/devices/system/cpu/possible`), as a loader on it counts them.
pub fn host_cpus() -> u32 {
    let possible = fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    let last = possible.trim().rsplit([',', '-']).next().and_then(|last| last.parse::<u32>().ok());
    last.map_or(1, |last| last.saturating_add(1))
}
