//! A progress bar on stderr: only on a terminal, only for work that takes a while. Experiments, which take minutes,
//! also print a line every few seconds where stderr is no terminal.

use std::fmt;
use std::fs::File;
use std::io::{self, IsTerminal, Seek};
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fairground_session::Watch;
use indicatif::style::TemplateError;
use indicatif::{ProgressBar, ProgressState, ProgressStyle};

use crate::{interrupt, talk};

/// A file that is not this large is read within a second.
const FILE_BYTES_MIN: u64 = 16 << 20;
/// How often the way through a file is drawn.
const DRAWN_EVERY: Duration = Duration::from_millis(100);
/// How often a line is printed where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// A bar, cleared when it is dropped; hidden when `quiet` or when stderr is no terminal.
fn bar(quiet: bool, total: u64, style: impl FnOnce() -> Styled) -> ProgressBar {
    if quiet || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = style().unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(total).with_style(style)
}

type Styled = Result<ProgressStyle, TemplateError>;

/// Progress of one piece of work, in any unit.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    quiet: bool,
    lines: Option<Lines>,
}

/// Lines of progress, a few seconds apart.
#[derive(Debug)]
struct Lines {
    name: String,
    total: u64,
    start: Instant,
    /// Steps that are done, and when the last line was printed.
    state: Mutex<(u64, Instant)>,
}

impl Lines {
    fn advance(&self, steps: u64) {
        if let Ok(mut state) = self.state.lock() {
            state.0 += steps;
        }
    }

    fn tick(&self) {
        let Ok(mut state) = self.state.lock() else { return };
        if state.1.elapsed() >= LINE_EVERY {
            state.1 = Instant::now();
            let done = state.0.min(self.total);
            let said = said(done, self.total, self.start.elapsed());
            talk::say(format!("{}: {said}", self.name));
        }
    }
}

impl Progress {
    /// A bar of `total` steps. From here on Ctrl-C ends the work and not the program ([`interrupt`]).
    pub(crate) fn new(quiet: bool, total: u64) -> Self {
        let progress = Self::of_runs(quiet);
        progress.begin(total);
        progress
    }

    /// A bar for a plan of runs, which tells its length when it begins ([`Watch::begin`]); until then Ctrl-C ends the
    /// program.
    pub(crate) fn of_runs(quiet: bool) -> Self {
        let style =
            || ProgressStyle::with_template("{msg:24!} {bar:40} {percent:>3} %  {eta} left");
        Self { bar: bar(quiet, 0, style), quiet, lines: None }
    }

    /// As [`Progress::new`]; without a terminal it prints a line every few seconds, which begins with the name.
    pub(crate) fn in_lines(quiet: bool, total: u64, name: &str) -> Self {
        let now = Instant::now();
        let (name, state) = (name.to_owned(), Mutex::new((0, now)));
        let is_wanted = !quiet && !io::stderr().is_terminal();
        let lines = is_wanted.then_some(Lines { name, total, start: now, state });
        Self { lines, ..Self::new(quiet, total) }
    }

    /// Prints a line where one is due. Nothing else prints lines, so that work which takes long without a step has
    /// them, too.
    pub(crate) fn tick(&self) {
        self.lines.iter().for_each(Lines::tick);
    }
}

impl Watch for Progress {
    fn begin(&self, steps: u64) {
        interrupt::listen();
        self.bar.set_length(steps);
    }

    /// Something to know, on a line of its own; on stderr, unless `quiet`.
    fn say(&self, text: &str) {
        if !self.quiet {
            self.bar.suspend(|| talk::say(text));
        }
    }

    fn name(&self, label: &str) {
        self.bar.set_message(talk::shown(label).into_owned());
    }

    fn advance(&self, steps: u64) {
        self.bar.inc(steps);
        if let Some(lines) = &self.lines {
            lines.advance(steps);
        }
    }

    fn goes_on(&self) -> bool {
        !interrupt::is_asked()
    }

    fn stop_descriptor(&self) -> Option<BorrowedFd<'_>> {
        interrupt::descriptor()
    }
}

/// The progress of reading a file: how far into it the reader is, which the file itself says; hidden for a small file.
/// Ctrl-C ends the program meanwhile, as nothing is lost.
pub(crate) fn reading(name: &str, file: &File, quiet: bool) -> ProgressBar {
    let bytes = file.metadata().map_or(0, |known| known.len());
    let Ok(file) = file.try_clone() else { return ProgressBar::hidden() };
    let bar = bar(quiet || bytes < FILE_BYTES_MIN, bytes, || {
        let file = Arc::new(file);
        let way = move |state: &ProgressState, to: &mut dyn fmt::Write| {
            let read = (&*file).stream_position().unwrap_or(0).min(bytes);
            let _ = to.write_str(&said(read, bytes, state.elapsed()));
        };
        ProgressStyle::with_template("reading {msg}  {way}").map(|style| style.with_key("way", way))
    });
    bar.set_message(talk::shown(name).into_owned());
    if !bar.is_hidden() {
        bar.enable_steady_tick(DRAWN_EVERY);
    }
    bar
}

/// How far a reader is that has read some of all bytes in a time, and how long the rest will take at that speed.
fn said(read: u64, bytes: u64, elapsed: Duration) -> String {
    let percent = u128::from(read) * 100 / u128::from(bytes.max(1));
    match u128::from(bytes - read).saturating_mul(elapsed.as_millis()) / u128::from(read.max(1)) {
        _ if read == 0 => "0 %".to_owned(),
        left_ms => format!("{percent} %  {}s left", left_ms.div_ceil(1000)),
    }
}

/// How far a recording of a known length is, s.
pub(crate) fn elapsed(what: &'static str, length: Duration, quiet: bool) -> ProgressBar {
    let style = || ProgressStyle::with_template("{msg:24!} {bar:40} {pos} s of {len} s");
    let bar = bar(quiet, length.as_secs(), style);
    bar.set_message(what);
    bar
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
