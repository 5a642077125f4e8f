//! Errors of runs in a virtual machine.

use std::time::Duration;

/// Why a run in a virtual machine has no outcome.
#[derive(Debug, thiserror::Error)]
pub enum VmError {
    /// The caller ended the run ([`super::Watch`]), and the machine was killed.
    #[error("the run was interrupted")]
    Interrupted,
    /// Invalid configuration.
    #[error("{0}")]
    Config(String),
    /// An operation on the host failed.
    #[error("{what}: {error}")]
    Io {
        /// The operation.
        what: String,
        /// The error.
        error: std::io::Error,
    },
    /// QEMU ended before the guest had finished.
    #[error("QEMU ended ({status}) before the guest had finished{}", lines(.console))]
    QemuFailed {
        /// Its exit status.
        status: String,
        /// The last lines of its console.
        console: Vec<String>,
    },
    /// The guest did not finish in time and was killed.
    #[error("the guest was killed: still {phase} after {} s{}", .after.as_secs(), lines(.console))]
    Hang {
        /// The phase: `booting`, `running`, `shutting down`.
        phase: String,
        /// The time limit.
        after: Duration,
        /// The last lines of its console.
        console: Vec<String>,
    },
    /// The guest's kernel panicked.
    #[error("the guest's kernel panicked: {reason}{}", lines_from("says", .console))]
    Panic {
        /// The kernel's reason.
        reason: String,
        /// The kernel's message on the fault.
        console: Vec<String>,
    },
    /// The command in the guest failed.
    #[error("in the guest: {message}{}", if .console.is_empty() { String::new() } else { lines(.console) })]
    GuestFailed {
        /// The message.
        message: String,
        /// The last lines of its console; empty where the message is the guest's own.
        console: Vec<String>,
    },
    /// The guest wrote invalid data to the shared memory.
    #[error("the guest's results are invalid: {0}")]
    Channel(String),
    /// The kernel or QEMU is missing.
    #[error(transparent)]
    Package(#[from] crate::packages::PackageError),
}

impl VmError {
    /// Converts an I/O error of the operation `what`.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |error| Self::Io { what, error }
    }
}

/// The console's lines, for the end of a message.
fn lines(console: &[String]) -> String {
    lines_from("ends with", console)
}

/// Lines of the console, and what they are of it.
fn lines_from(are: &str, console: &[String]) -> String {
    if console.is_empty() {
        return "; its console is empty".to_owned();
    }
    format!("; its console {are}:\n    {}", console.join("\n    "))
}
