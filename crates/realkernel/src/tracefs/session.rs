//! A recording that lasts as long as a command, or a given time, or until somebody asks for its end.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;

use super::{RecordError, Recorder};
use crate::child::pid_fd;
use crate::job::RecordingJob;

/// How long a command that was asked to end may take before it is killed.
const GRACE: Duration = Duration::from_secs(5);
/// One wait lasts no longer than this, so that every length of time fits into it.
const WAIT_MAX: Duration = Duration::from_secs(3600);
/// How often somebody hears how far the session is: seldom, for whoever tells is on the recording too.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// What to record with.
#[derive(Clone, Debug, Default)]
pub struct Session {
    /// The command and its arguments; empty for none.
    pub command: Vec<OsString>,
    /// The longest that it lasts.
    pub duration: Option<Duration>,
}

/// Why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The command ended by itself.
    Command(ExitStatus),
    /// The time was over. The command, if there was one, was asked to end, and ended so.
    Duration(Option<ExitStatus>),
    /// Ctrl-C, or another signal that asks for an end. The same for the command.
    Signal(Option<ExitStatus>),
}

impl Session {
    /// Records this machine for the session's length, streaming into files without a name in `folder`. The recording is
    /// still to be written ([`Recorder::stop`]); it is paused. `tell` hears once a second how long it has lasted.
    ///
    /// # Errors
    /// Those of [`Recorder::start_streaming`]; the command cannot be started.
    pub fn record(
        &self,
        job: &RecordingJob,
        folder: &Path,
        tell: Option<&mut dyn FnMut(Duration)>,
    ) -> Result<(Recorder, End), RecordError> {
        let failed = |source| RecordError::Command { command: self.name(), source };
        // Before any thread is made, which would otherwise take the signals.
        let mut signals = Signals::hold().map_err(failed)?;
        let recorder = Recorder::start_streaming(job, folder)?;
        let start = Instant::now();
        let mut child = match self.command.split_first() {
            Some((program, arguments)) => {
                Some(signals.spawn(Command::new(program).args(arguments)).map_err(failed)?)
            }
            None => None,
        };
        let end = self.wait(&signals, start, &mut child, tell).map_err(failed);
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
        start: Instant,
        child: &mut Option<Child>,
        mut tell: Option<&mut dyn FnMut(Duration)>,
    ) -> io::Result<End> {
        let wait_max = if tell.is_some() { TELL_EVERY } else { WAIT_MAX };
        loop {
            let elapsed = start.elapsed();
            let left = self.duration.map(|duration| duration.saturating_sub(elapsed));
            if left == Some(Duration::ZERO) {
                return Ok(End::Duration(ask_to_end(signals, child, Signal::SIGTERM)?));
            }
            if let Some(tell) = &mut tell {
                tell(elapsed);
            }
            if let Some(signal) = signals.wait(left.unwrap_or(wait_max).min(wait_max))? {
                return Ok(End::Signal(ask_to_end(signals, child, signal)?));
            }
            let ended = child.as_mut().map(Child::try_wait).transpose()?;
            if let Some(status) = ended.flatten() {
                return Ok(End::Command(status));
            }
        }
    }
}

/// Sends the command a signal and waits until it is gone; kills it when it takes too long, or at the next signal.
fn ask_to_end(
    signals: &Signals,
    child: &mut Option<Child>,
    signal: Signal,
) -> io::Result<Option<ExitStatus>> {
    let Some(child) = child else { return Ok(None) };
    let pid = Pid::from_raw(child.id() as i32);
    // One that is gone already needs no signal.
    let _ = kill(pid, signal);
    let asked = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        let left = GRACE.saturating_sub(asked.elapsed());
        let next = signals.wait(left)?;
        if left.is_zero() || next.is_some() {
            child.kill()?;
            return child.wait().map(Some);
        }
    }
}

/// The signals that end a session, blocked and read as they come, and the command's end. That is not a signal here:
/// `SIGCHLD` may be delivered to any thread of the process, and is lost when that one does not block it.
struct Signals {
    fd: SignalFd,
    before: SigSet,
    /// Becomes readable when the command has ended (`pidfd_open`).
    command: Option<OwnedFd>,
}

impl Signals {
    fn hold() -> io::Result<Self> {
        let mut set = SigSet::empty();
        set.extend([Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP]);
        let before = SigSet::thread_get_mask()?;
        set.thread_block()?;
        let fd = SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        Ok(Self { fd, before, command: None })
    }

    /// Starts a command that does not inherit that they are blocked.
    fn spawn(&mut self, command: &mut Command) -> io::Result<Child> {
        let before = self.before;
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

    /// The next one; `None` when none came in time, or the command has ended.
    fn wait(&self, at_most: Duration) -> io::Result<Option<Signal>> {
        // A rest of less than 1 ms is waited for as 1 ms.
        let limit_ms = at_most.min(WAIT_MAX).as_millis() as u32 + 1;
        let limit = PollTimeout::try_from(limit_ms).unwrap_or(PollTimeout::MAX);
        let mut waited = vec![PollFd::new(self.fd.as_fd(), PollFlags::POLLIN)];
        waited.extend(self.command.iter().map(|fd| PollFd::new(fd.as_fd(), PollFlags::POLLIN)));
        match poll(&mut waited, limit) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(e) => return Err(e.into()),
        }
        let signal = self.fd.read_signal()?;
        Ok(signal.and_then(|signal| Signal::try_from(signal.ssi_signo as i32).ok()))
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        let _ = self.before.thread_set_mask();
    }
}
