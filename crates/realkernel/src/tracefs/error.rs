//! Errors of recordings.

use std::io;
use std::path::{Path, PathBuf};

/// Why a recording could not be made or written.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// tracefs is not mounted and could not be mounted.
    #[error(
        "tracefs is not available: {why}\n  help: recording requires root and a kernel with CONFIG_FTRACE; \
         as root: mount -t tracefs none /sys/kernel/tracing"
    )]
    NoTracefs {
        /// The attempts and their errors.
        why: String,
    },
    /// The user may not use tracefs.
    #[error("{}: {source}\n  help: recording kernel events requires root: run it with sudo", .path.display())]
    NotPermitted {
        /// The file or folder.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// An operation on a file of tracefs failed.
    #[error("{}: {action}: {source}", .path.display())]
    Tracefs {
        /// The file or folder.
        path: PathBuf,
        /// The operation.
        action: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// The kernel lacks a requested event.
    #[error(
        "this kernel has no event {event}\n  help: /sys/kernel/tracing/available_events lists its events"
    )]
    NoEvent {
        /// `system:event`.
        event: String,
    },
    /// The command to record could not be started or waited for.
    #[error(
        "{command}: {source}\n  help: what follows `--` is a program and its arguments, without a shell"
    )]
    Command {
        /// Its name; empty if there is none.
        command: String,
        /// The cause.
        source: io::Error,
    },
    /// The recording was written, and lacks what came after an error.
    #[error("{}: the recording is partial: its events could not be moved out of the kernel any more: {source}", .path.display())]
    Partial {
        /// The file.
        path: PathBuf,
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
    /// The error of an operation on a file of tracefs.
    pub(super) fn of(path: &Path, action: &'static str, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::PermissionDenied => Self::NotPermitted { path, source },
            _ => Self::Tracefs { path, action, source },
        }
    }

    /// The error of writing the recording's file.
    pub(super) fn output(path: &Path, source: io::Error) -> Self {
        Self::Output { path: path.to_owned(), source }
    }
}
