//! Whether kernels could be fetched, found out without fetching one.

use std::env;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::CatalogueError;
use super::apt::{KEYRING, MIRROR};

/// The programs with which packages are fetched and unpacked.
const PROGRAMS: [&str; 4] = ["apt-get", "apt-cache", "dpkg-deb", "tar"];
/// apt's program that downloads one file as apt itself would, by its proxies; below the root.
const HELPER: &str = "usr/lib/apt/apt-helper";
/// A small file of the archive.
const FILE: &str = "dists/bookworm/InRelease";
/// How long the archive may take to answer.
const DEADLINE: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(20);

/// What was found out about the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// A file of the archive came.
    Proven,
    /// Everything is here to fetch with, and nothing to try it with.
    NotTried,
}

/// Whether Debian's archive can be fetched from, with what is in the folders of `path` and below `root`.
///
/// # Errors
///
/// What is missing: programs, keys, a network.
pub fn reach(root: &Path, path: &OsStr) -> Result<Reach, CatalogueError> {
    let is_here = |program: &str| env::split_paths(path).any(|f| f.join(program).is_file());
    if let Some(program) = PROGRAMS.iter().find(|program| !is_here(program)) {
        return Err(CatalogueError::NoApt { program: (*program).to_owned() });
    }
    let keys = root.join(KEYRING.trim_start_matches('/'));
    if !keys.is_file() {
        return Err(CatalogueError::NoKeys { path: keys });
    }
    let helper = root.join(HELPER);
    if !helper.is_file() {
        return Ok(Reach::NotTried);
    }
    download(&helper).map(|()| Reach::Proven)
}

fn download(helper: &Path) -> Result<(), CatalogueError> {
    let what = format!("download {MIRROR}/{FILE}");
    let folder = tempfile::tempdir().map_err(CatalogueError::io("make a temporary folder"))?;
    let words = folder.path().join("words");
    let file = File::create(&words).map_err(CatalogueError::io("make a temporary file"))?;
    let mut command = Command::new(helper);
    command.args(["-o", "Acquire::http::Timeout=10", "-o", "Acquire::Retries=0"]);
    command.args(["-o", "APT::Sandbox::User="]).arg("download-file");
    command.arg(format!("{MIRROR}/{FILE}")).arg(folder.path().join("file"));
    command.env("LC_ALL", "C").stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
    let child =
        command.spawn().map_err(CatalogueError::io(format!("start {}", helper.display())))?;
    let said = match ended(child).map_err(CatalogueError::io("wait for apt-helper"))? {
        Some(true) => return Ok(()),
        Some(false) => std::fs::read_to_string(&words).unwrap_or_default().trim().to_owned(),
        None => format!("no answer within {} s", DEADLINE.as_secs()),
    };
    Err(CatalogueError::NoNetwork { what, said })
}

/// Whether a child succeeded; `None`: it did not end in time, and was killed.
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
