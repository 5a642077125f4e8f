//! One run in the simulated machine, and its analysis.

use std::os::fd::BorrowedFd;

use fairground_analysis::{Analysis, Options, StreamAnalysis};
use fairground_machine::{Machine, MachineConfig, MachineError, RunResult, Setting};
use fairground_trace::TaskId;
use fairground_workload::Workload;

use crate::failure::Failure;
use crate::input::Scheduler;
use crate::origin::simulated_origin;
use crate::outcome::{Outcome, TargetReport};
use crate::samples::Sampler;
use crate::sources::sources;
use crate::spec::VariablesSpec;
use crate::variables::Wanted;

/// What to run.
#[derive(Debug)]
pub struct Plan<'a> {
    /// The column's name.
    pub label: String,
    /// The scheduler.
    pub scheduler: &'a Scheduler,
    /// Tunables beyond the parameter set: before the run, and during it.
    pub settings: Vec<Setting>,
    /// What is shown and required of the scheduler's variables at the end.
    pub variables: VariablesSpec,
    /// The workload.
    pub workload: &'a Workload,
    /// The machine.
    pub machine: MachineConfig,
    /// The length, ns.
    pub duration_ns: u64,
    /// How to measure.
    pub options: Options,
    /// What a task is called in the result, from its name in the workload.
    pub rename: fn(&str) -> &str,
    /// Read the scheduler's own numbers of each task at every tick.
    pub sample: bool,
    /// Keep the events. Without them a run of any length takes the same memory; they are kept nevertheless where the
    /// figures over time or the checks of the machine need them.
    pub keep_events: bool,
}

/// Receives the progress of runs, and may end them.
pub trait Watch {
    /// A plan of so many steps of [`CHUNK_NS`] begins.
    fn begin(&self, _steps: u64) {}
    /// A remark on what takes long before a run: a kernel is fetched.
    fn say(&self, _text: &str) {}
    /// A run begins; its label.
    fn name(&self, label: &str);
    /// `steps` more steps of [`CHUNK_NS`] are done.
    fn advance(&self, steps: u64);
    /// Whether the run continues. Otherwise it ends after the present step, and is partial ([`Outcome::partial_ns`]).
    fn goes_on(&self) -> bool {
        true
    }
    /// A descriptor that becomes readable when [`Watch::goes_on`] becomes false: a run on the host is not disturbed by
    /// polls. `None`: that is asked again after each signal only.
    fn stop_descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// Ignores the progress.
#[derive(Clone, Copy, Debug)]
pub struct Unwatched;

impl Watch for Unwatched {
    fn name(&self, _: &str) {}
    fn advance(&self, _: u64) {}
}

/// Events between two checks of the watch where a step of simulated time has many; the host's second cache holds what
/// they leave in the trace.
const EVENTS_AT_ONCE: u64 = 1 << 14;

/// Simulates up to a time, and analyses what happens if it is not kept. False: the run is not wanted any more, and this
/// time is far away.
fn reach(
    machine: &mut Machine,
    until_ns: u64,
    watch: &dyn Watch,
    stream: &mut Option<StreamAnalysis>,
) -> Result<bool, MachineError> {
    loop {
        let is_there = machine.run_some(until_ns, EVENTS_AT_ONCE)?;
        if let Some(stream) = stream {
            stream.take(machine.trace());
            machine.clear_events();
        }
        if is_there || !watch.goes_on() {
            return Ok(is_there);
        }
    }
}

/// Simulated time between two checks of the watch, ns.
pub const CHUNK_NS: u64 = 50_000_000;

impl<'a> Plan<'a> {
    /// A run of `duration_ns` simulated ns with the label of its scheduler, without further settings, measured with
    /// [`Options::simulated`].
    pub fn new(
        scheduler: &'a Scheduler,
        workload: &'a Workload,
        machine: MachineConfig,
        duration_ns: u64,
    ) -> Self {
        Self {
            label: scheduler.object.label.clone(),
            scheduler,
            settings: Vec::new(),
            variables: VariablesSpec::default(),
            workload,
            machine,
            duration_ns,
            options: Options::simulated(),
            rename: |name| name,
            sample: false,
            keep_events: true,
        }
    }

    /// Why there is no result; for a run that was too long, the length that fits.
    fn failure(&self, error: &MachineError) -> Failure {
        let failure = Failure::new(format_args!("{}: {error}", self.scheduler.object.label));
        let &MachineError::TraceFull { events, time_ns } = error else { return failure };
        let more = format!("`--max-events {}` allows twice as many", 2 * events);
        // All that comes before the moment at which it had to go on is in the trace.
        match time_ns.saturating_sub(self.machine.lead_in_ns + 1) / 1_000_000 {
            0 => failure.help(more),
            fits_ms => failure.help(format_args!("`--duration {fits_ms}ms` fits; {more}")),
        }
    }

    /// Simulates up to a time, or until the scheduler is ejected or the run is not wanted any more: up to when.
    fn step_through(
        &self,
        machine: &mut Machine,
        end_ns: u64,
        watch: &dyn Watch,
        (sampler, stream): (&mut Option<Sampler>, &mut Option<StreamAnalysis>),
    ) -> Result<u64, MachineError> {
        let step_ns = if self.sample { self.machine.tick_ns() } else { CHUNK_NS };
        let mut now_ns = 0;
        while now_ns < end_ns && machine.exit().is_none() && watch.goes_on() {
            let chunks = now_ns / CHUNK_NS;
            now_ns = (now_ns + step_ns).min(end_ns);
            if !reach(machine, now_ns, watch, stream)? {
                return Ok(machine.now_ns());
            }
            if let Some(sampler) = sampler {
                sampler.read(machine);
            }
            if now_ns / CHUNK_NS > chunks || now_ns == end_ns {
                watch.advance(1);
            }
        }
        Ok(now_ns)
    }

    /// Runs to the end, or until the scheduler is ejected.
    ///
    /// # Errors
    /// If the scheduler, a setting or the workload cannot be used in this machine, the simulation breaks one of its
    /// limits.
    pub fn run(self, watch: &dyn Watch) -> Result<Outcome, Failure> {
        watch.name(&self.label);
        let mut settings = self.scheduler.object.settings.clone();
        settings.extend(self.settings.iter().cloned());
        let failed = |e: MachineError| self.failure(&e);
        let object = &self.scheduler.object.object;
        let wanted = Wanted::of(&self.variables, object, &self.machine.topology)?;
        let mut machine =
            Machine::new(&self.machine, &self.scheduler.policy, &settings, self.workload)
                .map_err(failed)?;
        let start_ns = self.machine.lead_in_ns;
        let end_ns = start_ns + self.duration_ns;
        let window = (start_ns > 0).then_some((start_ns, end_ns));
        let options = Options { window, ..self.options.clone() };
        let streams = !self.keep_events && options.interval_ns.is_none() && !self.machine.check;
        let mut stream = streams.then(|| StreamAnalysis::new(machine.trace(), &options, end_ns));
        let mut sampler = self.sample.then(|| Sampler::new(&self.scheduler.object.object));
        let now_ns = self
            .step_through(&mut machine, end_ns, watch, (&mut sampler, &mut stream))
            .map_err(failed)?;
        let is_partial = now_ns < end_ns && machine.exit().is_none();
        machine.stop().map_err(failed)?;
        let variables = wanted.read(&machine)?;
        let (numbers, numbers_note) = sampler.map_or_else(Default::default, Sampler::finish);
        let RunResult { mut trace, exit, log, counters, waiting } =
            machine.finish().map_err(failed)?;
        trace.origin = simulated_origin(&self.scheduler.object, &self.settings, &self.machine);
        let sources = sources(&self.scheduler.object.object, &exit);
        for number in 0..trace.tasks().len() {
            let task = trace.task_mut(TaskId(number as u32));
            task.comm = (self.rename)(&task.comm).to_owned();
        }
        let analysis = match stream {
            None => Analysis::of(&trace, &options),
            Some(mut stream) => {
                stream.take(&trace);
                trace.clear_events();
                stream.finish(&trace)
            }
        };
        Ok(Outcome {
            label: self.label,
            scheduler: self.scheduler.object.label.clone(),
            sizes: Some(self.scheduler.object.sizes),
            settings,
            settings_of_set: self.scheduler.object.settings.len(),
            variables,
            trace,
            partial_ns: is_partial.then(|| now_ns.saturating_sub(start_ns)),
            numbers,
            numbers_note,
            analysis,
            report: TargetReport::Simulated {
                machine: Box::new(self.machine),
                duration_ns: self.duration_ns,
                exit,
                sources,
                waiting,
                counters: Box::new(counters),
                log,
            },
        })
    }
}
