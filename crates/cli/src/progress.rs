//! A progress bar on stderr: only on a terminal, only for work that takes a while.

use std::fmt;
use std::fs::File;
use std::io::{self, IsTerminal, Seek};
use std::sync::Arc;
use std::time::Duration;

use fairground_session::Watch;
use indicatif::{ProgressBar, ProgressState, ProgressStyle};

use crate::interrupt;

/// A file that is not this large is read within a second.
const FILE_BYTES_MIN: u64 = 16 << 20;
/// How often the way through a file is drawn.
const DRAWN_EVERY: Duration = Duration::from_millis(100);

/// Progress of one piece of work, in any unit.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    quiet: bool,
}

impl Progress {
    /// A bar of `total` steps; hidden when `quiet` or when stderr is no terminal.
    /// From here on Ctrl-C ends the work and not the program ([`interrupt`]).
    pub(crate) fn new(quiet: bool, total: u64) -> Self {
        interrupt::listen();
        if quiet || !io::stderr().is_terminal() {
            return Self { bar: ProgressBar::hidden(), quiet };
        }
        let style = ProgressStyle::with_template("{msg:24!} {bar:40} {percent:>3} %  {eta} left")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        Self { bar: ProgressBar::new(total).with_style(style), quiet }
    }

    /// Something to know, on a line of its own; on stderr, unless `quiet`.
    pub(crate) fn say(&self, text: &str) {
        if self.quiet {
            return;
        }
        self.bar.suspend(|| eprintln!("{text}"));
    }
}

impl Watch for Progress {
    fn name(&self, label: &str) {
        self.bar.set_message(label.to_owned());
    }

    fn advance(&self, steps: u64) {
        self.bar.inc(steps);
    }

    fn goes_on(&self) -> bool {
        !interrupt::is_asked()
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The progress of reading a file; ends when it is dropped. Ctrl-C ends the program meanwhile, as nothing is lost.
#[derive(Debug)]
pub(crate) struct Reading(ProgressBar);

impl Reading {
    /// Shows how far into a file the reader is, which the file itself says; hidden when `quiet`, when stderr is no
    /// terminal, and for a small file.
    pub(crate) fn of(name: &str, file: &File, quiet: bool) -> Self {
        let bytes = file.metadata().map_or(0, |known| known.len());
        let shown = !quiet && io::stderr().is_terminal() && bytes >= FILE_BYTES_MIN;
        let Some(file) = shown.then(|| file.try_clone().ok()).flatten() else {
            return Self(ProgressBar::hidden());
        };
        let file = Arc::new(file);
        let way = move |state: &ProgressState, to: &mut dyn fmt::Write| {
            let read = (&*file).stream_position().unwrap_or(0).min(bytes);
            let _ = to.write_str(&said(read, bytes, state.elapsed()));
        };
        let style = ProgressStyle::with_template("reading {msg}  {way}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::new(bytes).with_style(style.with_key("way", way));
        bar.set_message(name.to_owned());
        bar.enable_steady_tick(DRAWN_EVERY);
        Self(bar)
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// How far a reader is that has read some of all bytes in a time, and how long the rest will take at that speed.
fn said(read: u64, bytes: u64, elapsed: Duration) -> String {
    let percent = u128::from(read) * 100 / u128::from(bytes.max(1));
    match u128::from(bytes - read).saturating_mul(elapsed.as_millis()) / u128::from(read.max(1)) {
        _ if read == 0 => "0 %".to_owned(),
        left_ms => format!("{percent} %  {}s left", left_ms.div_ceil(1000)),
    }
}

/// How far a recording of a known length is.
#[derive(Debug)]
pub(crate) struct Elapsed(ProgressBar);

impl Elapsed {
    /// A bar for so long a time; hidden when `quiet` or when stderr is no terminal.
    pub(crate) fn new(what: &'static str, length: Duration, quiet: bool) -> Self {
        let bar = if quiet || !io::stderr().is_terminal() {
            ProgressBar::hidden()
        } else {
            let style = ProgressStyle::with_template("{msg:24!} {bar:40} {pos} s of {len} s")
                .unwrap_or_else(|_| ProgressStyle::default_bar());
            ProgressBar::new(length.as_secs()).with_style(style)
        };
        bar.set_message(what);
        Self(bar)
    }

    /// Whether it is visible: on a terminal, without `--quiet`.
    pub(crate) fn is_shown(&self) -> bool {
        !self.0.is_hidden()
    }

    /// So long it has lasted.
    pub(crate) fn reaches(&self, elapsed: Duration) {
        self.0.set_position(elapsed.as_secs());
        self.0.tick();
    }
}

impl Drop for Elapsed {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_is_reckoned_from_what_was_read() {
        assert_eq!(said(0, 100, Duration::from_secs(3)), "0 %");
        assert_eq!(said(25, 100, Duration::from_secs(3)), "25 %  9s left");
        assert_eq!(said(100, 100, Duration::from_secs(3)), "100 %  0s left");
        assert_eq!(said(1, u64::MAX, Duration::MAX).split_once(' ').map(|(p, _)| p), Some("0"));
    }
}
