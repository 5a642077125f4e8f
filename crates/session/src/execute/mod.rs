//! Execution of a plan: every combination of target, scheduler and settings that a spec names, each in the simulated
//! machine, on a kernel in a virtual machine, or on this machine's.

mod column;
mod kernel;
mod real;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use fairground_analysis::Options;
use fairground_bpf::Object;
use fairground_machine::{MachineConfig, Policy, Setting, Topology};
use fairground_workload::Workload;

pub use self::column::one_scheduler;
use self::column::{Column, Loaded, columns, left_out};
use self::kernel::RealTarget;
use self::real::RealPlan;
use crate::failure::Failure;
use crate::input::{
    LoaderProgram, OWN_SCHEDULER, Scheduler, SchedulerObject, Target, host_topology, is_hotplug,
    is_knob, read_profiles, split_knobs,
};
use crate::outcome::Outcome;
use crate::simulate::{CHUNK_NS, Plan, Watch};
use crate::spec::{CPUS_DEFAULT, Resolved, RunSpec};

/// The runs of a spec, and how they are measured.
#[derive(Debug)]
pub struct RunPlan<'a> {
    /// The runs in words.
    pub spec: &'a RunSpec,
    /// The workload; a replay's is not the one that the spec names.
    pub workload: &'a Workload,
    /// The window and the interval of the figures.
    pub options: Options,
    /// Whether each callback of a simulated scheduler is recorded.
    pub callbacks: bool,
    /// What a task is called in the result, from its name in the workload.
    pub rename: fn(&str) -> &str,
    /// Whether a simulated scheduler's own numbers of each task are read at every tick.
    pub sample: bool,
    /// Whether a simulated run keeps its events: for its trace, its page, or the marks of its tasks.
    pub keep_events: bool,
    /// Whether a kernel that is not in the cache is fetched.
    pub fetch: bool,
    /// Whether what a scheduler's own loader sets is read from the kernel.
    pub capture: bool,
    /// The program that a virtual machine boots and that carries out a job on the host; `None`: the running one.
    pub program: Option<PathBuf>,
}

/// The runs of a plan that were made.
#[derive(Debug)]
pub struct Ran {
    /// The runs, in the order of the plan.
    pub outcomes: Vec<Outcome>,
    /// The simulated machine, where one of them is simulated.
    pub simulated: Option<MachineConfig>,
    /// The length of each, ns.
    pub duration_ns: u64,
    /// What may explain an ejection, and what was not run.
    pub notes: Vec<String>,
    /// Whether the plan was interrupted.
    pub is_interrupted: bool,
}

/// The runs in the simulated machine, for a view that steps through them.
#[derive(Debug)]
pub struct Simulations {
    /// The machine.
    pub config: MachineConfig,
    /// The length of each, ns.
    pub duration_ns: u64,
    /// The runs, in the order of the plan.
    pub simulations: Vec<Simulation>,
}

/// A run in the simulated machine that has not begun.
#[derive(Clone, Debug)]
pub struct Simulation {
    /// The column's name.
    pub label: String,
    /// The scheduler as it was typed.
    pub spec: String,
    /// Its object.
    pub object: Arc<Object>,
    /// The object, linked against the simulated kernel.
    pub policy: Policy,
    /// Everything that is set: by the parameter set and by flags, before the run and during it.
    pub settings: Vec<Setting>,
}

/// A plan, checked, with its schedulers.
struct Prepared {
    run: Resolved,
    schedulers: Vec<Loaded>,
}

impl Prepared {
    /// The runs, one at least.
    fn columns(&self) -> Result<Vec<Column<'_>>, Failure> {
        columns(&self.run.targets, &self.schedulers, &self.run.variants)
    }
}

impl<'a> RunPlan<'a> {
    /// A plan that measures a workload as simulated runs are measured.
    pub fn new(spec: &'a RunSpec, workload: &'a Workload, options: Options) -> Self {
        let rename: fn(&str) -> &str = |name| name;
        RunPlan {
            spec,
            workload,
            options,
            callbacks: false,
            rename,
            sample: false,
            keep_events: true,
            fetch: true,
            capture: false,
            program: None,
        }
    }

    /// Checks the spec, and compiles its schedulers.
    fn prepare(&self) -> Result<Prepared, Failure> {
        let run = self.spec.resolve(self.workload, self.callbacks)?;
        let schedulers = self.schedulers(&run)?;
        Ok(Prepared { run, schedulers })
    }

    /// Makes the runs in order. After an interruption those that are left are named in the notes.
    ///
    /// # Errors
    /// If a word of the spec means nothing, a scheduler cannot be used on its target, or a run fails; if the plan was
    /// interrupted before anything was measured.
    pub fn run(&self, watch: &dyn Watch) -> Result<Ran, Failure> {
        let prepared = self.prepare()?;
        let columns = prepared.columns()?;
        let Resolved { targets, duration_ns, .. } = &prepared.run;
        let steps = duration_ns.div_ceil(CHUNK_NS) * columns.len() as u64;
        watch.begin(steps);
        let mut outcomes = Vec::with_capacity(columns.len());
        let mut notes = prepared.run.notes.clone();
        notes.extend(left_out(targets, &prepared.schedulers));
        notes.extend(prepared.schedulers.iter().filter_map(|one| one.object()?.lacking()));
        for column in &columns {
            notes.extend(unenforced(column, self.workload, &prepared.run, &notes));
            let given = column.settings(&prepared.run.later);
            if let Some(object) = column.scheduler.object() {
                notes.extend(object.unusual(&given));
                notes.extend(object.unset(&given).filter(|text| !notes.contains(text)));
            }
            let label = column.label(targets.len() > 1);
            if !watch.goes_on() {
                notes.push(format!("{label}: not run: it was interrupted before"));
                continue;
            }
            let outcome = match self.run_column(column, label.clone(), &prepared.run, watch) {
                Err(error) if column.target.is_real() && !watch.goes_on() => {
                    notes.push(format!(
                        "{label}: interrupted: a run on a real kernel is whole or absent ({error})"
                    ));
                    continue;
                }
                Err(error) if column.target.is_real() => {
                    return Err(Failure::new(format_args!("{label}: {error}")));
                }
                ran => ran?,
            };
            if outcome.ejection().is_some() {
                let given = column.settings(&prepared.run.later);
                let object = column.scheduler.object();
                let unset = object.and_then(|object| object.left_at_zero(&given));
                // It may have been told before the run.
                notes.extend(unset.filter(|text| !notes.iter().any(|note| note.contains(text))));
            }
            outcomes.push(outcome);
        }
        let is_interrupted = !watch.goes_on();
        if is_interrupted && outcomes.is_empty() {
            return Err(Failure::new("interrupted before anything was measured"));
        }
        if is_interrupted {
            watch.say("interrupted: what there is follows, and says that it is partial");
        }
        let duration_ns = *duration_ns;
        let simulated = targets.contains(&Target::Sim).then_some(prepared.run.machine);
        Ok(Ran { outcomes, simulated, duration_ns, notes, is_interrupted })
    }

    /// Makes the one run of a plan under a label of its own.
    ///
    /// # Errors
    /// As [`RunPlan::run`], and if there are several runs.
    pub fn run_alone(&self, label: &str, watch: &dyn Watch) -> Result<Outcome, Failure> {
        let prepared = self.prepare()?;
        match prepared.columns()?.as_slice() {
            [column] => self.run_column(column, label.to_owned(), &prepared.run, watch),
            _ => Err(Failure::new("this is more than one run")
                .help("name one target, one scheduler and one value of each setting")),
        }
    }

    fn run_column(
        &self,
        column: &Column<'_>,
        label: String,
        run: &Resolved,
        watch: &dyn Watch,
    ) -> Result<Outcome, Failure> {
        match (column.target, &column.scheduler.compiled) {
            (Target::Sim, Some(scheduler)) => {
                let plan = Plan {
                    label,
                    settings: column.settings(&run.later),
                    variables: self.spec.variables.clone(),
                    options: self.options.clone(),
                    rename: self.rename,
                    sample: self.sample,
                    keep_events: self.keep_events,
                    ..Plan::new(scheduler, self.workload, run.machine.clone(), run.duration_ns)
                };
                plan.run(watch)
            }
            _ => self.real(column, label, run).run(watch),
        }
    }

    /// The runs in the simulated machine, ready to be stepped through.
    ///
    /// # Errors
    /// If a word of the spec means nothing, or a scheduler cannot be used.
    pub fn simulations(&self) -> Result<Simulations, Failure> {
        let prepared = self.prepare()?;
        let simulation = |column: &Column<'_>| {
            let scheduler = column.scheduler.compiled.as_ref()?;
            let mut settings = scheduler.object.settings.clone();
            settings.extend(column.settings(&prepared.run.later));
            Some(Simulation {
                label: column.label(false),
                spec: column.scheduler.spec.clone(),
                object: Arc::clone(&scheduler.object.object),
                policy: scheduler.policy.clone(),
                settings,
            })
        };
        let simulations = prepared.columns()?.iter().filter_map(simulation).collect();
        let Resolved { machine: config, duration_ns, .. } = prepared.run;
        Ok(Simulations { config, duration_ns, simulations })
    }

    fn real<'c>(&'c self, column: &Column<'c>, label: String, run: &Resolved) -> RealPlan<'c> {
        let (settings, knobs) = split_knobs(column.settings(&run.later));
        RealPlan {
            label,
            on: RealTarget {
                target: column.target,
                spec: &self.spec.target,
                fetch: self.fetch,
                cpus: self.spec.machine.cpus.unwrap_or(CPUS_DEFAULT),
                instruction_ns: self.spec.machine.instruction_ns(),
                program: self.program.as_deref(),
            },
            object: column.scheduler.object(),
            loader: column.scheduler.loader.as_ref(),
            capture: self.capture,
            settings,
            knobs,
            topology: match column.target {
                Target::Host => host_topology(),
                _ => run.machine.topology.clone(),
            },
            workload: self.workload,
            seed: self.spec.machine.seed,
            duration_ns: run.duration_ns,
            hold_ns: run.hold_ns,
            options: self.options.clone(),
        }
    }

    /// The schedulers that are named, else the targets' default ones.
    fn schedulers(&self, run: &Resolved) -> Result<Vec<Loaded>, Failure> {
        let spec = &self.spec.scheduler;
        let loader = self.spec.target.loader.as_deref().map(LoaderProgram::find).transpose()?;
        let mut specs: Vec<&str> = spec.sched.iter().map(String::as_str).collect();
        if specs.is_empty() {
            // A loader is the scheduler of virtual machines.
            let others = |target: &&Target| loader.is_none() || !matches!(target, Target::Vm(_));
            let others = run.targets.iter().filter(others);
            let defaults: BTreeSet<_> = others.map(Target::default_scheduler).collect();
            specs.extend(defaults);
        }
        if loader.is_some() && specs.iter().all(|name| *name == OWN_SCHEDULER) {
            refuse_variables(run)?;
        }
        let profiles = read_profiles(&spec.profile, &specs)?;
        let topology = match profiles.is_empty() {
            true => run.machine.topology.clone(),
            false => topology_of_profiles(&run.targets, &run.machine.topology)?,
        };
        let simulated = run.targets.contains(&Target::Sim);
        let load = |name: &str| {
            let profile = profiles.iter().find(|profile| profile.is_for(name));
            if let Some(profile) = profile {
                let mut variants = run.variants.iter();
                variants.try_for_each(|variant| profile.check(name, &variant.settings))?;
            }
            let profile = profile.map(|profile| (profile, &topology));
            let (compiled, object) = match name {
                OWN_SCHEDULER => (None, None),
                _ if simulated => (Some(Scheduler::load(name, profile, spec.into())?), None),
                _ => (None, Some(SchedulerObject::find(name, profile)?)),
            };
            Ok(Loaded { spec: name.to_owned(), compiled, object, loader: None })
        };
        let mut loaded: Vec<Loaded> = specs.into_iter().map(load).collect::<Result<_, _>>()?;
        loaded.extend(loader.map(|loader| Loaded {
            spec: loader.label.clone(),
            compiled: None,
            object: None,
            loader: Some(loader),
        }));
        Ok(loaded)
    }
}

/// Refuses settings of an object where there is none but what a loader brings.
fn refuse_variables(run: &Resolved) -> Result<(), Failure> {
    let all = run.variants.iter().flat_map(|variant| &variant.settings).chain(&run.later);
    let is_variable = |name: &str| !is_knob(name) && !is_hotplug(name);
    match all.into_iter().find(|setting| is_variable(&setting.name)) {
        Some(setting) => Err(Failure::new(format_args!(
            "`{}` would be set in an object, and the scheduler's object is in its loader",
            setting.name
        ))
        .help("give the loader's own option for it within --loader")),
        None => Ok(()),
    }
}

/// The topology that a profile counts by: the same on each target.
fn topology_of_profiles(targets: &[Target], topology: &Topology) -> Result<Topology, Failure> {
    let host = targets.contains(&Target::Host).then(host_topology);
    match (targets, host) {
        ([Target::Host], Some(host)) => Ok(host),
        (_, Some(host)) if host.cpus() != topology.cpus() => Err(Failure::new(format_args!(
            "a profile counts CPUs, and this machine has {} where the others have {}",
            host.cpus(),
            topology.cpus()
        ))
        .help(format_args!("add `--cpus {}`", host.cpus()))),
        _ => Ok(topology.clone()),
    }
}

/// What nothing enforces in a column, unless an earlier one says it, too.
fn unenforced(
    column: &Column<'_>,
    workload: &Workload,
    run: &Resolved,
    said: &[String],
) -> Vec<String> {
    let Some(object) = column.scheduler.object() else { return Vec::new() };
    let mut texts = object.unenforced(workload, &column.settings(&run.later));
    texts.retain(|text| !said.contains(text));
    texts
}
