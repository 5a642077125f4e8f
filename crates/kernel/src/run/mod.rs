//! The runner: carries a job out, and leaves its outcome and its recording in the job's folder.
//!
//! The runner is a process of its own with one thread. It dies with the program that started it, and its tasks die with it.

mod error;

use std::path::Path;
use std::time::Duration;

pub use error::{GroundError, RunError};

use crate::job::{Job, Outcome};

/// The hidden command with which the program calls itself: `fairground __run-job FOLDER`.
pub const RUNNER_COMMAND: &str = "__run-job";

/// Carries out the job in `folder`, in this process, which must have one thread, and writes the outcome beside it.
///
/// # Errors
/// What is wrong with the job, and what this kernel or this user may not do. The message also stands in
/// [`crate::job::ERROR_FILE`].
pub fn carry_out(folder: &Path) -> Result<Outcome, RunError> {
    Err(RunError::Job {
        path: folder.to_owned(),
        problem: "the runner is not there yet".to_owned(),
    })
}

/// Runs a job on this machine: writes it into `folder`, starts a runner, waits for it, and ends it at the deadline, which
/// counts from the start of the runner.
///
/// # Errors
/// The runner could not be started, did not end in time, or says what is wrong.
pub fn on_host(
    job: &Job,
    object: Option<&[u8]>,
    folder: &Path,
    deadline: Duration,
) -> Result<Outcome, GroundError> {
    let _ = (job, object, deadline);
    Err(GroundError::Job { problem: format!("{}: there is no runner yet", folder.display()) })
}
