//! What a package says of its own build: which sources make its object, and which versions of the shared headers.

use std::fs;
use std::path::Path;

use toml::Table;

use crate::FetchError;

/// Sources of one object at most.
const SOURCES_MAX: usize = 256;

/// A package that the build needs, as the lock file names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Locked {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) sha256: String,
}

/// How an object is built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Recipe {
    /// Paths below the package's folder, sorted.
    pub(crate) sources: Vec<String>,
    /// The headers of the scx project, with the kernel's types.
    pub(crate) headers: Locked,
    /// libbpf's headers.
    pub(crate) libbpf: Locked,
}

impl Recipe {
    /// Reads what `build.rs` and `Cargo.lock` of an unpacked package say.
    pub(crate) fn read(package: &str, folder: &Path) -> Result<Recipe, FetchError> {
        let wrong = |problem: String| FetchError::Recipe { package: package.to_owned(), problem };
        let read = |name: &str| {
            let path = folder.join(name);
            fs::read_to_string(&path).map_err(FetchError::io(&path))
        };
        let sources = sources(&read("build.rs")?);
        if sources.is_empty() || sources.len() > SOURCES_MAX {
            let count = sources.len();
            return Err(wrong(format!("its build.rs names {count} sources that end in `.bpf.c`")));
        }
        let lock: Table = read("Cargo.lock")?
            .parse()
            .map_err(|error: toml::de::Error| wrong(format!("Cargo.lock: {error}")))?;
        let need = |name: &str| {
            locked(&lock, name).ok_or_else(|| wrong(format!("its Cargo.lock has no `{name}`")))
        };
        Ok(Recipe { sources, headers: need("scx_cargo")?, libbpf: need("libbpf-sys")? })
    }
}

/// The string literals of a build script that name sources.
fn sources(script: &str) -> Vec<String> {
    let literals = script.split('"').skip(1).step_by(2);
    let is_source = |text: &&str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
        text.ends_with(".bpf.c") && text.chars().all(plain) && !text.contains("..")
    };
    let mut found: Vec<String> = literals.filter(is_source).map(str::to_owned).collect();
    found.sort();
    found.dedup();
    found
}

fn locked(lock: &Table, wanted: &str) -> Option<Locked> {
    let packages = lock.get("package")?.as_array()?.iter().filter_map(|one| one.as_table());
    let text = |package: &Table, key: &str| Some(package.get(key)?.as_str()?.to_owned());
    let named = |one: &&Table| one.get("name").and_then(|name| name.as_str()) == Some(wanted);
    packages.rev().filter(named).find_map(|one| {
        let (version, sha256) = (text(one, "version")?, text(one, "checksum")?);
        Some(Locked { name: wanted.to_owned(), version, sha256 })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_those_that_the_build_script_names() {
        let script = r#"fn main() { b.enable_intf("src/bpf/intf.h", "bpf_intf.rs")
            .enable_skel("src/bpf/main.bpf.c", "bpf").add_source("src/bpf/lib/arena.bpf.c")
            .add_source("../outside.bpf.c").add_source("src/bpf/main.bpf.c"); }"#;
        assert_eq!(sources(script), ["src/bpf/lib/arena.bpf.c", "src/bpf/main.bpf.c"]);
    }

    #[test]
    fn a_lock_file_has_versions_and_checksums() {
        let lock = "[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nchecksum = \"ff\"\n\
                    [[package]]\nname = \"local\"\nversion = \"2.0.0\"\n";
        let lock: Table = lock.parse().expect("TOML");
        let (name, version, sha256) = ("a".into(), "1.0.0".into(), "ff".into());
        assert_eq!(locked(&lock, "a"), Some(Locked { name, version, sha256 }));
        assert_eq!((locked(&lock, "local"), locked(&lock, "b")), (None, None));
    }
}
