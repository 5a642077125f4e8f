//! QEMU: the machine's, or a fetched one.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fairground_scratch::die_with_parent;

use super::PackageError;

/// The program's name.
pub(super) const PROGRAM: &str = "qemu-system-x86_64";
/// The dynamic linker's name.
const LINKER: &str = "ld-linux-x86-64.so.2";
/// The oldest version whose instruction-counting mode is known to work: 7.2 stalls.
const OLDEST: u32 = 10;

/// A usable QEMU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Qemu {
    /// `qemu-system-x86_64`.
    pub program: PathBuf,
    /// Folders of its libraries, including the C library; empty: it uses the machine's.
    pub libraries: Vec<PathBuf>,
    /// Folders of firmware (`-L`).
    pub firmware: Vec<PathBuf>,
    /// Its version, `10.0.2`.
    pub version: String,
    /// Whether it was built with the filter of its own system calls (`-sandbox`).
    pub has_sandbox: bool,
}

impl Qemu {
    /// The machine's QEMU, if it is recent enough.
    ///
    /// # Errors
    ///
    /// There is none, or it is older than 10.
    pub fn installed() -> Result<Self, PackageError> {
        Self::installed_on(&env::var_os("PATH").unwrap_or_default())
    }

    /// The one in the folders of `path`, if it is recent enough.
    ///
    /// # Errors
    ///
    /// There is none, or it is older than 10.
    pub fn installed_on(path: &OsStr) -> Result<Self, PackageError> {
        let found = env::split_paths(path).map(|f| f.join(PROGRAM)).find(|p| p.is_file());
        let program = found.ok_or(PackageError::NoQemu { found: None })?;
        Self::at(program, Vec::new(), Vec::new())
    }

    /// The program `program`, if it starts and is recent enough.
    pub(super) fn at(
        program: PathBuf,
        libraries: Vec<PathBuf>,
        firmware: Vec<PathBuf>,
    ) -> Result<Self, PackageError> {
        let mut qemu =
            Self { program, libraries, firmware, version: String::new(), has_sandbox: true };
        let version_of = |options: &[&str]| {
            let mut command = qemu.command();
            die_with_parent(&mut command);
            command.args(options).arg("--version").stdin(Stdio::null()).output()
        };
        // An option that it does not know is an error, before it states its version.
        let mut output = version_of(&["-sandbox", "on"]);
        if output.as_ref().is_ok_and(|output| !output.status.success()) {
            output = version_of(&[]);
            qemu.has_sandbox = false;
        }
        let output = match output {
            Ok(output) if output.status.success() => output.stdout,
            Ok(output) => {
                return Err(PackageError::NoQemu { found: Some(reason(&output.stderr)) });
            }
            Err(error) => return Err(PackageError::NoQemu { found: Some(error.to_string()) }),
        };
        let output = String::from_utf8_lossy(&output).into_owned();
        let version = version(&output).ok_or_else(|| PackageError::NoQemu {
            found: Some(output.lines().next().unwrap_or_default().to_owned()),
        })?;
        let major = version.split('.').next().and_then(|m| m.parse::<u32>().ok());
        if major.is_none_or(|major| major < OLDEST) {
            return Err(PackageError::NoQemu { found: Some(format!("version {version}")) });
        }
        qemu.version = version;
        Ok(qemu)
    }

    /// The one unpacked to `folder`.
    pub(super) fn fetched(folder: &Path, libraries: &[String]) -> Result<Self, PackageError> {
        let program = folder.join("usr/bin").join(PROGRAM);
        let firmware = ["usr/share/qemu", "usr/share/seabios"].map(|f| folder.join(f)).into();
        Self::at(program, libraries.iter().map(|f| folder.join(f)).collect(), firmware)
    }

    /// A command that starts it, with its libraries and its firmware.
    ///
    /// A QEMU with its own libraries is started by its own dynamic linker, so that it does not use any library of the
    /// machine.
    pub fn command(&self) -> Command {
        let linker = self.libraries.iter().map(|f| f.join(LINKER)).find(|l| l.is_file());
        let mut command = match linker {
            Some(linker) => {
                let mut command = Command::new(linker);
                command.arg("--library-path").arg(joined(&self.libraries)).arg(&self.program);
                command
            }
            None => Command::new(&self.program),
        };
        // Modules of the machine's QEMU belong to another build.
        command.env("QEMU_MODULE_DIR", "/nonexistent");
        for folder in &self.firmware {
            command.arg("-L").arg(folder);
        }
        command
    }
}

fn joined(folders: &[PathBuf]) -> OsString {
    let folders: Vec<&Path> = folders.iter().map(PathBuf::as_path).collect();
    // Folders whose name contains a colon cannot be passed.
    env::join_paths(folders.into_iter().filter(|f| !f.to_string_lossy().contains(':')))
        .unwrap_or_default()
}

fn reason(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    text.lines().next().unwrap_or("it does not start").to_owned()
}

/// The version in `QEMU emulator version 10.0.2 (Debian …)`.
fn version(output: &str) -> Option<String> {
    let after = output.split_once("version ")?.1;
    let end = after.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(after.len());
    Some(after[..end].to_owned()).filter(|v| !v.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_the_number_after_the_word() {
        let output =
            "QEMU emulator version 10.0.2 (Debian 1:10.0.2+ds-2+deb13u1~bpo12+1)\nCopyright";
        assert_eq!(version(output).as_deref(), Some("10.0.2"));
        assert_eq!(version("QEMU emulator version 9.2.50-dirty").as_deref(), Some("9.2.50"));
        assert_eq!(version("something else"), None);
    }
}
