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
/// What is checked: names, ranges, references and limits; loops in which no time passes; unreachable operations;
/// groups that never start; unbounded forks; locks taken twice, not released, or held where a task sleeps; waits that
/// no task can end; and cyclic waits, which are searched by executing the workload on an ideal machine (a CPU for each
/// task, no costs) for at most [`CHECK_STEPS_MAX`] operations.
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
    let stages: [&dyn Fn() -> Vec<Finding>; 3] =
        [&|| values::findings(workload), &|| flow_findings(workload), &|| {
            cycle::findings(workload, steps_max)
        }];
    let findings = stages.iter().map(|stage| stage()).find(|findings| !findings.is_empty());
    findings.map_or(Ok(()), |findings| Err(Locator { workload, text }.error(findings)))
}

fn flow_findings(workload: &Workload) -> Vec<Finding> {
    [flow::findings(workload), forks::findings(workload), locks::findings(workload)].concat()
}
