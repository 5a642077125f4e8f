//! The progress of a run in a virtual machine.

/// The progress of a run in a virtual machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The kernel boots.
    Booting,
    /// The job runs.
    Running,
    /// The results are being copied to the host.
    Collecting,
}

/// Called every few milliseconds during a run, with the phase that has begun, if one has. `false` ends the run: the
/// machine is killed, and the run fails with [`super::VmError::Interrupted`].
pub type Watch<'a> = dyn FnMut(Option<Progress>) -> bool + 'a;
