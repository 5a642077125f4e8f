//! The recorder: an instance of tracefs from start to stop.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use super::RecordError;
use crate::job::RecordingJob;

/// A recording that is being made. Dropping it ends it and keeps nothing.
#[derive(Debug)]
pub struct Recorder {
    marker: Option<OwnedFd>,
}

/// What a recording holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Events in the file.
    pub events: u64,
    /// Events that the kernel had no room for, and that are missing.
    pub lost: u64,
}

impl Recorder {
    /// Starts to record the events of scheduling on all CPUs, in the kernel's monotonic clock, into memory of the kernel.
    ///
    /// # Errors
    /// [`RecordError`] where there is no tracefs, or it may not be used, or an event that was asked for does not exist.
    pub fn start(job: &RecordingJob) -> Result<Self, RecordError> {
        let _ = job;
        Err(RecordError::NoTracefs { why: "this build cannot record".to_owned() })
    }

    /// The file that takes marks (`trace_marker`): each write is one mark of the writing task.
    pub fn marker(&self) -> Option<BorrowedFd<'_>> {
        self.marker.as_ref().map(AsFd::as_fd)
    }

    /// Ends the recording and writes it to `into` (trace-cmd's format, version 6), under another name first, then renamed.
    ///
    /// # Errors
    /// [`RecordError`] when the kernel's pages cannot be read or the file cannot be written.
    pub fn stop(self, into: &Path) -> Result<Recorded, RecordError> {
        let _ = into;
        Err(RecordError::NoTracefs { why: "this build cannot record".to_owned() })
    }
}
