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
    /// The recording ended early, or lacks its end.
    #[error(
        "the recording could not be continued: {source}; what was recorded until then is kept in {}{}\n  help: \
         make room on that disk, or record to another one",
        .path.display(), missing(*.missing_bytes, *.missing_ns)
    )]
    Partial {
        /// The file with what there is.
        path: PathBuf,
        /// The cause.
        source: io::Error,
        /// Bytes of the kernel's pages with events that were recorded and are missing at the end.
        missing_bytes: u64,
        /// The time at the end from which events are missing, ns; `None`: nothing is missing, or it is unknown.
        missing_ns: Option<u64>,
    },
    /// A recording has no room, not even without events.
    #[error(
        "{}: a recording needs {} KiB of disk space before its first event: {source}\n  help: make room on that disk, \
         or record to another one",
        .path.display(), .bytes.div_ceil(1024)
    )]
    NoRoom {
        /// The folder.
        path: PathBuf,
        /// The missing requirement.
        bytes: u64,
        /// The kernel's error.
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

    /// The error of a partial recording, once its file is in another place.
    pub fn moved_to(self, place: &Path) -> Self {
        match self {
            Self::Partial { source, missing_bytes, missing_ns, .. } => {
                Self::Partial { path: place.to_owned(), source, missing_bytes, missing_ns }
            }
            other => other,
        }
    }

    /// The error of writing the recording's file.
    pub(super) fn output(path: &Path, source: io::Error) -> Self {
        Self::Output { path: path.to_owned(), source }
    }
}

/// The missing requirement, in words.
fn missing(bytes: u64, ns: Option<u64>) -> String {
    if bytes == 0 {
        return String::new();
    }
    let time = ns.map_or(String::new(), |ns| format!(", the last {:.3} s", ns as f64 / 1e9));
    format!(" without the {} KiB of events after that{time}", bytes.div_ceil(1024))
}
