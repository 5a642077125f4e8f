//! The cache of built objects.

use std::cmp::Ordering;
use std::fs;
use std::path::{Path, PathBuf};

use fairground_scratch::{Folder, put_folder};
use serde::{Deserialize, Serialize};

use crate::objects::{self, Folders};
use crate::recipe::{Locked, Recipe};
use crate::{Entry, FetchError, find, registry};

/// What describes a built object; it exists only beside a whole one.
const NOTE: &str = "source.json";

/// The start of the names of folders for what is being built.
const PREFIX: &str = ".fetch-";

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
    /// There is no such entry, or it is not built.
    pub fn cached(&self, name: &str, version: Option<&str>) -> Result<Built, FetchError> {
        find(name)?;
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
        let entry = find(name)?;
        if let Some(version) = version
            && let Ok(built) = self.cached(name, Some(version))
        {
            return Ok(built);
        }
        let published = registry::version(name, version)?;
        if let Ok(built) = self.cached(name, Some(&published.vers)) {
            return Ok(built);
        }
        self.build(entry, &published, say)?;
        self.cached(name, Some(&published.vers))
    }

    fn build(
        &self,
        entry: &Entry,
        published: &registry::Published,
        say: &mut dyn FnMut(&str),
    ) -> Result<(), FetchError> {
        let clang = fairground_policies::find_clang()?;
        let (name, version) = (entry.name, published.vers.as_str());
        let package = format!("{name} {version}");
        fs::create_dir_all(&self.root).map_err(FetchError::io(&self.root))?;
        let work = Folder::within(&self.root, PREFIX).map_err(FetchError::io(&self.root))?;
        say(&format!("downloading {package}"));
        let folder = registry::unpack(name, version, &published.cksum, work.path())?;
        let recipe = Recipe::read(&package, &folder)?;
        let headers = self.headers(&recipe.headers, say)?;
        let libbpf = self.shared(&recipe.libbpf, say)?;
        let count = recipe.sources.len();
        say(&format!("compiling {count} source{} of {package}", if count == 1 { "" } else { "s" }));
        let made = work.path().join("made");
        fs::create_dir(&made).map_err(FetchError::io(&made))?;
        let object = made.join(format!("{name}.bpf.o"));
        let folders = Folders { package: &folder, headers: &headers, libbpf: &libbpf };
        objects::build(&package, &recipe, folders, &clang, &object)?;
        let note = Note {
            package: name.to_owned(),
            version: version.to_owned(),
            sha256: published.cksum.clone(),
            clang,
            object_sha256: Some(registry::digest(&read(&object)?)),
        };
        let text = serde_json::to_string_pretty(&note).expect("a note consists of texts");
        fs::write(made.join(NOTE), text + "\n").map_err(FetchError::io(&made))?;
        // One that has changed is replaced.
        let place = self.root.join(name).join(version);
        put_folder(&made, &place).map_err(FetchError::io(&place))
    }

    /// The shared headers of the scx project, with the kernel's types unpacked.
    fn headers(&self, locked: &Locked, say: &mut dyn FnMut(&str)) -> Result<PathBuf, FetchError> {
        let folder = self.shared(locked, say)?;
        if !folder.join("vmlinux").is_dir() {
            let work = Folder::within(&self.root, PREFIX).map_err(FetchError::io(&self.root))?;
            registry::untar(&folder.join("vmlinux.tar.zst"), work.path())?;
            self.publish(&work.path().join("vmlinux"), &folder.join("vmlinux"))?;
        }
        Ok(folder)
    }

    /// The folder of a package that several schedulers need, unpacked once.
    fn shared(&self, locked: &Locked, say: &mut dyn FnMut(&str)) -> Result<PathBuf, FetchError> {
        let Locked { name, version, sha256 } = locked;
        let folder = self.root.join("shared").join(format!("{name}-{version}"));
        if !folder.is_dir() {
            say(&format!("downloading {name} {version}"));
            let work = Folder::within(&self.root, PREFIX).map_err(FetchError::io(&self.root))?;
            let unpacked = registry::unpack(name, version, sha256, work.path())?;
            self.publish(&unpacked, &folder)?;
        }
        Ok(folder)
    }

    /// Moves a whole folder to its place; one that another process has put there meanwhile stays.
    fn publish(&self, made: &Path, place: &Path) -> Result<(), FetchError> {
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent).map_err(FetchError::io(parent))?;
        }
        match fs::rename(made, place) {
            Err(_) if place.is_dir() => Ok(()),
            result => result.map_err(FetchError::io(place)),
        }
    }
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
fn by_version(a: &str, b: &str) -> Ordering {
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
