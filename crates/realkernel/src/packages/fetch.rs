//! Fetches packages: to a temporary folder of the cache, verified, then put in its place at once. One process at a
//! time.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use fairground_scratch::unpack::{Budget, Unpacker};
use fairground_scratch::{Folder, put_folder, write_whole};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use serde::Serialize;

use super::apt::{self, Archive, Package};
use super::cache::{CONFIG, Cache, Cached, CachedQemu, KERNEL_NOTE, QEMU_NOTE, find};
use super::kernel::{hex_digest, is_bzimage};
use super::qemu::PROGRAM;
use super::series::{KernelPackage, KernelSeries};
use super::{Kernel, PackageError, Qemu, make_folder, manifest, read, write};

/// The suites of QEMU and its libraries: one release, so that they are compatible.
const QEMU_SUITES: [&str; 1] = ["trixie"];
const QEMU_PACKAGE: &str = "qemu-system-x86";
/// A kernel's package, or QEMU with its libraries, may have so much.
const BUDGET: Budget = Budget { bytes: 8 << 30, members: 200_000 };

impl Cache {
    /// A kernel by its name; fetches it if necessary. Calls `report` with progress messages.
    ///
    /// # Errors
    ///
    /// There is no such kernel, or it cannot be fetched.
    pub fn kernel(&self, name: &str, report: &mut dyn FnMut(&str)) -> Result<Kernel, PackageError> {
        match self.cached_kernel(name) {
            Err(PackageError::NotFetched { .. }) => self.fetch_kernel(name, report),
            other => other,
        }
    }

    /// Fetches the latest version of a kernel, and what a fetched one lacks: its configuration.
    ///
    /// # Errors
    ///
    /// There is no such kernel, or it cannot be fetched.
    pub fn fetch_kernel(
        &self,
        name: &str,
        report: &mut dyn FnMut(&str),
    ) -> Result<Kernel, PackageError> {
        let cached = kernel(self, &find(name)?, name, report)?;
        self.load(&cached)
    }

    /// As [`Cache::cached_qemu`], but fetches QEMU if necessary.
    ///
    /// # Errors
    ///
    /// It cannot be fetched.
    pub fn qemu(&self, report: &mut dyn FnMut(&str)) -> Result<Qemu, PackageError> {
        match self.cached_qemu() {
            Err(PackageError::NoQemu { .. }) => {
                qemu(self, report)?;
                self.cached_qemu()
            }
            other => other,
        }
    }
}

/// Fetches the kernel of a series; its version determines its name.
fn kernel(
    cache: &Cache,
    series: &KernelSeries,
    requested: &str,
    report: &mut dyn FnMut(&str),
) -> Result<Cached, PackageError> {
    let _lock = lock(cache, report)?;
    let archive = update(cache, series.suites, report)?;
    let names = archive.names("linux-")?;
    let chosen = series.choose(&names).ok_or_else(|| PackageError::Gone {
        name: requested.to_owned(),
        newest: format!("no such kernel in Debian's {}", series.suites.join(", ")),
    })?;
    let name = series.cache_name(&chosen.series);
    if requested != series.name && requested != name {
        let newest = format!("Debian's {} has {name} now", series.suites.join(", "));
        return Err(PackageError::Gone { name: requested.to_owned(), newest });
    }
    let package = archive.package(&chosen.package)?;
    if let Some(here) = is_here(cache, &name, &package.sha256) {
        let folder = cache.kernel_folder(&name);
        if !folder.join(CONFIG).is_file() {
            report(&format!("the kernel {name} is here without its configuration"));
            let scratch = scratch(cache)?;
            let source = Source { archive: &archive, names: &names, chosen: &chosen };
            source.complete(&folder, scratch.path(), report)?;
            manifest::write(&folder)?;
            archive.clean();
        }
        return Ok(here);
    }
    let scratch = scratch(cache)?;
    let source = Source { archive: &archive, names: &names, chosen: &chosen };
    // Since 7.0, the files are in the `binary` package, in /usr/lib/modules/RELEASE.
    let unpacked = source.unpacked(&package, &scratch.path().join("image"), report)?;
    let made = scratch.path().join("made");
    let sha256 = lay_out(&unpacked, &chosen, &made)?;
    if !made.join(CONFIG).is_file() {
        source.complete(&made, scratch.path(), report)?;
    }
    let cached = Cached {
        name: name.clone(),
        release: chosen.release,
        package: package.name,
        version: package.version,
        package_sha256: package.sha256,
        sha256,
    };
    write_note(&made.join(KERNEL_NOTE), &cached)?;
    manifest::write(&made)?;
    put_in_place(&made, &cache.kernel_folder(&name))?;
    archive.clean();
    Ok(cached)
}

/// A kernel in Debian's archive.
struct Source<'a> {
    archive: &'a Archive,
    /// The names of the archive's packages of kernels.
    names: &'a [String],
    chosen: &'a KernelPackage,
}

impl Source<'_> {
    /// Downloads a package to `scratch`, verifies it, and unpacks its kernel and configuration; returns their folder.
    fn unpacked(
        &self,
        package: &Package,
        scratch: &Path,
        report: &mut dyn FnMut(&str),
    ) -> Result<PathBuf, PackageError> {
        report(&format!("fetching {} {}", package.name, package.version));
        make_folder(scratch)?;
        let deb = self.archive.download(&package.name, scratch)?;
        if hex_digest(&read(&deb)?) != package.sha256 {
            return Err(PackageError::Damaged { path: deb });
        }
        let (unpacked, mut budget) = (scratch.join("unpacked"), BUDGET);
        let mut unpacker = Unpacker::new(&unpacked, &mut budget).only(is_of_kernel);
        apt::unpack(&deb, &mut unpacker)?;
        finish(unpacker)?;
        Ok(unpacked)
    }

    /// Adds the configuration to the kernel in `folder` from the package that has it (since 7.0). Reports it when
    /// there is none.
    fn complete(
        &self,
        folder: &Path,
        scratch: &Path,
        report: &mut dyn FnMut(&str),
    ) -> Result<(), PackageError> {
        let release = &self.chosen.release;
        let without = || {
            format!(
                "Debian has no configuration of {release}: schedulers that read it cannot be loaded"
            )
        };
        let Some(name) = self.chosen.config_package(self.names) else {
            report(&without());
            return Ok(());
        };
        let package = self.archive.package(&name)?;
        let unpacked = self.unpacked(&package, &scratch.join("config"), report)?;
        let Some(config) = config_of(&unpacked, release) else {
            report(&without());
            return Ok(());
        };
        // Complete or absent: the kernel may be in use meanwhile.
        let (target, text) = (folder.join(CONFIG), read(&config)?);
        write_whole(&target, |out| out.write_all(&text))
            .map_err(PackageError::io(format!("write {}", target.display())))
    }
}

/// The configuration among the files of a package.
fn config_of(unpacked: &Path, release: &str) -> Option<PathBuf> {
    let candidates = [
        unpacked.join("usr/lib/modules").join(release).join("config"),
        unpacked.join("boot").join(format!("config-{release}")),
        unpacked.join("lib/modules").join(release).join("config"),
    ];
    candidates.into_iter().find(|path| path.is_file())
}

/// Fetches QEMU with all dependencies, including the C library.
fn qemu(cache: &Cache, report: &mut dyn FnMut(&str)) -> Result<(), PackageError> {
    let _lock = lock(cache, report)?;
    let archive = update(cache, &QEMU_SUITES, report)?;
    let package = archive.package(QEMU_PACKAGE)?;
    report(&format!("fetching {} {} and its libraries", package.name, package.version));
    let debs = archive.download_closure(QEMU_PACKAGE)?;
    let scratch = scratch(cache)?;
    let made = scratch.path().join("made");
    let mut budget = BUDGET;
    let mut unpacker = Unpacker::new(&made, &mut budget).only(is_of_qemu);
    debs.iter().try_for_each(|deb| apt::unpack(deb, &mut unpacker))?;
    finish(unpacker)?;
    let libraries = library_folders(&made);
    let note = CachedQemu { version: package.version, libraries };
    // Check that it starts from its temporary folder: its paths are relative.
    Qemu::fetched(&made, &note.libraries)?;
    write_note(&made.join(QEMU_NOTE), &note)?;
    manifest::write(&made)?;
    put_in_place(&made, &cache.qemu_folder())?;
    archive.clean();
    Ok(())
}

/// Whether a file of a package is a kernel or its configuration.
fn is_of_kernel(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    ["vmlinuz", "config"].iter().any(|start| name.starts_with(start))
}

/// Whether a file of a package is QEMU's program, its firmware, or a library.
fn is_of_qemu(path: &Path) -> bool {
    let folders = ["usr/share/qemu", "usr/share/seabios"];
    path == Path::new("usr/bin").join(PROGRAM)
        || folders.iter().any(|folder| path.starts_with(folder))
        || path.iter().any(|part| part == "lib" || part == "lib64")
}

fn finish(unpacker: Unpacker<'_>) -> Result<(), PackageError> {
    unpacker.finish().map(drop).map_err(PackageError::io("make the links of a package".to_owned()))
}

/// The cached kernel `name`, if it is complete and from the package with this digest.
fn is_here(cache: &Cache, name: &str, package_sha256: &str) -> Option<Cached> {
    let here = cache.kernels().into_iter().find(|k| k.name == name)?;
    (here.package_sha256 == package_sha256 && cache.cached_kernel(name).is_ok()).then_some(here)
}

fn update(
    cache: &Cache,
    suites: &[&str],
    report: &mut dyn FnMut(&str),
) -> Result<Archive, PackageError> {
    report(&format!("asking Debian's archive about {}", suites.join(", ")));
    Archive::update(cache.root().join("apt").join(suites.join("+")), suites)
}

/// Moves the image and the configuration to their names in the cache; returns the image's digest.
fn lay_out(unpacked: &Path, chosen: &KernelPackage, made: &Path) -> Result<String, PackageError> {
    let release = &chosen.release;
    let modules = unpacked.join("usr/lib/modules").join(release);
    let modules_before = unpacked.join("lib/modules").join(release);
    let boot = unpacked.join("boot");
    let first = |paths: [PathBuf; 3]| paths.into_iter().find(|p| p.is_file());
    let image = first([
        modules.join("vmlinuz"),
        boot.join(format!("vmlinuz-{release}")),
        modules_before.join("vmlinuz"),
    ]);
    let lost = || PackageError::NoKernel { path: PathBuf::from(&chosen.package) };
    let bytes = read(&image.ok_or_else(lost)?)?;
    if !is_bzimage(&bytes) {
        return Err(lost());
    }
    make_folder(made)?;
    write(&made.join("vmlinuz"), &bytes)?;
    if let Some(config) = config_of(unpacked, release) {
        write(&made.join(CONFIG), &read(&config)?)?;
    }
    Ok(hex_digest(&bytes))
}

/// The folders below `root` that contain shared libraries, relative to it.
fn library_folders(root: &Path) -> Vec<String> {
    const CANDIDATES: [&str; 6] = [
        "usr/lib/x86_64-linux-gnu",
        "lib/x86_64-linux-gnu",
        "usr/lib64",
        "lib64",
        "usr/lib",
        "usr/lib/x86_64-linux-gnu/pulseaudio",
    ];
    let holds_libraries = |folder: &&&str| {
        let entries = fs::read_dir(root.join(folder)).into_iter().flatten().filter_map(Result::ok);
        entries.into_iter().any(|e| e.file_name().to_string_lossy().contains(".so"))
    };
    CANDIDATES.iter().filter(holds_libraries).map(|f| (*f).to_owned()).collect()
}

/// Puts a complete folder in its place; replaces an existing one.
fn put_in_place(made: &Path, target: &Path) -> Result<(), PackageError> {
    put_folder(made, target)
        .map_err(PackageError::io(format!("put what was fetched into {}", target.display())))
}

/// A temporary folder in the cache, removed when dropped. Removes those of killed processes first.
fn scratch(cache: &Cache) -> Result<Folder, PackageError> {
    const PREFIX: &str = ".fetch-";
    let root = cache.root();
    // The lock is held, so no living process uses one.
    for entry in fs::read_dir(root).into_iter().flatten().filter_map(Result::ok) {
        if entry.file_name().to_string_lossy().starts_with(PREFIX) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    Folder::within(root, PREFIX)
        .map_err(PackageError::io(format!("make a folder in {}", root.display())))
}

/// Takes the cache's lock; reports and waits if another process holds it.
fn lock(cache: &Cache, report: &mut dyn FnMut(&str)) -> Result<Flock<File>, PackageError> {
    let path = cache.root().join("lock");
    let fail = || PackageError::io(format!("lock {}", path.display()));
    fs::create_dir_all(cache.root()).map_err(fail())?;
    let file = File::create(&path).map_err(fail())?;
    match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(lock) => Ok(lock),
        Err((file, Errno::EWOULDBLOCK)) => {
            report("waiting for another fairground process that is fetching");
            Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, e)| fail()(e.into()))
        }
        Err((_, error)) => Err(fail()(error.into())),
    }
}

/// Writes the description of what was fetched.
fn write_note(path: &Path, note: &impl Serialize) -> Result<(), PackageError> {
    let text =
        serde_json::to_vec_pretty(note).expect("a note has only fields of text and lists of it");
    write(path, text)
}
