//! The result of a run: the stream of events, its analysis, and what only its target reports.

use fairground_analysis::Analysis;
use fairground_machine::{
    Counters, Exit, MachineConfig, Path, PathCost, PrintedLine, Setting, Waiting,
};
use fairground_realkernel::job;
use fairground_trace::{Counter, Trace};

use crate::input::Sizes;
use crate::sources::Source;
use crate::variables::Variables;

/// A finished run.
#[derive(Debug)]
pub struct Outcome {
    /// The column's name.
    pub label: String,
    /// The scheduler as it was typed.
    pub scheduler: String,
    /// Every setting in order, those of the parameter set first.
    pub settings: Vec<Setting>,
    /// How many of them are those of the parameter set.
    pub settings_of_set: usize,
    /// How large the scheduler's object is; `None` for a kernel's own scheduler.
    pub sizes: Option<Sizes>,
    /// What was asked for of its variables at the end; nothing on a real kernel.
    pub variables: Variables,
    /// Everything that happened; without events where the plan does not keep them.
    pub trace: Trace,
    /// How far an interrupted run was, ns since its start. The figures cover the time up to there.
    pub partial_ns: Option<u64>,
    /// The scheduler's own numbers over time, where the plan samples them and they can be read.
    pub numbers: Vec<Counter>,
    /// Why they do not cover the whole run.
    pub numbers_note: Option<String>,
    /// The figures.
    pub analysis: Analysis,
    /// What only its target reports.
    pub report: TargetReport,
}

/// What only one kind of target reports.
#[derive(Debug)]
pub enum TargetReport {
    /// The simulated machine.
    Simulated {
        /// The machine.
        machine: Box<MachineConfig>,
        /// The length of the run, simulated ns.
        duration_ns: u64,
        /// How the scheduler ended.
        exit: Exit,
        /// The lines of its source from which that comes.
        sources: Vec<Source>,
        /// The tasks that were runnable and did not run at the end.
        waiting: Vec<Waiting>,
        /// What the machine counted.
        counters: Box<Counters>,
        /// What the scheduler printed.
        log: Vec<PrintedLine>,
    },
    /// A real kernel.
    Real {
        /// The target as it was typed.
        target: String,
        /// What an instruction takes of its time, ns; `None` where that is not known.
        instruction_ns: Option<u64>,
        /// The job's outcome.
        job: Box<job::Outcome>,
    },
}

impl Outcome {
    /// What the scheduler's program cost on a path; `None` on a real kernel, which does not count it.
    pub fn path_cost(&self, path: Path) -> Option<PathCost> {
        match &self.report {
            TargetReport::Simulated { counters, .. } => Some(counters.path(path)),
            TargetReport::Real { .. } => None,
        }
    }

    /// Why there are no events, when there are none.
    pub fn not_recorded(&self) -> Option<&str> {
        match &self.report {
            TargetReport::Simulated { .. } => None,
            TargetReport::Real { job, .. } => job.not_recorded.as_deref(),
        }
    }

    /// Whether there are events; without them only the kernel's own accounting is measured.
    pub fn is_recorded(&self) -> bool {
        self.not_recorded().is_none()
    }

    /// What an instruction takes of the time of a run, ns; `None` where time does not count instructions.
    pub fn instruction_ns(&self) -> Option<u64> {
        match &self.report {
            TargetReport::Simulated { .. } => None,
            TargetReport::Real { instruction_ns, .. } => *instruction_ns,
        }
    }

    /// What is known of the scheduler's own loader, if one ran.
    pub fn loader(&self) -> Option<&job::LoaderReport> {
        match &self.report {
            TargetReport::Simulated { .. } => None,
            TargetReport::Real { job, .. } => job.loader.as_ref(),
        }
    }

    /// What the scheduler printed, where it was kept beside the events.
    pub fn log(&self) -> &[PrintedLine] {
        match &self.report {
            TargetReport::Simulated { log, .. } => log,
            TargetReport::Real { .. } => &[],
        }
    }
}
