//! Temporary folders.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::Guard;

/// The start of the names of folders in the system's temporary folder.
const PREFIX: &str = "fairground-";
/// Names that are tried.
const NAMES_MAX: u32 = 64;

/// A temporary folder that only this user can read. It is removed when dropped, and by a [`Guard`] when the program is
/// killed.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    // Dropped after the folder is removed.
    _guard: Option<Guard>,
}

impl Folder {
    /// A new folder in the system's temporary folder (`TMPDIR`, or `/tmp`).
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new() -> io::Result<Folder> {
        Self::within(&std::env::temp_dir(), PREFIX)
    }

    /// A new folder in `parent` whose name starts with `prefix`.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn within(parent: &Path, prefix: &str) -> io::Result<Folder> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let parent = std::path::absolute(parent)?;
        for _ in 0..NAMES_MAX {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.subsec_nanos());
            let path = parent.join(format!("{prefix}{}-{number}-{now:x}", process::id()));
            if path.symlink_metadata().is_ok() {
                continue;
            }
            // Before there is anything to remove.
            let guard = Guard::of_folder(&path);
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Folder { path, _guard: guard }),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
        }
        Err(io::Error::new(io::ErrorKind::AlreadyExists, "no free name for a temporary folder"))
    }

    /// Its path, absolute.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed now cannot be later either.
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    #[test]
    fn it_is_removed_when_dropped() {
        let folder = Folder::new().expect("a folder");
        let path = folder.path().to_owned();
        fs::create_dir_all(path.join("a/b")).expect("made");
        fs::write(path.join("a/b/c"), "x").expect("written");
        drop(folder);
        assert!(!path.exists());
    }

    /// The program is this test itself, with a variable that makes it wait for its end.
    #[test]
    fn it_is_removed_when_the_program_is_killed() {
        const PARENT: &str = "FAIRGROUND_SCRATCH_TEST";
        if let Some(parent) = std::env::var_os(PARENT) {
            let folder = Folder::within(Path::new(&parent), "it-").expect("a folder");
            fs::write(folder.path().join("file"), "x").expect("written");
            std::thread::sleep(Duration::from_secs(600));
        }
        let parent = tempfile::tempdir().expect("a folder");
        let mut child = Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", "folder::tests::it_is_removed_when_the_program_is_killed"])
            .env(PARENT, parent.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("it starts");
        let begun = Instant::now();
        let entries = || fs::read_dir(parent.path()).expect("a folder").flatten();
        let has_file = || entries().any(|entry| entry.path().join("file").exists());
        while !has_file() {
            assert!(begun.elapsed() < Duration::from_secs(60), "it makes its folder");
            std::thread::sleep(Duration::from_millis(5));
        }
        child.kill().expect("killed");
        child.wait().expect("ended");
        while entries().count() > 0 {
            assert!(begun.elapsed() < Duration::from_secs(60), "the folder is removed");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
