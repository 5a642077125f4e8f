//! A view on a real terminal, until the user quits. The terminal is restored, however it ends.

use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use ratatui::crossterm::terminal::{BeginSynchronizedUpdate, EndSynchronizedUpdate};
use ratatui::crossterm::{execute, queue};

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

/// Shows a source on the terminal that stdin and stdout are, until `q`, Ctrl-C, or until `asked` is set: by the handler
/// of a signal that asks the program to end.
///
/// # Errors
/// The terminal cannot be used, or the source cannot go on.
pub fn show(app: &mut App, source: &mut dyn Source, asked: &AtomicBool) -> Result<(), Problem> {
    // A panic restores the terminal too: this sets a hook.
    let terminal = ratatui::try_init().map_err(|e| {
        // It may have failed half-way. Whether or not it can be restored, the error is the first one.
        let _ = ratatui::try_restore();
        format!("the terminal cannot be drawn on: {e}")
    })?;
    // Its own drop says on stderr what goes wrong, and panics where that has gone away, too.
    let mut terminal = ManuallyDrop::new(terminal);
    let done = run(&mut terminal, app, source, asked);
    let _ = terminal.show_cursor();
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
            wait(left).map_err(failed)?;
            if !event::poll(Duration::ZERO).map_err(failed)? {
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

/// Waits for a key, up to a time limit; a signal ends the wait.
///
/// # Errors
/// The terminal has gone away. Crossterm would read from it without end (`event::poll`, at the end of a file).
fn wait(at_most: Duration) -> io::Result<()> {
    let stdin = io::stdin();
    let mut waited = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
    let limit = PollTimeout::try_from(at_most).unwrap_or(PollTimeout::ZERO);
    match poll(&mut waited, limit) {
        Ok(_) | Err(Errno::EINTR) => {}
        Err(e) => return Err(e.into()),
    }
    let gone = PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL;
    match waited[0].revents() {
        Some(found) if found.intersects(gone) => Err(io::Error::other("it has gone away")),
        _ => Ok(()),
    }
}
