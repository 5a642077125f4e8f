//! The C compiler for schedulers. Shared by the build script and the library.

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;
use std::process::Command;

/// The environment variable that names the compiler, instead of a search.
pub const CLANG_VARIABLE: &str = "FAIRGROUND_CLANG";

/// The flags that compile a `.bpf.c` to an object that a kernel loads: little-endian BPF, instruction set 3 (the
/// newest that every kernel with sched_ext runs), BTF, no path of the build machine in the object.
pub const CLANG_FLAGS: &[&str] = &[
    "-target",
    "bpfel",
    "-mcpu=v3",
    "-g",
    "-O2",
    "-Wall",
    "-ffile-prefix-map=./=",
    "-fdebug-compilation-dir=.",
];

/// Candidates, best first. Versions before 16 lack 64-bit enumerations in BTF.
const CANDIDATES: &[&str] = &["clang-19", "clang-20", "clang-18", "clang-17", "clang-16", "clang"];

/// The oldest usable major version.
const OLDEST: u32 = 16;

/// The path of the header from `libbpf-dev` that every scheduler includes, below the root.
const LIBBPF_HEADER: &str = "usr/include/bpf/bpf_helpers.h";

/// A missing tool, and the package to install.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingTool {
    problem: String,
}

impl fmt::Display for MissingTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)
    }
}

impl std::error::Error for MissingTool {}

/// The compiler: `$FAIRGROUND_CLANG`, else the first of clang-19, 20, 18, 17, 16 and clang that is new enough.
///
/// # Errors
/// [`MissingTool`] names what to install.
pub fn find_clang() -> Result<String, MissingTool> {
    let named = std::env::var(CLANG_VARIABLE).ok();
    let path = std::env::var_os("PATH").unwrap_or_default();
    find_clang_on(&path, named.as_deref()).map(|(program, _)| program)
}

/// The compiler and its major version: `named`, else the best in the folders of `path`.
///
/// # Errors
/// [`MissingTool`] names what to install.
pub fn find_clang_on(path: &OsStr, named: Option<&str>) -> Result<(String, u32), MissingTool> {
    if let Some(named) = named {
        return match major_version(named, path) {
            Some(version) if version >= OLDEST => Ok((named.to_owned(), version)),
            Some(version) => Err(MissingTool {
                problem: format!(
                    "{CLANG_VARIABLE}={named} is clang {version}; schedulers need {OLDEST} or newer"
                ),
            }),
            None => Err(MissingTool {
                problem: format!("{CLANG_VARIABLE}={named} is not a clang that runs"),
            }),
        };
    }
    let version = |name: &str| major_version(name, path).filter(|version| *version >= OLDEST);
    let usable = CANDIDATES.iter().find_map(|name| Some(((*name).to_owned(), version(name)?)));
    usable.ok_or_else(|| MissingTool {
        problem: format!(
            "no clang of version {OLDEST} or newer: it compiles the schedulers. \
             Install it (Debian: apt-get install clang-19), or name one in {CLANG_VARIABLE}"
        ),
    })
}

/// Checks that libbpf's headers are installed.
///
/// # Errors
/// [`MissingTool`] names what to install.
pub fn find_headers() -> Result<(), MissingTool> {
    find_headers_below(Path::new("/"))
}

/// Checks that libbpf's headers are installed below `root`.
///
/// # Errors
/// [`MissingTool`] names what to install.
pub fn find_headers_below(root: &Path) -> Result<(), MissingTool> {
    let header = root.join(LIBBPF_HEADER);
    if header.exists() {
        return Ok(());
    }
    Err(MissingTool {
        problem: format!(
            "{} is missing: install libbpf's headers (Debian: apt-get install libbpf-dev)",
            header.display()
        ),
    })
}

fn major_version(clang: &str, path: &OsStr) -> Option<u32> {
    let output = Command::new(clang).arg("-dumpversion").env("PATH", path).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.split('.').next()?.trim().parse().ok()
}
