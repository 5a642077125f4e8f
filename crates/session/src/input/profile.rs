//! Profiles (`--profile`): what an object's own loader sets in it on a real kernel.
//!
//! ```toml
//! object = "scx_central"                 # scx_central.bpf.o
//! scheduler = "central_ops"              # its callback table, if the object has several
//! required = ["nr_cpu_ids", "slice_ns"]  # must be set: here or with --set
//!
//! [set]                                  # variables, as --set takes them
//! nr_cpu_ids = "cpus"                    # the number of CPUs
//! slice_ns = "20ms"
//! cpu_llc_id = "cpu.llc"                 # an array: each CPU's cache
//! weights = [1, 2, 3]                    # the first elements of an array
//! config = { mode = "FAST", depth = 4 }  # members
//! "domains[*].online" = true             # a path
//!
//! [resize]                               # elements of arrays that stand alone in their section, and of maps
//! cpu_started_at = "cpus"
//!
//! [ops]                                  # integers of the callback table
//! timeout_ms = 5000
//!
//! [maps.limits]                          # elements of arrays and hash tables by their keys
//! 0 = 7                                  # the whole value: a number, or bytes as [1, 2, 3]
//! 1 = { burst = 5, "inner.depth" = 2 }   # members of it
//! "2..cpus" = { burst = 3 }              # several elements
//!
//! [run]                                  # programs (SEC("syscall"))
//! before = [                             # before the scheduler is attached
//!     "prepare",
//!     { program = "new", args = { pages = 8, "kind[0]" = "cpus" }, save = { root = "result" } },
//!     { program = "use", args = { node = "$root" } },
//! ]
//! after = [{ program = "pair", each = "cpus", args = { one = "cpu.id", two = "cpu.sibling" } }]
//! each_second = ["refresh"]
//! attach = ["on_switch"]                 # programs of events (SEC("?tp_btf/…")) that are to be called
//! detach = ["on_exec"]                   # and those that are not
//!
//! [when.numa]                            # further, on machines on which that word is not 0
//! set = { numa_enabled = true }
//!
//! [options.power.save]                   # further, with `NAME:power=save` (entries of the catalogue)
//! set = { frequency = 0 }
//!
//! [versions."1.0.5..1.1.0"]              # further, for versions from the first to before the last (entries)
//! set = { slice_us = 20_000 }
//! ```

mod applied;
mod faults;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use fairground_bpf::Object;
use fairground_catalogue::by_version;
use fairground_machine::{Meanings, Setting, SettingError, Topology, Words, root_of};
use fairground_realkernel::files::read_text;
use fairground_suggest::did_you_mean;
use serde::Deserialize;

pub(crate) use applied::{AppliedProfile, LoaderKnowledge};
pub(super) use faults::ProfileFaults;

use super::assignment::{ProfileValue, sort};
use super::profile_settings::{ProfilePrograms, ProfileSettings};
use super::published::without_options;
use super::split_set;
use crate::failure::Failure;

/// A profile file, strict: an unknown key is an error with its line.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProfileFile {
    object: String,
    scheduler: Option<String>,
    #[serde(default)]
    required: Vec<String>,
    #[serde(default)]
    set: BTreeMap<String, ProfileValue>,
    #[serde(default)]
    resize: BTreeMap<String, ProfileValue>,
    #[serde(default)]
    ops: BTreeMap<String, ProfileValue>,
    #[serde(default)]
    maps: BTreeMap<String, BTreeMap<String, ProfileValue>>,
    #[serde(default)]
    run: ProfilePrograms,
    #[serde(default)]
    when: BTreeMap<String, ProfileSettings>,
    #[serde(default)]
    options: BTreeMap<String, BTreeMap<String, ProfileSettings>>,
    #[serde(default)]
    versions: BTreeMap<String, ProfileSettings>,
}

impl ProfileFile {
    /// The settings of every machine.
    fn base(&self) -> ProfileSettings {
        let ProfileFile { set, resize, ops, maps, run, .. } = self.clone();
        ProfileSettings { set, resize, ops, maps, run }
    }
}

/// The kind of a data section among the maps.
const DATA: &str = "data";

/// A profile.
#[derive(Clone, Debug)]
pub struct Profile {
    path: PathBuf,
    file: ProfileFile,
    /// Of an entry of the catalogue: the scheduler as it was named, with its options.
    spec: Option<String>,
    /// The settings of these options.
    chosen: Vec<ProfileSettings>,
    /// Of an entry: the version of the scheduler.
    version: Option<String>,
    /// It is another one than the entry describes: what its object lacks is left out.
    other_version: bool,
}

impl Profile {
    /// Reads a profile.
    pub fn read(path: &Path) -> Result<Profile, Failure> {
        let text = read_text(path).map_err(|e| Failure::io(path.display(), &e))?;
        Profile::of_text(path.to_owned(), &text)
    }

    /// A profile of this text, from that path.
    pub(crate) fn of_text(path: PathBuf, text: &str) -> Result<Profile, Failure> {
        let shown = path.display();
        let file = toml::from_str(text).map_err(|e| {
            Failure::new(format_args!("{shown}: {}", e.to_string().trim_end()))
                .help("docs/howto/third-party-schedulers.md describes the keys of a profile")
        })?;
        let chosen = Vec::new();
        Ok(Profile { path, file, spec: None, chosen, version: None, other_version: false })
    }

    /// The same for a scheduler of the catalogue as it was named, with options.
    ///
    /// # Errors
    /// There is no such option, or it has no such value; the error names those that there are.
    pub(super) fn with_options(
        mut self,
        spec: &str,
        options: &[(&str, &str)],
    ) -> Result<Profile, Failure> {
        for (name, value) in options {
            let found = self.file.options.get(*name).and_then(|values| values.get(*value));
            self.chosen.push(found.ok_or_else(|| self.no_option(name, value))?.clone());
        }
        self.spec = Some(spec.to_owned());
        Ok(self)
    }

    /// The same for a version of the scheduler, which may lack what the `described` one has; `None`: for that one.
    pub(super) fn of_version(self, version: Option<String>, described: &str) -> Profile {
        let other_version = version.as_ref().is_some_and(|version| version != described);
        let version = Some(version.unwrap_or_else(|| described.to_owned()));
        Profile { version, other_version, ..self }
    }

    /// Whether it is of an entry of the catalogue.
    pub(super) fn is_of_entry(&self) -> bool {
        self.spec.is_some()
    }

    /// Where it was read from.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The object that it is for.
    pub(super) fn object(&self) -> &str {
        &self.file.object
    }

    fn no_option(&self, name: &str, value: &str) -> Failure {
        let scheduler = &self.file.object;
        let Some(values) = self.file.options.get(name) else {
            let known = self.file.options.keys().map(|name| format!("`{name}`"));
            let known = known.collect::<Vec<_>>().join(", ");
            let failure = Failure::new(format_args!("{scheduler} has no option `{name}` here"));
            return match known.is_empty() {
                true => failure.help("its entry has none; set its variables with --set"),
                false => failure.help(format_args!(
                    "there are {known} (`fairground sched show {scheduler}`); --set sets its variables"
                )),
            };
        };
        let known: Vec<_> = values.keys().map(|value| format!("`{name}={value}`")).collect();
        Failure::new(format_args!("{scheduler}: the option `{name}` has no value `{value}`"))
            .help(format_args!("there are {}", known.join(", ")))
    }

    /// The options, each value of them, and the names of what it sets.
    pub fn options(&self) -> Vec<(&str, &str, Vec<String>)> {
        let values = self.file.options.iter().flat_map(|(name, values)| {
            values.iter().map(move |(value, part)| (name.as_str(), value.as_str(), part.names()))
        });
        values.collect()
    }

    /// The variables that it names, in whatever part of it.
    fn names(&self) -> BTreeSet<String> {
        let ProfileFile { set, when, options, versions, .. } = &self.file;
        let parts = when
            .values()
            .chain(versions.values())
            .chain(options.values().flat_map(BTreeMap::values));
        let all = set.keys().chain(parts.flat_map(|part| part.set.keys()));
        all.map(|name| root_of(name).to_owned()).collect()
    }

    /// The settings on a machine of that topology.
    fn on(&self, topology: &Topology) -> Result<ProfileSettings, Failure> {
        let words = Words::of(topology);
        let mut part = self.file.base();
        for (word, further) in &self.file.when {
            match words.number(word) {
                Some(0) => {}
                Some(_) => part.add(further),
                None => {
                    return Err(Failure::new(format_args!(
                        "{}: [when.{word}]: there is no such word",
                        self.path.display()
                    ))
                    .help("give a word for a number of the machine that may be 0: `smt`, `numa`, `one_llc`"));
                }
            }
        }
        for (range, further) in &self.file.versions {
            let version = self.version.as_deref();
            if version.is_some_and(|version| is_within(version, range)) {
                part.add(further);
            }
        }
        self.chosen.iter().for_each(|further| part.add(further));
        Ok(part)
    }

    /// Whether it is for a scheduler: for an entry of the catalogue as it was named, else by the name of its file, with
    /// a parameter set or without.
    pub fn is_for(&self, spec: &str) -> bool {
        if let Some(of_catalogue) = &self.spec {
            return of_catalogue == spec;
        }
        let name = Path::new(split_set(without_options(spec)).0)
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        let stem = [".bpf.o", ".bpf.c", ".o"].iter().find_map(|end| name.strip_suffix(end));
        stem.unwrap_or(&name) == self.file.object
    }

    /// Keeps the scheduler that it names, of several in an object.
    fn choose(&self, object: &mut Object) -> Result<(), Failure> {
        let Some(name) = &self.file.scheduler else { return Ok(()) };
        if object.keep_struct_ops(name) {
            return Ok(());
        }
        let known: Vec<&str> =
            object.struct_ops().iter().map(|table| table.name.as_str()).collect();
        let named = format!("scheduler: {} has no scheduler `{name}`", object.name());
        Err(self.unknown(object, &named, name, known.into_iter()))
    }

    /// The variables that it sets, checked.
    fn settings(
        &self,
        object: &Object,
        part: &ProfileSettings,
        topology: &Topology,
        faults: &mut ProfileFaults,
    ) -> Vec<Setting> {
        let mut all = Vec::new();
        for (name, value) in &part.set {
            let wrong = |problem| {
                Failure::new(format_args!("{}: [set] {name}: {problem}", self.path.display()))
            };
            all.extend(faults.check(value.assignments(name).map_err(wrong)).unwrap_or_default());
        }
        sort(&mut all);
        let types = object.types();
        let meanings = Meanings::new(&types, topology);
        all.retain(|assignment| {
            meanings.has_variable(object.globals(), &assignment.path)
                || !faults.leaves_out(&of_object(object, &assignment.path))
        });
        let checked = all.iter().filter_map(|assignment| {
            let setting = Setting::initial(&assignment.path, &assignment.value);
            let changed = meanings.change(object.name(), object.globals(), &setting);
            faults.check(changed.map(|_| setting).map_err(|error| match error {
                SettingError::Unknown { .. } => self.no_variable(object, root_of(&assignment.path)),
                e => Failure::new(format_args!("{}: [set] {e}", self.path.display())),
            }))
        });
        checked.collect()
    }

    /// A required variable that is not set is an error that names it.
    pub fn check(&self, spec: &str, settings: &[Setting]) -> Result<(), Failure> {
        let is_set = |name: &String| {
            let is_it = |set: &str| {
                set.eq_ignore_ascii_case(name) || root_of(set).eq_ignore_ascii_case(name)
            };
            self.file.set.keys().any(|set| is_it(set))
                || settings.iter().any(|s| s.at_ns.is_none() && is_it(&s.name))
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

    fn no_variable(&self, object: &Object, name: &str) -> Failure {
        let names = object.globals().iter().filter(|g| g.is_settable()).map(|g| g.name.as_str());
        let named = format!("{} has no variable `{name}`", object.name());
        self.unknown(object, &named, name, names)
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

    fn number(
        &self,
        table: &str,
        name: &str,
        value: &ProfileValue,
        topology: &Topology,
    ) -> Result<u64, Failure> {
        let number = match value {
            ProfileValue::Number(number) => u64::try_from(*number).ok(),
            ProfileValue::Text(text) => Words::of(topology).number(text),
            _ => None,
        };
        number.ok_or_else(|| {
            Failure::new(format_args!("{}: [{table}] {name}: it is no count", self.path.display()))
                .help("give a whole number, or a word such as \"cpus\" for the number of CPUs")
        })
    }
}

/// The name of a variable that the object lacks, or the path of a part that its variable lacks.
fn of_object(object: &Object, path: &str) -> String {
    let root = root_of(path);
    let has_root = object.globals().iter().any(|global| global.name.eq_ignore_ascii_case(root));
    if has_root { path } else { root }.to_owned()
}

/// Whether a version lies in `FIRST..END`, without the end; each may be missing.
fn is_within(version: &str, range: &str) -> bool {
    let (first, end) = range.split_once("..").unwrap_or((range, ""));
    by_version(version, first).is_ge() && (end.is_empty() || by_version(version, end).is_lt())
}

/// Whether an object has a map of that name that is no data section.
fn is_map(object: &Object, name: &str) -> bool {
    object.maps().iter().any(|map| map.name == name && map.kind != DATA)
}
