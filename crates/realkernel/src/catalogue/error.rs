//! Why a kernel or QEMU is not here.

use std::path::PathBuf;

/// Why a kernel or QEMU cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    /// No folder to keep things in.
    #[error(
        "no folder for kernels: set FAIRGROUND_CACHE (or HOME) to a folder that can be written"
    )]
    NoCache,
    /// No kernel of this name.
    #[error("no kernel `{name}` in the catalogue: there are {}; a bzImage of your own goes by its path", .known.join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// A kernel of the catalogue that is not in the cache.
    #[error("the kernel {name} has not been fetched: run `fairground kernels fetch {name}`")]
    NotFetched {
        /// The kernel.
        name: String,
    },
    /// A series that Debian has no more.
    #[error("no kernel {name} to be had: {newest}; `fairground kernels list` shows what is here")]
    Gone {
        /// What was asked for.
        name: String,
        /// What there is instead.
        newest: String,
    },
    /// Something in the cache is not what was put there.
    #[error("{} is damaged: its checksum differs from the one recorded; remove it and fetch again", .path.display())]
    Damaged {
        /// What is damaged.
        path: PathBuf,
    },
    /// No apt on this machine.
    #[error(
        "`{program}` is missing: kernels come from Debian by apt and dpkg-deb; on another distribution give your own kernel (--kernel PATH) and install QEMU 10"
    )]
    NoApt {
        /// What is missing.
        program: String,
    },
    /// No keys of Debian's archive.
    #[error("no keys of Debian's archive at {}: install the package debian-archive-keyring", .path.display())]
    NoKeys {
        /// Where they would be.
        path: PathBuf,
    },
    /// No network.
    #[error(
        "Debian's archive cannot be reached ({what}): check the network, or apt's proxy settings; what has been fetched before works without\n    {said}"
    )]
    NoNetwork {
        /// What was being done.
        what: String,
        /// What apt said.
        said: String,
    },
    /// apt or dpkg failed.
    #[error("{what} failed: {said}")]
    Apt {
        /// What was being done.
        what: String,
        /// What it said.
        said: String,
    },
    /// No emulator that is new enough.
    #[error("no QEMU 10 or newer{}: run `fairground kernels fetch`, or install qemu-system-x86", .found.as_ref().map_or(String::new(), |f| format!(" (found: {f})")))]
    NoQemu {
        /// What was found instead.
        found: Option<String>,
    },
    /// A file that is no kernel.
    #[error("{} is no bzImage: give the compressed kernel that a boot loader takes (arch/x86/boot/bzImage, /boot/vmlinuz-…)", .path.display())]
    NoKernel {
        /// The file.
        path: PathBuf,
    },
    /// Something on this machine failed.
    #[error("{what}: {error}")]
    Io {
        /// What was being done.
        what: String,
        /// Why it failed.
        error: std::io::Error,
    },
}

impl CatalogueError {
    /// An error of input or output while `what` was done.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |error| Self::Io { what, error }
    }
}
