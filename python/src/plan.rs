//! Runs on any target, several side by side, and what follows or compares recordings: what the command line does, with
//! its documents as JSON.

use std::path::PathBuf;

use fairground_analysis::difference::Detail;
use fairground_analysis::{Analysis, Options};
use fairground_present::{Selection, add_metrics, compared, difference, followed, sides};
use fairground_session::{
    Failure, Follow, Ran, Recording, RunPlan, RunSpec, exit_code, one_scheduler,
    read_recording_watched,
};
use pyo3::prelude::*;

use crate::run::Run;
use crate::watch::{Signals, watched};
use crate::words::spec_of_words;

/// A document as JSON, with the exit code of its command.
type Document = (String, u8);
/// Whether every row is shown; else the metrics and the tasks that are.
type Rows = (bool, Vec<String>, Vec<String>);

fn make(spec: &RunSpec, program: Option<PathBuf>, signals: &Signals) -> Result<Ran, Failure> {
    let (workload, notes) = spec.find_workload()?;
    let plan = RunPlan { program, ..RunPlan::new(spec, &workload, Options::simulated()) };
    let mut ran = plan.run(signals)?;
    ran.notes.extend(notes);
    Ok(ran)
}

/// Each run with the remarks on all of them.
fn runs(ran: Ran, spec: &RunSpec) -> Vec<Run> {
    let Ran { outcomes, notes, .. } = ran;
    outcomes.into_iter().map(|outcome| Run::measured(spec, outcome, notes.clone())).collect()
}

/// Makes the one run of a spec, on any target. `program` is what virtual machines boot, and what carries out jobs on the
/// host.
///
/// # Errors
/// A word that means nothing, several runs, a target that did not come up.
#[pyfunction]
pub(crate) fn run_on(py: Python<'_>, words: &str, program: Option<PathBuf>) -> PyResult<Run> {
    let spec = spec_of_words(words)?;
    watched(py, |signals| {
        if spec.scheduler.sched.len() > 1 || spec.target.on.len() > 1 {
            return Err(Failure::new("`run_on` takes one scheduler on one target")
                .help("`compare` runs several"));
        }
        one_scheduler(&spec.scheduler, &spec.target)?;
        let mut runs = runs(make(&spec, program, signals)?, &spec);
        match (runs.pop(), runs.is_empty()) {
            (Some(run), true) => Ok(run),
            _ => Err(Failure::new("`run_on` makes one run").help("`compare` makes several")),
        }
    })
}

/// Makes every run of a spec, one for each combination of target, scheduler and settings. Returns the document of
/// `compare`, and the runs.
///
/// # Errors
/// As [`run_on`].
#[pyfunction]
pub(crate) fn compare(
    py: Python<'_>,
    words: &str,
    program: Option<PathBuf>,
    rows: Rows,
) -> PyResult<(Document, Vec<Run>)> {
    let spec = spec_of_words(words)?;
    watched(py, |signals| {
        let (all, metrics, tasks) = &rows;
        let selection = Selection::of(*all, metrics, tasks)?;
        let ran = make(&spec, program, signals)?;
        let (document, code) = compared(&ran, &spec.workload, &spec, &selection, &[])?;
        Ok(((document.to_json(), code), runs(ran, &spec)))
    })
}

/// Whether an argument names a recording, and not a workload.
#[pyfunction]
pub(crate) fn is_recording(argument: &str) -> bool {
    fairground_session::is_recording(argument)
}

/// Compares recordings: two, or several before a change with those after it, `against`. `of` is the machine of a
/// recording with several, and the tasks that count; `rows`: whether each task is a row, and which are shown. Returns the document of `compare`.
///
/// # Errors
/// A file that is no recording, or has no switches; a task that is not there.
#[pyfunction]
pub(crate) fn compare_recordings(
    py: Python<'_>,
    recordings: (String, Vec<String>, Vec<String>),
    of: (Option<String>, Vec<String>),
    rows: (bool, Rows),
) -> PyResult<Document> {
    watched(py, |_| {
        let ((first, others, against), (machine, tree)) = (&recordings, &of);
        let [before, after] = sides(first, others, against)?;
        let read = |names: &[String]| -> Result<Vec<Recording>, Failure> {
            let one = |name: &String| read_recording_watched(name, machine.as_deref(), |_| ());
            names.iter().map(one).collect()
        };
        let (before, after) = (read(&before)?, read(&after)?);
        let (per_task, (all, metrics, tasks)) = &rows;
        let selection = Selection::of(*all, metrics, tasks)?;
        let detail = if *per_task { Detail::Task } else { Detail::Group };
        let mut document = difference([&before, &after], tree, detail, *all)?;
        let mut code = 0;
        if selection.is_all() || selection.is_narrow() {
            let recordings: Vec<&Recording> = before.iter().chain(&after).collect();
            let measure = |one: &&Recording| Analysis::of(&one.trace, &Options::default());
            let analyses: Vec<Analysis> = recordings.iter().map(measure).collect();
            code = add_metrics(&mut document, &recordings, &analyses, &selection);
        }
        Ok((document.to_json(), code))
    })
}

/// Lets a scheduler follow a recording. Returns the document of `follow`.
///
/// # Errors
/// A file that is no recording, a word that means nothing, a scheduler that cannot be used.
#[pyfunction]
pub(crate) fn follow(
    py: Python<'_>,
    path: &str,
    words: &str,
    machine: Option<&str>,
    top: usize,
) -> PyResult<Document> {
    let spec = spec_of_words(words)?;
    watched(py, |signals| {
        let recording = read_recording_watched(path, machine, |_| ())?;
        let done = Follow::of(&spec, &recording)?.run(&recording, signals)?;
        let code = done.exit.as_ref().map_or(0, |exit| exit_code(exit.kind.number().into()));
        Ok((followed(&recording, &done, top).to_json(), code))
    })
}
