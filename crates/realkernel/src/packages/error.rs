//! Errors of finding and fetching kernels and QEMU.

use std::path::PathBuf;

/// Why a kernel or QEMU is not available.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    /// No folder for the cache.
    #[error(
        "no folder for kernels: set FAIRGROUND_CACHE (or HOME) to a folder that can be written"
    )]
    NoCache,
    /// No kernel of this name.
    #[error("no kernel `{name}` can be fetched: available: {}; use the path of a bzImage for \
             your own kernel", .known.join(", "))]
    Unknown {
        /// The requested name.
        name: String,
        /// The names of those that there are.
        known: Vec<String>,
    },
    /// A kernel that can be fetched and is not in the cache.
    #[error("the kernel {name} has not been fetched: run `fairground kernels fetch {name}`")]
    NotFetched {
        /// The kernel.
        name: String,
    },
    /// A series that Debian no longer has.
    #[error(
        "the kernel {name} is not available: {newest}; `fairground kernels list` shows the fetched ones"
    )]
    Gone {
        /// The requested name.
        name: String,
        /// The kernel that Debian has instead.
        newest: String,
    },
    /// A file in the cache is damaged.
    #[error("{} is not what was fetched: it has changed, is missing, or was added; remove its folder of the cache and run \
             `fairground kernels fetch`", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// A kernel was replaced between the moment it was found and its start.
    #[error("{} has changed since the run began: start it again", .path.display())]
    Changed {
        /// The kernel's image.
        path: PathBuf,
    },
    /// No apt on this machine.
    #[error(
        "`{program}` is missing: fetching kernels from Debian requires apt and dpkg-deb; on \
         another distribution, use your own kernel (--kernel PATH) and install QEMU 10"
    )]
    NoApt {
        /// The missing program.
        program: String,
    },
    /// No keys of Debian's archive.
    #[error("no keys of Debian's archive at {}: install the package debian-archive-keyring", .path.display())]
    NoKeys {
        /// Their path.
        path: PathBuf,
    },
    /// The archive is not reachable.
    #[error(
        "Debian's archive cannot be reached ({what}): check the network and apt's proxy settings; \
         fetched kernels work without network\n    {message}"
    )]
    NoNetwork {
        /// The operation.
        what: String,
        /// apt's message.
        message: String,
    },
    /// apt or dpkg failed.
    #[error("{what} failed: {message}")]
    Apt {
        /// The operation.
        what: String,
        /// Its message.
        message: String,
    },
    /// No recent QEMU.
    #[error("no QEMU 10 or newer{}: run `fairground kernels fetch`, or install \
             qemu-system-x86", .found.as_ref().map_or(String::new(), |f| format!(" (found: {f})")))]
    NoQemu {
        /// The older version that was found.
        found: Option<String>,
    },
    /// A file that is not a kernel.
    #[error("{} is not a bzImage: use the compressed kernel image for boot loaders \
             (arch/x86/boot/bzImage, /boot/vmlinuz-…)", .path.display())]
    NoKernel {
        /// The file.
        path: PathBuf,
    },
    /// An operation on this machine failed.
    #[error("{what}: {error}")]
    Io {
        /// The operation.
        what: String,
        /// The error.
        error: std::io::Error,
    },
}

impl PackageError {
    /// Converts an I/O error of the operation `what`.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |error| Self::Io { what, error }
    }
}
