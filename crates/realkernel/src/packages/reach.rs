//! Checks whether kernels can be fetched, without fetching one.

use std::env;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fairground_scratch::{Folder, die_with_parent};

use super::PackageError;
use super::apt::{KEYRING, MIRROR};

/// The programs that fetch and unpack packages.
const PROGRAMS: [&str; 3] = ["apt-get", "apt-cache", "dpkg-deb"];
/// apt's program that downloads one file with apt's proxy settings; relative to the root.
const HELPER: &str = "usr/lib/apt/apt-helper";
/// A small file of the archive.
const FILE: &str = "dists/bookworm/InRelease";
/// Time limit of the download of a file of a few hundred kB: an archive that takes longer for it is of little use.
const DEADLINE: Duration = Duration::from_secs(3);
const POLL: Duration = Duration::from_millis(20);

/// The result of the check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// A file of the archive was downloaded.
    Proven,
    /// All required programs exist, but not the one for the check.
    NotTried,
}

/// Checks that Debian's archive is reachable with the programs in the folders of `path` and the files below `root`.
///
/// # Errors
///
/// The part that is missing: programs, keys, network.
pub fn reach(root: &Path, path: &OsStr) -> Result<Reach, PackageError> {
    let is_here = |program: &str| env::split_paths(path).any(|f| f.join(program).is_file());
    if let Some(program) = PROGRAMS.iter().find(|program| !is_here(program)) {
        return Err(PackageError::NoApt { program: (*program).to_owned() });
    }
    let keys = root.join(KEYRING.trim_start_matches('/'));
    if !keys.is_file() {
        return Err(PackageError::NoKeys { path: keys });
    }
    let helper = root.join(HELPER);
    if !helper.is_file() {
        return Ok(Reach::NotTried);
    }
    download(&helper).map(|()| Reach::Proven)
}

fn download(helper: &Path) -> Result<(), PackageError> {
    let what = format!("download {MIRROR}/{FILE}");
    let folder = Folder::new().map_err(PackageError::io("make a temporary folder"))?;
    let words = folder.path().join("words");
    let file = File::create(&words).map_err(PackageError::io("make a temporary file"))?;
    let mut command = Command::new(helper);
    command.args(["-o", "Acquire::http::Timeout=3", "-o", "Acquire::Retries=0"]);
    command.args(["-o", "APT::Sandbox::User="]).arg("download-file");
    command.arg(format!("{MIRROR}/{FILE}")).arg(folder.path().join("file"));
    command.env("LC_ALL", "C").stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
    die_with_parent(&mut command);
    let child = command.spawn().map_err(PackageError::io(format!("start {}", helper.display())))?;
    let message = match ended(child).map_err(PackageError::io("wait for apt-helper"))? {
        Some(true) => return Ok(()),
        Some(false) => std::fs::read_to_string(&words).unwrap_or_default().trim().to_owned(),
        None => format!("no answer within {} s", DEADLINE.as_secs()),
    };
    Err(PackageError::NoNetwork { what, message })
}

/// Whether a child succeeded; `None`: it was killed at the time limit.
fn ended(mut child: Child) -> io::Result<Option<bool>> {
    let start = Instant::now();
    while start.elapsed() < DEADLINE {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status.success()));
        }
        std::thread::sleep(POLL);
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}
