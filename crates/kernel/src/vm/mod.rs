//! The ground `vm`: a Debian kernel under QEMU, with this program as its first process.

mod config;
mod error;

use std::path::Path;

pub use config::{VmConfig, VmMode};
pub use error::VmError;

use crate::job::{Job, Outcome};

/// How far a run in a virtual machine is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The kernel boots.
    Booting,
    /// The job runs.
    Running {
        /// How far it is, ns of the guest's time; `None`: not known.
        done_ns: Option<u64>,
        /// How long it lasts, ns of the guest's time.
        of_ns: u64,
    },
    /// The results are brought back.
    Collecting,
}

/// Runs `job` in a virtual machine; leaves the recording and the outcome in `folder`.
///
/// # Errors
///
/// See [`VmError`]: what the guest did wrong, with its console's last lines, or what failed on this machine.
pub fn run_in_vm(
    job: &Job,
    object: Option<&[u8]>,
    config: &VmConfig,
    folder: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<Outcome, VmError> {
    let _ = (job, object, config, folder, progress);
    Err(VmError::Config("virtual machines are not built yet".to_owned()))
}
