//! Synchronous handling of the signals that ask a program to end.

use std::time::Duration;
use std::{fs, io};

use nix::sys::signal::{SigSet, Signal};

/// The signals that end a session.
const END: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// Whether this process was started with a signal ignored, as by `nohup`.
pub fn is_ignored(signal: i32) -> bool {
    // Bit N-1 of `SigIgn` is signal N.
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    ignored.is_some_and(|bits| bits >> (signal - 1) & 1 == 1)
}

/// Blocks the signals that end a session (SIGINT, SIGTERM, SIGHUP) as long as it exists; they stay pending until
/// requested. SIGKILL still ends the process at once.
#[derive(Debug)]
pub struct EndSignals {
    pub(crate) set: SigSet,
    /// The mask before.
    pub(crate) before: SigSet,
}

impl EndSignals {
    /// Blocks them for this thread and the threads that it starts; those that are ignored stay so.
    ///
    /// # Errors
    /// The system call fails.
    pub fn hold() -> io::Result<EndSignals> {
        let mut set = SigSet::empty();
        set.extend(END.into_iter().filter(|signal| !is_ignored(*signal as i32)));
        let before = SigSet::thread_get_mask()?;
        set.thread_block()?;
        Ok(EndSignals { set, before })
    }

    /// Waits for one of them, up to a time limit. `None`: none arrived.
    pub fn wait(&self, at_most: Duration) -> Option<Signal> {
        let limit = libc::timespec {
            tv_sec: at_most.as_secs().try_into().unwrap_or(libc::time_t::MAX),
            tv_nsec: at_most.subsec_nanos().into(),
        };
        // SAFETY: both pointers are to values that live here; no information about the sender is requested.
        let number = unsafe {
            libc::sigtimedwait(self.set.as_ref(), std::ptr::null_mut(), &raw const limit)
        };
        Signal::try_from(number).ok()
    }
}

impl Drop for EndSignals {
    fn drop(&mut self) {
        // A pending signal takes effect now.
        let _ = self.before.thread_set_mask();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_pending_until_requested() {
        let signals = EndSignals::hold().expect("signals can be blocked");
        assert_eq!(signals.wait(Duration::ZERO), None);
        nix::sys::signal::raise(Signal::SIGTERM).expect("a signal for this thread");
        assert_eq!(signals.wait(Duration::from_secs(5)), Some(Signal::SIGTERM));
        assert_eq!(signals.wait(Duration::ZERO), None);
    }
}
