//! An error as the user meets it: what was wrong, where, why, and what to do.

use std::fmt;
use std::io;

/// A message for a person.
#[derive(Debug)]
pub struct Failure {
    message: String,
    help: Option<String>,
    broken_pipe: bool,
    interrupted: bool,
}

impl Failure {
    /// An error that says what was wrong and where.
    pub fn new(message: impl fmt::Display) -> Self {
        let message = message.to_string();
        Self { message, help: None, broken_pipe: false, interrupted: false }
    }

    /// Adds what to do about it.
    pub fn help(mut self, help: impl fmt::Display) -> Self {
        self.help = Some(help.to_string());
        self
    }

    /// The same, where there is something to do.
    pub fn help_if(self, help: Option<impl fmt::Display>) -> Self {
        match help {
            Some(help) => self.help(help),
            None => self,
        }
    }

    /// An error of reading or writing a file.
    pub fn io(what: impl fmt::Display, error: &io::Error) -> Self {
        let broken_pipe = error.kind() == io::ErrorKind::BrokenPipe;
        Self { broken_pipe, ..Self::new(format_args!("{what}: {error}")) }
    }

    /// What was being done when a signal asked to end.
    pub fn interrupted(message: impl fmt::Display) -> Self {
        Self { interrupted: true, ..Self::new(message) }
    }

    /// Whether a signal asked to end, which is no error.
    pub fn is_interrupted(&self) -> bool {
        self.interrupted
    }

    /// Whether the reader of our output went away, which is no error.
    pub fn is_broken_pipe(&self) -> bool {
        self.broken_pipe
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message)?;
        match &self.help {
            Some(help) => write!(f, "\n  help: {help}"),
            None => Ok(()),
        }
    }
}
