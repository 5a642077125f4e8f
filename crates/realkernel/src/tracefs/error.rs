//! Why there is no recording, for people.

use std::io;
use std::path::{Path, PathBuf};

/// A recording that could not be made, or not be written.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// No tracefs is mounted, and it could not be mounted.
    #[error(
        "there is no tracefs: {why}\n  help: recording needs root and a kernel with CONFIG_FTRACE; \
         as root: mount -t tracefs none /sys/kernel/tracing"
    )]
    NoTracefs {
        /// What was tried, and what it gave.
        why: String,
    },
    /// tracefs is there, and this user may not use it.
    #[error("{}: {source}\n  help: recording a kernel's events needs root: run it with sudo", .path.display())]
    NotPermitted {
        /// The file or folder.
        path: PathBuf,
        /// What the kernel answered.
        source: io::Error,
    },
    /// A file of tracefs does not do what it should.
    #[error("{}: {action}: {source}", .path.display())]
    Tracefs {
        /// The file or folder.
        path: PathBuf,
        /// What was to be done with it.
        action: &'static str,
        /// What the kernel answered.
        source: io::Error,
    },
    /// The kernel does not have an event that was asked for.
    #[error(
        "this kernel has no event {event}\n  help: /sys/kernel/tracing/available_events lists what it has"
    )]
    NoEvent {
        /// `system:event`.
        event: String,
    },
    /// The command that was to be recorded could not be started, or not be waited for.
    #[error(
        "{command}: {source}\n  help: what follows `--` is a program and its arguments, without a shell"
    )]
    Command {
        /// Its name; empty when there was none.
        command: String,
        /// The cause.
        source: io::Error,
    },
    /// The recording could not be written.
    #[error("{}: the recording could not be written: {source}", .path.display())]
    Output {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl RecordError {
    /// What went wrong with a file of tracefs.
    pub(super) fn of(path: &Path, action: &'static str, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::PermissionDenied => Self::NotPermitted { path, source },
            _ => Self::Tracefs { path, action, source },
        }
    }

    /// What went wrong with the recording's file.
    pub(super) fn output(path: &Path, source: io::Error) -> Self {
        Self::Output { path: path.to_owned(), source }
    }
}
