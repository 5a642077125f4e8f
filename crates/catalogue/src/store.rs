//! The cache of built objects.

use std::cmp::Ordering;
use std::fs;
use std::path::{Path, PathBuf};

use fairground_scratch::unpack::{Budget, unpack_only};
use fairground_scratch::{Folder, put_folder};
use serde::{Deserialize, Serialize};

use crate::objects::{self, Origin};
use crate::recipe::{HeaderPackages, LockedPackage, Recipe};
use crate::registry::PublishedVersion;
use crate::{FetchError, registry};

/// The description of a built object; it exists only beside a whole one.
const NOTE: &str = "source.json";

/// The start of the names of folders for what is being built.
const PREFIX: &str = ".fetch-";
/// The folder of packages that several schedulers need.
const SHARED: &str = "shared";
/// The package with the scx project's headers. It has no object of its own.
pub const HEADERS: &str = "scx_cargo";
/// The kernel's types, an archive in the packages with headers, and their folder in it.
const TYPES_ARCHIVE: &str = "vmlinux.tar.zst";
const TYPES: &str = "vmlinux/arch/x86";
/// libbpf's headers in its package, and where they are put: sources include them as `<bpf/…>`.
const LIBBPF_SOURCES: &str = "libbpf/src";
const LIBBPF_HEADERS: &str = "include/bpf";
/// A package with all that its build needs may unpack so much.
const BUDGET: Budget = Budget { bytes: 1 << 30, members: 50_000 };

/// The cache of built objects: a folder.
#[derive(Clone, Debug)]
pub struct Store {
    root: PathBuf,
}

/// A scheduler that is built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Built {
    /// Its name.
    pub name: String,
    /// Its version in the registry.
    pub version: String,
    /// The object file.
    pub object: PathBuf,
}

/// The description of a built object.
#[derive(Debug, Serialize, Deserialize)]
struct Note {
    package: String,
    version: String,
    /// SHA-256 of the package.
    sha256: String,
    clang: String,
    /// SHA-256 of the object; absent if it was built before this was kept.
    #[serde(default)]
    object_sha256: Option<String>,
}

impl Store {
    /// The cache in a folder.
    pub fn at(root: PathBuf) -> Store {
        Store { root }
    }

    /// The schedulers of which a version is built, sorted by name.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.root).into_iter().flatten().filter_map(Result::ok);
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<_> = names.filter(|name| !self.built(name).is_empty()).collect();
        names.sort();
        names
    }

    /// The built versions of a scheduler, the newest first.
    pub fn built(&self, name: &str) -> Vec<Built> {
        let entries = fs::read_dir(self.root.join(name)).into_iter().flatten();
        let folders = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let mut found: Vec<Built> = folders
            .filter_map(|folder| {
                let note: Note = serde_json::from_slice(&fs::read(folder.join(NOTE)).ok()?).ok()?;
                let object = folder.join(format!("{name}.bpf.o"));
                Some(Built { name: name.to_owned(), version: note.version, object })
            })
            .collect();
        found.sort_by(|a, b| by_version(&b.version, &a.version));
        found
    }

    /// A scheduler that is built: the newest one, or that of a version.
    ///
    /// # Errors
    /// It is not built, or has changed since.
    pub fn cached(&self, name: &str, version: Option<&str>) -> Result<Built, FetchError> {
        let mut built = self.built(name).into_iter();
        let found = built.find(|one| version.is_none_or(|version| one.version == version));
        let found = found.ok_or_else(|| {
            let version = version.map_or(String::new(), |version| format!("@{version}"));
            FetchError::NotFetched { name: format!("{name}{version}") }
        })?;
        verify(&found)?;
        Ok(found)
    }

    /// Downloads and builds a scheduler, the newest version or the one that is asked for, unless it is here. `say` is
    /// told what is being done.
    ///
    /// # Errors
    /// It does not exist, cannot be downloaded or does not compile; the cache is as it was then.
    pub fn fetch(
        &self,
        name: &str,
        version: Option<&str>,
        say: &mut dyn FnMut(&str),
    ) -> Result<Built, FetchError> {
        if let Some(version) = version
            && let Ok(built) = self.cached(name, Some(version))
        {
            return Ok(built);
        }
        let published = registry::version(name, version)?;
        if let Ok(built) = self.cached(name, Some(&published.version)) {
            return Ok(built);
        }
        self.build(name, &published, say)?;
        self.cached(name, Some(&published.version))
    }

    fn build(
        &self,
        name: &str,
        published: &PublishedVersion,
        say: &mut dyn FnMut(&str),
    ) -> Result<(), FetchError> {
        let clang = fairground_policies::find_clang()?;
        let version = published.version.as_str();
        let package = format!("{name} {version}");
        let (work, mut budget) = (self.work()?, BUDGET);
        say(&format!("downloading {package}"));
        let folder = registry::unpack(name, published, work.path(), |_| true, &mut budget)?;
        let recipe = Recipe::read(&package, &folder)?;
        let includes = self.headers(&package, &recipe.headers, &mut budget, say)?;
        let count = recipe.sources.len();
        say(&format!("compiling {count} source{} of {package}", if count == 1 { "" } else { "s" }));
        let made = work.path().join("made");
        fs::create_dir(&made).map_err(FetchError::io(&made))?;
        let object = made.join(format!("{name}.bpf.o"));
        let origin = Origin { package: &package, folder: &folder, includes: &includes };
        objects::build(origin, &recipe.sources, &clang, &object)?;
        let note = Note {
            package: name.to_owned(),
            version: version.to_owned(),
            sha256: published.sha256.clone(),
            clang,
            object_sha256: Some(registry::digest(&read(&object)?)),
        };
        let text = serde_json::to_string_pretty(&note).expect("a note consists of texts");
        fs::write(made.join(NOTE), text + "\n").map_err(FetchError::io(&made))?;
        // One that has changed is replaced.
        let place = self.root.join(name).join(version);
        put_folder(&made, &place).map_err(FetchError::io(&place))
    }

    /// A folder for what is being made.
    fn work(&self) -> Result<Folder, FetchError> {
        fs::create_dir_all(&self.root).map_err(FetchError::io(&self.root))?;
        Folder::within(&self.root, PREFIX).map_err(FetchError::io(&self.root))
    }

    /// Downloads the scx project's headers ([`HEADERS`]) and libbpf's, with which sources of users are compiled; returns
    /// their folders.
    ///
    /// # Errors
    /// As [`Store::fetch`].
    pub fn fetch_headers(
        &self,
        version: Option<&str>,
        say: &mut dyn FnMut(&str),
    ) -> Result<Vec<PathBuf>, FetchError> {
        let version = registry::version(HEADERS, version)?;
        let (package, mut budget) = (format!("{HEADERS} {}", version.version), BUDGET);
        let own = LockedPackage { name: HEADERS, version };
        let folder = self.shared(&own, &mut budget, say)?;
        let packages = HeaderPackages::read(&package, &folder, vec![own])?;
        self.headers(&package, &packages, &mut budget, say)
    }

    /// The folders of the newest headers that are here, the first ones first; `None`: there are none.
    pub fn include_folders(&self) -> Option<Vec<PathBuf>> {
        let newest = |name: &str| {
            let entries = fs::read_dir(self.root.join(SHARED)).ok()?.filter_map(Result::ok);
            let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
            let versions =
                names.filter_map(|of| Some(of.strip_prefix(name)?.strip_prefix('-')?.to_owned()));
            let newest = versions.max_by(|a, b| by_version(a, b))?;
            Some(self.root.join(SHARED).join(format!("{name}-{newest}")))
        };
        let mut folders = scx_folders(&newest(HEADERS)?)?;
        folders.extend(libbpf_folder(&newest("libbpf-sys")?));
        Some(folders)
    }

    /// The folders of headers, the first ones first. libbpf's are included as `<bpf/…>`.
    fn headers(
        &self,
        package: &str,
        packages: &HeaderPackages,
        budget: &mut Budget,
        say: &mut dyn FnMut(&str),
    ) -> Result<Vec<PathBuf>, FetchError> {
        let lacks = |name: &str| FetchError::Recipe {
            package: package.to_owned(),
            problem: format!("{name} has no headers where they are looked for"),
        };
        let mut found = None;
        for locked in &packages.scx {
            found = scx_folders(&self.shared(locked, budget, say)?);
            if found.is_some() {
                break;
            }
        }
        let names: Vec<_> = packages.scx.iter().map(LockedPackage::label).collect();
        let mut folders = found.ok_or_else(|| lacks(&names.join(" or ")))?;
        let libbpf = self.shared(&packages.libbpf, budget, say)?;
        folders.push(libbpf_folder(&libbpf).ok_or_else(|| lacks(&packages.libbpf.label()))?);
        Ok(folders)
    }

    /// The folder of a package that several schedulers need, unpacked once: its headers and its lock file.
    fn shared(
        &self,
        locked: &LockedPackage,
        budget: &mut Budget,
        say: &mut dyn FnMut(&str),
    ) -> Result<PathBuf, FetchError> {
        let LockedPackage { name, version } = locked;
        let folder = self.root.join(SHARED).join(format!("{name}-{}", version.version));
        // One with the archive was made by a version that unpacked it later.
        if folder.is_dir() && !folder.join(TYPES_ARCHIVE).exists() {
            return Ok(folder);
        }
        let label = locked.label();
        say(&format!("downloading {label}"));
        let work = self.work()?;
        let unpacked = registry::unpack(name, version, work.path(), is_header, budget)?;
        let types = unpacked.join(TYPES_ARCHIVE);
        if types.is_file() {
            unpack_only(&types, &unpacked, |path| path.starts_with(TYPES), budget)
                .map_err(FetchError::unpack(&format!("{label}: {TYPES_ARCHIVE}")))?;
            fs::remove_file(&types).map_err(FetchError::io(&types))?;
        }
        let libbpf = unpacked.join(LIBBPF_SOURCES);
        if libbpf.is_dir() {
            put_folder(&libbpf, &unpacked.join(LIBBPF_HEADERS)).map_err(FetchError::io(&libbpf))?;
        }
        put_folder(&unpacked, &folder).map_err(FetchError::io(&folder))?;
        Ok(folder)
    }
}

/// Whether a file of a package with headers is kept.
fn is_header(path: &Path) -> bool {
    let below: PathBuf = path.components().skip(1).collect();
    let is_text = below.extension().is_some_and(|end| end == "h");
    (is_text && ["bpf_h", LIBBPF_SOURCES].iter().any(|folder| below.starts_with(folder)))
        || below == Path::new(TYPES_ARCHIVE)
        || below == Path::new("Cargo.lock")
}

/// The folders of headers in a package of the scx project; `None`: it has none. The kernel's types have had three places.
fn scx_folders(package: &Path) -> Option<Vec<PathBuf>> {
    let own = package.join("bpf_h");
    let types = [package.join(TYPES), own.join("arch/x86"), own.join("vmlinux")];
    let types = types.into_iter().find(|folder| folder.join("vmlinux.h").is_file())?;
    own.is_dir().then(|| vec![types, own.clone(), own.join("bpf-compat")])
}

/// The folder of libbpf's headers in its package, as `<bpf/…>`.
fn libbpf_folder(package: &Path) -> Option<PathBuf> {
    let folder = package.join("include");
    package.join(LIBBPF_HEADERS).join("bpf_helpers.h").is_file().then_some(folder)
}

/// Compares an object with the checksum that it had when it was built.
fn verify(built: &Built) -> Result<(), FetchError> {
    let folder = built.object.parent().unwrap_or(Path::new("."));
    let note: Option<Note> = serde_json::from_slice(&read(&folder.join(NOTE))?).ok();
    let Some(expected) = note.and_then(|note| note.object_sha256) else { return Ok(()) };
    match registry::digest(&read(&built.object)?) == expected {
        true => Ok(()),
        false => Err(FetchError::Changed {
            path: built.object.clone(),
            name: format!("{}@{}", built.name, built.version),
        }),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, FetchError> {
    fs::read(path).map_err(FetchError::io(path))
}

/// The order of versions: their numbers, then their texts.
pub fn by_version(a: &str, b: &str) -> Ordering {
    let numbers = |text: &str| -> Vec<u64> {
        text.split(['.', '-', '+']).map_while(|part| part.parse().ok()).collect()
    };
    numbers(a).cmp(&numbers(b)).then_with(|| a.cmp(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_built_version_counts_unless_one_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::at(folder.path().to_owned());
        let cached = |version| store.cached("scx_lavd", version).map(|built| built.version);
        let text = cached(None).expect_err("nothing is built").to_string();
        assert_eq!(text, "scx_lavd is not here: run `fairground sched fetch scx_lavd`");
        for version in ["1.9.0", "1.10.0"] {
            let note = Note {
                package: "scx_lavd".to_owned(),
                version: version.to_owned(),
                sha256: String::new(),
                clang: String::new(),
                object_sha256: (version == "1.9.0").then(|| registry::digest(b"an object")),
            };
            let place = folder.path().join("scx_lavd").join(version);
            fs::create_dir_all(&place).expect("a folder");
            fs::write(place.join("scx_lavd.bpf.o"), "an object").expect("an object");
            fs::write(place.join(NOTE), serde_json::to_string(&note).expect("JSON"))
                .expect("a note");
        }
        assert_eq!(cached(None).ok().as_deref(), Some("1.10.0"));
        assert_eq!(cached(Some("1.9.0")).ok().as_deref(), Some("1.9.0"));
        let object = folder.path().join("scx_lavd/1.9.0/scx_lavd.bpf.o");
        fs::write(object, "another one").expect("an object");
        let text = cached(Some("1.9.0")).expect_err("refused").to_string();
        assert!(text.contains("1.9.0/scx_lavd.bpf.o has changed"), "{text}");
        assert!(text.contains("fetch scx_lavd@1.9.0"), "{text}");
        assert!(cached(Some("2.0.0")).is_err() && store.cached("lavd", None).is_err());
    }
}
