//! The runs, in the guest.

use std::error::Error;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use fairground_realkernel::job::{
    ERROR_FILE, JOB_FILE, Job, OUTCOME_FILE, RecordingJob, TRACE_FILE,
};
use fairground_realkernel::run::RUNNER_COMMAND;
use fairground_realkernel::tracefs::{End, Session};

use super::{KIB_PER_CPU, PLAN_FILE, PROGRAM_LIMIT_S, Plan, What};

/// The folder of temporary files.
const SCRATCH: &str = "/tmp";

/// Runs the plan in the current folder, and writes the recordings there.
///
/// # Errors
/// If there is no plan, or a run fails.
pub fn guest() -> Result<(), Box<dyn Error>> {
    let plan: Plan = serde_json::from_slice(&fs::read(PLAN_FILE)?)?;
    for run in &plan.runs {
        let done = match &run.what {
            What::Program(words) => program(&run.name, words),
            What::Workload(job) => workload(&run.name, job),
        };
        done.map_err(|error| format!("{}: {error}", run.name))?;
    }
    Ok(())
}

/// Records a third-party program until it ends.
fn program(name: &str, words: &[String]) -> Result<(), Box<dyn Error>> {
    say_into(&format!("{name}.txt"))?;
    let session = Session {
        command: words.iter().map(Into::into).collect(),
        duration: Some(Duration::from_secs(PROGRAM_LIMIT_S)),
    };
    let job = RecordingJob { kib_per_cpu: KIB_PER_CPU, ..RecordingJob::default() };
    let (recorder, end) = session.record(&job, Path::new(SCRATCH), None)?;
    let recorded = recorder.stop(Path::new(&format!("{name}.dat")))?;
    match end {
        End::Command(status) if status.success() && recorded.lost == 0 => Ok(()),
        end => Err(format!("{end:?}, {recorded:?}").into()),
    }
}

/// Redirects the output of this process and its children to a file.
fn say_into(path: &str) -> io::Result<()> {
    let file = File::create(path)?;
    // SAFETY: both descriptors are open; the old standard output is not used any more.
    match unsafe { libc::dup2(file.as_raw_fd(), libc::STDOUT_FILENO) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Runs a job in a runner, and keeps its files.
fn workload(name: &str, job: &Job) -> Result<(), Box<dyn Error>> {
    let folder = Path::new(SCRATCH).join(name);
    fs::create_dir_all(&folder)?;
    fs::write(folder.join(JOB_FILE), serde_json::to_vec(job)?)?;
    let mut runner = Command::new(std::env::current_exe()?);
    let status = runner.arg(RUNNER_COMMAND).arg(&folder).stdin(Stdio::null()).status()?;
    if !status.success() {
        let said = fs::read_to_string(folder.join(ERROR_FILE)).unwrap_or_default();
        return Err(format!("{status}: {said}").into());
    }
    fs::copy(folder.join(TRACE_FILE), format!("{name}.dat"))?;
    fs::copy(folder.join(OUTCOME_FILE), format!("{name}.json"))?;
    fs::remove_dir_all(&folder)?;
    Ok(())
}
