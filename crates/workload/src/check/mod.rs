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
use crate::model::{Op, Program, Workload};
use crate::spans::{Finding, Locator, OpPath, Spans};

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
            execution::findings(workload, steps_max)
        }];
    for stage in stages {
        let findings = stage();
        if !findings.is_empty() {
            let locator = Locator { workload, text };
            let diagnostics = findings.into_iter().map(|finding| locator.diagnostic(finding));
            return Err(WorkloadError::new(diagnostics.collect()));
        }
    }
    Ok(())
}

fn flow_findings(workload: &Workload) -> Vec<Finding> {
    let mut findings = flow::findings(workload);
    findings.extend(forks::findings(workload));
    findings.extend(locks::findings(workload));
    findings
}

/// Visits every operation of one program, loops before their bodies.
pub(crate) fn each_op_of<'w>(program: &'w Program, visit: &mut impl FnMut(&'w Op)) {
    for op in program {
        visit(op);
        if let Op::Loop(_, body) = op {
            each_op_of(body, visit);
        }
    }
}

/// Visits every operation, loops before their bodies.
fn each_op<'w>(workload: &'w Workload, mut visit: impl FnMut(&OpPath, &'w Op)) {
    for (task, spec) in workload.tasks.iter().enumerate() {
        for (handler, program) in [(false, &spec.program), (true, &spec.on_signal)] {
            let mut path = OpPath { task, handler, path: Vec::new() };
            walk(program, &mut path, &mut visit);
        }
    }
}

fn walk<'w>(program: &'w Program, path: &mut OpPath, visit: &mut impl FnMut(&OpPath, &'w Op)) {
    for (index, op) in program.iter().enumerate() {
        path.path.push(index);
        visit(path, op);
        if let Op::Loop(_, body) = op {
            walk(body, path, visit);
        }
        path.path.pop();
    }
}
