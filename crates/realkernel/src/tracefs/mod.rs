//! Records scheduling events of the kernel through tracefs.
//!
//! A [`Recorder`] uses its own instance, so that it does not disturb other tracing. The kernel writes events to
//! memory, which is not read during the run, and the result is a `trace.dat` for trace-cmd and KernelShark.
//!
//! A [`Following`] is a recording that is read in parts while it is made.
//!
//! [`Recorder::start_streaming`] is for recordings of unknown length: when the buffer of a CPU is half full, a thread
//! drains it to anonymous files, which vanish with the process.

mod capture;
mod error;
mod events;
mod follow;
mod instance;
mod mounted;
mod recorder;
mod session;
mod snapshot;
mod spill;
mod stats;
mod trace_dat;
mod vruntimes;

pub use error::RecordError;
pub use follow::{Following, Part};
pub use mounted::{Tracefs, find_tracefs, is_tracefs};
pub use recorder::{Recorded, Recorder};
pub use session::{End, Session};
