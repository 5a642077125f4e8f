//! Every run that the flags ask for: targets × schedulers × settings.

use std::collections::BTreeSet;
use std::process::ExitCode;

use fairground_machine::{MachineConfig, Policy, Setting, TraceOptions};
use fairground_session::{
    CHUNK_NS, CPUS_DEFAULT, Failure, OWN_SCHEDULER, Outcome, Plan, Scheduler, SchedulerObject,
    Target, TaskNumbers, Variant, Watch, at_settings, duration_ns, host_cpus, is_knob,
    machine_config, read_profiles, split_knobs, variants,
};
use fairground_workload::Workload;

use super::column::{Column, Loaded, columns, left_out};
use super::run::simulated_options;
use crate::args::{MachineArgs, SchedArgs, ShowArgs, TargetArgs};
use crate::input::machine_spec;
use crate::interrupt;
use crate::pictures::Pictured;
use crate::progress::Progress;
use crate::real::RealPlan;

/// Beside a real kernel, whose tasks exist before the run, those of the simulated machine do so too, ns: long enough for them to
/// go to sleep.
const LEAD_IN_NS: u64 = 400_000_000;

/// Everything that the runs have in common.
#[derive(Debug)]
pub(super) struct Columns<'a> {
    pub(super) workload: &'a Workload,
    pub(super) sched: &'a SchedArgs,
    pub(super) target: Option<&'a TargetArgs>,
    pub(super) machine: &'a MachineArgs,
    pub(super) show: &'a ShowArgs,
    /// Whether each callback of a simulated scheduler is recorded.
    pub(super) callbacks: bool,
    /// What a task is called in the result, from its name in the workload.
    pub(super) rename: fn(&str) -> &str,
    /// Read a simulated scheduler's own numbers of each task at every tick.
    pub(super) sample: bool,
}

/// What was run.
#[derive(Debug)]
pub(super) struct Ran {
    /// The runs, in the order of the columns.
    pub(super) outcomes: Vec<Outcome>,
    /// The simulated machine, where one of them is simulated.
    pub(super) simulated: Option<MachineConfig>,
    /// The length of each, ns.
    pub(super) duration_ns: u64,
    /// What may explain an ejection, and what was not run.
    pub(super) notes: Vec<String>,
    /// Somebody asked for the end before it came.
    pub(super) is_interrupted: bool,
}

impl Ran {
    /// The exit code of the process: a result that is partial has its own.
    pub(super) fn exit_code(&self, of_runs: u8) -> ExitCode {
        ExitCode::from(if self.is_interrupted { interrupt::EXIT_CODE } else { of_runs })
    }

    /// The result says so where it begins.
    pub(super) fn title(&self, title: &str) -> String {
        let mark = if self.is_interrupted { " (partial)" } else { "" };
        format!("{title}{mark}")
    }

    /// The runs as charts see them.
    pub(super) fn pictured(&self) -> Vec<Pictured<'_>> {
        self.outcomes.iter().map(Pictured::from).collect()
    }
}

/// The columns of the simulated machine, for somebody who runs them in a way of its own.
#[derive(Debug)]
pub(super) struct Simulations {
    pub(super) config: MachineConfig,
    /// The length of each, ns.
    pub(super) duration_ns: u64,
    pub(super) simulations: Vec<Simulation>,
}

/// One of them.
#[derive(Clone, Debug)]
pub(super) struct Simulation {
    /// The column's name.
    pub(super) label: String,
    /// The scheduler as it was typed.
    pub(super) spec: String,
    pub(super) policy: Policy,
    /// Everything that is set: by the parameter set and by flags, before the run and during it.
    pub(super) settings: Vec<Setting>,
    /// What the scheduler keeps for a task.
    pub(super) numbers: TaskNumbers,
}

/// What was asked for, checked.
struct Prepared {
    targets: Vec<Target>,
    /// The simulated machine.
    config: MachineConfig,
    variants: Vec<Variant>,
    schedulers: Vec<Loaded>,
    /// What is set during a run.
    later: Vec<Setting>,
    /// The length of each run, ns.
    duration_ns: u64,
}

impl Prepared {
    /// The columns, one at least.
    fn columns(&self) -> Result<Vec<Column<'_>>, Failure> {
        columns(&self.targets, &self.schedulers, &self.variants)
    }
}

impl Columns<'_> {
    /// Checks what was asked for, and compiles its schedulers.
    fn prepare(&self, targets: Vec<Target>) -> Result<Prepared, Failure> {
        let trace = TraceOptions { callbacks: self.callbacks, ticks: true };
        let mut config = machine_config(&machine_spec(self.machine, self.sched.null_loads, trace))?;
        if self.machine.lead_in.is_none() && targets.iter().any(Target::is_real) {
            config.lead_in_ns = LEAD_IN_NS;
        }
        let variants = variants(&self.sched.set)?;
        let schedulers = self.schedulers(&targets, config.cpus(), &variants)?;
        let later = at_settings(&self.sched.at)?;
        self.refuse_what_no_target_takes(&targets, &variants, &later)?;
        let duration_ns = duration_ns(self.machine.duration.as_deref(), self.workload.duration_ns)?;
        Ok(Prepared { targets, config, variants, schedulers, later, duration_ns })
    }

    /// Runs all of them.
    pub(super) fn run(&self, quiet: bool) -> Result<Ran, Failure> {
        let prepared = self.prepare(self.targets()?)?;
        let columns = prepared.columns()?;
        let Prepared { targets, config, later, duration_ns, .. } = &prepared;
        let duration_ns = *duration_ns;
        let steps = duration_ns.div_ceil(CHUNK_NS) * columns.len() as u64;
        let progress = Progress::new(quiet, steps);
        let several = targets.len() > 1;
        let mut outcomes = Vec::with_capacity(columns.len());
        let mut notes = left_out(targets, &prepared.schedulers);
        for column in &columns {
            let label = column.label(several);
            if !progress.goes_on() {
                notes.push(format!("{label}: not run: it was interrupted before"));
                continue;
            }
            let settings = column.settings(later);
            let given = settings.clone();
            let ran = match (column.target, &column.scheduler.compiled) {
                (Target::Sim, Some(scheduler)) => self
                    .simulated(scheduler, label.clone(), settings, config, duration_ns)?
                    .run(&progress),
                _ => self
                    .real(column, label.clone(), settings, duration_ns)?
                    .run(&progress)
                    .map_err(|e| Failure::new(format_args!("{label}: {e}"))),
            };
            let outcome = match ran {
                Err(error) if column.target.is_real() && !progress.goes_on() => {
                    notes.push(format!(
                        "{label}: interrupted: a run on a real kernel is whole or absent ({error})"
                    ));
                    continue;
                }
                ran => ran?,
            };
            if outcome.ejection().is_some() {
                notes.extend(
                    column.scheduler.object().and_then(|object| object.left_at_zero(&given)),
                );
            }
            outcomes.push(outcome);
        }
        let is_interrupted = !progress.goes_on();
        if is_interrupted && outcomes.is_empty() {
            return Err(Failure::new("interrupted before anything was measured"));
        }
        if is_interrupted {
            progress.say("interrupted: what there is follows, and says that it is partial");
        }
        let simulated = targets.contains(&Target::Sim).then(|| config.clone());
        Ok(Ran { outcomes, simulated, duration_ns, notes, is_interrupted })
    }

    fn simulated<'c>(
        &'c self,
        scheduler: &'c Scheduler,
        label: String,
        settings: Vec<Setting>,
        config: &MachineConfig,
        duration_ns: u64,
    ) -> Result<Plan<'c>, Failure> {
        Ok(Plan {
            label,
            scheduler,
            settings,
            workload: self.workload,
            machine: config.clone(),
            duration_ns,
            options: simulated_options(self.show)?,
            rename: self.rename,
            sample: self.sample,
        })
    }

    /// What would be run in the simulated machine.
    pub(super) fn simulations(&self) -> Result<Simulations, Failure> {
        let prepared = self.prepare(vec![Target::Sim])?;
        let simulation = |column: &Column<'_>| {
            let scheduler = column.scheduler.compiled.as_ref()?;
            let mut settings = scheduler.object.settings.clone();
            settings.extend(column.settings(&prepared.later));
            Some(Simulation {
                label: column.label(false),
                spec: column.scheduler.spec.clone(),
                policy: scheduler.policy.clone(),
                settings,
                numbers: TaskNumbers::of(&scheduler.object.object),
            })
        };
        let simulations = prepared.columns()?.iter().filter_map(simulation).collect();
        let Prepared { config, duration_ns, .. } = prepared;
        Ok(Simulations { config, duration_ns, simulations })
    }

    fn real<'c>(
        &'c self,
        column: &Column<'c>,
        label: String,
        settings: Vec<Setting>,
        duration_ns: u64,
    ) -> Result<RealPlan<'c>, Failure> {
        let (settings, knobs) = split_knobs(settings);
        let args = self.target.ok_or_else(|| Failure::new("this command only simulates"))?;
        Ok(RealPlan {
            label,
            target: column.target,
            args,
            cpus: self.machine.cpus.unwrap_or(CPUS_DEFAULT),
            object: column.scheduler.object(),
            settings,
            knobs,
            workload: self.workload,
            seed: self.machine.seed,
            duration_ns,
            hold_ns: 0,
            options: simulated_options(self.show)?,
        })
    }

    fn targets(&self) -> Result<Vec<Target>, Failure> {
        match self.target {
            Some(args) => args.on.iter().map(|text| Target::parse(text)).collect(),
            None => Ok(vec![Target::Sim]),
        }
    }

    /// The schedulers that were named, or else those that the targets have by default.
    fn schedulers(
        &self,
        targets: &[Target],
        cpus: u32,
        variants: &[Variant],
    ) -> Result<Vec<Loaded>, Failure> {
        let mut specs: Vec<&str> = self.sched.sched.iter().map(String::as_str).collect();
        if specs.is_empty() {
            let defaults: BTreeSet<_> = targets.iter().map(Target::default_scheduler).collect();
            specs.extend(defaults);
        }
        let simulated = targets.contains(&Target::Sim);
        let profiles = read_profiles(&self.sched.profile, &specs)?;
        let cpus = match targets {
            _ if profiles.is_empty() => cpus,
            [Target::Host] => host_cpus(),
            _ if targets.contains(&Target::Host) && host_cpus() != cpus => {
                return Err(Failure::new(format_args!(
                    "a profile counts CPUs, and this machine has {} where the others have {cpus}",
                    host_cpus()
                ))
                .help(format_args!("add `--cpus {}`", host_cpus())));
            }
            _ => cpus,
        };
        let load = |spec: &str| {
            let profile = profiles.iter().find(|profile| profile.is_for(spec));
            if let Some(profile) = profile {
                variants.iter().try_for_each(|variant| profile.check(spec, &variant.settings))?;
            }
            let profile = profile.map(|profile| (profile, cpus));
            let (compiled, object) = match spec {
                OWN_SCHEDULER => (None, None),
                _ if simulated => {
                    (Some(Scheduler::load(spec, profile, self.sched.engine.into())?), None)
                }
                _ => (None, Some(SchedulerObject::find(spec, profile)?)),
            };
            Ok(Loaded { spec: spec.to_owned(), compiled, object })
        };
        specs.into_iter().map(load).collect()
    }

    /// A flag that has no effect on any of the targets is a mistake of the one who typed it.
    fn refuse_what_no_target_takes(
        &self,
        targets: &[Target],
        variants: &[Variant],
        later: &[Setting],
    ) -> Result<(), Failure> {
        let real = targets.iter().any(Target::is_real);
        let mut settings = variants.iter().flat_map(|variant| &variant.settings).chain(later);
        if let Some(knob) = settings.find(|s| is_knob(&s.name)).filter(|_| !real) {
            return Err(Failure::new(format_args!(
                "`{}` is a tunable of a real kernel, and `--on sim` has none",
                knob.name
            ))
            .help("name the scheduler's own tunable (`sched show` lists them), or add `--on vm:KERNEL`"));
        }
        let only_real = targets.iter().all(Target::is_real);
        let simulated_only = [
            ("--hz", self.machine.hz.is_some()),
            ("--cost", !self.machine.cost.is_empty()),
            ("--check", self.machine.check),
            ("--callbacks", self.callbacks),
            ("--lead-in", self.machine.lead_in.is_some()),
            ("--max-events", self.machine.max_events.is_some()),
        ];
        if let Some((flag, _)) = simulated_only.iter().find(|(_, given)| *given && only_real) {
            return Err(Failure::new(format_args!(
                "{flag} is of the simulated machine, and a real kernel is what it is"
            ))
            .help(format_args!("leave {flag} out, or add `sim` to --on")));
        }
        if real && self.machine.topology.is_some() {
            return Err(Failure::new("--topology is of the simulated machine")
                .help("a virtual machine takes --cpus; its CPUs are cores of one socket"));
        }
        Ok(())
    }
}
