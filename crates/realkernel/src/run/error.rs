//! Why a job could not be carried out.

use std::path::PathBuf;
use std::time::Duration;

use crate::knobs::KnobError;
use crate::sched_ext::LoadError;
use crate::tasks::TaskError;
use crate::tracefs::RecordError;

/// Why the runner could not carry out its job.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A file of the job cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the kernel says.
        error: std::io::Error,
    },
    /// The job is wrong.
    #[error("{}: {problem}", path.display())]
    Job {
        /// The job's file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The process that cleans up behind a killed runner cannot be started.
    #[error("cannot start a process: {0}")]
    Janitor(std::io::Error),
    /// The kernel could not be told something.
    #[error(transparent)]
    Knob(#[from] KnobError),
    /// The scheduler could not be put in charge.
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
        /// What the kernel says.
        error: std::io::Error,
    },
    /// The runner cannot be started.
    #[error("cannot start {}: {error}", program.display())]
    Spawn {
        /// The program.
        program: PathBuf,
        /// What the kernel says.
        error: std::io::Error,
    },
    /// The runner did not end in time and was killed.
    #[error("the run did not end within {} s and was killed{}", deadline.as_secs(), said(last_words))]
    Deadline {
        /// How long it had.
        deadline: Duration,
        /// What it wrote to its standard error last.
        last_words: String,
    },
    /// Somebody asked for the end, and the runner was killed.
    #[error("it was ended on request")]
    Stopped,
    /// The runner died of something.
    #[error("the process that carries out the run ended with {status}{}", said(last_words))]
    Died {
        /// Its exit code or signal in words.
        status: String,
        /// What it wrote to its standard error last.
        last_words: String,
    },
    /// The job cannot be carried out.
    #[error("{problem}")]
    Job {
        /// What the runner says.
        problem: String,
    },
}

fn said(last_words: &str) -> String {
    if last_words.is_empty() { String::new() } else { format!("; it said: {last_words}") }
}
