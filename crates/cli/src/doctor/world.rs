//! The machine that is checked: this one, or one that a test made in a folder.

use std::cell::OnceCell;
use std::env;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use fairground_policies::CLANG_VARIABLE;
use fairground_realkernel::job::KernelInfo;
use fairground_realkernel::packages::{Cache, Kernel, PackageError, Qemu};
use fairground_realkernel::tracefs;
use fairground_realkernel::vm::VmConfig;

use crate::commands::kernels::describe;

/// A kernel's description of itself, or why it did not boot so far.
pub(super) type Booted = Result<KernelInfo, String>;

/// The guest's time for a kernel to describe itself, ns.
const DESCRIBING_NS: u64 = 10_000_000_000;

/// Where things are looked for.
#[derive(Debug)]
pub(crate) struct World {
    /// `/`.
    pub(crate) root: PathBuf,
    /// `PATH`.
    pub(crate) path: OsString,
    /// Where fetched kernels are; `None`: there is no such place.
    pub(crate) cache: Option<Cache>,
    /// The compiler that a variable names.
    pub(crate) clang: Option<String>,
    /// Whether results go to a terminal, or talk does.
    pub(crate) terminal: bool,
    /// Whether kernels are booted.
    pub(crate) thorough: bool,
    /// `TERM`.
    pub(crate) term: Option<String>,
    /// Whether a folder is a mounted tracefs.
    pub(crate) is_tracefs: fn(&Path) -> bool,
    pub(super) boot: fn(&VmConfig) -> Booted,
    /// The newest kernel's description of itself: it is booted once.
    pub(super) booted: OnceCell<Option<Booted>>,
}

impl World {
    /// This machine, with this process's environment.
    pub(crate) fn here(thorough: bool) -> Self {
        Self {
            root: PathBuf::from("/"),
            path: env::var_os("PATH").unwrap_or_default(),
            cache: Cache::open().ok(),
            clang: env::var(CLANG_VARIABLE).ok(),
            terminal: std::io::stdout().is_terminal() || std::io::stderr().is_terminal(),
            thorough,
            term: env::var("TERM").ok(),
            is_tracefs: tracefs::is_tracefs,
            boot: |config| {
                let booted = describe(config, DESCRIBING_NS);
                booted.map(|(info, _)| info).map_err(|failure| failure.to_string())
            },
            booted: OnceCell::new(),
        }
    }

    /// QEMU 10 or newer.
    pub(super) fn qemu(&self) -> Result<Qemu, PackageError> {
        match &self.cache {
            Some(cache) => cache.cached_qemu_or_on(&self.path),
            None => Qemu::installed_on(&self.path),
        }
    }

    /// The fetched kernels that are whole, the newest last.
    pub(super) fn kernels(&self) -> Vec<Kernel> {
        let Some(cache) = &self.cache else { return Vec::new() };
        cache.kernels().iter().filter_map(|k| cache.cached_kernel(&k.name).ok()).collect()
    }

    /// A machine with the newest kernel; `None` where there is no QEMU, or no kernel.
    pub(super) fn newest_machine(&self) -> Option<VmConfig> {
        Some(VmConfig::new(self.qemu().ok()?, self.kernels().pop()?, 1))
    }

    /// The newest kernel's description of itself in a virtual machine; `None` where there is nothing to boot.
    pub(super) fn booted(&self) -> &Option<Booted> {
        self.booted.get_or_init(|| self.newest_machine().map(|machine| (self.boot)(&machine)))
    }

    /// A program in the folders of `PATH`.
    pub(crate) fn program(&self, name: &str) -> Option<PathBuf> {
        env::split_paths(&self.path).map(|folder| folder.join(name)).find(|p| p.is_file())
    }
}
