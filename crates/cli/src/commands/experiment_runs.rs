//! The runs of an experiment, each on its target, in parallel on all CPUs.

use std::panic::resume_unwind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fairground_analysis::Options;
use fairground_report::{Cell, Document};
use fairground_session::{
    CHUNK_NS, EngineChoice, Failure, NamedChoice, Outcome, RunPlan, TargetReport, TimersChoice,
    Watch, find_workload, parse_time_if,
};

use crate::experiment::Run;
use crate::present;
use crate::progress::Progress;

/// How often it is looked whether a line of progress is due.
const TICK: Duration = Duration::from_millis(500);

/// Runs that are over sooner need no estimate, and tell nothing about the rest.
const ESTIMATED_AFTER: Duration = Duration::from_secs(2);

/// How much an experiment runs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Extent {
    /// Runs in the simulated machine.
    pub(super) simulated: u64,
    /// Their length in all, ns of simulated time.
    pub(super) simulated_ns: u64,
    /// Runs on real kernels.
    pub(super) real: u64,
    /// Their length in all, ns on their kernels' clocks.
    pub(super) real_ns: u64,
}

impl Extent {
    /// Of runs; one whose workload cannot be read counts without its length.
    pub(super) fn of(runs: &[Run]) -> Extent {
        let mut extent = Extent::default();
        for run in runs {
            let (count, ns) = match run.is_simulated() {
                true => (&mut extent.simulated, &mut extent.simulated_ns),
                false => (&mut extent.real, &mut extent.real_ns),
            };
            *count += 1;
            *ns += length_ns(run);
        }
        extent
    }

    /// In words, for a line before the runs.
    pub(super) fn text(&self) -> String {
        let seconds = |ns: u64| Cell::duration_ns(ns).with_unit();
        let simulated = format!(
            "{} in the simulated machine ({} of simulated time)",
            plural(self.simulated),
            seconds(self.simulated_ns)
        );
        let real = format!(
            "{} on real kernels ({} of their time)",
            plural(self.real),
            seconds(self.real_ns)
        );
        match (self.simulated, self.real) {
            (_, 0) => simulated,
            (0, _) => real,
            _ => format!("{simulated}, {real}"),
        }
    }
}

/// How long the simulated runs take on this machine, from those that are done. It is said once, after the first run
/// that ends late enough.
struct Estimate<'n> {
    name: &'n str,
    begun: Instant,
    all_ns: u64,
    done_ns: AtomicU64,
    is_said: AtomicBool,
}

impl<'n> Estimate<'n> {
    fn of(name: &'n str, extent: &Extent) -> Self {
        Self {
            name,
            begun: Instant::now(),
            all_ns: extent.simulated_ns,
            done_ns: AtomicU64::new(0),
            is_said: AtomicBool::new(false),
        }
    }

    /// A run of this length has ended.
    fn after(&self, run_ns: u64, progress: &Progress) {
        let done_ns = self.done_ns.fetch_add(run_ns, Ordering::Relaxed).saturating_add(run_ns);
        let elapsed = self.begun.elapsed();
        let is_due = elapsed >= ESTIMATED_AFTER
            && done_ns < self.all_ns
            && !self.is_said.swap(true, Ordering::Relaxed);
        if let Some(text) = is_due.then(|| estimated(done_ns, self.all_ns, elapsed)).flatten() {
            progress.say(&format!("{}: {text}", self.name));
        }
    }
}

/// In words, from what took how long.
fn estimated(done_ns: u64, all_ns: u64, elapsed: Duration) -> Option<String> {
    let all_ms = elapsed.as_millis() * u128::from(all_ns);
    let seconds = all_ms.checked_div(u128::from(done_ns))?.div_ceil(1000);
    Some(format!("about {seconds} s for all simulated runs on this machine, going by the first"))
}

/// `1 run`, `2 runs`.
pub(super) fn plural(runs: u64) -> String {
    format!("{runs} run{}", if runs == 1 { "" } else { "s" })
}

/// The length of a run; the workload is read only where it states the length.
fn length_ns(run: &Run) -> u64 {
    let stated = parse_time_if("--duration", run.spec.machine.duration.as_deref());
    if let Ok(Some(ns)) = stated {
        return ns;
    }
    let workload = find_workload(&run.spec.workload);
    workload.and_then(|workload| run.spec.duration_ns(&workload)).unwrap_or(0)
}

/// Runs everything, says before how much it is, and returns what `keep` makes of each outcome, in the order of `runs`,
/// whatever the order in which they finish. After a simulation has failed, no further real kernel is booted.
pub(super) fn run_all<T: Send>(
    quiet: bool,
    name: &str,
    runs: &[Run],
    engine: EngineChoice,
    keep: impl Fn(&Run, &Outcome) -> T + Sync,
) -> Vec<Result<T, Failure>> {
    let steps = runs.iter().map(|run| length_ns(run).div_ceil(CHUNK_NS)).sum();
    let progress = Progress::in_lines(quiet, steps, name);
    let extent = Extent::of(runs);
    progress.say(&format!("{name}: {}; how long that takes here is not known yet", extent.text()));
    let estimate = Estimate::of(name, &extent);
    // Simulations first: they are quick, and show a mistake in the experiment before any machine has booted.
    let (simulated, real): (Vec<usize>, Vec<usize>) =
        (0..runs.len()).partition(|&index| runs[index].is_simulated());
    let next = Mutex::new(simulated.into_iter().chain(real));
    let failed = AtomicBool::new(false);
    let results: Vec<Mutex<Option<Result<T, Failure>>>> =
        runs.iter().map(|_| Mutex::new(None)).collect();
    let workers = thread::available_parallelism().map_or(1, usize::from).min(runs.len());
    let work = || {
        loop {
            let taken = next.lock().ok().and_then(|mut next| next.next());
            let Some(index) = taken else { return };
            let run = &runs[index];
            let is_in_vain = !run.is_simulated() && failed.load(Ordering::Relaxed);
            if !progress.goes_on() || is_in_vain {
                return;
            }
            let result = run_one(run, engine, &progress)
                .map(|outcome| keep(run, &outcome))
                .map_err(|e| of_run(run, e));
            match run.is_simulated() {
                true if result.is_err() => failed.store(true, Ordering::Relaxed),
                true => estimate.after(length_ns(run), &progress),
                // A real kernel does not tell how far it is.
                false => progress.advance(length_ns(run).div_ceil(CHUNK_NS)),
            }
            if let Ok(mut slot) = results[index].lock() {
                *slot = Some(result);
            }
        }
    };
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let ticker = scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                thread::park_timeout(TICK);
                progress.tick();
            }
        });
        let handles: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let ends: Vec<_> = handles.into_iter().map(thread::ScopedJoinHandle::join).collect();
        is_done.store(true, Ordering::Relaxed);
        ticker.thread().unpark();
        for end in ends {
            end.unwrap_or_else(|panic| resume_unwind(panic));
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
    if run.is_simulated() && engine != EngineChoice::default() {
        spec.scheduler.engine = engine;
    }
    let options = if run.is_simulated() { Options::simulated() } else { Options::default() };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_is_what_all_take_at_the_speed_of_those_that_are_done() {
        let about = |done_ns, all_ns, ms| estimated(done_ns, all_ns, Duration::from_millis(ms));
        assert!(about(10, 60, 5_000).is_some_and(|text| text.starts_with("about 30 s ")));
        assert!(about(3, 10, 2_000).is_some_and(|text| text.starts_with("about 7 s ")));
        assert_eq!(about(0, 10, 2_000), None, "nothing of a known length is done");
        assert!(about(1, u64::MAX, u64::MAX).is_some());
    }
}
