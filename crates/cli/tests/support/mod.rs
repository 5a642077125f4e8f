//! What the tests of the binary have in common.

#![allow(dead_code)] // Each test file uses a part of it.

pub(crate) mod browser;
pub(crate) mod console;
pub(crate) mod desk;
pub(crate) mod pages;
pub(crate) mod registry;
pub(crate) mod terminal;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use fairground_realkernel::packages::Cache;
use fairground_testing::unavailable;
use tempfile::TempDir;

/// The output of the binary under test.
pub(crate) fn fairground(arguments: &[&str]) -> Output {
    run(Path::new(env!("CARGO_BIN_EXE_fairground")), arguments)
}

/// The program, to which signals can be sent: a test may run where they are ignored (in the background of a shell,
/// under `nohup`), and what is ignored stays ignored.
pub(crate) fn interruptible() -> Command {
    let mut command = Command::new("env");
    command.arg("--default-signal=INT,TERM,HUP").arg(env!("CARGO_BIN_EXE_fairground"));
    command
}

/// The name of a kernel with sched_ext that a virtual machine can boot here; `None`, with the reason noted, where
/// there is none.
pub(crate) fn bootable() -> Option<&'static str> {
    const KERNEL: &str = "newest";
    let found = Cache::open().and_then(|cache| {
        cache.cached_kernel(KERNEL)?;
        cache.cached_qemu()
    });
    match found {
        Ok(_) => Some("vm:newest"),
        Err(error) => {
            unavailable("kernel", error);
            None
        }
    }
}

/// The release build that `make test` names; `None`, with the reason noted, where it names none.
pub(crate) fn release() -> Option<PathBuf> {
    const VARIABLE: &str = "FAIRGROUND_RELEASE_BINARY";
    let release = std::env::var_os(VARIABLE).map(PathBuf::from);
    if release.is_none() {
        unavailable("release", format!("{VARIABLE} names no release build (`make test` sets it)"));
    }
    release
}

/// The output of any build of the binary.
pub(crate) fn run(binary: &Path, arguments: &[&str]) -> Output {
    Command::new(binary)
        .args(arguments)
        .env_remove("FAIRGROUND_SEED")
        // Texts are looked for in one line.
        .env("COLUMNS", "400")
        .output()
        .expect("the binary starts")
}

/// What the program said on stderr, for a run that must end with the exit code for errors.
pub(crate) fn refusal(arguments: &[&str]) -> String {
    let output = fairground(arguments);
    let said = String::from_utf8(output.stderr).expect("stderr is UTF-8");
    assert_eq!(output.status.code(), Some(2), "{arguments:?} ended with {}: {said}", output.status);
    assert!(output.stdout.is_empty(), "{arguments:?}: data on stdout beside an error");
    said
}

/// What the program printed on stdout, for a run that must succeed.
pub(crate) fn success(arguments: &[&str]) -> String {
    let output = fairground(arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{arguments:?} ended with {}: {said}", output.status);
    String::from_utf8(output.stdout).expect("stdout is UTF-8")
}

/// A directory with files of a test.
#[derive(Debug)]
pub(crate) struct Files(TempDir);

impl Files {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().expect("a temporary directory"))
    }

    /// Writes a file and returns its path as an argument.
    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::write(&path, bytes).expect("the file is written");
        path.display().to_string()
    }

    /// A path in the directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Compiles BPF C with these flags; the source may include the headers of fairground's own schedulers.
    pub(crate) fn compile(&self, name: &str, source: &str, flags: &[&str]) -> String {
        for (header, text) in fairground_policies::HEADERS {
            self.write(header, text);
        }
        let source = self.write(&format!("{name}.bpf.c"), source);
        let object = self.path(&format!("{name}.bpf.o"));
        let clang = fairground_policies::find_clang().expect("clang is installed");
        let output = Command::new(clang)
            .args(flags)
            .arg("-I")
            .arg(self.0.path())
            .args(["-c", &source, "-o"])
            .arg(&object)
            .output()
            .expect("clang starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        object.display().to_string()
    }
}
