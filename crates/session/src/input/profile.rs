//! Profiles (`--profile`): what an object's own loader sets in it on a real kernel.
//!
//! ```toml
//! object = "scx_central"                 # scx_central.bpf.o
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
//!
//! [run]                                  # programs (SEC("syscall"))
//! before = [                             # before the scheduler is attached
//!     "prepare",
//!     { program = "new", args = { pages = 8, "kind[0]" = "cpus" }, save = { root = "result" } },
//!     { program = "use", args = { node = "$root" } },
//! ]
//! after = [{ program = "pair", each = "cpus", args = { one = "cpu.id", two = "cpu.sibling" } }]
//! each_second = ["refresh"]
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use fairground_bpf::{GlobalType, Object};
use fairground_machine::{
    MapContent, Meanings, Patch, ProgramRun, SavedValue, Setting, SettingError, Setup, Topology,
    Words, root_of,
};
use fairground_realkernel::job::{ContextValue, MapWrite, ProgramJob, SchedulerSetup};
use serde::Deserialize;

use super::assignment::{Value, sort};
use super::published::profile_of;
use super::split_set;
use super::steps::{Step, Steps};
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
    maps: BTreeMap<String, BTreeMap<String, Value>>,
    #[serde(default)]
    run: Programs,
}

/// Programs of the object that its loader runs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Programs {
    #[serde(default)]
    before: Vec<Step>,
    /// The structure of a task's context, where the object has the arena library of the scx project.
    arena_library: Option<String>,
    #[serde(default)]
    after: Vec<Step>,
    #[serde(default)]
    each_second: Vec<Step>,
}

/// The section of programs that user space runs.
const SYSCALL: &str = "syscall";
/// The kind of a data section among the maps.
const DATA: &str = "data";

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

    /// Applies what concerns the object itself, and returns what it sets in a machine of that topology.
    pub fn apply(&self, object: &mut Object, topology: &Topology) -> Result<Vec<Setting>, Failure> {
        let shown = self.path.display();
        for (name, count) in &self.file.resize {
            let count = self.number("resize", name, count, topology)?;
            let resized = match is_map(object, name) {
                true => object.resize_map(name, count),
                false => object.resize_array(name, count),
            };
            resized.map_err(|e| Failure::new(format_args!("{shown}: [resize] {name}: {e}")))?;
        }
        for (member, value) in &self.file.ops {
            let value = self.number("ops", member, value, topology)?;
            object
                .set_ops_member(member, value)
                .map_err(|e| Failure::new(format_args!("{shown}: [ops] {member}: {e}")))?;
        }
        for name in self.file.required.iter() {
            if object.global(name).or_else(|| object.global(root_of(name))).is_none() {
                return Err(self.no_variable(object, name));
            }
        }
        self.settings(object, topology)
    }

    /// What it sets, checked.
    fn settings(&self, object: &Object, topology: &Topology) -> Result<Vec<Setting>, Failure> {
        let mut all = Vec::new();
        for (name, value) in &self.file.set {
            let wrong = |problem| {
                Failure::new(format_args!("{}: [set] {name}: {problem}", self.path.display()))
            };
            all.extend(value.assignments(name).map_err(wrong)?);
        }
        sort(&mut all);
        let types = object.types();
        let meanings = Meanings::new(&types, topology);
        let checked = all.iter().map(|assignment| {
            let setting = Setting::initial(&assignment.path, &assignment.value);
            match meanings.change(object.name(), object.globals(), &setting) {
                Ok(_) => Ok(setting),
                Err(SettingError::Unknown { .. }) => {
                    Err(self.no_variable(object, root_of(&assignment.path)))
                }
                Err(e) => Err(Failure::new(format_args!("{}: [set] {e}", self.path.display()))),
            }
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

    /// What else it does in each simulated machine of that topology.
    pub fn setup(&self, object: &Object, topology: &Topology) -> Result<Setup, Failure> {
        let known: Vec<String> = object.maps().into_iter().map(|map| map.name).collect();
        let mut maps = Vec::new();
        for (map, elements) in &self.file.maps {
            if !known.contains(map) {
                let named = format!("[maps.{map}]: {} has no such map", object.name());
                return Err(self.unknown(object, &named, map, known.iter().map(String::as_str)));
            }
            for (key, element) in elements {
                maps.extend(self.element(object, topology, map, key, element)?);
            }
        }
        let mut steps = Steps::new(object, topology);
        let Programs { before, arena_library, after, each_second } = &self.file.run;
        let library = arena_library.as_ref().map(|task| steps.arena_library(task)).transpose();
        let mut library = library.map_err(|problem| {
            Failure::new(format_args!("{}: [run] arena_library: {problem}", self.path.display()))
        })?;
        let mut runs = |list: &[Step]| -> Result<Vec<ProgramRun>, Failure> {
            let runs = list.iter().map(|step| self.run(object, &mut steps, step));
            Ok(runs.collect::<Result<Vec<_>, _>>()?.concat())
        };
        let (before, after, each_second) = (runs(before)?, runs(after)?, runs(each_second)?);
        let mut first = library.take().unwrap_or_default();
        first.extend(before);
        Ok(Setup { maps, before: first, after, each_second })
    }

    /// The same for a real kernel on a machine of that topology, with the callback table's integers and the maps that
    /// are resized.
    pub fn real_setup(
        &self,
        object: &Object,
        topology: &Topology,
    ) -> Result<SchedulerSetup, Failure> {
        let Setup { maps, before, after, each_second } = self.setup(object, topology)?;
        let map = |MapContent { map, key, offset, bytes }| MapWrite { map, key, offset, bytes };
        let ops = self.file.ops.iter().map(|(member, value)| {
            Ok::<_, Failure>((member.clone(), self.number("ops", member, value, topology)?))
        });
        let resized = object
            .maps()
            .into_iter()
            .filter(|map| map.kind != DATA && self.file.resize.contains_key(&map.name));
        Ok(SchedulerSetup {
            ops: ops.collect::<Result<_, _>>()?,
            max_entries: resized.map(|map| (map.name, map.max_entries)).collect(),
            maps: maps.into_iter().map(map).collect(),
            before: before.into_iter().map(program_job).collect(),
            after: after.into_iter().map(program_job).collect(),
            each_second: each_second.into_iter().map(program_job).collect(),
        })
    }

    /// A step of `[run]`.
    fn run(
        &self,
        object: &Object,
        steps: &mut Steps<'_>,
        step: &Step,
    ) -> Result<Vec<ProgramRun>, Failure> {
        let name = &step.0.program;
        let programs = || object.functions().iter().filter(|found| found.section == SYSCALL);
        if programs().all(|program| program.name != *name) {
            let named =
                format!("[run] {name}: {} has no such program (SEC(\"{SYSCALL}\"))", object.name());
            return Err(self.unknown(object, &named, name, programs().map(|p| p.name.as_str())));
        }
        steps.next(step).map_err(|problem| {
            Failure::new(format_args!("{}: [run] {name}: {problem}", self.path.display()))
        })
    }

    /// What an element of a map gets: by members, by elements, or as bytes where its type has none.
    fn element(
        &self,
        object: &Object,
        topology: &Topology,
        map: &str,
        key: &str,
        element: &Value,
    ) -> Result<Vec<MapContent>, Failure> {
        let place = format!("{}: [maps.{map}] {key}", self.path.display());
        let wrong = |problem: String| Failure::new(format_args!("{place}: {problem}"));
        let key = key
            .parse::<u64>()
            .map_err(|_| wrong("a key is a whole number, and 0 or more".to_owned()))?;
        let content = |offset, bytes| MapContent { map: map.to_owned(), key, offset, bytes };
        let known = object.map_value(map).zip(object.map_member(map, ""));
        let (ty, (_, size)) = known.ok_or_else(|| wrong("there is no such map".to_owned()))?;
        if let (false, Some(bytes)) = (matches!(ty, GlobalType::Array { .. }), element.bytes()) {
            return Ok(vec![content(0, bytes)]);
        }
        let types = object.types();
        let meanings = Meanings::new(&types, topology);
        let mut contents = Vec::new();
        for assignment in element.assignments("").map_err(wrong)? {
            let patches =
                meanings.patches_of(map, (&ty, size), &assignment.path, &assignment.value);
            let wrong =
                |problem| wrong(format!("`{}={}`: {problem}", assignment.path, assignment.value));
            for Patch { offset, bytes, mask } in patches.map_err(wrong)? {
                if !mask.is_empty() {
                    return Err(wrong("a bit field of a map's element cannot be set".to_owned()))
                        .map_err(|e| e.help("give the whole element as bytes, [1, 2, 3]"));
                }
                contents.push(content(offset, bytes));
            }
        }
        Ok(contents)
    }

    /// The arrays and maps that it resizes.
    pub fn resized(&self) -> impl Iterator<Item = &str> {
        self.file.resize.keys().map(String::as_str)
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
        value: &Value,
        topology: &Topology,
    ) -> Result<u64, Failure> {
        let number = match value {
            Value::Number(number) => u64::try_from(*number).ok(),
            Value::Text(text) => Words::of(topology).number(text),
            _ => None,
        };
        number.ok_or_else(|| {
            Failure::new(format_args!("{}: [{table}] {name}: it is no count", self.path.display()))
                .help("give a whole number, or a word such as \"cpus\" for the number of CPUs")
        })
    }
}

/// A run of a program, as a job for a real kernel.
fn program_job(ProgramRun { program, context, load, save, store }: ProgramRun) -> ProgramJob {
    let values = |list: Vec<SavedValue>| {
        let value = |SavedValue { name, offset, size }| ContextValue { name, offset, size };
        list.into_iter().map(value).collect()
    };
    let stores = !store.is_empty();
    ProgramJob { program, context, load: values(load), save: values(save), stores }
}

/// Whether an object has a map of that name that is no data section.
fn is_map(object: &Object, name: &str) -> bool {
    object.maps().iter().any(|map| map.name == name && map.kind != DATA)
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
