//! The runs of an experiment, each on its target, in parallel on all CPUs.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use fairground_analysis::Options;
use fairground_report::{Cell, Document};
use fairground_session::{
    CHUNK_NS, EngineChoice, Failure, Outcome, TargetReport, TimersChoice, Watch, find_workload,
};

use super::plan::RunPlan;
use crate::experiment::Run;
use crate::present;
use crate::progress::Progress;

/// Runs everything, and returns what `keep` makes of each outcome, in the order of `runs`, whatever the order in which
/// they finish. After a simulation has failed, no further real kernel is booted.
pub(super) fn run_all<T: Send>(
    quiet: bool,
    runs: &[Run],
    engine: EngineChoice,
    keep: impl Fn(&Run, &Outcome) -> T + Sync,
) -> Vec<Result<T, Failure>> {
    let mut steps = 0;
    for run in runs {
        let workload = find_workload(&run.spec.workload);
        let length_ns = workload.and_then(|workload| run.spec.duration_ns(&workload)).unwrap_or(0);
        steps += length_ns.div_ceil(CHUNK_NS);
    }
    let progress = Progress::new(quiet, steps);
    // Simulations first: they are quick, and show a mistake in the experiment before any machine has booted.
    let (simulated, real): (Vec<usize>, Vec<usize>) =
        (0..runs.len()).partition(|&index| runs[index].is_simulated());
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
                    if !run.is_simulated() && failed.load(Ordering::Relaxed) {
                        return;
                    }
                    let result = run_one(run, engine, &progress)
                        .map(|outcome| keep(run, &outcome))
                        .map_err(|e| of_run(run, e));
                    if run.is_simulated() && result.is_err() {
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

/// Names the simulation that failed. Failures of real kernels stay as they are: runs with the same one are reported
/// together.
fn of_run(run: &Run, failure: Failure) -> Failure {
    match run.is_simulated() {
        true => Failure::new(format_args!("run `{}`: {failure}", run.name)),
        false => failure,
    }
}

fn run_one(run: &Run, engine: EngineChoice, progress: &Progress) -> Result<Outcome, Failure> {
    let mut spec = run.spec.clone();
    // The option of the command counts where it is not the default.
    if engine != EngineChoice::default() {
        spec.scheduler.engine = engine;
    }
    let options = if run.is_simulated() { Options::simulated() } else { Options::default() };
    if !run.is_simulated() {
        spec = spec.for_real_kernel();
    }
    let (workload, _) = spec.find_workload()?;
    // A kernel that is not in the cache is not fetched for an experiment.
    let plan = RunPlan { fetch: false, ..RunPlan::new(&spec, &workload, options) };
    let outcome = plan.run_alone(&run.name, progress)?;
    match outcome.not_recorded() {
        Some(why) if spec.target.record => {
            Err(Failure::new(format_args!("there is no recording: {why}")))
        }
        _ => Ok(outcome),
    }
}

/// How a run was made.
pub(super) fn describe(made: &mut Document, run: &Run, outcome: &Outcome) {
    if let TargetReport::Simulated { machine, duration_ns, .. } = &outcome.report {
        present::describe_machine(made, machine, *duration_ns);
    }
    present::describe_run(made, outcome);
    made.describe_spec(&run.name, run.spec.stated());
    let section = format!("run {}", outcome.label);
    made.set(&section, "workload", Cell::text(&run.spec.workload));
    if let Some(locks) = run.spec.locks.locks {
        made.set(&section, "locks", Cell::text(locks.word()));
    }
    if !run.is_simulated() {
        made.set(&section, "target", Cell::text(run.on()));
        return;
    }
    let machine = &run.spec.machine;
    made.set(&section, "hz", Cell::known(machine.hz, |hz| Cell::count(hz.into())));
    if machine.timers == TimersChoice::Jiffies {
        made.set(&section, "timers", Cell::text("jiffies"));
    }
    if let TargetReport::Simulated { machine, .. } = &outcome.report {
        made.set(&section, "costs", Cell::text(machine.cost.preset_name()));
    }
}
