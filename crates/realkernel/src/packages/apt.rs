//! Debian's archive through apt, without root: lists and downloads in the cache, verified with Debian's keys.
//!
//! Uses the machine's apt settings (above all a proxy), but not its sources, lists and package status. apt verifies the
//! signature of the archive's index and, with the index, each file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use fairground_scratch::die_with_parent;
use fairground_scratch::unpack::Unpacker;

use super::{PackageError, make_folder, write};

pub(super) const MIRROR: &str = "http://deb.debian.org/debian";
const SECURITY_MIRROR: &str = "http://deb.debian.org/debian-security";
/// The keys of Debian's archive on Debian and its derivatives (package `debian-archive-keyring`).
pub(super) const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Time for which the lists count as up to date, so that fetching several kernels updates once.
const FRESH: Duration = Duration::from_secs(600);

/// Some suites of Debian's archive, with their lists.
#[derive(Debug)]
pub(super) struct Archive {
    folder: PathBuf,
}

/// A package in the archive's index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) sha256: String,
}

impl Archive {
    /// The archive of `suites` (`bookworm`, `bookworm-security`, …), with its lists under `folder`, updated.
    pub(super) fn update(folder: PathBuf, suites: &[&str]) -> Result<Self, PackageError> {
        if !Path::new(KEYRING).is_file() {
            return Err(PackageError::NoKeys { path: KEYRING.into() });
        }
        for part in ["lists/partial", "archives/partial"] {
            make_folder(&folder.join(part))?;
        }
        write(&folder.join("sources.list"), source_lines(suites))?;
        write(&folder.join("status"), "")?;
        let stamp = folder.join("updated");
        let archive = Self { folder };
        let fresh = fs::metadata(&stamp).and_then(|m| m.modified()).ok();
        if fresh.and_then(|at| at.elapsed().ok()).is_some_and(|age| age < FRESH) {
            return Ok(archive);
        }
        archive.run("apt-get", &["update", "-o", "APT::Update::Error-Mode=any"])?;
        write(&stamp, "")?;
        Ok(archive)
    }

    /// The names of packages that start with `prefix`.
    pub(super) fn names(&self, prefix: &str) -> Result<Vec<String>, PackageError> {
        let text = self.run("apt-cache", &["pkgnames", prefix])?;
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// The newest version of a package.
    pub(super) fn package(&self, name: &str) -> Result<Package, PackageError> {
        let text = self.run("apt-cache", &["show", "--no-all-versions", name])?;
        parse_package(&text).ok_or_else(|| PackageError::Apt {
            what: format!("apt-cache show {name}"),
            message: "its output has no version or no SHA256".to_owned(),
        })
    }

    /// Downloads one package to `folder`; returns its file.
    pub(super) fn download(&self, name: &str, folder: &Path) -> Result<PathBuf, PackageError> {
        let mut command = self.command("apt-get");
        command.args(["download", name]).current_dir(folder);
        run(command, &format!("apt-get download {name}"))?;
        debs(folder)?.pop().ok_or_else(|| PackageError::Apt {
            what: format!("apt-get download {name}"),
            message: "it wrote no file".to_owned(),
        })
    }

    /// Downloads a package with all its dependencies, including the C library; returns their files.
    pub(super) fn download_closure(&self, name: &str) -> Result<Vec<PathBuf>, PackageError> {
        let flags = ["install", "--download-only", "--no-install-recommends", "-y", name];
        self.run("apt-get", &flags)?;
        debs(&self.folder.join("archives"))
    }

    /// Removes the downloads.
    pub(super) fn clean(&self) {
        // Remaining files are harmless.
        let _ = fs::remove_dir_all(self.folder.join("archives"));
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Result<String, PackageError> {
        let mut command = self.command(program);
        command.args(arguments);
        run(command, &format!("{program} {}", arguments.join(" ")))
    }

    fn command(&self, program: &str) -> Command {
        let at = |name: &str| self.folder.join(name).display().to_string();
        let mut command = Command::new(program);
        let settings = [
            format!("Dir::Etc::sourcelist={}", at("sources.list")),
            "Dir::Etc::sourceparts=/dev/null".to_owned(),
            "Dir::Etc::preferences=/dev/null".to_owned(),
            "Dir::Etc::preferencesparts=/dev/null".to_owned(),
            format!("Dir::State={}", at("")),
            format!("Dir::State::lists={}", at("lists")),
            format!("Dir::State::status={}", at("status")),
            format!("Dir::Cache={}", at("")),
            format!("Dir::Cache::archives={}", at("archives")),
            "Acquire::Languages=none".to_owned(),
            "Acquire::Retries=3".to_owned(),
            "APT::Architecture=amd64".to_owned(),
            "APT::Sandbox::User=".to_owned(),
            // The folders belong to the cache, whose lock is held.
            "Debug::NoLocking=1".to_owned(),
        ];
        for setting in settings {
            command.args(["-o", &setting]);
        }
        command.args(["-q", "-q"]).env("LC_ALL", "C").env("DEBIAN_FRONTEND", "noninteractive");
        command
    }
}

/// Unpacks those files of a package that `unpacker` takes. Links that lead out of the folder, as packages have them to the
/// system's configuration, are left out at its end.
pub(super) fn unpack(deb: &Path, unpacker: &mut Unpacker<'_>) -> Result<(), PackageError> {
    let what = format!("unpack {}", deb.display());
    let mut command = Command::new("dpkg-deb");
    command.arg("--fsys-tarfile").arg(deb).stdin(Stdio::null()).stdout(Stdio::piped());
    die_with_parent(&mut command);
    let mut list = command.spawn().map_err(|e| missing("dpkg-deb", &e))?;
    let archive = list.stdout.take().expect("the child's standard output is a pipe");
    // It ends when its reader has gone.
    let unpacked = unpacker.archive(archive);
    let listed = list.wait().map_err(PackageError::io(what.clone()))?;
    unpacked.map_err(PackageError::io(what.clone()))?;
    if listed.success() {
        return Ok(());
    }
    Err(PackageError::Apt { what, message: format!("dpkg-deb: {listed}") })
}

/// The lines of a source list.
fn source_lines(suites: &[&str]) -> String {
    let options = format!("arch=amd64 target=Packages signed-by={KEYRING}");
    let mirror = |suite: &str| if suite.ends_with("-security") { SECURITY_MIRROR } else { MIRROR };
    suites.iter().map(|s| format!("deb [{options}] {} {s} main\n", mirror(s))).collect()
}

/// Version and digest of `apt-cache show`'s first paragraph.
fn parse_package(text: &str) -> Option<Package> {
    let first = text.split("\n\n").next()?;
    let field = |name: &str| {
        let line = first.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(": "));
        line.map(|value| value.trim().to_owned())
    };
    let sha256 = field("SHA256")?;
    let is_digest = sha256.len() == 64 && sha256.bytes().all(|b| b.is_ascii_hexdigit());
    is_digest.then_some(())?;
    Some(Package { name: field("Package")?, version: field("Version")?, sha256 })
}

/// The package files in a folder, sorted by name.
fn debs(folder: &Path) -> Result<Vec<PathBuf>, PackageError> {
    let fail = || PackageError::io(format!("read {}", folder.display()));
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(fail())? {
        let path = entry.map_err(fail())?.path();
        if path.extension().is_some_and(|e| e == "deb") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn run(mut command: Command, what: &str) -> Result<String, PackageError> {
    let program = command.get_program().to_string_lossy().into_owned();
    die_with_parent(&mut command);
    let output = command.stdin(Stdio::null()).output().map_err(|e| missing(&program, &e))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let network =
        ["Could not resolve", "Temporary failure", "Unable to connect", "Failed to fetch"];
    if network.iter().any(|words| message.contains(words)) {
        return Err(PackageError::NoNetwork { what: what.to_owned(), message });
    }
    Err(PackageError::Apt { what: what.to_owned(), message })
}

fn missing(program: &str, error: &std::io::Error) -> PackageError {
    if error.kind() == std::io::ErrorKind::NotFound {
        return PackageError::NoApt { program: program.to_owned() };
    }
    PackageError::Apt { what: program.to_owned(), message: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOW: &str = "Package: linux-binary-7.2.13+deb14-cloud-amd64\nSource: linux\nVersion: 7.2.13-1\n\
        Depends: kmod\nDescription: Linux\n Version: no field\nSHA256: \
        ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\n\nPackage: other\nVersion: 1\n";

    #[test]
    fn a_package_is_read_from_its_first_paragraph() {
        let package = parse_package(SHOW).expect("a package");
        assert_eq!(package.version, "7.2.13-1");
        assert!(package.sha256.starts_with("ba7816bf"));
    }

    #[test]
    fn a_package_without_a_digest_is_none() {
        assert_eq!(parse_package("Package: a\nVersion: 1\n"), None);
        assert_eq!(parse_package("Package: a\nVersion: 1\nSHA256: short\n"), None);
        assert_eq!(parse_package(""), None);
    }

    #[test]
    fn each_suite_is_signed_and_security_has_its_own_mirror() {
        let lines = source_lines(&["bookworm", "bookworm-security"]);
        let lines: Vec<&str> = lines.lines().collect();
        assert!(lines.iter().all(|l| l.contains("signed-by=/") && l.ends_with(" main")));
        assert!(
            lines[0].contains("/debian bookworm ")
                && lines[1].contains("/debian-security bookworm-security ")
        );
    }
}
