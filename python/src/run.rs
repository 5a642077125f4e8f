//! A finished run, or a recording: its events and its figures.

use std::sync::{Arc, OnceLock};

use fairground_analysis::diagnose::Diagnosis;
use fairground_analysis::{Analysis, Options};
use fairground_session::{
    Failure, Outcome, Plan, RunSpec, Variables, Verdict, never_ran, never_ran_tasks,
    read_recording_watched,
};
use fairground_trace::Trace;
use pyo3::prelude::*;

use crate::table::Table;
use crate::waits::Contention;
use crate::watch::watched;
use crate::words::{Checked, Scheduler, spec_of};
use crate::{error, figures, findings, made};

/// What a run left.
#[pyclass(frozen)]
pub(crate) struct Run {
    /// The scheduler, or the recording's name.
    #[pyo3(get)]
    pub(crate) label: String,
    /// How it was made, as JSON.
    #[pyo3(get)]
    made: String,
    /// What is worth knowing of it.
    #[pyo3(get)]
    notes: Vec<String>,
    /// What the scheduler printed.
    #[pyo3(get)]
    log: Vec<String>,
    /// Why the scheduler was ejected.
    #[pyo3(get)]
    ejection: Option<String>,
    /// What heads the result, the worst first.
    #[pyo3(get)]
    verdicts: Vec<String>,
    /// The tasks that never ran: name, and how long each has been waiting, ns.
    #[pyo3(get)]
    never_ran: Vec<(String, u64)>,
    /// The variables of the scheduler that were asked for: name, and value at the end.
    #[pyo3(get)]
    variables: Vec<(String, String)>,
    pub(crate) trace: Arc<Trace>,
    pub(crate) analysis: Analysis,
    /// What is wrong in it, once that was asked for.
    diagnosis: OnceLock<Diagnosis>,
}

impl Run {
    /// What a run under a scheduler left.
    pub(crate) fn of(
        spec: &RunSpec,
        outcome: Outcome,
        mut notes: Vec<String>,
        (checked, scheduler): (&Checked, &Scheduler),
    ) -> Self {
        let object = &scheduler.loaded.object;
        notes.extend(object.unenforced(&checked.workload, &checked.settings));
        if outcome.ejection().is_some() {
            notes.extend(object.left_at_zero(&checked.settings));
        }
        Run::measured(spec, outcome, notes)
    }

    /// A run with the remarks on it.
    pub(crate) fn measured(spec: &RunSpec, outcome: Outcome, notes: Vec<String>) -> Self {
        Self {
            made: made::of_run(spec, &outcome),
            notes,
            log: outcome.log().iter().map(ToString::to_string).collect(),
            ejection: outcome.ejection(),
            verdicts: texts(outcome.verdicts()),
            never_ran: waits(&outcome.analysis),
            variables: shown(&outcome.variables),
            label: outcome.label,
            trace: Arc::new(outcome.trace),
            analysis: outcome.analysis,
            diagnosis: OnceLock::new(),
        }
    }

    fn diagnosis(&self, py: Python<'_>) -> &Diagnosis {
        let diagnose = || Diagnosis::with(&self.trace, &self.analysis);
        py.detach(|| self.diagnosis.get_or_init(diagnose))
    }
}

#[pymethods]
impl Run {
    /// The events.
    fn events(&self) -> Table {
        Table::events(Arc::clone(&self.trace))
    }

    /// The machine's metrics.
    fn metrics(&self) -> PyResult<Table> {
        figures::machine(&self.analysis).map(Table::made).map_err(error)
    }

    /// The metrics of each task.
    fn tasks(&self) -> PyResult<Table> {
        figures::tasks(&self.analysis).map(Table::made).map_err(error)
    }

    /// The metrics of each group of equal tasks.
    fn groups(&self) -> PyResult<Table> {
        figures::groups(&self.analysis).map(Table::made).map_err(error)
    }

    /// The metrics of each control group.
    fn cgroups(&self) -> PyResult<Table> {
        figures::cgroups(&self.analysis).map(Table::made).map_err(error)
    }

    /// What `diagnose` finds.
    fn findings(&self, py: Python<'_>) -> PyResult<Table> {
        findings::findings(self.diagnosis(py)).map(Table::made).map_err(error)
    }

    /// The figures of the findings.
    fn evidence(&self, py: Python<'_>) -> PyResult<Table> {
        findings::evidence(self.diagnosis(py)).map(Table::made).map_err(error)
    }

    /// The rules that could not judge, and why.
    #[getter]
    fn not_judged(&self, py: Python<'_>) -> Vec<(String, String)> {
        findings::not_judged(self.diagnosis(py))
    }

    /// The waits of its tasks, with `depth` functions of a call chain.
    fn contention(&self, py: Python<'_>, depth: usize) -> Contention {
        py.detach(|| Contention::of(&self.trace, depth))
    }

    /// A number that says whether two runs have the same events.
    #[getter]
    fn digest(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.trace.digest())
    }
}

fn texts(verdicts: impl IntoIterator<Item = Verdict>) -> Vec<String> {
    verdicts.into_iter().map(|verdict| verdict.text).collect()
}

fn shown(variables: &Variables) -> Vec<(String, String)> {
    let values = variables.values.iter();
    values.map(|shown| (shown.name.clone(), shown.value.to_string())).collect()
}

fn waits(analysis: &Analysis) -> Vec<(String, u64)> {
    never_ran_tasks(analysis).into_iter().map(|task| (task.name, task.waiting_ns)).collect()
}

/// Makes the run of checked words; without the GIL, which is taken now and then to ask for Ctrl-C.
pub(crate) fn carry_out(
    py: Python<'_>,
    checked: &Checked,
    scheduler: &fairground_session::Scheduler,
) -> PyResult<Outcome> {
    watched(py, |signals| {
        Plan {
            settings: checked.settings.clone(),
            variables: checked.variables.clone(),
            rename: checked.rename,
            ..Plan::new(scheduler, &checked.workload, checked.machine.clone(), checked.duration_ns)
        }
        .run(signals)
    })
}

/// Runs a point.
#[pyfunction]
#[pyo3(signature = (point, scheduler, callbacks))]
pub(crate) fn simulate(
    py: Python<'_>,
    point: &Bound<'_, PyAny>,
    scheduler: &Scheduler,
    callbacks: bool,
) -> PyResult<Run> {
    let spec = spec_of(point)?;
    let checked = py.detach(|| Checked::of(&spec, callbacks)).map_err(error)?;
    let outcome = carry_out(py, &checked, &scheduler.loaded)?;
    let notes = checked.notes.clone();
    Ok(Run::of(&spec, outcome, notes, (&checked, scheduler)))
}

/// Reads a recording in any format; of one of several machines or buffers that one.
#[pyfunction]
pub(crate) fn read(py: Python<'_>, path: &str, machine: Option<&str>) -> PyResult<Run> {
    let read = || -> Result<Run, Failure> {
        let recording = read_recording_watched(path, machine, |_| ())?;
        let analysis = Analysis::of(&recording.trace, &Options::default());
        Ok(Run {
            made: made::of_recording(&recording),
            notes: analysis.irregularities.notes(),
            log: Vec::new(),
            ejection: None,
            verdicts: texts(never_ran(analysis.never_ran())),
            never_ran: waits(&analysis),
            variables: Vec::new(),
            label: recording.name,
            trace: Arc::new(recording.trace),
            analysis,
            diagnosis: OnceLock::new(),
        })
    };
    py.detach(read).map_err(error)
}
