//! Real grounds: the workload runs as real processes, on this machine's kernel or on one in a virtual machine.
//!
//! A [`Job`] says what to run. It is carried out by one process that knows nothing but the job's folder — on the host a
//! child of the program, in a guest the child of its first process — and leaves an [`Outcome`] and a recording in that
//! folder. What a scheduler is told arrives as bytes at places of its data sections: this crate knows no scheduler.
//!
//! This crate knows [`fairground_workload`] and [`fairground_trace`], and nobody else.

pub mod catalogue;
pub mod channel;
mod child;
pub mod guest;
pub mod job;
pub mod kernel_log;
mod knobs;
pub mod rights;
pub mod run;
pub mod sched_ext;
pub mod signals;
pub mod stream;
mod tasks;
pub mod tracefs;
pub mod vm;

pub use job::{Job, Outcome};
pub use knobs::KnobError;
pub use run::{Limits, RunError, TargetError, carry_out, on_host};
pub use tasks::TaskError;
