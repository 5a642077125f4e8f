//! The progress of a run in a virtual machine.

/// The progress of a run in a virtual machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The kernel boots.
    Booting,
    /// The job runs.
    Running {
        /// Time since its start, ns of the guest's clock; `None` if it cannot be read without disturbing the guest.
        done_ns: Option<u64>,
        /// Its duration, ns of the guest's clock.
        of_ns: u64,
    },
    /// The results are being copied to the host.
    Collecting,
}
