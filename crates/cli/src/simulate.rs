//! One run in the simulated machine, and its analysis.

use fairground_analysis::{Analysis, Options};
use fairground_machine::{ExitKind, Machine, MachineConfig, RunResult, Setting};
use fairground_trace::TaskId;
use fairground_workload::Workload;

use crate::failure::Failure;
use crate::input::{Scheduler, Sizes};
use crate::progress::Progress;

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
}

/// A finished run.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The column's name.
    pub(crate) label: String,
    /// The scheduler as it was typed.
    pub(crate) scheduler: String,
    /// Every setting in order, those of the parameter set first.
    pub(crate) settings: Vec<Setting>,
    /// How many of them are those of the parameter set.
    pub(crate) settings_of_set: usize,
    /// How large the scheduler's object is.
    pub(crate) sizes: Sizes,
    /// The trace, and how the scheduler's time in charge ended.
    pub(crate) result: RunResult,
    /// The figures.
    pub(crate) analysis: Analysis,
}

/// Simulated time between two looks at the progress bar, ns.
const CHUNK_NS: u64 = 50_000_000;

impl Plan<'_> {
    /// Steps of progress that the run takes.
    pub(crate) fn steps(&self) -> u64 {
        self.duration_ns.div_ceil(CHUNK_NS)
    }

    /// Runs to the end, or until the scheduler is ejected.
    pub(crate) fn run(self, progress: &Progress) -> Result<Outcome, Failure> {
        progress.name(&self.label);
        let mut settings = self.scheduler.settings.clone();
        settings.extend(self.settings.iter().cloned());
        let failed = |e| Failure::new(format_args!("{}: {e}", self.scheduler.label));
        let mut machine =
            Machine::new(&self.machine, &self.scheduler.policy, &settings, self.workload)
                .map_err(failed)?;
        let mut now_ns = 0;
        while now_ns < self.duration_ns && machine.exit().is_none() {
            now_ns = (now_ns + CHUNK_NS).min(self.duration_ns);
            machine.run_until(now_ns).map_err(failed)?;
            progress.advance(1);
        }
        let mut result = machine.finish().map_err(failed)?;
        for number in 0..result.trace.tasks().len() {
            let task = result.trace.task_mut(TaskId(number as u32));
            task.comm = (self.rename)(&task.comm).to_owned();
        }
        let analysis = Analysis::of(&result.trace, &self.options);
        Ok(Outcome {
            label: self.label,
            scheduler: self.scheduler.label.clone(),
            sizes: self.scheduler.sizes,
            settings,
            settings_of_set: self.scheduler.settings.len(),
            result,
            analysis,
        })
    }
}

impl Outcome {
    /// The process's exit code for this run.
    pub(crate) fn exit_code(&self) -> u8 {
        match self.result.exit.kind {
            ExitKind::ErrorStall => 42,
            kind if kind.is_error() => 43,
            _ => 0,
        }
    }
}
