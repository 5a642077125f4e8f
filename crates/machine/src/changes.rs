//! Settings of a run, resolved: which variable, cgroup, group of tasks or CPU is meant, and what it becomes.

use fairground_bpf::{Global, Instance, Trap};
use fairground_suggest::nearest;
use fairground_workload::limits::CGROUP_WEIGHT_MAX;
use fairground_workload::{Bandwidth, SchedPolicy, TextError, parse_cpus};

use crate::cgroup::{CgroupRef, Cgroups, Control};
use crate::cpuset::CpuMask;
use crate::kernel::{Hotplug, Kernel};
use crate::settings::{Meanings, Patch, switch};
use crate::{MachineError, Policy, Setting, SettingError, Topology};

/// Target of a setting.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// A variable of the program, by its index among the policy's globals, and what changes of it.
    Global { global: usize, patches: Vec<Patch> },
    /// A file of a cgroup.
    Cgroup { cgroup: CgroupRef, control: Control },
    /// All living tasks of a group of the workload.
    Tasks { spec: usize, change: TaskChange },
    /// A CPU comes online or goes offline.
    Online(Hotplug),
}

/// A change of a task by an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskChange {
    /// Its cgroup.
    Cgroup(CgroupRef),
    /// Where it may run (`taskset`).
    Cpus(CpuMask),
    /// Its nice value (`renice`).
    Nice(i8),
    /// Its scheduling policy (`chrt`).
    Policy(SchedPolicy),
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
        for (file, control) in CONTROLS {
            let Some(path) = between(name, "cgroup.", file) else { continue };
            let cgroup = self.cgroup(name, path)?;
            if cgroup == CgroupRef::ROOT {
                let file = &file[1..];
                let problem = format!("the root cgroup has no `{file}`: it has no siblings");
                return Err(SettingError::machine(name, problem));
            }
            let control = control(value).map_err(|problem| SettingError::Value {
                name: name.to_owned(),
                value: value.to_owned(),
                problem,
            })?;
            return Ok((Target::Cgroup { cgroup, control }, format!("{name}={value}")));
        }
        if let Some((group, attribute)) = of_tasks(name) {
            let spec = self.groups.iter().position(|known| known == group).ok_or_else(|| {
                let names = self.groups.iter().map(String::as_str);
                unknown(name, "group of tasks", group, names)
            })?;
            let change = self.task_change(setting, attribute)?;
            return Ok((Target::Tasks { spec, change }, format!("{name}={value}")));
        }
        if let Some(cpu) = between(name, "cpu.", ".online") {
            let change = self.hotplug(name, cpu, value)?;
            return Ok((Target::Online(change), change.label()));
        }
        if is_machines(name) {
            let forms = "write `cgroup.PATH.weight=300`, `cgroup.PATH.max=50ms/100ms`, \
                         `cgroup.PATH.idle=on`, `task.NAME.cgroup=PATH`, `task.NAME.cpus=0-1`, \
                         `task.NAME.nice=5`, `task.NAME.policy=fifo:50` or `cpu.N.online=off`";
            return Err(SettingError::machine(name, format!("it is no setting; {forms}")));
        }
        let policy = self.policy;
        let meanings = Meanings::new(&policy.types, self.topology);
        let change = meanings.change(policy.name(), &policy.globals, setting)?;
        Ok((Target::Global { global: change.variable, patches: change.patches }, change.label))
    }

    /// The change of a group's tasks that a setting asks for.
    fn task_change(&self, setting: &Setting, attribute: &str) -> Result<TaskChange, SettingError> {
        let Setting { name, value, at_ns } = setting;
        let refuse = |problem: String| SettingError::Value {
            name: name.to_owned(),
            value: value.to_owned(),
            problem,
        };
        let text = |error: TextError| refuse(format!("{}; {}", error.message, error.help));
        if attribute == "cgroup" {
            return self.cgroup(name, value).map(TaskChange::Cgroup);
        }
        if at_ns.is_none() {
            let problem = format!(
                "tasks begin with what the workload says: write `{attribute}` there, or change it \
                 during the run, as in `--at 1s:{name}={value}`"
            );
            return Err(SettingError::machine(name, problem));
        }
        if attribute == "nice" {
            let nice = value.parse().ok().filter(|nice| (-20..=19).contains(nice));
            return nice
                .map(TaskChange::Nice)
                .ok_or_else(|| refuse("a nice value is from -20 to 19".to_owned()));
        }
        if attribute == "policy" {
            return SchedPolicy::parse(value).map(TaskChange::Policy).map_err(text);
        }
        let list = parse_cpus(value).map_err(text)?;
        let cpus = CpuMask::from_list(&list).and(&self.topology.all());
        if cpus.is_empty() {
            let last = self.topology.cpus() - 1;
            return Err(refuse(format!("the machine has none of these CPUs, but 0 to {last}")));
        }
        Ok(TaskChange::Cpus(cpus))
    }

    /// A CPU that the machine has comes or goes. Never CPU 0, as on x86, so that one is always left.
    fn hotplug(&self, name: &str, cpu: &str, value: &str) -> Result<Hotplug, SettingError> {
        let cpus = self.topology.cpus();
        let Some(cpu) = cpu.parse().ok().filter(|cpu| *cpu < cpus) else {
            let last = cpus - 1;
            let problem =
                format!("the machine has no CPU `{cpu}`; it has {cpus}, from 0 to {last}");
            return Err(SettingError::machine(name, problem));
        };
        let online = switch(value).ok_or_else(|| SettingError::Value {
            name: name.to_owned(),
            value: value.to_owned(),
            problem: "a CPU is `on` or `off`".to_owned(),
        })?;
        if cpu == 0 && !online {
            let problem = "CPU 0 cannot go offline, as on x86: it boots the machine and serves \
                           interrupts that no other CPU gets; take another one"
                .to_owned();
            return Err(SettingError::machine(name, problem));
        }
        Ok(Hotplug { cpu, online })
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

/// The group and the attribute of a setting `task.GROUP.ATTRIBUTE`; `None`: it is another one.
fn of_tasks(name: &str) -> Option<(&str, &str)> {
    const ATTRIBUTES: [&str; 4] = ["cgroup", "cpus", "nice", "policy"];
    let (group, attribute) = name.strip_prefix("task.")?.rsplit_once('.')?;
    (!group.is_empty() && ATTRIBUTES.contains(&attribute)).then_some((group, attribute))
}

/// Whether a setting is one of the machine, and none of a scheduler's variable: a member's name begins with a letter.
fn is_machines(name: &str) -> bool {
    let of_cpu = |rest: &str| rest.starts_with(|first: char| first.is_ascii_digit());
    name.starts_with("cgroup.")
        || name.starts_with("task.")
        || name.strip_prefix("cpu.").is_some_and(of_cpu)
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
    let problem = match nearest(name, known).as_slice() {
        [] => format!("the workload has no {kind} at all"),
        [one] => format!("the workload has no {kind} `{name}`; did you mean `{one}`?"),
        many => {
            format!("the workload has no {kind} `{name}`; the nearest are `{}`", many.join("`, `"))
        }
    };
    SettingError::machine(setting, problem)
}

/// Reads what a file of a cgroup is to hold, or says what is wrong.
type ReadControl = fn(&str) -> Result<Control, String>;

/// The files of a cgroup that settings name, behind its path.
const CONTROLS: [(&str, ReadControl); 3] = [(".weight", weight), (".max", max), (".idle", idle)];

fn weight(value: &str) -> Result<Control, String> {
    let number = value.parse().ok().filter(|weight| (1..=CGROUP_WEIGHT_MAX).contains(weight));
    let problem = || format!("a weight is a whole number from 1 to {CGROUP_WEIGHT_MAX}");
    number.map(Control::Weight).ok_or_else(problem)
}

fn max(value: &str) -> Result<Control, String> {
    let max = Bandwidth::parse(value).map_err(|error| format!("{}; {}", error.message, error.help));
    max.map(Control::Max)
}

fn idle(value: &str) -> Result<Control, String> {
    match value {
        "on" | "true" | "1" => Ok(Control::Idle(true)),
        "off" | "false" | "0" => Ok(Control::Idle(false)),
        _ => Err("write `on` or `off`".to_owned()),
    }
}
