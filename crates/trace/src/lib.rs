//! The event stream of a CPU scheduler.
//!
//! The simulated machine, a kernel in a VM, the host kernel and an imported recording all produce the same
//! [`Trace`]: a table of tasks and a sequence of [`Event`]s, kept in 32 bytes each. Every metric
//! of the project is computed from it.
//!
//! This crate knows no other crate of the workspace.

mod escape;
mod event;
mod loss;
mod packed;
mod readers;
mod task;
mod trace;
mod writers;

pub use event::{CallbackKind, Event, EventKind, Label, TaskState};
pub use loss::Loss;
pub use readers::{ReadError, read};
pub use task::{TaskId, TaskInfo};
pub use trace::{Events, Trace};
pub use writers::{Precision, write_ftrace, write_ftrace_with};
