//! Real targets: the workload runs as real processes, on this machine's kernel or on one in a virtual machine.
//!
//! A [`Job`] describes a run. One process executes it and depends only on the job's folder: on the host a child of the
//! program, in a guest a child of its first process. It writes an [`Outcome`] and a recording to that folder.
//! Settings of a scheduler arrive as writes to its data sections: this crate depends on no scheduler.
//!
//! This crate depends on [`fairground_workload`] and [`fairground_trace`] only.

pub mod channel;
mod child;
pub mod files;
pub mod guest;
pub mod job;
pub mod kernel_log;
mod knobs;
pub mod packages;
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
pub use run::{Limits, RunError, TargetError, carry_out, on_host, on_host_by};
pub use tasks::TaskError;
