//! Ctrl-C: the first one ends what is being done and keeps what there is, the second one ends the program.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// The exit code of a result that is partial: what a shell says of a program that Ctrl-C ended.
pub(crate) const EXIT_CODE: u8 = 130;

/// What signals set.
struct Asked {
    /// Somebody asked for the end.
    end: Arc<AtomicBool>,
    /// Nothing that goes on could be kept: who asks now ends the program.
    at_once: Arc<AtomicBool>,
}

static ASKED: OnceLock<Asked> = OnceLock::new();

/// From here on the first Ctrl-C (or SIGTERM) is taken down and no more.
pub(crate) fn listen() {
    asked();
}

fn asked() -> &'static Asked {
    ASKED.get_or_init(|| {
        let asked = Asked {
            end: Arc::new(AtomicBool::new(false)),
            at_once: Arc::new(AtomicBool::new(false)),
        };
        for signal in [SIGINT, SIGTERM] {
            // In this order: a signal that finds a flag set already does what it does without us. Where the system refuses, all of
            // them do.
            let _ = flag::register_conditional_default(signal, Arc::clone(&asked.at_once))
                .and_then(|_| flag::register_conditional_default(signal, Arc::clone(&asked.end)))
                .and_then(|_| flag::register(signal, Arc::clone(&asked.end)));
        }
        asked
    })
}

/// Whether somebody asked for the end.
pub(crate) fn is_asked() -> bool {
    ASKED.get().is_some_and(|asked| asked.end.load(Ordering::Relaxed))
}

/// The same, for who must look by himself.
pub(crate) fn flag() -> Arc<AtomicBool> {
    Arc::clone(&asked().end)
}

/// While it lives, the first Ctrl-C ends the program at once.
#[derive(Debug)]
pub(crate) struct AtOnce(());

impl AtOnce {
    /// Begins.
    pub(crate) fn begin() -> AtOnce {
        asked().at_once.store(true, Ordering::Relaxed);
        AtOnce(())
    }
}

impl Drop for AtOnce {
    fn drop(&mut self) {
        asked().at_once.store(false, Ordering::Relaxed);
    }
}
