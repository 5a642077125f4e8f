//! A recording that is read while it is being made.

use std::io::{self, Cursor, Write};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

use super::capture::Capture;
use super::trace_dat::{self, Description};
use super::{RecordError, Recorder};
use crate::job::RecordingJob;

/// An event gets its time a moment before it stands in the buffer; a machine whose CPUs are virtual may take longer
/// for that.
const LATENESS: Duration = Duration::from_millis(2);

/// A recording of this machine that lasts until it is dropped. Where it is read too slowly, the oldest events are
/// overwritten, and the stream says how many.
#[derive(Debug)]
pub struct Following {
    recorder: Recorder,
    described: Description,
}

/// What happened since the part before.
#[derive(Debug)]
pub struct Part {
    /// A whole recording in trace-cmd's format (`trace.dat`, version 6). Names of tasks are only those that events
    /// tell.
    pub bytes: Vec<u8>,
    /// Nothing that happened before it comes in a later part, ns of the recording's clock (`CLOCK_MONOTONIC`).
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

    /// CPU numbers lie below it.
    pub fn cpus(&self) -> u32 {
        self.described.cpus
    }

    /// Now, in the recording's clock, ns.
    ///
    /// # Errors
    /// The system does not say.
    pub fn now_ns(&self) -> Result<u64, RecordError> {
        let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map_err(io::Error::from);
        let now =
            now.map_err(|e| RecordError::of(&self.recorder.folder(), "tell the time of", e))?;
        Ok(u64::try_from(Duration::from(now).as_nanos()).unwrap_or(u64::MAX))
    }

    /// Takes what was recorded since the last call.
    ///
    /// # Errors
    /// The kernel's pages cannot be read.
    pub fn take(&mut self) -> Result<Part, RecordError> {
        let complete_ns = self.now_ns()?.saturating_sub(LATENESS.as_nanos() as u64);
        let mut out = Cursor::new(Vec::new());
        let folder = self.recorder.folder();
        let mut pages = Pages(&mut self.recorder.capture);
        trace_dat::write(&mut out, &self.described, &mut pages)
            .map_err(|e| RecordError::of(&folder, "read", e))?;
        Ok(Part { bytes: out.into_inner(), complete_ns })
    }
}

/// The pages, without what the kernel counts: those counts are of the whole recording.
struct Pages<'a>(&'a mut Capture);

impl trace_dat::Source for Pages<'_> {
    fn pages(&mut self, cpu: u32, out: &mut impl Write) -> io::Result<u64> {
        self.0.move_cpu(cpu, out)
    }

    fn stats(&mut self, _: u32) -> io::Result<String> {
        Ok(String::new())
    }
}
