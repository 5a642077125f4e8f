//! The checks of a workload: values and references, the flow of each program, forks, and cyclic waits.

mod cycle;
mod execution;
mod flow;
mod forks;
mod locks;
mod meeting;
mod store;
mod values;

use crate::diagnostic::{Source, WorkloadError};
use crate::limits::CHECK_STEPS_MAX;
use crate::model::Workload;
use crate::spans::{Finding, Locator, Spans};

/// Checks a workload that was built by a program. Those of [`crate::parse()`] and the library are checked already.
///
/// Checks names, ranges, references and limits; loops in which no time passes; unreachable operations;
/// groups that never start; unbounded forks; locks taken twice, not released, or held where a task sleeps; waits that
/// no task can end (unless [`Workload::hangs`]); and cyclic waits, which are searched by executing the workload on an
/// ideal machine (a CPU for each task, no costs) for at most [`CHECK_STEPS_MAX`] operations.
///
/// # Errors
/// All problems of the first of these stages that found any.
pub fn check(workload: &Workload) -> Result<(), WorkloadError> {
    report(workload, None, CHECK_STEPS_MAX)
}

/// The same with another limit of the search for cyclic waits.
pub(crate) fn with_steps(workload: &Workload, steps_max: u64) -> Result<(), WorkloadError> {
    report(workload, None, steps_max)
}

/// The same, with source lines.
pub(crate) fn with_text(
    workload: &Workload,
    source: &Source<'_>,
    spans: &Spans,
) -> Result<(), WorkloadError> {
    report(workload, Some((source, spans)), CHECK_STEPS_MAX)
}

fn report(
    workload: &Workload,
    text: Option<(&Source<'_>, &Spans)>,
    steps_max: u64,
) -> Result<(), WorkloadError> {
    let findings = STAGES.iter().map(|stage| {
        let refused = |finding: &Finding| !(workload.hangs && finding.hangs);
        stage(workload, steps_max).into_iter().filter(refused).collect::<Vec<_>>()
    });
    let findings = findings.into_iter().find(|findings| !findings.is_empty());
    findings.map_or(Ok(()), |findings| Err(Locator { workload, text }.error(findings)))
}

/// The same of a form whose own program starts tasks that will wait for ever: each such wait of
/// the first stage that found any, as `PLACE: MESSAGE`. A cycle of locks other than mutexes stays an error: the kernel
/// itself refuses it, or no run gets past it.
///
/// # Errors
/// All other problems of the first stage that found any.
pub(crate) fn hangs(
    workload: &Workload,
    source: &Source<'_>,
    spans: &Spans,
) -> Result<Vec<String>, WorkloadError> {
    let locator = Locator { workload, text: Some((source, spans)) };
    let mut found = Vec::new();
    for stage in STAGES {
        let (hangs, errors): (Vec<Finding>, Vec<Finding>) =
            stage(workload, CHECK_STEPS_MAX).into_iter().partition(|finding| finding.hangs);
        if !errors.is_empty() {
            return Err(locator.error(errors));
        }
        // What hangs by itself is mostly in a cycle, too.
        if found.is_empty() {
            found = locator.lines(&hangs);
        }
    }
    Ok(found)
}

/// The stages, in order: each takes the workload and a limit of the search for cyclic waits.
const STAGES: [fn(&Workload, u64) -> Vec<Finding>; 3] = [
    |workload, _| values::findings(workload),
    |workload, _| flow_findings(workload),
    cycle::findings,
];

fn flow_findings(workload: &Workload) -> Vec<Finding> {
    [flow::findings(workload), forks::findings(workload), locks::findings(workload)].concat()
}
