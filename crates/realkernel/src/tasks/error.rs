//! Why the tasks of a workload cannot run.

use std::io;

/// Why the tasks of a workload cannot run on this kernel.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// A system call failed that the run cannot do without.
    #[error("cannot {what}: {error}{}", help.as_ref().map(|help| format!("\n  help: {help}")).unwrap_or_default())]
    System {
        /// What was to be done.
        what: String,
        /// What the kernel says.
        error: io::Error,
        /// What to do about it.
        help: Option<String>,
    },
    /// The workload does not fit this machine.
    #[error("{problem}\n  help: {help}")]
    Unfit {
        /// What does not fit.
        problem: String,
        /// What to do about it.
        help: String,
    },
}

impl TaskError {
    /// The error of the system call that was made last.
    pub(super) fn last(what: impl Into<String>, help: Option<&str>) -> Self {
        let error = io::Error::last_os_error();
        Self::System { what: what.into(), error, help: help.map(str::to_owned) }
    }
}
