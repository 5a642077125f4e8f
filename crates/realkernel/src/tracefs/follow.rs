//! Recordings that are read while they are made.

use std::io::Cursor;
use std::time::Duration;

use super::recorder::now_ns;
use super::trace_dat::{self, Description};
use super::{RecordError, Recorder};
use crate::job::RecordingJob;

/// Maximum time from the time stamp of an event until it is in the buffer; long, for virtual CPUs.
const LATENESS: Duration = Duration::from_millis(2);

/// A recording of this machine that ends when it is dropped. If it is read too slowly, the oldest events are
/// overwritten and counted.
#[derive(Debug)]
pub struct Following {
    recorder: Recorder,
    described: Description,
}

/// The events since the previous part.
#[derive(Debug)]
pub struct Part {
    /// A complete recording in trace-cmd's format (`trace.dat`, version 6), with the task names that events contain
    /// only.
    pub bytes: Vec<u8>,
    /// All events of later parts are at or after this time, ns of `CLOCK_MONOTONIC`.
    pub complete_ns: u64,
}

impl Following {
    /// Starts to record the events of scheduling on all CPUs.
    ///
    /// # Errors
    /// Those of [`Recorder::start`].
    pub fn start(job: &RecordingJob) -> Result<Following, RecordError> {
        let recorder = Recorder::prepare(job, true)?;
        let mut described = recorder.describe()?;
        described.cmdlines.clear();
        recorder.instance.write("tracing_on", "1")?;
        Ok(Following { recorder, described })
    }

    /// One more than the highest CPU number.
    pub fn cpus(&self) -> u32 {
        self.described.cpus
    }

    /// The current time of the recording's clock, ns.
    ///
    /// # Errors
    /// The system call fails.
    pub fn now_ns(&self) -> Result<u64, RecordError> {
        now_ns().map_err(|e| RecordError::of(&self.recorder.folder(), "tell the time of", e))
    }

    /// Takes the events since the last call.
    ///
    /// # Errors
    /// The kernel's pages cannot be read.
    pub fn take(&mut self) -> Result<Part, RecordError> {
        let complete_ns = self.now_ns()?.saturating_sub(LATENESS.as_nanos() as u64);
        let mut out = Cursor::new(Vec::new());
        let folder = self.recorder.folder();
        // The kernel's counts are those of the whole recording.
        let no_stats = |_| Ok(String::new());
        trace_dat::write(&mut out, &self.described, &mut self.recorder.capture, no_stats)
            .map_err(|e| RecordError::of(&folder, "read", e))?;
        Ok(Part { bytes: out.into_inner(), complete_ns })
    }
}
