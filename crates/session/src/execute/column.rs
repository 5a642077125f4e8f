//! One run of a plan: which scheduler runs on which target with which settings.

use fairground_machine::Setting;

use crate::failure::Failure;
use crate::input::{
    LoaderProgram, OWN_SCHEDULER, Scheduler, SchedulerObject, Target, Variant, is_hotplug, is_knob,
};
use crate::spec::{SchedulerSpec, TargetSpec};

/// One run, a column of the result.
pub(super) struct Column<'a> {
    pub(super) target: &'a Target,
    pub(super) scheduler: &'a Loaded,
    pub(super) variant: Variant,
}

/// A scheduler as its target needs it.
pub(super) struct Loaded {
    pub(super) spec: String,
    /// For the simulated machine.
    pub(super) compiled: Option<Scheduler>,
    /// For a real kernel, where no simulated machine runs it.
    pub(super) object: Option<SchedulerObject>,
    /// For a virtual machine: a program that attaches the scheduler.
    pub(super) loader: Option<LoaderProgram>,
}

impl Loaded {
    pub(super) fn object(&self) -> Option<&SchedulerObject> {
        self.compiled.as_ref().map(|scheduler| &scheduler.object).or(self.object.as_ref())
    }

    pub(super) fn is_own(&self) -> bool {
        self.spec == OWN_SCHEDULER
    }
}

/// Every combination that can run: a kernel's own scheduler needs a kernel and has no settings of an object, and a
/// simulated machine has no tunables of a kernel. Where targets are compared, a kernel that takes no schedulers runs
/// its own only. What has no effect on a run makes no second column.
///
/// # Errors
/// A target on which nothing would run.
pub(super) fn columns<'a>(
    targets: &'a [Target],
    schedulers: &'a [Loaded],
    variants: &[Variant],
) -> Result<Vec<Column<'a>>, Failure> {
    let mut columns: Vec<Column<'a>> = Vec::new();
    for target in targets {
        let first = columns.len();
        for scheduler in schedulers.iter().filter(|scheduler| runs(target, scheduler, targets)) {
            let takes = |name: &str| takes(target, scheduler, name);
            let of_scheduler = columns.len();
            for variant in variants.iter().map(|variant| variant.only(takes)) {
                if columns[of_scheduler..].iter().all(|column| column.variant != variant) {
                    columns.push(Column { target, scheduler, variant });
                }
            }
        }
        if columns.len() == first {
            return Err(nothing_runs(target));
        }
    }
    Ok(columns)
}

/// Whether a scheduler is run on one of the targets.
fn runs(target: &Target, scheduler: &Loaded, targets: &[Target]) -> bool {
    if scheduler.is_own() {
        return target.is_real();
    }
    // A kernel that is the only target reports itself what it lacks.
    let is_taken = targets.len() == 1 || target.takes_schedulers();
    is_taken && (scheduler.loader.is_none() || matches!(target, Target::Vm(_)))
}

fn nothing_runs(target: &Target) -> Failure {
    if target.is_real() {
        return Failure::new(format_args!(
            "the kernel of {target} takes no schedulers, it has no sched_ext"
        ))
        .help(format_args!(
            "add `{OWN_SCHEDULER}`, its own scheduler, to --sched; or take a kernel that has it: `--on vm:newest`"
        ));
    }
    Failure::new(format_args!(
        "--sched {OWN_SCHEDULER} is the own scheduler of a real kernel, and `--on sim` has none"
    ))
    .help("add `--on vm:KERNEL` or `--on host`, or name a scheduler of `sched list`")
}

/// Refuses a loader beside a scheduler where there is one run.
///
/// # Errors
/// If both are named.
pub fn one_scheduler(scheduler: &SchedulerSpec, target: &TargetSpec) -> Result<(), Failure> {
    if target.loader.is_none() || scheduler.sched.is_empty() {
        return Ok(());
    }
    Err(Failure::new("--sched and --loader name two schedulers for one run").help(
        "leave out --sched: the loader attaches its own; `fairground compare` runs both, one column each",
    ))
}

/// Combinations that are left out, in words.
pub(super) fn left_out(targets: &[Target], schedulers: &[Loaded]) -> Vec<String> {
    let all = targets.iter().flat_map(|target| schedulers.iter().map(move |one| (target, one)));
    let takes_programs = |target: &Target| matches!(target, Target::Vm(_));
    all.filter(|(target, one)| one.loader.is_none() || takes_programs(target))
        .filter(|(target, one)| !one.is_own() && !runs(target, one, targets))
        .map(|(target, one)| {
            format!("{} {target}: not run: that kernel has no sched_ext", one.spec)
        })
        .collect()
}

/// Whether a setting of that name has an effect on a scheduler on a target. Every target has CPUs.
fn takes(target: &Target, scheduler: &Loaded, name: &str) -> bool {
    let has_variables = !scheduler.is_own() && scheduler.loader.is_none();
    is_hotplug(name) || if is_knob(name) { target.is_real() } else { has_variables }
}

impl Column<'_> {
    fn takes(&self, name: &str) -> bool {
        takes(self.target, self.scheduler, name)
    }

    /// What is set before it and during it.
    pub(super) fn settings(&self, later: &[Setting]) -> Vec<Setting> {
        let later = later.iter().filter(|setting| self.takes(&setting.name));
        self.variant.settings.iter().chain(later).cloned().collect()
    }

    pub(super) fn label(&self, with_target: bool) -> String {
        let mut label = self.scheduler.spec.clone();
        if with_target {
            label += &format!(" {}", self.target);
        }
        let varied = self.variant.label();
        if !varied.is_empty() {
            label += &format!(" {varied}");
        }
        label
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded(spec: &str) -> Loaded {
        Loaded { spec: spec.to_owned(), compiled: None, object: None, loader: None }
    }

    /// `scx` stands for a loader.
    fn loader(spec: &str) -> Option<LoaderProgram> {
        (spec == "scx").then(|| LoaderProgram {
            label: spec.to_owned(),
            program: "/bin/scx".into(),
            arguments: Vec::new(),
        })
    }

    fn asked(targets: &[&str], schedulers: &[&str]) -> (Vec<Target>, Vec<Loaded>) {
        let target = |text: &&str| Target::parse(text).expect("a target");
        let loaded = |spec: &&str| Loaded { loader: loader(spec), ..loaded(spec) };
        (targets.iter().map(target).collect(), schedulers.iter().map(loaded).collect())
    }

    /// The labels of the columns, or what is wrong.
    fn labels(targets: &[&str], schedulers: &[&str]) -> Result<Vec<String>, String> {
        let (targets, schedulers) = asked(targets, schedulers);
        let columns = columns(&targets, &schedulers, &[Variant::default()]);
        let labels = columns.map(|all| all.iter().map(|one| one.label(true)).collect());
        labels.map_err(|failure| failure.to_string())
    }

    #[test]
    fn each_target_runs_what_it_can() {
        let pair = ["rfs", "kernel"];
        assert_eq!(labels(&["sim", "vm:6.1"], &pair).unwrap(), ["rfs sim", "kernel vm:6.1"]);
        let all = ["rfs sim", "rfs vm:7.2", "kernel vm:7.2"];
        assert_eq!(labels(&["sim", "vm:7.2"], &pair).unwrap(), all);
        // A kernel that is the only target reports itself what it lacks.
        assert_eq!(labels(&["vm:6.1"], &["rfs"]).unwrap(), ["rfs vm:6.1"]);
    }

    #[test]
    fn a_loader_runs_in_virtual_machines_whose_kernel_takes_schedulers() {
        let all = labels(&["sim", "host", "vm:6.1", "vm:7.2"], &["cfs", "kernel", "scx"]).unwrap();
        let of_loader: Vec<_> = all.iter().filter(|label| label.starts_with("scx")).collect();
        assert_eq!(of_loader, ["scx vm:7.2"]);
        assert_eq!(labels(&["vm:6.1"], &["scx"]).unwrap(), ["scx vm:6.1"]);
        let (targets, schedulers) = asked(&["sim", "vm:6.1"], &["scx"]);
        let notes = left_out(&targets, &schedulers);
        assert_eq!(notes, ["scx vm:6.1: not run: that kernel has no sched_ext"]);
        assert!(!takes(&targets[1], &schedulers[0], "slice_us"));
        assert!(takes(&targets[1], &schedulers[0], "kernel.hung_task_timeout_secs"));
    }

    #[test]
    fn what_is_not_run_is_told() {
        let notes = |targets: &[&str]| {
            let (targets, schedulers) = asked(targets, &["rfs", "kernel"]);
            left_out(&targets, &schedulers)
        };
        assert_eq!(
            notes(&["sim", "vm:6.1"]),
            ["rfs vm:6.1: not run: that kernel has no sched_ext"]
        );
        assert_eq!((notes(&["sim", "vm:7.2"]), notes(&["vm:6.1"])), (vec![], vec![]));
    }

    #[test]
    fn a_target_that_can_run_nothing_is_told() {
        let refused = labels(&["sim", "vm:6.1"], &["rfs"]).unwrap_err();
        assert!(refused.contains("vm:6.1 takes no schedulers"), "{refused}");
        let refused = labels(&["sim"], &["kernel"]).unwrap_err();
        assert!(refused.contains("`--on sim` has none"), "{refused}");
    }
}
