//! Recording what a kernel's scheduler does, through tracefs.
//!
//! A [`Recorder`] makes an instance of its own, so that nothing that anybody else traces is touched, lets the kernel write
//! its events into memory, reads nothing while the run lasts, and leaves a `trace.dat` that trace-cmd and KernelShark open.

mod error;
mod recorder;

pub use error::RecordError;
pub use recorder::{Recorded, Recorder};
