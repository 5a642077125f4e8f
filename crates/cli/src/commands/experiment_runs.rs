//! The runs of an experiment, each on its target, as many side by side as there are CPUs.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use fairground_analysis::Options;
use fairground_report::{Cell, Document};
use fairground_session::{
    CHUNK_NS, CPUS_DEFAULT, Failure, MachineSpec, OWN_SCHEDULER, Outcome, Plan, Scheduler,
    SchedulerObject, Target, Told, Watch, at_settings, duration_ns, find_workload, machine_config,
    one_variant, split_knobs, topology_value,
};
use fairground_workload::Workload;

use crate::args::{EngineArg, TargetArgs, TimersArg};
use crate::experiment::Run;
use crate::present;
use crate::progress::Progress;
use crate::real::RealPlan;

/// Runs everything and keeps of each run what `keep` makes of it, in the order of the runs. The order in which they are run is
/// chance and shows nowhere. After a simulation has failed, no real kernel is booted any more.
pub(super) fn run_all<T: Send>(
    quiet: bool,
    runs: &[Run],
    engine: EngineArg,
    keep: impl Fn(&Run, &Outcome) -> T + Sync,
) -> Vec<Result<T, Failure>> {
    let mut steps = 0;
    for run in runs {
        let workload = find_workload(&run.workload).map_or(0, |w| w.duration_ns);
        let length = duration_ns(run.duration.as_deref(), workload).unwrap_or(0);
        steps += length.div_ceil(CHUNK_NS);
    }
    let progress = Progress::new(quiet, steps);
    // Simulations first: they are quick, and a mistake in the experiment shows before any machine has booted.
    let (simulated, real): (Vec<usize>, Vec<usize>) =
        (0..runs.len()).partition(|&index| runs[index].on == "sim");
    let next = Mutex::new(simulated.into_iter().chain(real));
    let failed = AtomicBool::new(false);
    let results: Vec<Mutex<Option<Result<T, Failure>>>> =
        runs.iter().map(|_| Mutex::new(None)).collect();
    let workers = thread::available_parallelism().map_or(1, usize::from).min(runs.len());
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let taken = next.lock().ok().and_then(|mut next| next.next());
                    let Some(index) = taken else { return };
                    let run = &runs[index];
                    if !progress.goes_on() {
                        return;
                    }
                    if run.on != "sim" && failed.load(Ordering::Relaxed) {
                        return;
                    }
                    let result = run_one(run, engine, &progress)
                        .map(|outcome| keep(run, &outcome))
                        .map_err(|e| of_run(run, e));
                    if run.on == "sim" && result.is_err() {
                        failed.store(true, Ordering::Relaxed);
                    }
                    if let Ok(mut slot) = results[index].lock() {
                        *slot = Some(result);
                    }
                }
            });
        }
    });
    let why = match progress.goes_on() {
        true => "not run: an earlier run failed",
        false => "not run: it was interrupted before",
    };
    let missing = || Err(Failure::new(why));
    results
        .into_iter()
        .map(|slot| slot.into_inner().ok().flatten().unwrap_or_else(missing))
        .collect()
}

/// Says which simulation failed. What cannot be run on a real kernel is told of all such runs together.
fn of_run(run: &Run, failure: Failure) -> Failure {
    match run.on.as_str() {
        "sim" => Failure::new(format_args!("run `{}`: {failure}", run.name)),
        _ => failure,
    }
}

fn run_one(run: &Run, engine: EngineArg, progress: &Progress) -> Result<Outcome, Failure> {
    let mut workload = find_workload(&run.workload)?;
    if let Some(locks) = run.locks {
        workload.set_lock_model(locks);
    }
    match Target::parse(&run.on)? {
        Target::Sim => simulated(run, &workload, engine, progress),
        target => real(run, &workload, &target, progress),
    }
}

fn simulated(
    run: &Run,
    workload: &Workload,
    engine: EngineArg,
    progress: &Progress,
) -> Result<Outcome, Failure> {
    let scheduler = Scheduler::load(&run.sched, None, engine.into())?;
    let spec = MachineSpec {
        cpus: run.cpus,
        hz: Some(run.hz),
        timers: run.timers.into(),
        seed: run.seed,
        costs: run.costs.clone(),
        cost: run.cost.clone(),
        lead_in: run.lead_in.clone(),
        ..MachineSpec::default()
    };
    let mut machine = machine_config(&spec)?;
    if let Some(topology) = &run.topology {
        machine.topology = topology_value("topology", topology)?;
    }
    let mut settings = one_variant(&run.set)?.settings;
    settings.extend(at_settings(&run.at)?);
    let duration_ns = duration_ns(run.duration.as_deref(), workload.duration_ns)?;
    let plan = Plan {
        label: run.name.clone(),
        settings,
        ..Plan::new(&scheduler, workload, machine, duration_ns)
    };
    plan.run(progress)
}

fn real(
    run: &Run,
    workload: &Workload,
    target: &Target,
    progress: &Progress,
) -> Result<Outcome, Failure> {
    let object = match run.sched.as_str() {
        OWN_SCHEDULER => None,
        spec => Some(SchedulerObject::find(spec, None)?),
    };
    let mut settings = one_variant(&run.set)?.settings;
    settings.extend(at_settings(&run.at)?);
    let (settings, knobs) = split_knobs(settings);
    let args = TargetArgs::deterministic(&run.on, &run.append, run.record);
    let plan = RealPlan {
        label: run.name.clone(),
        target,
        args: &args,
        cpus: run.cpus.unwrap_or(CPUS_DEFAULT),
        object: object.as_ref(),
        settings,
        knobs,
        workload,
        seed: run.seed,
        duration_ns: duration_ns(run.duration.as_deref(), workload.duration_ns)?,
        hold_ns: run.hold_ns,
        options: Options::default(),
    };
    let outcome = plan.run(progress)?;
    match outcome.not_recorded() {
        Some(why) if run.record => Err(Failure::new(format_args!("there is no recording: {why}"))),
        _ => Ok(outcome),
    }
}

/// How a run was made.
pub(super) fn describe(made: &mut Document, run: &Run, outcome: &Outcome) {
    if let Told::Simulated { machine, duration_ns, .. } = &outcome.told {
        present::describe_machine(made, machine, *duration_ns);
    }
    present::describe_run(made, outcome);
    let section = format!("run {}", outcome.label);
    made.set(&section, "workload", Cell::text(&run.workload));
    if let Some(locks) = run.locks {
        made.set(&section, "locks", Cell::text(locks.word()));
    }
    if run.on != "sim" {
        made.set(&section, "target", Cell::text(&run.on));
        return;
    }
    made.set(&section, "hz", Cell::count(run.hz.into()));
    if run.timers == TimersArg::Jiffies {
        made.set(&section, "timers", Cell::text("jiffies"));
    }
    made.set(&section, "costs", Cell::text(&run.costs));
}
