//! Settings of a run, resolved: which variable, cgroup or group of tasks is meant, and what it becomes.

use fairground_bpf::{Global, Instance, Trap};
use fairground_workload::limits::CGROUP_WEIGHT_MAX;

use crate::kernel::{CgroupRef, Cgroups, Kernel};
use crate::settings;
use crate::settings::{Meanings, Patch};
use crate::{MachineError, Policy, Setting, SettingError, Topology};

/// What a setting changes.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// A variable of the program, by its index among the policy's globals, and what changes of it.
    Global { global: usize, patches: Vec<Patch> },
    /// `cpu.weight` of a cgroup.
    Weight { cgroup: CgroupRef, weight: u32 },
    /// The cgroup of all tasks of a group of the workload.
    Move { spec: usize, cgroup: CgroupRef },
}

/// Changes a part of a variable.
pub(crate) fn patch(
    program: &mut Instance<Kernel>,
    global: &Global,
    patches: &[Patch],
) -> Result<(), Trap> {
    // The variable may be much larger than what changes of it.
    patches.iter().try_for_each(|patch| {
        let bytes = patch.bytes.len();
        program.change_global(global, patch.offset, bytes, |content| patch.change(content))
    })
}

/// A change during the run.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) at_ns: u64,
    pub(crate) target: Target,
    pub(crate) text: String,
}

/// The names that settings may use.
pub(crate) struct Changes<'a> {
    pub(crate) policy: &'a Policy,
    /// Names of the workload's groups of tasks.
    pub(crate) groups: &'a [String],
    pub(crate) cgroups: &'a Cgroups,
    /// The machine's topology, for the words in values.
    pub(crate) topology: &'a Topology,
}

impl Changes<'_> {
    /// The changes of the start, and the later ones, the latest first.
    pub(crate) fn encode(
        &self,
        list: &[Setting],
    ) -> Result<(Vec<Change>, Vec<Change>), MachineError> {
        let (mut first, mut later) = (Vec::new(), Vec::new());
        for setting in list {
            let (target, text) = self.target(setting)?;
            let change = Change { at_ns: setting.at_ns.unwrap_or(0), target, text };
            if setting.at_ns.is_some() { later.push(change) } else { first.push(change) }
        }
        later.sort_by_key(|change| change.at_ns);
        later.reverse();
        Ok((first, later))
    }

    fn target(&self, setting: &Setting) -> Result<(Target, String), SettingError> {
        let Setting { name, value, .. } = setting;
        if let Some(path) = between(name, "cgroup.", ".weight") {
            let target =
                Target::Weight { cgroup: self.cgroup(name, path)?, weight: weight(name, value)? };
            return match target {
                Target::Weight { cgroup: CgroupRef::ROOT, .. } => Err(SettingError::machine(
                    name,
                    "the root cgroup has no weight: it has no siblings".to_owned(),
                )),
                _ => Ok((target, format!("{name}={value}"))),
            };
        }
        if let Some(group) = between(name, "task.", ".cgroup") {
            let spec = self.groups.iter().position(|known| known == group).ok_or_else(|| {
                let names = self.groups.iter().map(String::as_str);
                unknown(name, "group of tasks", group, names)
            })?;
            let cgroup = self.cgroup(name, value)?;
            return Ok((Target::Move { spec, cgroup }, format!("{name}={value}")));
        }
        if name.starts_with("cgroup.") || name.starts_with("task.") {
            let forms = "write `cgroup.PATH.weight=300` or `task.NAME.cgroup=PATH`";
            return Err(SettingError::machine(name, format!("it is no setting; {forms}")));
        }
        let policy = self.policy;
        let meanings = Meanings::new(&policy.types, self.topology);
        let change = meanings.change(policy.name(), &policy.globals, setting)?;
        Ok((Target::Global { global: change.variable, patches: change.patches }, change.label))
    }

    fn cgroup(&self, name: &str, path: &str) -> Result<CgroupRef, SettingError> {
        if !self.cgroups.in_trace {
            let problem =
                "the workload has no cgroups; declare them in its file, as in [cgroups.web]";
            return Err(SettingError::machine(name, problem.to_owned()));
        }
        self.cgroups.find(path).ok_or_else(|| unknown(name, "cgroup", path, self.cgroups.paths()))
    }
}

/// The non-empty text between a prefix and a suffix.
fn between<'t>(text: &'t str, start: &str, end: &str) -> Option<&'t str> {
    text.strip_prefix(start)?.strip_suffix(end).filter(|middle| !middle.is_empty())
}

fn unknown<'n>(
    setting: &str,
    kind: &str,
    name: &str,
    known: impl Iterator<Item = &'n str>,
) -> SettingError {
    let problem = match settings::nearest(name, known).as_slice() {
        [] => format!("the workload has no {kind} at all"),
        [one] => format!("the workload has no {kind} `{name}`; did you mean `{one}`?"),
        many => format!("the workload has no {kind} `{name}`; it has `{}`", many.join("`, `")),
    };
    SettingError::machine(setting, problem)
}

fn weight(name: &str, value: &str) -> Result<u32, SettingError> {
    let number =
        value.parse::<u32>().ok().filter(|weight| (1..=CGROUP_WEIGHT_MAX).contains(weight));
    number.ok_or_else(|| SettingError::Value {
        name: name.to_owned(),
        value: value.to_owned(),
        problem: format!("a weight is a whole number from 1 to {CGROUP_WEIGHT_MAX}"),
    })
}
