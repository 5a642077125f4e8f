//! A document about the runs of a plan: what heads it, and how they were made.

use std::process::ExitCode;

use fairground_report::{Cell, Document};
use fairground_session::{NamedChoice, Ran, RunSpec};

use crate::interrupt;
use crate::pictures::Pictured;
use crate::present;

/// The exit code of the process: a result that is partial has its own.
pub(super) fn exit_code(ran: &Ran, of_runs: u8) -> ExitCode {
    ExitCode::from(if ran.is_interrupted { interrupt::EXIT_CODE } else { of_runs })
}

/// The result says so where it begins.
fn marked(ran: &Ran, title: &str) -> String {
    let mark = if ran.is_interrupted { " (partial)" } else { "" };
    format!("{title}{mark}")
}

/// A result that says how the runs of a spec were made; `name` is what it calls them.
pub(super) fn document(ran: &Ran, title: &str, name: &str, spec: &RunSpec) -> Document {
    let mut document = Document::new(marked(ran, title));
    if let Some(machine) = &ran.simulated {
        present::describe_machine(&mut document, machine, ran.duration_ns);
    }
    document.describe_spec(name, spec.stated());
    document.set_usual("machine", "workload", Cell::text(&spec.workload));
    if let Some(locks) = spec.locks.locks {
        document.set("machine", "locks", Cell::text(locks.word()));
    }
    document
}

/// The runs as charts see them.
pub(super) fn pictured(ran: &Ran) -> Vec<Pictured<'_>> {
    ran.outcomes.iter().map(Pictured::from).collect()
}
