//! The runner: executes a job from the file of the job to that of the outcome.

use std::fs;
use std::io;
use std::path::Path;

use fairground_workload::Workload;

use super::RunError;
use super::in_charge::InCharge;
use super::info::kernel_info;
use super::janitor::Janitor;
use super::timeline::{Ended, Running};
use crate::job::{ERROR_FILE, HOLD_NS_MAX, JOB_FILE, Job, OUTCOME_FILE, Outcome, TRACE_FILE};
use crate::knobs::{KnobFolders, Knobs};
use crate::tasks::Executor;
use crate::tasks::clock::{now_ns, sleep_until};
use crate::tracefs::{RecordError, Recorder};

const NS_PER_S: u64 = 1_000_000_000;

/// Executes the job in `folder` in this process, which must have one thread, and writes the outcome to `folder`.
///
/// # Errors
/// The job is invalid, or the kernel or the user's rights do not permit it. The message is also written to
/// [`crate::job::ERROR_FILE`].
pub fn carry_out(folder: &Path) -> Result<Outcome, RunError> {
    // SAFETY: touches only the process's own state.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) };
    let done = read_job(folder).and_then(|(job, workload)| {
        let outcome = run(&job, &workload, folder)?;
        let path = folder.join(OUTCOME_FILE);
        let text = serde_json::to_vec(&outcome);
        let text = text.map_err(|error| RunError::file(&path, error.into()))?;
        write_whole(&path, &text)?;
        Ok(outcome)
    });
    if let Err(error) = &done {
        // The caller gets the message in any case.
        let _ = write_whole(&folder.join(ERROR_FILE), error.to_string().as_bytes());
    }
    done
}

/// Writes a file under another name and renames it, so that it is complete or absent.
fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), RunError> {
    let other = path.with_extension("part");
    fs::write(&other, bytes).map_err(|error| RunError::file(&other, error))?;
    fs::rename(&other, path).map_err(|error| RunError::file(path, error))
}

fn read_job(folder: &Path) -> Result<(Job, Workload), RunError> {
    let path = folder.join(JOB_FILE);
    let bytes = fs::read(&path).map_err(|error| RunError::file(&path, error))?;
    let wrong = |problem: String| RunError::Job { path: path.clone(), problem };
    let job: Job = serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
    if job.duration_ns == 0 {
        return Err(wrong("the duration is 0 ns".to_owned()));
    }
    if job.scheduler.is_some() && job.loader.is_some() {
        return Err(wrong(
            "it has a scheduler to attach and a loader that attaches one".to_owned(),
        ));
    }
    if job.hold_ns > HOLD_NS_MAX {
        return Err(wrong(format!(
            "the hold time is {} ns; the maximum is {HOLD_NS_MAX}",
            job.hold_ns
        )));
    }
    let workload = fairground_workload::parse("the job's workload", &job.workload);
    let workload = workload.map_err(|error| wrong(error.to_string()))?;
    Ok((job, workload))
}

fn run(job: &Job, workload: &Workload, folder: &Path) -> Result<Outcome, RunError> {
    let mut notes = Vec::new();
    let mut knobs = Knobs::find(&job.knobs, KnobFolders::default())?;
    let leaves_traces = !job.knobs.is_empty() || !workload.cgroups.is_empty();
    // Started first, so that it does not inherit descriptors, above all a scheduler's link.
    let janitor = leaves_traces.then(|| Janitor::start(&knobs.originals())).transpose();
    let _janitor = janitor.map_err(RunError::Janitor)?;
    for knob in job.knobs.iter().filter(|knob| knob.at_ns.is_none()) {
        knobs.turn(knob)?;
    }
    let kernel = kernel_info();
    let mut in_charge = InCharge::attach(job, folder)?;
    let mut tick_ns = 1;
    if job.on_the_second {
        tick_ns = NS_PER_S / u64::from(kernel.hz.unwrap_or(1).max(1));
        sleep_until(now_ns().next_multiple_of(NS_PER_S));
    }
    let (mut recorder, not_recorded) = record(job)?;
    let marker = recorder.as_ref().and_then(Recorder::marker).map(|m| m.try_clone_to_owned());
    let marker = marker.transpose().map_err(|error| RunError::file(folder, error))?;
    let mut executor = Executor::prepare(workload, job.seed, marker, &mut notes)?;
    wake_each(&executor, workload);
    let mut detailed = recorder.as_mut().filter(|_| has_details(job));
    detailed.iter_mut().for_each(|recorder| recorder.describe_tasks());
    executor.rest(job.on_the_second);
    if let Some(recorder) = detailed {
        recorder.turn_on()?;
    }
    // Only now: the run time of a real-time task lowers the capacity of its CPU, which determines where waking tasks
    // are placed.
    let above = AboveOthers::rise(workload);
    let Ended { start_ns, end_ns, changes, charge } = Running {
        executor: &mut executor,
        in_charge: &mut in_charge,
        recorder: recorder.as_ref(),
        knobs: &mut knobs,
        tick_ns,
    }
    .run(job)?;
    if let Some(recorder) = &recorder {
        recorder.pause()?;
    }
    executor.kill();
    executor.reap_all()?;
    drop(above);
    let (tasks, marks) = executor.collect(&mut notes);
    // Closes the tasks' marker: an instance of tracefs with an open file cannot be removed.
    drop(executor);
    if let Some(recorder) = recorder {
        stop(recorder, folder, &mut notes)?;
    }
    let (exit, programs, loader) = in_charge.leave();
    if charge.is_none_or(|charge| charge.at_start) {
        early_end(job, start_ns, end_ns, &mut notes);
    }
    Ok(Outcome {
        kernel,
        start_ns,
        end_ns,
        tasks,
        marks,
        changes,
        exit,
        programs,
        charge,
        loader,
        not_recorded,
        notes,
    })
}

/// Writes what was recorded, and notes what is missing in it.
fn stop(recorder: Recorder, folder: &Path, notes: &mut Vec<String>) -> Result<(), RunError> {
    notes.extend(recorder.missing().map(str::to_owned));
    let recorded = recorder.stop(&folder.join(TRACE_FILE))?;
    if recorded.lost > 0 {
        notes.push(format!("{} events of the kernel were lost", recorded.lost));
    }
    Ok(())
}

/// With details, a recording begins when the tasks exist and wait for their start: it describes them, and what makes
/// them is not in it.
fn has_details(job: &Job) -> bool {
    job.recording.as_ref().is_some_and(|recording| recording.details)
}

/// Starts the recording; with details, only prepares it. Without tracefs, the run still has the tasks' accounting; an
/// event that the kernel lacks is an error.
fn record(job: &Job) -> Result<(Option<Recorder>, Option<String>), RunError> {
    let Some(recording) = &job.recording else { return Ok((None, None)) };
    let recorder = match recording.details {
        true => Recorder::ready(recording),
        false => Recorder::start(recording),
    };
    match recorder {
        Ok(recorder) => Ok((Some(recorder), None)),
        Err(error @ (RecordError::NoTracefs { .. } | RecordError::NotPermitted { .. })) => {
            Ok((None, Some(error.to_string())))
        }
        Err(error) => Err(error.into()),
    }
}

fn early_end(job: &Job, start_ns: u64, end_ns: u64, notes: &mut Vec<String>) {
    let took_ns = end_ns - start_ns;
    if took_ns < job.duration_ns {
        notes.push(format!(
            "the run ended after {} of {} ms, because the scheduler was disabled",
            took_ns / 1_000_000,
            job.duration_ns / 1_000_000
        ));
    }
    let late = job.knobs.iter().map(|knob| (knob.at_ns, &knob.name));
    let writes = job.scheduler.iter().flat_map(|scheduler| &scheduler.writes);
    let late = late.chain(writes.map(|write| (write.at_ns, &write.label)));
    for (_, name) in late.filter(|(at_ns, _)| at_ns.is_some_and(|at_ns| at_ns >= took_ns)) {
        notes.push(format!("`{name}` was not set, because the run ended before its time"));
    }
}

/// Each task wakes up alone. Beside a queued runner it would keep what is owed to it.
fn wake_each(executor: &Executor, workload: &Workload) {
    let _above = AboveOthers::rise(workload);
    executor.wake_each();
}

/// Puts the runner into a higher scheduling class than the tasks, if permitted, so that they do not delay it.
struct AboveOthers;

impl AboveOthers {
    fn rise(workload: &Workload) -> Self {
        // One of the tasks may run without end.
        let priority = if workload.uses_real_time() { 99 } else { 1 };
        // Without the permission it stays where it is.
        let _ = set_policy(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, priority);
        Self
    }
}

impl Drop for AboveOthers {
    fn drop(&mut self) {
        let _ = set_policy(libc::SCHED_OTHER, 0);
    }
}

/// Sets the policy of the calling thread; false: the kernel refuses, and the class does not change.
pub(crate) fn set_policy(policy: libc::c_int, priority: libc::c_int) -> bool {
    // SAFETY: zeroes are a value, and the kernel only reads it.
    unsafe {
        let mut parameters = std::mem::zeroed::<libc::sched_param>();
        parameters.sched_priority = priority;
        libc::sched_setscheduler(0, policy, &raw const parameters) == 0
    }
}

impl RunError {
    pub(super) fn file(path: &Path, error: io::Error) -> Self {
        Self::File { path: path.to_owned(), error }
    }
}
