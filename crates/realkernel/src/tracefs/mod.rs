//! Recording what a kernel's scheduler does, through tracefs.
//!
//! A [`Recorder`] makes an instance of its own, so that nothing that anybody else traces is touched, lets the kernel
//! write its events into memory, reads nothing while the run lasts, and leaves a `trace.dat` that trace-cmd and
//! KernelShark open.
//!
//! A [`Following`] is a recording that is read while it is being made, part by part.
//!
//! [`Recorder::start_streaming`] is for recordings of unknown length: when the memory of a CPU is half full, a thread
//! of the recording process empties it into files without a name, which are gone when the process is.

mod capture;
mod error;
mod events;
mod follow;
mod instance;
mod mounted;
mod recorder;
mod session;
mod stats;
mod trace_dat;

pub use error::RecordError;
pub use follow::{Following, Part};
pub use mounted::{Tracefs, find_tracefs, is_tracefs};
pub use recorder::{Recorded, Recorder};
pub use session::{End, Session};
