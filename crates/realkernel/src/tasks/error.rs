//! Errors of running the tasks of a workload.

use std::io;

/// Why the tasks of a workload cannot run on this kernel.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// A required system call failed.
    #[error("cannot {what}: {error}{}", help.as_ref().map(|help| format!("\n  help: {help}")).unwrap_or_default())]
    System {
        /// The operation.
        what: String,
        /// The kernel's error.
        error: io::Error,
        /// The remedy.
        help: Option<String>,
    },
    /// The workload cannot run on this machine.
    #[error("{problem}\n  help: {help}")]
    Unfit {
        /// The reason.
        problem: String,
        /// The remedy.
        help: String,
    },
}

impl TaskError {
    /// The error of the last system call.
    pub(super) fn last(what: impl Into<String>, help: Option<&str>) -> Self {
        let error = io::Error::last_os_error();
        Self::System { what: what.into(), error, help: help.map(str::to_owned) }
    }
}
