//! The checksums of what was fetched, and whether the files still have them.
//!
//! A folder of the cache has a file with the SHA-256 of each of its files, written when they were fetched. They are
//! compared whenever something of the folder is used: a kernel, QEMU, a program of tests in a guest. QEMU with its
//! libraries is 100 MB, so that a file which has been compared and has not changed since (device, inode, size, times of
//! content and of status) is not read again. The time of status (`ctime`) cannot be set by a program, root excepted. A
//! user who may write to the cache may also write the checksums: this finds damage and accidents, and files that others
//! put there.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fairground_scratch::write_whole;
use serde::{Deserialize, Serialize};

use super::kernel::hex_digest;
use super::{PackageError, read};
use crate::files::{PROGRAM_BYTES_MAX, read_file};

/// The file with the checksums.
const NAME: &str = "files.json";
/// Folders within one another at most.
const DEPTH_MAX: usize = 16;

/// A file's checksum, and what it was when it was last compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct RecordedFile {
    sha256: String,
    stamp: Stamp,
}

/// The marks that change with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(known: &Metadata) -> Stamp {
        Stamp {
            device: known.dev(),
            inode: known.ino(),
            size: known.size(),
            modified: (known.mtime(), known.mtime_nsec()),
            changed: (known.ctime(), known.ctime_nsec()),
        }
    }
}

type Files = BTreeMap<PathBuf, RecordedFile>;

/// Writes the checksums of the files that are in a folder.
///
/// # Errors
/// A file cannot be read, or the checksums cannot be written.
pub fn write(folder: &Path) -> Result<(), PackageError> {
    let mut files = Files::new();
    for (path, stamp) in listed(folder)? {
        let sha256 = digest(&folder.join(&path))?;
        files.insert(path, RecordedFile { sha256, stamp });
    }
    store(folder, &files)
}

/// Compares the files of a folder with their checksums. A folder that was fetched before there were any gets them now.
///
/// # Errors
/// The file that has changed, is missing, or has been added.
pub fn verify(folder: &Path) -> Result<(), PackageError> {
    let path = folder.join(NAME);
    if !path.exists() {
        // Where the cache cannot be written, there is nothing to compare with.
        let _ = write(folder);
        return Ok(());
    }
    let damaged = |path: &Path| PackageError::Damaged { path: folder.join(path) };
    let mut files: Files =
        serde_json::from_slice(&read(&path)?).map_err(|_| damaged(Path::new(NAME)))?;
    let here: BTreeMap<PathBuf, Stamp> = listed(folder)?.into_iter().collect();
    if let Some(other) = here.keys().find(|path| !files.contains_key(*path)) {
        return Err(damaged(other));
    }
    let mut is_new = false;
    for (path, known) in &mut files {
        let Some(stamp) = here.get(path) else { return Err(damaged(path)) };
        if known.stamp == *stamp {
            continue;
        }
        if digest(&folder.join(path))? != known.sha256 {
            return Err(damaged(path));
        }
        known.stamp = *stamp;
        is_new = true;
    }
    if is_new {
        // Where the cache cannot be written, they are compared again the next time.
        let _ = store(folder, &files);
    }
    Ok(())
}

fn store(folder: &Path, files: &Files) -> Result<(), PackageError> {
    let path = folder.join(NAME);
    let text = serde_json::to_vec(files).expect("paths of packages are text");
    write_whole(&path, |out| out.write_all(&text))
        .map_err(PackageError::io(format!("write {}", path.display())))
}

/// The SHA-256 of a file, or of the text of a symbolic link.
fn digest(path: &Path) -> Result<String, PackageError> {
    let fail = || PackageError::io(format!("read {}", path.display()));
    if path.is_symlink() {
        let target = fs::read_link(path).map_err(fail())?;
        return Ok(hex_digest(target.as_os_str().as_encoded_bytes()));
    }
    Ok(hex_digest(&read_file(path, PROGRAM_BYTES_MAX).map_err(fail())?))
}

/// The files and symbolic links below a folder, relative to it.
fn listed(folder: &Path) -> Result<Vec<(PathBuf, Stamp)>, PackageError> {
    let mut found = Vec::new();
    list(folder, Path::new(""), DEPTH_MAX, &mut found)
        .map_err(PackageError::io(format!("read {}", folder.display())))?;
    Ok(found)
}

fn list(
    root: &Path,
    below: &Path,
    depth: usize,
    found: &mut Vec<(PathBuf, Stamp)>,
) -> std::io::Result<()> {
    for entry in fs::read_dir(root.join(below))? {
        let entry = entry?;
        let (path, known) = (below.join(entry.file_name()), entry.metadata()?);
        if known.is_dir() {
            if depth > 0 {
                list(root, &path, depth - 1, found)?;
            }
        } else if !is_own(&path) {
            found.push((path, Stamp::of(&known)));
        }
    }
    Ok(())
}

/// Whether a file is the one with the checksums, or is about to replace it.
fn is_own(path: &Path) -> bool {
    let name = path.as_os_str().as_encoded_bytes();
    path == Path::new(NAME) || name.starts_with(b".fairground-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_changed_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("lib/deep")).expect("made");
        fs::write(at("lib/deep/libc.so.6"), "code").expect("written");
        fs::write(at("program"), "more code").expect("written");
        std::os::unix::fs::symlink("libc.so.6", at("lib/deep/libc.so")).expect("made");
        // Fetched before there were checksums.
        verify(folder.path()).expect("as it is");
        assert!(at(NAME).is_file());
        verify(folder.path()).expect("unchanged");
        // Written again with the same content: it is read once more.
        fs::write(at("program"), "more code").expect("written");
        let before = fs::read(at(NAME)).expect("checksums");
        verify(folder.path()).expect("the same content");
        assert_ne!(before, fs::read(at(NAME)).expect("checksums"), "its stamp is new");
        let damaged = |what: &str| {
            let error = verify(folder.path()).expect_err("refused").to_string();
            assert!(error.contains(what) && error.contains("fetch"), "{error}");
        };
        fs::write(at("program"), "evil code").expect("written");
        damaged("program");
        fs::write(at("program"), "more code").expect("written");
        fs::write(at("lib/libc.so.6"), "evil").expect("written");
        damaged("lib/libc.so.6");
        fs::remove_file(at("lib/libc.so.6")).expect("removed");
        fs::remove_file(at("lib/deep/libc.so")).expect("removed");
        damaged("lib/deep/libc.so");
        std::os::unix::fs::symlink("/tmp/evil.so", at("lib/deep/libc.so")).expect("made");
        damaged("lib/deep/libc.so");
    }
}
