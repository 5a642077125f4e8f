//! This machine as a view takes it: a recording that is read while it is being made.

use fairground_realkernel::job::RecordingJob;
use fairground_realkernel::run::kernel_info;
use fairground_realkernel::tracefs::Following;
use fairground_session::Failure;
use fairground_top::{About, Problem, Source, View};
use fairground_trace::{Loss, ReadError, Trace};

use super::state_never_ran;
use super::stream::RunningRecording;

/// Time between two parts of the recording, ns: reading each of them costs something of its own.
const PART_NS: u64 = 200_000_000;
/// Of so many tasks, most of them ended, the view begins anew: it keeps something of each.
const TASKS_MAX: usize = 1 << 16;

#[derive(Debug)]
pub(super) struct Host {
    following: Following,
    stream: RunningRecording,
    /// When the last part was taken, ns of the recording's clock.
    taken_ns: u64,
    about: About,
}

impl Host {
    pub(super) fn start(kib_per_cpu: u32, interval_ns: u64) -> Result<Host, Failure> {
        let job = RecordingJob { kib_per_cpu, ..RecordingJob::default() };
        let following = Following::start(&job).map_err(Failure::new)?;
        let taken_ns = following.now_ns().map_err(Failure::new)?;
        let stream = RunningRecording::new(following.cpus(), taken_ns, interval_ns, TASKS_MAX);
        let info = kernel_info();
        let about = About {
            what: "this machine".to_owned(),
            scheduler: "its kernel".to_owned(),
            made: format!("Linux {}, {} CPUs", info.release, info.cpus),
            is_real: true,
            length_ns: None,
        };
        Ok(Host { following, stream, taken_ns, about })
    }

    fn take(&mut self) -> Result<(), Problem> {
        let part = self.following.take().map_err(|e| e.to_string())?;
        let trace = match fairground_trace::read("this machine", part.bytes.as_slice()) {
            Ok(trace) => trace,
            Err(error) => nothing(self.following.cpus(), error)?,
        };
        self.stream.take(&trace, part.complete_ns);
        Ok(())
    }
}

/// A part without an event is one like any other: time passed, and what could not be read is counted.
fn nothing(cpus: u32, error: ReadError) -> Result<Trace, Problem> {
    match error {
        ReadError::NoEvents { unreadable, skipped, first, .. } => {
            let mut trace = Trace::new(cpus);
            trace.loss = Loss { unreadable, skipped, first, ..Loss::default() };
            Ok(trace)
        }
        error => Err(error.to_string()),
    }
}

impl Source for Host {
    fn about(&self) -> About {
        self.about.clone()
    }

    fn now_ns(&self) -> u64 {
        self.stream.now_ns()
    }

    fn advance(&mut self, _: u64) -> Result<(), Problem> {
        let now_ns = self.following.now_ns().map_err(|e| e.to_string())?;
        if now_ns.saturating_sub(self.taken_ns) >= PART_NS {
            self.taken_ns = now_ns;
            self.take()?;
        }
        Ok(())
    }

    fn view(&self) -> View {
        let mut view = self.stream.view();
        state_never_ran(&mut view);
        view
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_without_an_event_is_no_end() {
        let error = ReadError::NoEvents {
            name: "this machine".to_owned(),
            read: 3,
            units: "records",
            unreadable: 2,
            skipped: 1,
            first: None,
        };
        let trace = nothing(2, error).expect("a part");
        assert_eq!((trace.cpus, trace.len(), trace.loss.unreadable), (2, 0, 2));
    }
}
