//! Why a virtual machine gave no outcome.

use std::time::Duration;

/// Why there is no outcome.
#[derive(Debug, thiserror::Error)]
pub enum VmError {
    /// Somebody asked for the end ([`super::VmConfig::stop`]); the machine is gone.
    #[error("it was interrupted")]
    Interrupted,
    /// The configuration cannot be.
    #[error("{0}")]
    Config(String),
    /// Something on this machine failed.
    #[error("{what}: {error}")]
    Io {
        /// What was being done.
        what: String,
        /// Why it failed.
        error: std::io::Error,
    },
    /// QEMU ended by itself before the guest had finished.
    #[error("QEMU ended ({status}) before the guest had finished{}", lines(.console))]
    QemuFailed {
        /// Its exit status.
        status: String,
        /// What it said last.
        console: Vec<String>,
    },
    /// The guest did not finish in time and was killed.
    #[error("the guest was killed: still {phase} after {} s{}", .after.as_secs(), lines(.console))]
    Hang {
        /// What it was doing: `booting`, `running`, `shutting down`.
        phase: String,
        /// How long it was given.
        after: Duration,
        /// What its console said last.
        console: Vec<String>,
    },
    /// The guest's kernel panicked.
    #[error("the guest's kernel panicked: {reason}{}", lines(.console))]
    Panic {
        /// What the kernel gave as the reason.
        reason: String,
        /// What its console said last.
        console: Vec<String>,
    },
    /// The kernel lives, and what ran in it failed.
    #[error("in the guest: {message}{}", lines(.console))]
    GuestFailed {
        /// What failed.
        message: String,
        /// What its console said last.
        console: Vec<String>,
    },
    /// What the guest left in the shared memory makes no sense.
    #[error("the guest's answer cannot be read: {0}")]
    Channel(String),
    /// The kernel or QEMU is not here.
    #[error(transparent)]
    Catalogue(#[from] crate::catalogue::CatalogueError),
}

impl VmError {
    /// An error of input or output while `what` was done.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |error| Self::Io { what, error }
    }
}

/// The console's lines, as the end of a message.
fn lines(console: &[String]) -> String {
    if console.is_empty() {
        return "; its console is empty".to_owned();
    }
    format!("; its console ends with:\n    {}", console.join("\n    "))
}
