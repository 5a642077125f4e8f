//! Errors of a run on a real kernel.

use std::path::PathBuf;
use std::time::Duration;

use crate::knobs::KnobError;
use crate::sched_ext::LoadError;
use crate::tasks::TaskError;
use crate::tracefs::RecordError;

/// Why the runner could not execute its job.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A file of the job cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The kernel's error.
        error: std::io::Error,
    },
    /// The job is invalid.
    #[error("{}: {problem}", path.display())]
    Job {
        /// The job's file.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
    /// The process that cleans up after a killed runner cannot be started.
    #[error("cannot start a process: {0}")]
    Janitor(std::io::Error),
    /// A knob could not be set.
    #[error(transparent)]
    Knob(#[from] KnobError),
    /// The scheduler could not be attached.
    #[error(transparent)]
    Scheduler(Box<LoadError>),
    /// The run could not be recorded.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The tasks could not run.
    #[error(transparent)]
    Tasks(#[from] TaskError),
}

impl From<LoadError> for RunError {
    fn from(error: LoadError) -> Self {
        Self::Scheduler(Box::new(error))
    }
}

/// Why a ground gave no outcome.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// A file of the job cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The kernel's error.
        error: std::io::Error,
    },
    /// The runner cannot be started.
    #[error("cannot start {}: {error}", program.display())]
    Spawn {
        /// The program.
        program: PathBuf,
        /// The kernel's error.
        error: std::io::Error,
    },
    /// The runner did not end in time and was killed.
    #[error("the run did not end within {} s and was killed{}", deadline.as_secs(), said(last_words))]
    Deadline {
        /// The time limit.
        deadline: Duration,
        /// The end of its standard error.
        last_words: String,
    },
    /// The run was stopped on request, and the runner was killed.
    #[error("the run was stopped on request")]
    Stopped,
    /// The runner ended without an outcome.
    #[error("the runner process ended with {status}{}", said(last_words))]
    Died {
        /// Its exit code or signal.
        status: String,
        /// The end of its standard error.
        last_words: String,
    },
    /// The job failed.
    #[error("{problem}")]
    Job {
        /// The runner's message.
        problem: String,
    },
}

fn said(last_words: &str) -> String {
    if last_words.is_empty() { String::new() } else { format!("; its last output: {last_words}") }
}
