//! A recording's load under other schedulers, and how near a replay comes to the recording.

use std::collections::HashMap;

use fairground_session::{
    Closeness, Failure, MachineSpec, OwnScheduler, Replay, nearness, without_pid,
};
use pyo3::prelude::*;

use crate::error;
use crate::figures::{table, texts, values};
use crate::run::{Run, carry_out};
use crate::table::Table;
use crate::words::{Checked, Scheduler, spec_of};
use fairground_analysis::metric::MetricValue;

/// The scheduler that made a recording, as far as it tells: its name with a parameter set, and its settings.
///
/// # Errors
/// Why there is none.
#[pyfunction]
pub(crate) fn own_scheduler(recording: &Run) -> PyResult<(String, Vec<String>)> {
    let replay = Replay::of(&recording.label, &recording.trace, &MachineSpec::default());
    match replay.own() {
        Some(OwnScheduler { spec, set }) => Ok((spec.clone(), set.clone())),
        None => Err(error(format_args!(
            "{}: {}\n  help: name a scheduler: `replay(sched=...)`",
            recording.label,
            replay.why_no_own()
        ))),
    }
}

/// Replays a recording as a point says: its scheduler, settings and machine; the workload is the recording's.
#[pyfunction]
pub(crate) fn replay(
    py: Python<'_>,
    recording: &Run,
    point: &Bound<'_, PyAny>,
    scheduler: &Scheduler,
) -> PyResult<Run> {
    let spec = spec_of(point)?;
    let prepare = || {
        let replay = Replay::of(&recording.label, &recording.trace, &spec.machine);
        let (workload, notes) = replay.workload(&recording.trace, &spec.scheduler)?;
        let spec = replay.spec(spec.scheduler.clone());
        let notes = notes.to_string().lines().map(str::to_owned).collect();
        let checked = Checked::with(&spec, (workload, notes), false)?;
        Ok::<_, Failure>((spec, Checked { rename: without_pid, ..checked }))
    };
    let (spec, checked) = py.detach(prepare).map_err(error)?;
    let outcome = carry_out(py, &checked, &scheduler.loaded)?;
    let notes = checked.notes.clone();
    Ok(Run::of(&spec, outcome, notes, (&checked, scheduler)))
}

/// How near a replay comes to its recording: one row for each figure.
#[pyfunction]
pub(crate) fn near(recording: &Run, replayed: &Run) -> PyResult<Table> {
    let all = nearness(&recording.analysis, &replayed.analysis);
    let off = |one: &Closeness| one.off_percent.map(MetricValue::Float);
    let columns = vec![
        texts("metric", all.iter().map(|one| Some(&one.what))),
        values("off_percent", all.iter().map(off)),
        texts("near", all.iter().map(|one| one.near.map(|near| near.name()))),
    ];
    table(columns, HashMap::new()).map(Table::made).map_err(error)
}
