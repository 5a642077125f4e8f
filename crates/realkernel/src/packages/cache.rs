//! The cache of fetched kernels and QEMU.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::kernel::hex_digest;
use super::series::{KERNEL_SERIES, KernelSeries, numbers};
use super::{Kernel, PackageError, Qemu, manifest};

/// The file that describes a fetched kernel.
pub(super) const KERNEL_NOTE: &str = "kernel.json";
/// A fetched kernel's configuration.
pub(super) const CONFIG: &str = "config";
/// The file that describes a fetched QEMU.
pub(super) const QEMU_NOTE: &str = "qemu.json";

/// The folder of fetched kernels and QEMU.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
}

/// The description of a fetched kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cached {
    /// Its name: `6.1`, `7.2-rt`.
    pub name: String,
    /// Its release (`uname -r`).
    pub release: String,
    /// The Debian package.
    pub package: String,
    /// The package's version.
    pub version: String,
    /// SHA-256 of the package, from the signed index.
    pub package_sha256: String,
    /// SHA-256 of the kernel's image.
    pub sha256: String,
}

/// The description of a fetched QEMU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CachedQemu {
    /// The Debian package's version.
    pub(super) version: String,
    /// Folders of libraries, relative to the folder of QEMU.
    pub(super) libraries: Vec<String>,
}

impl Cache {
    /// `FAIRGROUND_CACHE`, else `fairground` in `XDG_CACHE_HOME`, else in `~/.cache`.
    ///
    /// # Errors
    ///
    /// None of these variables is set.
    pub fn open() -> Result<Self, PackageError> {
        let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        set("FAIRGROUND_CACHE")
            .or_else(|| set("XDG_CACHE_HOME").map(|c| c.join("fairground")))
            .or_else(|| set("HOME").map(|h| h.join(".cache/fairground")))
            .map(Self::at)
            .ok_or(PackageError::NoCache)
    }

    /// The cache in `folder`.
    pub fn at(root: PathBuf) -> Self {
        Self { root }
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The fetched kernels, sorted by name.
    pub fn kernels(&self) -> Vec<Cached> {
        let entries = fs::read_dir(self.root.join("kernels"));
        let entries = entries.into_iter().flatten().filter_map(Result::ok);
        let mut found: Vec<Cached> = entries
            .filter_map(|e| fs::read(e.path().join(KERNEL_NOTE)).ok())
            .filter_map(|text| serde_json::from_slice(&text).ok())
            .collect();
        found.sort_by_key(|c| (numbers(&c.name), c.name.clone()));
        found
    }

    /// A fetched kernel; `newest` is the newest of them.
    ///
    /// # Errors
    ///
    /// There is no such kernel, it has not been fetched, or its image is damaged.
    pub fn cached_kernel(&self, name: &str) -> Result<Kernel, PackageError> {
        let series = find(name)?;
        let matches =
            |c: &Cached| c.name == name || (series.name == name && self.is_of(c, &series));
        let cached = self.kernels().into_iter().rfind(matches);
        let cached = cached.ok_or_else(|| PackageError::NotFetched { name: name.to_owned() })?;
        self.load(&cached)
    }

    /// QEMU 10 or newer: the machine's, else the fetched one.
    ///
    /// # Errors
    ///
    /// There is neither.
    pub fn cached_qemu(&self) -> Result<Qemu, PackageError> {
        self.cached_qemu_or_on(&std::env::var_os("PATH").unwrap_or_default())
    }

    /// QEMU 10 or newer: one in the folders of `path`, else the fetched one.
    ///
    /// # Errors
    ///
    /// There is neither.
    pub fn cached_qemu_or_on(&self, path: &OsStr) -> Result<Qemu, PackageError> {
        let installed = match Qemu::installed_on(path) {
            Ok(qemu) => return Ok(qemu),
            Err(error) => error,
        };
        let folder = self.qemu_folder();
        let Ok(text) = fs::read(folder.join(QEMU_NOTE)) else { return Err(installed) };
        manifest::verify(&folder)?;
        let note: CachedQemu = serde_json::from_slice(&text)
            .map_err(|_| PackageError::Damaged { path: folder.clone() })?;
        Qemu::fetched(&folder, &note.libraries)
    }

    /// The folder of the kernel of this name.
    pub(super) fn kernel_folder(&self, name: &str) -> PathBuf {
        self.root.join("kernels").join(name)
    }

    /// The folder of the fetched QEMU.
    pub(super) fn qemu_folder(&self) -> PathBuf {
        self.root.join("qemu")
    }

    fn is_of(&self, cached: &Cached, series: &KernelSeries) -> bool {
        let pinned =
            |name: &str| KERNEL_SERIES.iter().any(|e| e.series.is_some() && e.name == name);
        series.series.is_none()
            && !pinned(&cached.name)
            && cached.name.ends_with("-rt") == (series.flavour == "rt")
    }

    /// The kernel of a description, after a check of its image.
    pub(super) fn load(&self, cached: &Cached) -> Result<Kernel, PackageError> {
        let folder = self.kernel_folder(&cached.name);
        let image = folder.join("vmlinuz");
        let bytes = fs::read(&image)
            .map_err(PackageError::io(format!("read the kernel {}", image.display())))?;
        if hex_digest(&bytes) != cached.sha256 {
            return Err(PackageError::Damaged { path: folder });
        }
        manifest::verify(&folder)?;
        let config = Some(folder.join(CONFIG)).filter(|c| c.is_file());
        let (name, sha256) = (cached.name.clone(), cached.sha256.clone());
        Ok(Kernel { name, image, config, sha256 })
    }
}

pub(super) fn find(name: &str) -> Result<KernelSeries, PackageError> {
    KernelSeries::find(name).ok_or_else(|| PackageError::Unknown {
        name: name.to_owned(),
        known: KERNEL_SERIES.iter().map(|e| e.name.to_owned()).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache_with(names: &[&str]) -> (tempfile::TempDir, Cache) {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::at(folder.path().to_owned());
        for name in names {
            let at = cache.kernel_folder(name);
            fs::create_dir_all(&at).expect("made");
            fs::write(at.join("vmlinuz"), name).expect("written");
            let note = Cached {
                name: (*name).to_owned(),
                release: format!("{name}.1"),
                package: "p".to_owned(),
                version: "1".to_owned(),
                package_sha256: String::new(),
                sha256: hex_digest(name.as_bytes()),
            };
            fs::write(at.join(KERNEL_NOTE), serde_json::to_vec(&note).expect("text"))
                .expect("written");
        }
        (folder, cache)
    }

    #[test]
    fn newest_is_the_highest_that_was_fetched_and_never_a_pinned_one() {
        let (_folder, cache) = cache_with(&["6.1", "6.12", "7.2", "7.10", "7.2-rt"]);
        let name = |asked: &str| cache.cached_kernel(asked).map(|k| k.name).ok();
        assert_eq!(name("newest").as_deref(), Some("7.10"));
        assert_eq!(name("newest-rt").as_deref(), Some("7.2-rt"));
        assert_eq!(name("7.2").as_deref(), Some("7.2"));
        assert_eq!(name("6.1").as_deref(), Some("6.1"));
        assert_eq!(name("7.3"), None);
    }

    #[test]
    fn a_kernel_that_changed_on_disk_is_refused() {
        let (_folder, cache) = cache_with(&["6.1"]);
        fs::write(cache.kernel_folder("6.1").join("vmlinuz"), "half").expect("written");
        let error = cache.cached_kernel("6.1").expect_err("refused");
        assert!(matches!(error, PackageError::Damaged { .. }), "{error}");
    }

    #[test]
    fn an_unknown_name_says_what_there_is() {
        let (_folder, cache) = cache_with(&[]);
        let error = cache.cached_kernel("fish").expect_err("refused").to_string();
        assert!(error.contains("6.1, 6.12, newest, newest-rt"), "{error}");
        let error = cache.cached_kernel("6.1").expect_err("refused").to_string();
        assert!(error.contains("fairground kernels fetch 6.1"), "{error}");
    }
}
