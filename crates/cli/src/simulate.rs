//! One run in the simulated machine, and its analysis.

use fairground_analysis::{Analysis, Options};
use fairground_machine::{Machine, MachineConfig, RunResult, Setting};
use fairground_trace::TaskId;
use fairground_workload::Workload;

use crate::failure::Failure;
use crate::input::Scheduler;
use crate::outcome::{Outcome, Told};
use crate::progress::Progress;
use crate::samples::Sampler;

/// What to run.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    /// The column's name.
    pub(crate) label: String,
    /// The scheduler.
    pub(crate) scheduler: &'a Scheduler,
    /// Tunables beyond the parameter set: before the run, and during it.
    pub(crate) settings: Vec<Setting>,
    /// The workload.
    pub(crate) workload: &'a Workload,
    /// The machine.
    pub(crate) machine: MachineConfig,
    /// The length, ns.
    pub(crate) duration_ns: u64,
    /// How to measure.
    pub(crate) options: Options,
    /// What a task is called in the result, from its name in the workload.
    pub(crate) rename: fn(&str) -> &str,
    /// Read the scheduler's own numbers of each task at every tick.
    pub(crate) sample: bool,
}

/// Simulated time between two looks at the progress bar, ns.
pub(crate) const CHUNK_NS: u64 = 50_000_000;

impl Plan<'_> {
    /// Runs to the end, or until the scheduler is ejected.
    pub(crate) fn run(self, progress: &Progress) -> Result<Outcome, Failure> {
        progress.name(&self.label);
        let mut settings = self.scheduler.object.settings.clone();
        settings.extend(self.settings.iter().cloned());
        let failed = |e| Failure::new(format_args!("{}: {e}", self.scheduler.object.label));
        let mut machine =
            Machine::new(&self.machine, &self.scheduler.policy, &settings, self.workload)
                .map_err(failed)?;
        let (mut now_ns, start_ns) = (0, self.machine.lead_in_ns);
        let end_ns = start_ns + self.duration_ns;
        let mut sampler = self.sample.then(|| Sampler::new(&self.scheduler.object.object));
        let step_ns = if self.sample { self.machine.tick_ns() } else { CHUNK_NS };
        while now_ns < end_ns && machine.exit().is_none() {
            let chunks = now_ns / CHUNK_NS;
            now_ns = (now_ns + step_ns).min(end_ns);
            machine.run_until(now_ns).map_err(failed)?;
            if let Some(sampler) = &mut sampler {
                sampler.read(&machine);
            }
            if now_ns / CHUNK_NS > chunks || now_ns == end_ns {
                progress.advance(1);
            }
        }
        let (numbers, numbers_note) = sampler.map_or_else(Default::default, Sampler::finish);
        let RunResult { mut trace, exit, log, counters } = machine.finish().map_err(failed)?;
        for number in 0..trace.tasks().len() {
            let task = trace.task_mut(TaskId(number as u32));
            task.comm = (self.rename)(&task.comm).to_owned();
        }
        let window = (start_ns > 0).then_some((start_ns, end_ns));
        let analysis = Analysis::of(&trace, &Options { window, ..self.options });
        Ok(Outcome {
            label: self.label,
            scheduler: self.scheduler.object.label.clone(),
            sizes: Some(self.scheduler.object.sizes),
            settings,
            settings_of_set: self.scheduler.object.settings.len(),
            trace,
            numbers,
            numbers_note,
            analysis,
            told: Told::Simulated {
                machine: Box::new(self.machine),
                duration_ns: self.duration_ns,
                exit,
                counters: Box::new(counters),
                log,
            },
        })
    }
}
