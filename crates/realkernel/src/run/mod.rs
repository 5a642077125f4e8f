//! The runner executes a job and writes its outcome and recording to the job's folder.
//!
//! The runner is a separate process with one thread. It dies with the program that started it, and its tasks die with
//! it. A further process (`janitor`) then restores the kernel's knobs.
//!
//! A run sets the knobs, attaches the scheduler, starts the recording and the tasks, and applies timed changes. At
//! its end it kills the tasks, writes the recording, detaches the scheduler and restores the knobs.

mod carry_out;
mod error;
mod host;
mod in_charge;
mod info;
mod janitor;
mod timeline;

pub use carry_out::carry_out;
pub(crate) use carry_out::set_policy;
pub use error::{RunError, TargetError};
pub use host::{Limits, RUNNER_COMMAND, on_host, on_host_by, write_job};
pub(crate) use info::hz;
pub use info::{INFO_COMMAND, kernel_info};
