//! The runner: carries a job out, and leaves its outcome and its recording in the job's folder.
//!
//! The runner is a process of its own with one thread. It dies with the program that started it, and its tasks die with it;
//! what it told the kernel is taken back even then, by a process that waits for nothing else (`janitor`).
//!
//! The order of things: knobs, scheduler, recording, tasks; changes during the run; then the tasks are killed, the recording
//! is written, the scheduler is taken off, the knobs are turned back.

mod carry_out;
mod error;
mod host;
mod info;
mod janitor;
mod timeline;

pub use carry_out::carry_out;
pub use error::{RunError, TargetError};
pub use host::{Limits, on_host, on_host_by, write_job};
pub use info::kernel_info;

/// The hidden command with which the program calls itself: `fairground __run-job FOLDER`.
pub const RUNNER_COMMAND: &str = "__run-job";

/// The hidden command with which the program describes the kernel that it runs on, as JSON on its standard output.
pub const INFO_COMMAND: &str = "__kernel-info";
