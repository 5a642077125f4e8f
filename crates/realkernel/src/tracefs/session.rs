//! Recordings that last as long as a command, for a given time, or until a signal.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;

use super::{RecordError, Recorder};
use crate::child::pid_fd;
use crate::job::RecordingJob;
use crate::signals::EndSignals;

/// Time from the request to end until a command is killed.
const GRACE: Duration = Duration::from_secs(5);
/// Maximum duration of a wait, so that it fits into the system call's argument.
const WAIT_MAX: Duration = Duration::from_secs(3600);
/// Interval of progress reports: long, because the reporter appears in the recording.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// The options of a session.
#[derive(Clone, Debug, Default)]
pub struct Session {
    /// The command and its arguments; empty for none.
    pub command: Vec<OsString>,
    /// Maximum duration.
    pub duration: Option<Duration>,
}

/// Why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The command ended.
    Command(ExitStatus),
    /// The time was over. The command, if there was one, was asked to end and did.
    Duration(Option<ExitStatus>),
    /// Ctrl-C or another signal. The command, if there was one, was asked to end and did.
    Signal(Option<ExitStatus>),
    /// The recording cannot go on ([`Recorder::stop`] says why). The command, if there was one, was asked to end and
    /// did.
    Failed(Option<ExitStatus>),
}

impl Session {
    /// Records this machine for the duration of the session, streaming to anonymous files in `folder`. The result is
    /// paused; [`Recorder::stop`] writes it. Calls `report` once a second with the elapsed time.
    ///
    /// # Errors
    /// Those of [`Recorder::start_streaming`]; the command cannot be started.
    pub fn record(
        &self,
        job: &RecordingJob,
        folder: &Path,
        report: Option<&mut dyn FnMut(Duration)>,
    ) -> Result<(Recorder, End), RecordError> {
        let failed = |source| RecordError::Command { command: self.name(), source };
        // Before any thread is created, which could otherwise receive the signals.
        let mut signals = Signals::hold().map_err(failed)?;
        let mut recorder = Recorder::start_streaming(job, folder)?;
        let mut child = match self.command.split_first() {
            Some((program, arguments)) => {
                Some(signals.spawn(Command::new(program).args(arguments)).map_err(failed)?)
            }
            None => None,
        };
        recorder.set_command(child.as_ref().map(Child::id));
        let end = self.wait(&signals, &recorder, &mut child, report).map_err(failed);
        if end.is_err() {
            child.iter_mut().for_each(|child| drop(child.kill()));
        }
        recorder.pause()?;
        Ok((recorder, end?))
    }

    fn name(&self) -> String {
        self.command.first().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    }

    fn wait(
        &self,
        signals: &Signals,
        recorder: &Recorder,
        child: &mut Option<Child>,
        mut report: Option<&mut dyn FnMut(Duration)>,
    ) -> io::Result<End> {
        let start = Instant::now();
        let wait_max = if report.is_some() { REPORT_INTERVAL } else { WAIT_MAX };
        loop {
            let elapsed = start.elapsed();
            let left = self.duration.map(|duration| duration.saturating_sub(elapsed));
            if left == Some(Duration::ZERO) {
                return Ok(End::Duration(ask_to_end(signals, child, Signal::SIGTERM)?));
            }
            if let Some(report) = &mut report {
                report(elapsed);
            }
            let wait = left.unwrap_or(wait_max).min(wait_max);
            if let Some(signal) = signals.wait(wait, recorder.failed())? {
                return Ok(End::Signal(ask_to_end(signals, child, signal)?));
            }
            if recorder.failed().is_some_and(|fd| is_readable(fd)) {
                // Before the events that are in the kernel's buffers are overwritten.
                recorder.pause().map_err(io::Error::other)?;
                return Ok(End::Failed(ask_to_end(signals, child, Signal::SIGTERM)?));
            }
            let ended = child.as_mut().map(Child::try_wait).transpose()?;
            if let Some(status) = ended.flatten() {
                return Ok(End::Command(status));
            }
        }
    }
}

/// Sends the command a signal and waits for its end; kills it after a time limit or at the next signal.
fn ask_to_end(
    signals: &Signals,
    child: &mut Option<Child>,
    signal: Signal,
) -> io::Result<Option<ExitStatus>> {
    let Some(child) = child else { return Ok(None) };
    let pid = Pid::from_raw(child.id() as i32);
    // Fails only if the command has already ended.
    let _ = kill(pid, signal);
    let requested = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        let left = GRACE.saturating_sub(requested.elapsed());
        let next = signals.wait(left, None)?;
        if left.is_zero() || next.is_some() {
            child.kill()?;
            return child.wait().map(Some);
        }
    }
}

fn is_readable(fd: BorrowedFd<'_>) -> bool {
    let mut waited = [PollFd::new(fd, PollFlags::POLLIN)];
    poll(&mut waited, PollTimeout::ZERO).is_ok_and(|count| count > 0)
}

/// The signals that end a session, read synchronously, and the command's end, through a process descriptor: `SIGCHLD`
/// may be delivered to any thread, and is lost if that thread does not block it.
struct Signals {
    fd: SignalFd,
    held: EndSignals,
    /// Becomes readable when the command has ended (`pidfd_open`).
    command: Option<OwnedFd>,
}

impl Signals {
    fn hold() -> io::Result<Self> {
        let held = EndSignals::hold()?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        Ok(Self { fd: SignalFd::with_flags(&held.set, flags)?, held, command: None })
    }

    /// Starts a command with unblocked signals.
    fn spawn(&mut self, command: &mut Command) -> io::Result<Child> {
        let before = self.held.before;
        // SAFETY: between fork and exec only the signal mask is set, which is allowed there; nothing is allocated.
        unsafe { command.pre_exec(move || before.thread_set_mask().map_err(io::Error::from)) };
        let mut child = command.spawn()?;
        match pid_fd(child.id()) {
            Ok(fd) => self.command = Some(fd),
            Err(error) => {
                child.kill()?;
                child.wait()?;
                return Err(error);
            }
        }
        Ok(child)
    }

    /// The next signal; `None` if none arrived in time, the command has ended, or `other` is readable.
    fn wait(&self, at_most: Duration, other: Option<BorrowedFd<'_>>) -> io::Result<Option<Signal>> {
        // Rounds up to 1 ms.
        let limit_ms = at_most.min(WAIT_MAX).as_millis() as u32 + 1;
        let limit = PollTimeout::try_from(limit_ms).unwrap_or(PollTimeout::MAX);
        let mut waited = vec![PollFd::new(self.fd.as_fd(), PollFlags::POLLIN)];
        let others = self.command.iter().map(AsFd::as_fd).chain(other);
        waited.extend(others.map(|fd| PollFd::new(fd, PollFlags::POLLIN)));
        match poll(&mut waited, limit) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(e) => return Err(e.into()),
        }
        let signal = self.fd.read_signal()?;
        Ok(signal.and_then(|signal| Signal::try_from(signal.ssi_signo as i32).ok()))
    }
}
