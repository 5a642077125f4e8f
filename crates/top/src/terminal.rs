//! A view on a real terminal, until somebody leaves. Whatever ends it, the terminal is as it was.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event, KeyEventKind};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::app::App;
use crate::draw::draw;
use crate::source::{Problem, Source};

/// Between two pictures.
const FRAME: Duration = Duration::from_millis(50);
/// Of that, how long the source may take to go on.
const GO_ON: Duration = Duration::from_millis(35);
/// A picture that comes later than this after the one before does not make the run jump.
const ELAPSED_MAX: Duration = Duration::from_millis(250);
/// Keys that are taken between two pictures.
const KEYS_MAX: usize = 64;

/// Shows a source on the terminal that stdin and stdout are, until `q`, Ctrl-C, or a signal that asks the program to end.
///
/// # Errors
/// The terminal cannot be used, or the source cannot go on.
pub fn show(app: &mut App, source: &mut dyn Source) -> Result<(), Problem> {
    let asked = asked_to_end().map_err(|e| format!("signals cannot be handled: {e}"))?;
    // A panic restores the terminal too: this sets a hook.
    let mut terminal =
        ratatui::try_init().map_err(|e| format!("the terminal cannot be drawn on: {e}"))?;
    let done = run(&mut terminal, app, source, &asked);
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
        terminal.draw(|frame| draw(frame, app)).map_err(failed)?;
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

/// Waits for a key; a signal ends the wait.
fn poll(at_most: Duration) -> io::Result<bool> {
    match event::poll(at_most) {
        Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(false),
        polled => polled,
    }
}

/// Set as soon as a signal asks the program to end.
fn asked_to_end() -> io::Result<Arc<AtomicBool>> {
    let asked = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&asked))?;
    }
    Ok(asked)
}
