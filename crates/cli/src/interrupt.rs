//! Ctrl-C: the first one ends what is being done and keeps what there is, the second one ends the program.

use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::low_level::pipe;

/// The exit code of a result that is partial: what a shell says of a program that Ctrl-C ended.
pub(crate) const EXIT_CODE: u8 = 130;

/// What signals set.
struct Asked {
    /// Set by Ctrl-C.
    end: Arc<AtomicBool>,
    /// Becomes readable then, for callers that wait without polling; `None` where the system gives no descriptor.
    descriptor: Option<UnixStream>,
}

static ASKED: OnceLock<Asked> = OnceLock::new();

/// From here on the first Ctrl-C (or SIGTERM) is taken down and no more.
pub(crate) fn listen() {
    asked();
}

fn asked() -> &'static Asked {
    ASKED.get_or_init(|| {
        let end = Arc::new(AtomicBool::new(false));
        let (descriptor, written) =
            UnixStream::pair().map_or((None, None), |(a, b)| (Some(a), Some(b)));
        for signal in [SIGINT, SIGTERM] {
            // In this order: a signal that finds the flag set already does what it does without us. Where the system
            // refuses, all of them do.
            let _ = flag::register_conditional_default(signal, Arc::clone(&end))
                .and_then(|_| flag::register(signal, Arc::clone(&end)))
                .and_then(|id| match written.as_ref().map(UnixStream::try_clone) {
                    Some(written) => pipe::register(signal, written?),
                    None => Ok(id),
                });
        }
        Asked { end, descriptor }
    })
}

/// The same for a terminal that goes away, as a flag to poll.
pub(crate) fn flag_with_hangup() -> Arc<AtomicBool> {
    let end = flag();
    let _ = flag::register(SIGHUP, Arc::clone(&end));
    end
}

/// A descriptor that becomes readable at Ctrl-C, and stays so.
pub(crate) fn descriptor() -> Option<BorrowedFd<'static>> {
    asked().descriptor.as_ref().map(AsFd::as_fd)
}

/// Whether Ctrl-C was pressed.
pub(crate) fn is_asked() -> bool {
    ASKED.get().is_some_and(|asked| asked.end.load(Ordering::Relaxed))
}

/// The same, as a flag to poll.
pub(crate) fn flag() -> Arc<AtomicBool> {
    Arc::clone(&asked().end)
}
