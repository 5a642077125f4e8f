//! Which scheduler runs on which ground with which settings.

use fairground_machine::Setting;
use fairground_session::{
    Failure, Ground, OWN_SCHEDULER, Scheduler, SchedulerObject, Variant, is_knob,
};

/// One column, to be run.
pub(super) struct Column<'a> {
    pub(super) ground: &'a Ground,
    pub(super) scheduler: &'a Loaded,
    pub(super) variant: Variant,
}

/// A scheduler as its ground needs it.
pub(super) struct Loaded {
    pub(super) spec: String,
    /// For the simulated machine.
    pub(super) compiled: Option<Scheduler>,
    /// For a real kernel, where only real kernels run it.
    pub(super) object: Option<SchedulerObject>,
}

impl Loaded {
    pub(super) fn object(&self) -> Option<&SchedulerObject> {
        self.compiled.as_ref().map(|scheduler| &scheduler.object).or(self.object.as_ref())
    }

    pub(super) fn is_own(&self) -> bool {
        self.spec == OWN_SCHEDULER
    }
}

/// Every combination that makes sense: a kernel's own scheduler needs a kernel and has no settings of an object, and a simulated
/// machine has no tunables of a kernel. Where grounds are compared, a kernel that takes no schedulers runs its own only. What
/// has no effect on a run makes no second column.
///
/// # Errors
/// A ground on which nothing would run.
pub(super) fn columns<'a>(
    grounds: &'a [Ground],
    schedulers: &'a [Loaded],
    variants: &[Variant],
) -> Result<Vec<Column<'a>>, Failure> {
    let mut columns: Vec<Column<'a>> = Vec::new();
    for ground in grounds {
        let first = columns.len();
        for scheduler in schedulers.iter().filter(|scheduler| runs(ground, scheduler, grounds)) {
            let takes = |name: &str| takes(ground, scheduler, name);
            let of_scheduler = columns.len();
            for variant in variants.iter().map(|variant| variant.only(takes)) {
                if columns[of_scheduler..].iter().all(|column| column.variant != variant) {
                    columns.push(Column { ground, scheduler, variant });
                }
            }
        }
        if columns.len() == first {
            return Err(nothing_runs(ground));
        }
    }
    Ok(columns)
}

/// Whether a scheduler is run on one of the grounds.
fn runs(ground: &Ground, scheduler: &Loaded, grounds: &[Ground]) -> bool {
    match scheduler.is_own() {
        true => ground.is_real(),
        // Alone, such a kernel says itself what it lacks.
        false => grounds.len() == 1 || ground.takes_schedulers(),
    }
}

fn nothing_runs(ground: &Ground) -> Failure {
    if ground.is_real() {
        return Failure::new(format_args!(
            "the kernel of {ground} takes no schedulers, it has no sched_ext"
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

/// What somebody who reads the columns may miss.
pub(super) fn left_out(grounds: &[Ground], schedulers: &[Loaded]) -> Vec<String> {
    let all = grounds.iter().flat_map(|ground| schedulers.iter().map(move |one| (ground, one)));
    all.filter(|(ground, one)| !one.is_own() && !runs(ground, one, grounds))
        .map(|(ground, one)| {
            format!("{} {ground}: not run: that kernel has no sched_ext", one.spec)
        })
        .collect()
}

/// Whether a setting of that name means something to a scheduler on a ground.
fn takes(ground: &Ground, scheduler: &Loaded, name: &str) -> bool {
    if is_knob(name) { ground.is_real() } else { !scheduler.is_own() }
}

impl Column<'_> {
    fn takes(&self, name: &str) -> bool {
        takes(self.ground, self.scheduler, name)
    }

    /// What is set before it and during it.
    pub(super) fn settings(&self, later: &[Setting]) -> Vec<Setting> {
        let later = later.iter().filter(|setting| self.takes(&setting.name));
        self.variant.settings.iter().chain(later).cloned().collect()
    }

    pub(super) fn label(&self, with_ground: bool) -> String {
        let mut label = self.scheduler.spec.clone();
        if with_ground {
            label += &format!(" {}", self.ground);
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

    fn asked(grounds: &[&str], schedulers: &[&str]) -> (Vec<Ground>, Vec<Loaded>) {
        let ground = |text: &&str| Ground::parse(text).expect("a ground");
        let loaded =
            |spec: &&str| Loaded { spec: (*spec).to_owned(), compiled: None, object: None };
        (grounds.iter().map(ground).collect(), schedulers.iter().map(loaded).collect())
    }

    /// The labels of the columns, or what is wrong.
    fn labels(grounds: &[&str], schedulers: &[&str]) -> Result<Vec<String>, String> {
        let (grounds, schedulers) = asked(grounds, schedulers);
        let columns = columns(&grounds, &schedulers, &[Variant::default()]);
        let labels = columns.map(|all| all.iter().map(|one| one.label(true)).collect());
        labels.map_err(|failure| failure.to_string())
    }

    #[test]
    fn each_ground_runs_what_it_can() {
        let pair = ["rfs", "kernel"];
        assert_eq!(labels(&["sim", "vm:6.1"], &pair).unwrap(), ["rfs sim", "kernel vm:6.1"]);
        let all = ["rfs sim", "rfs vm:7.2", "kernel vm:7.2"];
        assert_eq!(labels(&["sim", "vm:7.2"], &pair).unwrap(), all);
        // Alone, the kernel is asked, and says what it lacks.
        assert_eq!(labels(&["vm:6.1"], &["rfs"]).unwrap(), ["rfs vm:6.1"]);
    }

    #[test]
    fn what_is_not_run_is_told() {
        let told = |grounds: &[&str]| {
            let (grounds, schedulers) = asked(grounds, &["rfs", "kernel"]);
            left_out(&grounds, &schedulers)
        };
        assert_eq!(told(&["sim", "vm:6.1"]), ["rfs vm:6.1: not run: that kernel has no sched_ext"]);
        assert_eq!((told(&["sim", "vm:7.2"]), told(&["vm:6.1"])), (vec![], vec![]));
    }

    #[test]
    fn a_ground_that_can_run_nothing_is_told() {
        let refused = labels(&["sim", "vm:6.1"], &["rfs"]).unwrap_err();
        assert!(refused.contains("vm:6.1 takes no schedulers"), "{refused}");
        let refused = labels(&["sim"], &["kernel"]).unwrap_err();
        assert!(refused.contains("`--on sim` has none"), "{refused}");
    }
}
