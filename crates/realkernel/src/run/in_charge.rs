//! The scheduler in charge of the CPUs during a run: an object that the runner attaches, a scheduler's own loader, or the
//! kernel's scheduler.

use std::fs;
use std::path::Path;

use super::RunError;
use crate::job::{GlobalWrite, Job, LoaderReport, SCHEDULER_FILE, SchedulerExit};
use crate::sched_ext::{Attached, Loader, VerifiedProgram};

/// The scheduler of a run's tasks.
#[derive(Debug)]
pub(super) enum InCharge {
    /// The kernel's own scheduler.
    Kernel,
    Object(Box<Attached>),
    Loader(Box<Loader>),
}

impl InCharge {
    /// Attaches the job's object, or starts its loader.
    pub(super) fn attach(job: &Job, folder: &Path) -> Result<Self, RunError> {
        if let Some(loader) = &job.loader {
            return Ok(Self::Loader(Box::new(Loader::start(loader)?)));
        }
        let Some(scheduler) = &job.scheduler else { return Ok(Self::Kernel) };
        let path = folder.join(SCHEDULER_FILE);
        let object = fs::read(&path).map_err(|error| RunError::file(&path, error))?;
        Ok(Self::Object(Box::new(Attached::attach(scheduler, &object)?)))
    }

    /// Whether it is a sched_ext scheduler, which the kernel may disable.
    pub(super) fn may_exit(&self) -> bool {
        !matches!(self, Self::Kernel)
    }

    /// How the scheduler was disabled, if it is no longer enabled.
    pub(super) fn exited(&mut self) -> Option<SchedulerExit> {
        match self {
            Self::Kernel => None,
            Self::Object(attached) => attached.exited(),
            Self::Loader(loader) => loader.exited(),
        }
    }

    /// Writes a variable of the object.
    pub(super) fn write(&mut self, write: &GlobalWrite) -> Result<(), RunError> {
        match self {
            Self::Object(attached) => Ok(attached.write(write)?),
            Self::Kernel | Self::Loader(_) => Ok(()),
        }
    }

    /// Runs the object's programs of each full second.
    pub(super) fn each_second(&mut self) -> Result<(), RunError> {
        match self {
            Self::Object(attached) => Ok(attached.each_second()?),
            Self::Kernel | Self::Loader(_) => Ok(()),
        }
    }

    /// Detaches the object or stops the loader; returns how the scheduler was disabled: before the end of the run, or
    /// now; and the programs of an object.
    pub(super) fn leave(
        self,
    ) -> (Option<SchedulerExit>, Vec<VerifiedProgram>, Option<LoaderReport>) {
        match self {
            Self::Kernel => (None, Vec::new(), None),
            Self::Object(mut attached) => {
                let programs = attached.programs();
                (Some(attached.exited().unwrap_or_else(|| attached.detach())), programs, None)
            }
            Self::Loader(loader) => {
                let (exit, report) = loader.stop();
                (Some(exit), Vec::new(), Some(report))
            }
        }
    }
}
