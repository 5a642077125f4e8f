//! Running a job on this machine.

use std::fmt;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use fairground_scratch::die_with_parent;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::error::TargetError;
use crate::child::pid_fd;
use crate::job::{ERROR_FILE, JOB_FILE, Job, OUTCOME_FILE, Outcome, SCHEDULER_FILE, TRACE_FILE};

/// The hidden command with which the program calls itself: `fairground __run-job FOLDER`.
pub const RUNNER_COMMAND: &str = "__run-job";
/// The runner's output, in the job's folder.
const OUTPUT_FILE: &str = "runner.txt";
/// Maximum bytes of the runner's output in an error.
const OUTPUT_BYTES_MAX: usize = 4_096;

/// When a run must end.
#[derive(Clone, Copy)]
pub struct Limits<'a> {
    /// Maximum duration, from the start of the runner.
    pub deadline: Duration,
    /// A descriptor that becomes readable to stop the run.
    pub stop: Option<BorrowedFd<'a>>,
    /// Whether the run continues: asked after each signal, as polls would disturb the run.
    pub goes_on: &'a dyn Fn() -> bool,
}

impl fmt::Debug for Limits<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limits").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}

impl Limits<'static> {
    /// The deadline alone.
    pub fn of(deadline: Duration) -> Self {
        Self { deadline, stop: None, goes_on: &|| true }
    }
}

/// Runs a job on this machine: writes it to `folder`, starts a runner, waits for it, and kills it at its limits. The
/// runner dies with the calling thread. It does not receive the terminal's signals.
///
/// # Errors
/// The runner cannot be started, exceeds its deadline, is stopped, or reports an error.
pub fn on_host(
    job: &Job,
    object: Option<&[u8]>,
    folder: &Path,
    limits: Limits<'_>,
) -> Result<Outcome, TargetError> {
    let program = std::env::current_exe()
        .map_err(|error| TargetError::Spawn { program: "/proc/self/exe".into(), error })?;
    on_host_by(&program, job, object, folder, limits)
}

/// As [`on_host`], with the program that executes [`RUNNER_COMMAND`].
///
/// # Errors
/// Those of [`on_host`].
pub fn on_host_by(
    program: &Path,
    job: &Job,
    object: Option<&[u8]>,
    folder: &Path,
    limits: Limits<'_>,
) -> Result<Outcome, TargetError> {
    write_job(job, object, folder)?;
    let words = folder.join(OUTPUT_FILE);
    let file = fs::File::create(&words).map_err(|error| file_error(&words, error))?;
    let mut command = Command::new(program);
    command.arg(RUNNER_COMMAND).arg(folder);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::from(file));
    command.process_group(0);
    die_with_parent(&mut command);
    let child = command
        .spawn()
        .map_err(|error| TargetError::Spawn { program: program.to_owned(), error })?;
    let last_output = || last_output(&words);
    match wait(child, limits) {
        Ended::ByItself(status) => outcome(folder, status, last_output),
        Ended::Stopped => Err(TargetError::Stopped),
        Ended::Late => {
            Err(TargetError::Deadline { deadline: limits.deadline, last_output: last_output() })
        }
    }
}

fn file_error(path: &Path, error: io::Error) -> TargetError {
    TargetError::File { path: path.to_owned(), error }
}

/// Writes a job into its folder, and removes what an earlier one may have left there.
///
/// # Errors
/// [`TargetError::File`].
pub fn write_job(job: &Job, object: Option<&[u8]>, folder: &Path) -> Result<(), TargetError> {
    for name in [OUTCOME_FILE, ERROR_FILE, TRACE_FILE, SCHEDULER_FILE] {
        let path = folder.join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(file_error(&path, error));
            }
            _ => {}
        }
    }
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        fs::write(&path, bytes).map_err(|error| file_error(&path, error))
    };
    if let Some(object) = object {
        write(SCHEDULER_FILE, object)?;
    }
    let text = serde_json::to_vec(job);
    write(JOB_FILE, &text.map_err(|error| file_error(&folder.join(JOB_FILE), error.into()))?)
}

/// The result that an ended runner wrote to its folder.
fn outcome(
    folder: &Path,
    status: ExitStatus,
    last_output: impl Fn() -> String,
) -> Result<Outcome, TargetError> {
    if let Ok(problem) = fs::read_to_string(folder.join(ERROR_FILE)) {
        return Err(TargetError::Job { problem });
    }
    if !status.success() {
        let status = match (status.code(), status.signal()) {
            (Some(code), _) => format!("exit code {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => status.to_string(),
        };
        return Err(TargetError::Died { status, last_output: last_output() });
    }
    let path = folder.join(OUTCOME_FILE);
    let bytes = fs::read(&path).map_err(|error| file_error(&path, error))?;
    serde_json::from_slice(&bytes).map_err(|error| file_error(&path, error.into()))
}

/// How a runner ended.
enum Ended {
    ByItself(ExitStatus),
    /// It was killed on request.
    Stopped,
    /// It was killed at the deadline.
    Late,
}

/// Waits for a child without polling, which would disturb the run; kills it at its limits.
fn wait(mut child: Child, limits: Limits<'_>) -> Ended {
    let begun = Instant::now();
    let end = pid_fd(child.id()).ok();
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Ended::ByItself(status);
        }
        let left = limits.deadline.saturating_sub(begun.elapsed());
        let at_most = if end.is_some() { left } else { left.min(Duration::from_millis(50)) };
        let waited = limits.stop.into_iter().chain(end.as_ref().map(AsFd::as_fd));
        let mut waited: Vec<PollFd<'_>> =
            waited.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
        let limit = PollTimeout::try_from(at_most.as_millis() + 1).unwrap_or(PollTimeout::MAX);
        let is_ready = |fd: &PollFd<'_>| fd.any().unwrap_or(false);
        // A signal interrupts the wait.
        let is_stopped = match poll(&mut waited, limit) {
            Ok(_) => limits.stop.is_some() && waited.first().is_some_and(is_ready),
            Err(_) => !(limits.goes_on)(),
        };
        if is_stopped || left.is_zero() {
            // Both fail only if it has already ended.
            let _ = child.kill();
            let _ = child.wait();
            return if is_stopped { Ended::Stopped } else { Ended::Late };
        }
    }
}

fn last_output(path: &Path) -> String {
    let bytes = fs::read(path).unwrap_or_default();
    let start = bytes.len().saturating_sub(OUTPUT_BYTES_MAX);
    String::from_utf8_lossy(&bytes[start..]).trim().to_owned()
}
