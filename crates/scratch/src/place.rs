//! Folders that are whole: they are made under another name and put in their place at once.

use std::fs;
use std::io;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};

/// The end of the name that a folder has while another one takes its place in two steps.
const REPLACED: &str = "replaced";

/// The operations of a file system that [`put_folder_on`] needs.
pub trait Folders {
    /// Whether there is something of that name.
    fn exists(&self, name: &Path) -> bool;

    /// Renames a folder.
    ///
    /// # Errors
    /// The file system's; nothing has changed then.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Exchanges the names of two folders, at once.
    ///
    /// # Errors
    /// The file system's; `Unsupported` where it cannot. Nothing has changed then.
    fn exchange(&self, one: &Path, other: &Path) -> io::Result<()>;
}

/// Puts a folder in its place on this machine ([`put_folder_on`]), and makes the folders above.
///
/// # Errors
/// Those of [`put_folder_on`].
pub fn put_folder(made: &Path, place: &Path) -> io::Result<()> {
    if let Some(above) = place.parent() {
        fs::create_dir_all(above)?;
    }
    put_folder_on(&HostFolders, made, place)
}

/// Puts a folder in its place. One that is there is afterwards beside `made`, for the caller to remove. When the
/// program is killed, the one or the other is in the place. Only a file system that cannot exchange names may have none
/// there then.
///
/// # Errors
/// The file system's; the place is as it was.
pub fn put_folder_on(disk: &impl Folders, made: &Path, place: &Path) -> io::Result<()> {
    if !disk.exists(place) {
        return disk.rename(made, place);
    }
    match disk.exchange(made, place) {
        Err(e) if e.kind() == io::ErrorKind::Unsupported => {}
        done => return done,
    }
    let old = made.with_extension(REPLACED);
    disk.rename(place, &old)?;
    disk.rename(made, place).inspect_err(|_| {
        // What fails now failed a moment before.
        let _ = disk.rename(&old, place);
    })
}

/// The file system of this machine.
#[derive(Clone, Copy, Debug)]
struct HostFolders;

impl Folders for HostFolders {
    fn exists(&self, name: &Path) -> bool {
        name.symlink_metadata().is_ok()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn exchange(&self, one: &Path, other: &Path) -> io::Result<()> {
        match renameat2(AT_FDCWD, one, AT_FDCWD, other, RenameFlags::RENAME_EXCHANGE) {
            Err(Errno::EINVAL | Errno::ENOSYS) => Err(io::ErrorKind::Unsupported.into()),
            done => Ok(done?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::Faults;
    use std::cell::RefCell;
    use std::collections::BTreeMap;
    use std::path::PathBuf;
    use std::rc::Rc;

    #[test]
    fn a_folder_is_put_where_there_is_none_and_replaces_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let [made, place] = ["work/made", "kernels/6.1"].map(|name| folder.path().join(name));
        for content in ["one", "two", "three"] {
            let _ = fs::remove_dir_all(&made);
            fs::create_dir_all(&made).expect("made");
            fs::write(made.join("file"), content).expect("written");
            put_folder(&made, &place).expect("it is put there");
            assert_eq!(fs::read_to_string(place.join("file")).expect("a file"), content);
        }
        assert_eq!(fs::read_to_string(made.join("file")).expect("a file"), "two");
    }

    /// Folders in memory, by name, whose operations fail, the last ones all of them as if the program were killed.
    struct Faulty {
        folders: RefCell<BTreeMap<PathBuf, u32>>,
        faults: Rc<RefCell<Faults>>,
        exchanges: bool,
    }

    impl Folders for Faulty {
        fn exists(&self, name: &Path) -> bool {
            self.folders.borrow().contains_key(name)
        }

        fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
            self.faults.borrow_mut().happen()?;
            let mut folders = self.folders.borrow_mut();
            if folders.contains_key(to) {
                return Err(io::ErrorKind::DirectoryNotEmpty.into());
            }
            let moved = folders.remove(from).ok_or(io::ErrorKind::NotFound)?;
            folders.insert(to.to_owned(), moved);
            Ok(())
        }

        fn exchange(&self, one: &Path, other: &Path) -> io::Result<()> {
            if !self.exchanges {
                return Err(io::ErrorKind::Unsupported.into());
            }
            self.faults.borrow_mut().happen()?;
            let mut folders = self.folders.borrow_mut();
            let [a, b] = [one, other].map(|name| folders.remove(name).expect("it is there"));
            folders.extend([(one.to_owned(), b), (other.to_owned(), a)]);
            Ok(())
        }
    }

    /// Puts folders into a place that has one; returns how many were put, failed, and whether the place was empty once.
    fn replaced(seed: u64, exchanges: bool) -> (u32, u32, bool) {
        let faults = Faults::of(seed);
        let place = Path::new("/cache/kernels/6.1");
        let folders = RefCell::new(BTreeMap::from([(place.to_owned(), 0)]));
        let disk = Faulty { folders, faults, exchanges };
        let (mut here, mut good, mut bad) = (0, 0, 0);
        for round in 1..=8 {
            let made = PathBuf::from(format!("/cache/.fetch-{round}/made"));
            disk.folders.borrow_mut().insert(made.clone(), round);
            match put_folder_on(&disk, &made, place) {
                Ok(()) => (here, good) = (round, good + 1),
                Err(_) => bad += 1,
            }
            match disk.folders.borrow().get(place) {
                Some(found) => assert_eq!(*found, here, "seed {seed}, round {round}"),
                None => return (good, bad, true),
            }
        }
        (good, bad, false)
    }

    #[test]
    fn ten_thousand_seeds_of_faults_leave_the_old_folder_or_the_new_one() {
        for exchanges in [true, false] {
            let results = (0..10_000).map(|seed| replaced(seed, exchanges));
            let (good, bad, empty) = results.fold((0, 0, 0), |(good, bad, empty), (g, b, e)| {
                (good + g, bad + b, empty + u32::from(e))
            });
            assert!(good > 10_000 && bad > 5_000, "{good} were put there, {bad} failed");
            // The two steps of a file system that cannot exchange names.
            assert_eq!(empty > 0, !exchanges, "{empty} were empty");
        }
    }
}
