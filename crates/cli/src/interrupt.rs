//! Ctrl-C, SIGTERM, and a terminal that goes away (SIGHUP): the first one ends what is being done and keeps what there
//! is, the second one ends the program. A command that does not listen ends at the first one.

use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use std::{io, process, thread};

use fairground_realkernel::signals::is_ignored;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::low_level::pipe;

use crate::{ERROR_CODE, talk};

/// The exit code of what was asked to end: what a shell says of a program that Ctrl-C ended.
pub(crate) const EXIT_CODE: u8 = 130;

/// Set by signals.
struct SignalState {
    /// Set by the first signal.
    end: Arc<AtomicBool>,
    /// Becomes readable then, for callers that wait without polling; `None` where the system gives no descriptor.
    descriptor: Option<UnixStream>,
}

static ASKED: OnceLock<SignalState> = OnceLock::new();

/// From here on the first signal is taken down and no more.
pub(crate) fn listen() {
    asked();
}

/// From here on a file that is larger than the user's limit (`ulimit -f`) is an error of writing and not the end of the
/// program. The programs that it starts are not affected.
pub(crate) fn outlive_file_limit() {
    // Where the system refuses, it is the end.
    let _ = flag::register(SIGXFSZ, Arc::default());
}

fn asked() -> &'static SignalState {
    ASKED.get_or_init(|| {
        let end = Arc::new(AtomicBool::new(false));
        let (descriptor, written) =
            UnixStream::pair().map_or((None, None), |(a, b)| (Some(a), Some(b)));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // `nohup`, and shells that start a background job without job control, have it ignored.
            if is_ignored(signal) {
                continue;
            }
            // In this order: a signal that finds the flag set already does what it does without us. Where the system
            // refuses, all of them do.
            let _ = flag::register_conditional_default(signal, Arc::clone(&end))
                .and_then(|_| flag::register(signal, Arc::clone(&end)))
                .and_then(|id| match written.as_ref().map(UnixStream::try_clone) {
                    Some(written) => pipe::register(signal, written?),
                    None => Ok(id),
                });
        }
        SignalState { end, descriptor }
    })
}

/// Ends a view a while after it was asked to end or its terminal went away, if it has not ended by itself. It looks at
/// no flag while it reads from a terminal that has gone away, which crossterm does without end.
pub(crate) fn end_at_the_latest(after: Duration) {
    let Some(descriptor) = descriptor() else { return };
    let watch = move || {
        let terminal = io::stdin();
        // The signal's byte is left in the descriptor for the others that wait for it. Of the terminal nothing is
        // asked, so that only its end is told.
        let mut waited = [
            PollFd::new(descriptor, PollFlags::POLLIN),
            PollFd::new(terminal.as_fd(), PollFlags::empty()),
        ];
        while poll(&mut waited, PollTimeout::NONE).is_err() {}
        thread::sleep(after);
        if is_asked() {
            process::exit(EXIT_CODE.into());
        }
        talk::say("fairground: the terminal has gone away");
        process::exit(ERROR_CODE.into());
    };
    // Without it, the second signal ends the program.
    let _ = thread::Builder::new().name("fairground-end".to_owned()).spawn(watch);
}

/// A descriptor that becomes readable at the first signal, and stays so.
pub(crate) fn descriptor() -> Option<BorrowedFd<'static>> {
    asked().descriptor.as_ref().map(AsFd::as_fd)
}

/// Whether it was asked to end.
pub(crate) fn is_asked() -> bool {
    ASKED.get().is_some_and(|asked| asked.end.load(Ordering::Relaxed))
}

/// The same, as a flag to poll.
pub(crate) fn flag() -> Arc<AtomicBool> {
    Arc::clone(&asked().end)
}
