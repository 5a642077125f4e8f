//! A view on a real terminal, until the user quits. The terminal is restored, however it ends.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event, KeyEventKind};
use ratatui::crossterm::terminal::{BeginSynchronizedUpdate, EndSynchronizedUpdate};
use ratatui::crossterm::{execute, queue};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::app::App;
use crate::draw::draw;
use crate::source::{Problem, Source};

/// Time between two frames.
const FRAME: Duration = Duration::from_millis(50);
/// The part of it in which the source may advance.
const GO_ON: Duration = Duration::from_millis(35);
/// A frame that is later than this does not make the run jump.
const ELAPSED_MAX: Duration = Duration::from_millis(250);
/// Limit of the keys between two frames.
const KEYS_MAX: usize = 64;

/// Shows a source on the terminal that stdin and stdout are, until `q`, Ctrl-C, or a signal that asks the program to
/// end.
///
/// # Errors
/// The terminal cannot be used, or the source cannot go on.
pub fn show(app: &mut App, source: &mut dyn Source) -> Result<(), Problem> {
    let signals = Signals::take().map_err(|e| format!("signals cannot be handled: {e}"))?;
    // A panic restores the terminal too: this sets a hook.
    let mut terminal = ratatui::try_init().map_err(|e| {
        // It may have failed half-way. Whether or not it can be restored, the error is the first one.
        let _ = ratatui::try_restore();
        format!("the terminal cannot be drawn on: {e}")
    })?;
    let done = run(&mut terminal, app, source, signals.asked());
    // From here on a signal has its default effect: no view handles it any more.
    drop(signals);
    let restored = ratatui::try_restore().map_err(|e| format!("the terminal is not restored: {e}"));
    done.and(restored)
}

fn run(
    terminal: &mut ratatui::DefaultTerminal,
    app: &mut App,
    source: &mut dyn Source,
    asked: &AtomicBool,
) -> Result<(), Problem> {
    let failed = |e: io::Error| format!("the terminal: {e}");
    let mut before = Instant::now();
    while !app.has_left() {
        if asked.load(Ordering::Relaxed) {
            app.leave();
            break;
        }
        let begun = Instant::now();
        let elapsed = begun.duration_since(before).min(ELAPSED_MAX);
        before = begun;
        app.pass(source, elapsed, || begun.elapsed() < GO_ON)?;
        picture(terminal, app).map_err(failed)?;
        let mut left = FRAME.saturating_sub(begun.elapsed());
        for _ in 0..KEYS_MAX {
            if !poll(left).map_err(failed)? {
                break;
            }
            left = Duration::ZERO;
            match event::read().map_err(failed)? {
                Event::Key(key) if key.kind != KeyEventKind::Release => app.press(key, source),
                _ => {}
            }
        }
    }
    Ok(())
}

/// Draws a frame; a terminal that supports it shows it at once.
fn picture(terminal: &mut ratatui::DefaultTerminal, app: &App) -> io::Result<()> {
    queue!(terminal.backend_mut(), BeginSynchronizedUpdate)?;
    terminal.draw(|frame| draw(frame, app))?;
    execute!(terminal.backend_mut(), EndSynchronizedUpdate)
}

/// Waits for a key; a signal ends the wait.
fn poll(at_most: Duration) -> io::Result<bool> {
    match event::poll(at_most) {
        Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(false),
        polled => polled,
    }
}

/// The state for signals that terminate the program. They are registered once: an unregistered signal would be
/// ignored, without its default effect.
#[derive(Clone, Debug)]
struct Flags {
    /// A signal came.
    asked: Arc<AtomicBool>,
    /// No view handles it: the signal has its default effect.
    is_default: Arc<AtomicBool>,
}

static FLAGS: Mutex<Option<Flags>> = Mutex::new(None);

/// While it exists, a terminating signal is only recorded.
#[derive(Debug)]
struct Signals(Flags);

impl Signals {
    fn take() -> io::Result<Signals> {
        let mut flags = FLAGS.lock().unwrap_or_else(PoisonError::into_inner);
        let flags = match &*flags {
            Some(flags) => flags.clone(),
            None => flags.insert(Flags::register()?).clone(),
        };
        flags.asked.store(false, Ordering::Relaxed);
        flags.is_default.store(false, Ordering::Relaxed);
        Ok(Signals(flags))
    }

    fn asked(&self) -> &AtomicBool {
        &self.0.asked
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.0.is_default.store(true, Ordering::Relaxed);
    }
}

impl Flags {
    fn register() -> io::Result<Flags> {
        let flags = Flags {
            asked: Arc::new(AtomicBool::new(false)),
            is_default: Arc::new(AtomicBool::new(true)),
        };
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            flag::register_conditional_default(signal, Arc::clone(&flags.is_default))?;
            flag::register(signal, Arc::clone(&flags.asked))?;
        }
        Ok(flags)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use signal_hook::low_level::raise;

    /// Set in the process that the test below starts.
    const IN_CHILD: &str = "FAIRGROUND_TOP_TEST_CHILD";

    /// Runs in a process of its own, which the last signal terminates.
    #[test]
    fn a_signal_is_taken_down_during_a_view_and_only_then() {
        if std::env::var_os(IN_CHILD).is_none() {
            let mut child = Command::new(std::env::current_exe().expect("this program"));
            child.args([
                "--exact",
                "terminal::tests::a_signal_is_taken_down_during_a_view_and_only_then",
            ]);
            let status = child.env(IN_CHILD, "1").output().expect("it starts").status;
            assert_eq!(status.signal(), Some(SIGTERM), "{status}");
            return;
        }
        for _ in 0..2 {
            let signals = Signals::take().expect("they can be handled");
            assert!(!signals.asked().load(Ordering::Relaxed));
            for signal in [SIGINT, SIGTERM, SIGHUP] {
                raise(signal).expect("a signal");
            }
            assert!(signals.asked().load(Ordering::Relaxed));
        }
        raise(SIGTERM).expect("a signal");
    }
}
