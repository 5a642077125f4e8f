//! A scheduler by name or from an object file, with a parameter set.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use fairground_bpf::{Global, Object, OpsValue};
use fairground_machine::{
    Engine, KernelAbi, Policy, Setting, Setup, Topology, is_kernel_constant, is_number, ops_flags,
    root_of,
};
use fairground_realkernel::job::SchedulerSetup;

use super::Profile;
use super::loaded::{self, Loaded};
use super::profile::{AppliedProfile, LoaderKnowledge};
use super::published::without_entry;
use crate::captured::DUMP_LENGTH;
use crate::failure::Failure;
use crate::spec::{EngineChoice, SchedulerSpec};

/// A scheduler's object, for any target.
#[derive(Debug)]
pub struct SchedulerObject {
    /// As it was typed: `cfs@6.1`, `mine.bpf.o`.
    pub label: String,
    /// The object, read.
    pub object: Arc<Object>,
    /// The bytes that a kernel loads.
    pub bytes: Arc<[u8]>,
    /// How large it is.
    pub sizes: Sizes,
    /// Arrays that its profile resized.
    pub resized: Vec<String>,
    /// The settings of its parameter set and its profile.
    pub settings: Vec<Setting>,
    /// The maps and programs of its profile in each simulated machine.
    simulated: Setup,
    /// The same on a real kernel.
    pub setup: SchedulerSetup,
    /// Names that its entry in the catalogue has and this version lacks.
    lacking: Vec<String>,
    /// The knowledge of its loader's settings.
    known: LoaderKnowledge,
}

/// The purpose of compiling an object: an engine, and the interface of a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompileFor {
    /// How its instructions are executed.
    pub engine: Engine,
    /// The release whose interface it finds.
    pub abi: KernelAbi,
}

impl From<EngineChoice> for CompileFor {
    fn from(engine: EngineChoice) -> Self {
        CompileFor { engine: engine.into(), ..CompileFor::default() }
    }
}

impl From<&SchedulerSpec> for CompileFor {
    fn from(spec: &SchedulerSpec) -> Self {
        CompileFor { engine: spec.engine.into(), abi: spec.kernel_abi.0 }
    }
}

/// A scheduler, compiled and ready for any number of simulated machines.
#[derive(Debug)]
pub struct Scheduler {
    /// Its object.
    pub object: SchedulerObject,
    /// The compiled policy.
    pub policy: Policy,
}

/// How large an object is, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Instructions of all functions.
    pub code_bytes: u64,
    /// Every other section but the type information: constants, variables, map definitions, the callback table.
    pub data_bytes: u64,
}

impl Sizes {
    fn of(object: &Object) -> Sizes {
        let code_bytes = object.functions().iter().map(|f| f.slots as u64 * BYTES_PER_SLOT).sum();
        let is_code = |section: &str| object.functions().iter().any(|f| f.section == section);
        let is_btf = |section: &str| section.starts_with(".BTF");
        let data = object.sections().iter().filter(|s| !is_code(&s.name) && !is_btf(&s.name));
        Sizes { code_bytes, data_bytes: data.map(|section| section.size).sum() }
    }
}

/// The section of programs that user space runs.
pub(super) const SYSCALL: &str = "syscall";
/// The member of the callback table with its flags.
const FLAGS: &str = "flags";
/// The size of a BPF instruction slot.
const BYTES_PER_SLOT: u64 = 8;

/// Parameter sets by name: what each sets, in the order of the object's variables.
pub type Sets = BTreeMap<String, Vec<(String, String)>>;

impl SchedulerObject {
    /// Reads `NAME`, `NAME@SET`, or a file (`@SET` works there too). A profile is applied for a machine of that
    /// topology.
    pub fn find(spec: &str, profile: Option<(&Profile, &Topology)>) -> Result<Self, Failure> {
        let (loaded, set) = loaded::read_spec(spec)?;
        Self::of(spec, set, &loaded, profile)
    }

    /// As [`SchedulerObject::find`], of an object that is loaded.
    fn of(
        spec: &str,
        set: Option<&str>,
        loaded: &Loaded,
        profile: Option<(&Profile, &Topology)>,
    ) -> Result<Self, Failure> {
        let (name, _) = split_set(spec);
        let mut object = Arc::clone(&loaded.object);
        let mut settings = match set {
            None => Vec::new(),
            Some(set) => {
                let sets = parameter_sets(&object);
                let values = sets.get(set).ok_or_else(|| unknown_set(name, set, &sets))?;
                values.iter().map(|(name, value)| Setting::initial(name, value)).collect()
            }
        };
        let sizes = Sizes::of(&object);
        let applied =
            profile.map(|(profile, topology)| profile.apply(Arc::make_mut(&mut object), topology));
        let applied = applied.transpose()?.unwrap_or_default();
        let AppliedProfile {
            settings: of_profile,
            resized,
            setup: simulated,
            real,
            lacking,
            known,
        } = applied;
        settings.extend(of_profile);
        let (label, bytes) = (spec.to_owned(), Arc::clone(&loaded.bytes));
        let setup = real;
        Ok(Self {
            resized,
            label,
            object,
            bytes,
            sizes,
            settings,
            simulated,
            setup,
            lacking,
            known,
        })
    }
}

impl SchedulerObject {
    /// The difference from the scheduler's own loader, in words: names that its entry has and this version lacks, or that
    /// there is no entry; `None`: there is none.
    pub fn lacking(&self) -> Option<String> {
        if let Some(text) = without_entry(&self.label) {
            return Some(text);
        }
        let names: Vec<_> = self.lacking.iter().map(|name| format!("`{name}`")).collect();
        (!names.is_empty()).then(|| {
            format!(
                "{} has no {}, which its entry describes for another version",
                self.label,
                names.join(", ")
            )
        })
    }

    /// Leaves out flags of the callback table that kernels of a release do not have, as loaders of the scx project do.
    fn mask_flags(&mut self, abi: KernelAbi) {
        let table = self.object.struct_ops().first();
        let Some(OpsValue::Int(flags)) = table.and_then(|table| table.field(FLAGS)) else { return };
        let masked = flags & ops_flags(abi);
        if masked != *flags {
            // It has had the member until now.
            let _ = Arc::make_mut(&mut self.object).set_ops_member(FLAGS, masked);
        }
    }

    /// The constants that its loader may set and the programs that it may run, and that nothing sets or runs here, in words.
    /// An object has a loader if it has such programs (`SEC("syscall")`) or a profile. `None`: there are none, or an entry
    /// of the catalogue describes all.
    pub fn unset(&self, given: &[Setting]) -> Option<String> {
        let programs = self.object.functions().iter().filter(|found| found.section == SYSCALL);
        let programs: Vec<&str> = programs.map(|program| program.name.as_str()).collect();
        if matches!(self.known, LoaderKnowledge::All)
            || (matches!(self.known, LoaderKnowledge::Nothing) && programs.is_empty())
        {
            return None;
        }
        let Setup { before, after, each_second, .. } = &self.simulated;
        let runs = || [before, after, each_second].into_iter().flatten();
        let idle = programs.into_iter().filter(|name| runs().all(|run| run.program != *name));
        let idle: Vec<_> = idle.map(|name| format!("`{name}`")).collect();
        let idle = (!idle.is_empty()).then(|| {
            format!(
                "{}: its loader may run {}, which nothing runs here",
                self.label,
                idle.join(", ")
            )
        });
        let texts: Vec<_> = self.left_at_zero(given).into_iter().chain(idle).collect();
        (!texts.is_empty()).then(|| texts.join("; "))
    }

    /// Of an object file: the constants (`const volatile`) that are 0 in it and not set, in words. The object does not
    /// say whether 0 is intended; its own loader may set them. The length of the exit dump is not one of them: its section
    /// must be enlarged with it.
    pub fn left_at_zero(&self, given: &[Setting]) -> Option<String> {
        let (name, _) = split_set(&self.label);
        if fairground_policies::get(name).is_some() {
            return None;
        }
        let is_known = |global: &Global| match &self.known {
            LoaderKnowledge::Some(names) => names.contains(root_of(&global.name)),
            LoaderKnowledge::Nothing | LoaderKnowledge::All => false,
        };
        let is_set = |global: &Global| {
            self.settings
                .iter()
                .chain(given)
                .any(|setting| root_of(&setting.name) == root_of(&global.name))
        };
        let constants = self.object.globals().iter().filter(|global| {
            let is_constant = global.read_only && global.volatile && is_number(&global.ty);
            let is_foreign = is_kernel_constant(global) || global.name == DUMP_LENGTH;
            is_constant && !is_foreign && !is_set(global) && !is_known(global)
        });
        let zero = |global: &&Global| self.object.initial(global).iter().all(|byte| *byte == 0);
        let names: Vec<&str> = constants.filter(zero).map(|global| global.name.as_str()).collect();
        (!names.is_empty()).then(|| {
            format!(
                "{}: constants that are 0 in the object and were not set: `{}`; what its loader \
                 would set is given with --set or --profile",
                self.label,
                names.join("`, `")
            )
        })
    }
}

impl Scheduler {
    /// Finds an object ([`SchedulerObject::find`]) and compiles it for the simulated machine.
    pub fn load(
        spec: &str,
        profile: Option<(&Profile, &Topology)>,
        target: CompileFor,
    ) -> Result<Self, Failure> {
        let (name, _) = split_set(spec);
        let (loaded, set) = loaded::read_spec(spec)?;
        let mut object = SchedulerObject::of(spec, set, &loaded, profile)?;
        if profile.is_some_and(|(profile, _)| profile.is_of_entry()) {
            object.mask_flags(target.abi);
        }
        let failed = |e: &dyn std::fmt::Display| Failure::new(format_args!("{name}: {e}"));
        let policy = match profile {
            None => loaded.policy(target).map_err(|e| failed(&e))?,
            Some(_) => {
                let policy = Policy::load_for(&object.object, target.engine, target.abi);
                let policy = policy.map_err(|e| failed(&e))?;
                policy.with_setup(&object.simulated).map_err(|e| failed(&e))?
            }
        };
        Ok(Self { object, policy })
    }
}

/// `NAME@SET` in its parts; a file may have an `@` in its name.
pub fn split_set(spec: &str) -> (&str, Option<&str>) {
    match spec.rsplit_once('@') {
        Some((name, set)) if !Path::new(spec).exists() => (name, Some(set)),
        _ => (spec, None),
    }
}

/// The parameter sets that an object describes in its tags (`set:NAME=VALUE` on a variable).
pub fn parameter_sets(object: &Object) -> Sets {
    let mut sets = Sets::new();
    for global in object.globals() {
        for tag in &global.tags {
            if let Some((set, value)) = tag.strip_prefix("set:").and_then(|t| t.split_once('=')) {
                sets.entry(set.to_owned())
                    .or_default()
                    .push((global.name.clone(), value.to_owned()));
            }
        }
    }
    sets
}

fn unknown_set(name: &str, set: &str, sets: &Sets) -> Failure {
    let known: Vec<_> = sets.keys().map(|k| format!("`{name}@{k}`")).collect();
    let failure = Failure::new(format_args!("{name} has no parameter set `{set}`"));
    if known.is_empty() {
        failure.help("it has none at all")
    } else {
        failure.help(format_args!("there are {}", known.join(", ")))
    }
}
