//! How a package is built, from its `build.rs` and `Cargo.lock`: the sources of its object, and the packages with the
//! headers that they include.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use toml::Table;

use crate::FetchError;
use crate::registry::{PublishedVersion, check_version};

/// Sources of one object at most.
const SOURCES_MAX: usize = 256;
/// Bytes of a package's `build.rs` or `Cargo.lock` at most.
const TEXT_BYTES_MAX: u64 = 4 << 20;
/// The packages that have had the scx project's headers, the latest first.
const HEADERS: [&str; 2] = ["scx_cargo", "scx_utils"];
/// The package with libbpf's headers.
const LIBBPF: &str = "libbpf-sys";

/// A package that the build needs, as the lock file names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LockedPackage {
    pub(crate) name: &'static str,
    pub(crate) version: PublishedVersion,
}

impl LockedPackage {
    pub(crate) fn label(&self) -> String {
        format!("{} {}", self.name, self.version.version)
    }
}

/// How an object is built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Recipe {
    /// Paths below the package's folder, sorted.
    pub(crate) sources: Vec<String>,
    pub(crate) headers: HeaderPackages,
}

/// The packages with the headers that sources include.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HeaderPackages {
    /// Packages of which the first one that has any has the headers of the scx project, with the kernel's types.
    pub(crate) scx: Vec<LockedPackage>,
    pub(crate) libbpf: LockedPackage,
}

impl Recipe {
    /// Reads what `build.rs` and `Cargo.lock` of an unpacked package say.
    pub(crate) fn read(package: &str, folder: &Path) -> Result<Recipe, FetchError> {
        let sources = sources(&read(package, folder, "build.rs")?);
        if sources.is_empty() || sources.len() > SOURCES_MAX {
            let count = sources.len();
            let problem = format!("its build.rs names {count} sources that end in `.bpf.c`");
            return Err(FetchError::Recipe { package: package.to_owned(), problem });
        }
        Ok(Recipe { sources, headers: HeaderPackages::read(package, folder, Vec::new())? })
    }
}

impl HeaderPackages {
    /// Reads `Cargo.lock` of an unpacked package. `scx` are looked at before those that it names.
    pub(crate) fn read(
        package: &str,
        folder: &Path,
        mut scx: Vec<LockedPackage>,
    ) -> Result<HeaderPackages, FetchError> {
        let wrong = |problem: String| FetchError::Recipe { package: package.to_owned(), problem };
        let lock: Table = read(package, folder, "Cargo.lock")?
            .parse()
            .map_err(|error: toml::de::Error| wrong(format!("Cargo.lock: {error}")))?;
        for name in HEADERS {
            scx.extend(locked(package, &lock, name)?);
        }
        let lacks = |name: &str| wrong(format!("its Cargo.lock has no `{name}`"));
        if scx.is_empty() {
            return Err(lacks(&HEADERS.join("` and no `")));
        }
        let libbpf = locked(package, &lock, LIBBPF)?.ok_or_else(|| lacks(LIBBPF))?;
        Ok(HeaderPackages { scx, libbpf })
    }
}

fn read(package: &str, folder: &Path, name: &str) -> Result<String, FetchError> {
    let path = folder.join(name);
    let mut text = String::new();
    let file = File::open(&path).map_err(FetchError::io(&path))?;
    file.take(TEXT_BYTES_MAX + 1).read_to_string(&mut text).map_err(FetchError::io(&path))?;
    match text.len() as u64 > TEXT_BYTES_MAX {
        false => Ok(text),
        true => Err(FetchError::Recipe {
            package: package.to_owned(),
            problem: format!("its {name} has more than {TEXT_BYTES_MAX} bytes"),
        }),
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

fn locked(
    package: &str,
    lock: &Table,
    wanted: &'static str,
) -> Result<Option<LockedPackage>, FetchError> {
    let packages = lock.get("package").and_then(|list| list.as_array());
    let packages = packages.into_iter().flatten().filter_map(|one| one.as_table());
    let text = |package: &Table, key: &str| Some(package.get(key)?.as_str()?.to_owned());
    let named = |one: &&Table| one.get("name").and_then(|name| name.as_str()) == Some(wanted);
    let found = packages
        .rev()
        .filter(named)
        .find_map(|one| Some(PublishedVersion::of(text(one, "version")?, text(one, "checksum")?)));
    let Some(version) = found else { return Ok(None) };
    check_version(&format!("{package}: its Cargo.lock: {wanted}"), &version.version)?;
    Ok(Some(LockedPackage { name: wanted, version }))
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
        let version = |name| locked("p", &lock, name).expect("plain").map(|one| one.version);
        assert_eq!(version("a"), Some(PublishedVersion::of("1.0.0".into(), "ff".into())));
        assert_eq!((version("local"), version("b")), (None, None));
        let hostile = "[[package]]\nname = \"a\"\nversion = \"x/../../..\"\nchecksum = \"ff\"\n";
        let hostile: Table = hostile.parse().expect("TOML");
        let text = locked("p", &hostile, "a").expect_err("no version").to_string();
        assert!(text.contains("`x/../../..` is no version"), "{text}");
    }
}
