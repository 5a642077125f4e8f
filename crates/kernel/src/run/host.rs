//! Running a job on this machine.

use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::{GroundError, RUNNER_COMMAND};
use crate::child::pid_fd;
use crate::job::{ERROR_FILE, JOB_FILE, Job, OUTCOME_FILE, Outcome, SCHEDULER_FILE, TRACE_FILE};

/// What the runner says, in the job's folder.
const WORDS_FILE: &str = "runner.txt";
/// Of what the runner said, so many bytes at most are kept.
const WORDS_BYTES_MAX: usize = 4_096;

/// Runs a job on this machine: writes it into `folder`, starts a runner, waits for it, and ends it at the deadline, which
/// counts from the start of the runner. The runner dies with the calling thread.
///
/// # Errors
/// The runner could not be started, did not end in time, or says what is wrong.
pub fn on_host(
    job: &Job,
    object: Option<&[u8]>,
    folder: &Path,
    deadline: Duration,
) -> Result<Outcome, GroundError> {
    let program = std::env::current_exe()
        .map_err(|error| GroundError::Spawn { program: "/proc/self/exe".into(), error })?;
    on_host_by(&program, job, object, folder, deadline)
}

/// [`on_host`], with the program that carries the job out when it is called with [`RUNNER_COMMAND`].
///
/// # Errors
/// Those of [`on_host`].
pub fn on_host_by(
    program: &Path,
    job: &Job,
    object: Option<&[u8]>,
    folder: &Path,
    deadline: Duration,
) -> Result<Outcome, GroundError> {
    write_job(job, object, folder)?;
    let words = folder.join(WORDS_FILE);
    let file = fs::File::create(&words).map_err(|error| file_error(&words, error))?;
    let mut command = Command::new(program);
    command.arg(RUNNER_COMMAND).arg(folder);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::from(file));
    let parent = std::process::id();
    // SAFETY: the closure makes two system calls and allocates nothing.
    unsafe {
        command.pre_exec(move || {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
            // Too late for the signal?
            if libc::getppid() as u32 == parent { Ok(()) } else { Err(io::ErrorKind::Other.into()) }
        });
    }
    let child = command
        .spawn()
        .map_err(|error| GroundError::Spawn { program: program.to_owned(), error })?;
    let last_words = || last_words(&words);
    let Some(status) = wait(child, deadline) else {
        return Err(GroundError::Deadline { deadline, last_words: last_words() });
    };
    outcome(folder, status, last_words)
}

fn file_error(path: &Path, error: io::Error) -> GroundError {
    GroundError::File { path: path.to_owned(), error }
}

/// Writes a job into its folder, and removes what an earlier one may have left there.
///
/// # Errors
/// [`GroundError::File`].
pub fn write_job(job: &Job, object: Option<&[u8]>, folder: &Path) -> Result<(), GroundError> {
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

/// What a runner that has ended left in its folder.
fn outcome(
    folder: &Path,
    status: ExitStatus,
    last_words: impl Fn() -> String,
) -> Result<Outcome, GroundError> {
    if let Ok(problem) = fs::read_to_string(folder.join(ERROR_FILE)) {
        return Err(GroundError::Job { problem });
    }
    if !status.success() {
        let status = match (status.code(), status.signal()) {
            (Some(code), _) => format!("exit code {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => status.to_string(),
        };
        return Err(GroundError::Died { status, last_words: last_words() });
    }
    let path = folder.join(OUTCOME_FILE);
    let bytes = fs::read(&path).map_err(|error| file_error(&path, error))?;
    serde_json::from_slice(&bytes).map_err(|error| file_error(&path, error.into()))
}

/// Waits for a child without looking at it again and again, for that would disturb the run. `None`: it was killed at the
/// deadline.
fn wait(mut child: Child, deadline: Duration) -> Option<ExitStatus> {
    let begun = Instant::now();
    let end = pid_fd(&child).ok();
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        let left = deadline.saturating_sub(begun.elapsed());
        if left.is_zero() {
            // It may have ended just now.
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        let Some(end) = &end else {
            std::thread::sleep(left.min(Duration::from_millis(50)));
            continue;
        };
        let mut ended = libc::pollfd { fd: end.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let limit_ms = libc::c_int::try_from(left.as_millis() + 1).unwrap_or(libc::c_int::MAX);
        // SAFETY: one descriptor, which outlives the call.
        unsafe { libc::poll(&raw mut ended, 1, limit_ms) };
    }
}

fn last_words(path: &PathBuf) -> String {
    let bytes = fs::read(path).unwrap_or_default();
    let start = bytes.len().saturating_sub(WORDS_BYTES_MAX);
    String::from_utf8_lossy(&bytes[start..]).trim().to_owned()
}
