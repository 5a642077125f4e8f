//! The runs of a plan: their exit code, and what charts see of them.

use std::process::ExitCode;

use fairground_session::Ran;

use crate::interrupt;
use crate::pictures::Pictured;

/// The exit code of the process: a result that is partial has its own.
pub(super) fn exit_code(ran: &Ran, of_runs: u8) -> ExitCode {
    ExitCode::from(if ran.is_interrupted { interrupt::EXIT_CODE } else { of_runs })
}

/// The runs as charts see them.
pub(super) fn pictured(ran: &Ran) -> Vec<Pictured<'_>> {
    ran.outcomes.iter().map(Pictured::from).collect()
}
