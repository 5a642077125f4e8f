//! A progress bar on stderr: only on a terminal, only for work that takes a while.

use std::io::{self, IsTerminal};

use fairground_run::Watch;
use indicatif::{ProgressBar, ProgressStyle};

use crate::interrupt;

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
