//! Files that are whole: their content is written to a file without a name, which gets its name at the end.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::owner::{is_left, name_of_own};

/// The start of the name that a file has for the moment before it replaces another.
const PREFIX: &str = ".fairground-";
/// The permissions of a new file. Reading the umask requires setting it, which affects other threads.
const USUAL_MODE: u32 = 0o644;
/// Names that [`free_name`] tries.
const NAMES_MAX: u32 = 1000;

/// The operations of a file system that [`write_whole_on`] needs.
pub trait Disk {
    /// An open file.
    type File: Write + Seek;

    /// A new file that has no name, or `name` where the file system has no files without one.
    ///
    /// # Errors
    /// The file system's.
    fn begin(&self, name: &Path) -> io::Result<Self::File>;

    /// Sees that a file has its name.
    ///
    /// # Errors
    /// The file system's.
    fn name(&self, file: &Self::File, name: &Path) -> io::Result<()>;

    /// Replaces a file by another one, at once.
    ///
    /// # Errors
    /// The file system's; both are as they were then.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// The file system's.
    fn remove(&self, name: &Path) -> io::Result<()>;
}

/// Writes a file on this machine: [`write_whole_on`].
///
/// # Errors
/// Those of writing; the file is as it was before then.
pub fn write_whole<T>(
    target: &Path,
    content: impl FnOnce(&mut BufWriter<File>) -> io::Result<T>,
) -> io::Result<T> {
    write_whole_named(target, |out| Ok((content(out)?, target.to_owned())))
}

/// As [`write_whole`], for content of which it is known at its end only what the file is called: `content` returns
/// that, a name in the folder of `target`.
///
/// # Errors
/// Those of writing; no file has changed then.
pub fn write_whole_named<T>(
    target: &Path,
    content: impl FnOnce(&mut BufWriter<File>) -> io::Result<(T, PathBuf)>,
) -> io::Result<T> {
    sweep(&folder_of(target));
    write_named_on(&HostDisk, target, content)
}

/// A free name beside a file: `NAME-WORD.END`, `NAME-WORD-2.END` … The last of [`NAMES_MAX`] is returned
/// even if there is one.
pub fn free_name(path: &Path, word: &str) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default();
    let name = |number: u32| {
        let mut name = stem.to_owned();
        name.push(format!("-{word}"));
        if number > 1 {
            name.push(format!("-{number}"));
        }
        if let Some(end) = path.extension() {
            name.push(".");
            name.push(end);
        }
        path.with_file_name(name)
    };
    let mut names = (1..=NAMES_MAX).map(&name);
    names.find(|path| path.symlink_metadata().is_err()).unwrap_or_else(|| name(NAMES_MAX))
}

/// Writes a file, which afterwards has its whole content. After an error, or when the program is killed, it is as it
/// was before: whole or absent.
///
/// # Errors
/// Those of `content` and of the file system.
pub fn write_whole_on<D: Disk, T>(
    disk: &D,
    target: &Path,
    content: impl FnOnce(&mut BufWriter<D::File>) -> io::Result<T>,
) -> io::Result<T> {
    write_named_on(disk, target, |out| Ok((content(out)?, target.to_owned())))
}

fn write_named_on<D: Disk, T>(
    disk: &D,
    target: &Path,
    content: impl FnOnce(&mut BufWriter<D::File>) -> io::Result<(T, PathBuf)>,
) -> io::Result<T> {
    let name = name_beside(target);
    let written = || {
        let mut out = BufWriter::new(disk.begin(&name)?);
        let (result, target) = content(&mut out)?;
        let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        disk.name(&file, &name)?;
        disk.rename(&name, &target)?;
        Ok(result)
    };
    let result = written();
    if result.is_err() {
        // It may have no name.
        let _ = disk.remove(&name);
    }
    result
}

/// The file system of this machine.
#[derive(Clone, Copy, Debug)]
pub struct HostDisk;

impl Disk for HostDisk {
    type File = File;

    fn begin(&self, name: &Path) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(USUAL_MODE);
        let nameless = options.custom_flags(libc::O_TMPFILE).open(folder_of(name));
        let file = match nameless {
            // The file system has no such files.
            Err(e)
                if matches!(
                    e.raw_os_error(),
                    Some(libc::EOPNOTSUPP | libc::EISDIR | libc::EINVAL)
                ) =>
            {
                options.custom_flags(0).create_new(true).open(name)?
            }
            file => file?,
        };
        file.set_permissions(fs::Permissions::from_mode(USUAL_MODE))?;
        Ok(file)
    }

    fn name(&self, file: &File, name: &Path) -> io::Result<()> {
        let own = format!("/proc/self/fd/{}", file.as_raw_fd());
        let flags = nix::fcntl::AtFlags::AT_SYMLINK_FOLLOW;
        let cwd = nix::fcntl::AT_FDCWD;
        match nix::unistd::linkat(cwd, own.as_str(), cwd, name, flags) {
            // It was begun with its name.
            Err(nix::errno::Errno::EEXIST) => Ok(()),
            linked => Ok(linked?),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, name: &Path) -> io::Result<()> {
        fs::remove_file(name)
    }
}

fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// A name beside a file that no other file of this program has.
fn name_beside(target: &Path) -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    folder_of(target).join(name_of_own(PREFIX, number))
}

/// Removes files of programs that were killed between naming and renaming.
fn sweep(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_str().is_some_and(|name| is_left(name, PREFIX)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::{Faults, Faulty};
    use std::cell::RefCell;
    use std::collections::BTreeMap;
    use std::io::SeekFrom;
    use std::rc::Rc;

    #[test]
    fn a_file_is_replaced_as_a_whole_or_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("page.html");
        write_whole(&path, |out| out.write_all(b"one")).expect("written");
        let failed = write_whole(&path, |out| {
            out.write_all(&[b'x'; 100_000])?;
            Err::<(), _>(io::ErrorKind::StorageFull.into())
        });
        assert_eq!(failed.expect_err("it fails").kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read(&path).expect("it is there"), b"one");
        write_whole(&path, |out| out.write_all(b"two")).expect("written");
        assert_eq!(fs::read(&path).expect("it is there"), b"two");
        assert_eq!(
            fs::metadata(&path).expect("it is there").permissions().mode() & 0o777,
            USUAL_MODE
        );
        assert_eq!(
            fs::read_dir(folder.path()).expect("a folder").count(),
            1,
            "nothing else is left"
        );
    }

    #[test]
    fn what_a_killed_program_left_is_removed_at_the_next_write() {
        let folder = tempfile::tempdir().expect("a folder");
        let [left, other] = [format!("{PREFIX}4194305-7-0"), format!("{PREFIX}mine")];
        for name in [&left, &other] {
            fs::write(folder.path().join(name), "half").expect("written");
        }
        write_whole(&folder.path().join("a"), |out| out.write_all(b"x")).expect("written");
        assert!(!folder.path().join(left).exists() && folder.path().join(other).exists());
    }

    type Bytes = Rc<RefCell<Vec<u8>>>;

    /// A file in memory.
    struct MemoryFile {
        bytes: Bytes,
        at: usize,
    }

    impl Write for MemoryFile {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut file = self.bytes.borrow_mut();
            let end = self.at + bytes.len();
            if file.len() < end {
                file.resize(end, 0);
            }
            file[self.at..end].copy_from_slice(bytes);
            self.at = end;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Seek for MemoryFile {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            let SeekFrom::Start(at) = to else { return Err(io::ErrorKind::Unsupported.into()) };
            self.at = at as usize;
            Ok(at)
        }
    }

    /// A file system in memory, whose operations fail, tear and are interrupted.
    struct FaultyDisk {
        faults: Rc<RefCell<Faults>>,
        files: RefCell<BTreeMap<PathBuf, Bytes>>,
        has_nameless: bool,
    }

    impl Disk for FaultyDisk {
        type File = Faulty<MemoryFile>;

        fn begin(&self, name: &Path) -> io::Result<Self::File> {
            self.faults.borrow_mut().happen()?;
            let bytes = Bytes::default();
            if !self.has_nameless {
                self.files.borrow_mut().insert(name.to_owned(), Rc::clone(&bytes));
            }
            let inner = MemoryFile { bytes, at: 0 };
            Ok(Faulty { inner, faults: Rc::clone(&self.faults) })
        }

        fn name(&self, file: &Self::File, name: &Path) -> io::Result<()> {
            self.faults.borrow_mut().happen()?;
            self.files.borrow_mut().insert(name.to_owned(), Rc::clone(&file.inner.bytes));
            Ok(())
        }

        fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
            self.faults.borrow_mut().happen()?;
            let mut files = self.files.borrow_mut();
            let moved = files.remove(from).ok_or(io::ErrorKind::NotFound)?;
            files.insert(to.to_owned(), moved);
            Ok(())
        }

        fn remove(&self, name: &Path) -> io::Result<()> {
            self.faults.borrow_mut().happen()?;
            self.files.borrow_mut().remove(name);
            Ok(())
        }
    }

    /// Several writes of one file; after each, the file is the last one that succeeded, as a whole. What is left beside
    /// it was not removable.
    fn writes_stay_whole(seed: u64) -> (u32, u32) {
        let faults = Faults::of(seed);
        let disk = FaultyDisk {
            faults: Rc::clone(&faults),
            files: RefCell::default(),
            has_nameless: seed.is_multiple_of(2),
        };
        let target = Path::new("/out/trace.dat");
        let (mut expected, mut good, mut bad) = (None, 0, 0);
        for round in 0..4u8 {
            let size = faults.borrow_mut().below(40_000) as usize;
            let content: Vec<u8> = (0..size).map(|at| (at as u8).wrapping_mul(round + 3)).collect();
            let written = write_whole_on(&disk, target, |out| {
                for part in content.chunks(5_000) {
                    out.write_all(part)?;
                }
                // As the recorder does: the head is completed at the end.
                out.seek(SeekFrom::Start(0))?;
                out.write_all(&content[..size.min(16)])?;
                out.flush()
            });
            match written {
                Ok(()) => {
                    expected = Some(content);
                    good += 1;
                }
                Err(_) => bad += 1,
            }
            let files = disk.files.borrow();
            let found = files.get(target).map(|bytes| bytes.borrow().clone());
            assert_eq!(found.is_some(), expected.is_some(), "seed {seed}, round {round}");
            assert!(found == expected, "seed {seed}, round {round}: the file is half");
        }
        (good, bad)
    }

    #[test]
    fn ten_thousand_seeds_of_faults_leave_no_half_file() {
        let sums = (0..10_000).map(writes_stay_whole);
        let (good, bad) = sums.fold((0, 0), |(good, bad), (g, b)| (good + g, bad + b));
        // Both happen often, or the faults are of no use.
        assert!(good > 5_000 && bad > 5_000, "{good} writes succeeded, {bad} failed");
    }
}
