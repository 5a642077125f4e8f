//! The mount point of tracefs.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nix::mount::{MsFlags, mount};
use nix::sys::statfs::{FsType, statfs};
use nix::unistd::{AccessFlags, access};

use super::RecordError;
use crate::rights::Rights;

/// The mount point since Linux 4.1, relative to the root.
const TRACEFS: &str = "sys/kernel/tracing";
/// The automatic mount point below debugfs.
const BELOW_DEBUGFS: &str = "sys/kernel/debug/tracing";
/// `TRACEFS_MAGIC` of `include/uapi/linux/magic.h`.
const TRACEFS_MAGIC: FsType = FsType(0x7472_6163);

/// The state of tracefs, found without mounting it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tracefs {
    /// It is mounted here and usable.
    Usable(PathBuf),
    /// It is not mounted; a recording will mount it here, with the rights of this user.
    Mountable(PathBuf),
}

/// Whether a folder is a tracefs.
pub fn is_tracefs(path: &Path) -> bool {
    statfs(path).is_ok_and(|found| found.filesystem_type() == TRACEFS_MAGIC)
}

/// Finds tracefs below `root`; mounts nothing. `is_tracefs` detects the file system ([`is_tracefs`]).
///
/// # Errors
/// Why recordings are not possible.
pub fn find_tracefs(
    root: &Path,
    is_tracefs: impl Fn(&Path) -> bool,
) -> Result<Tracefs, RecordError> {
    if let Some(place) =
        [TRACEFS, BELOW_DEBUGFS].map(|p| root.join(p)).iter().find(|p| is_tracefs(p))
    {
        return usable(place).map(Tracefs::Usable);
    }
    let place = root.join(TRACEFS);
    if !place.is_dir() {
        let why = format!(
            "the folder {} does not exist: the kernel lacks tracefs, or /sys is not mounted",
            place.display()
        );
        return Err(RecordError::NoTracefs { why });
    }
    if !Rights::read(root).may_record() {
        let source = io::ErrorKind::PermissionDenied.into();
        return Err(RecordError::NotPermitted { path: place, source });
    }
    Ok(Tracefs::Mountable(place))
}

/// The folder of tracefs; mounts it if necessary.
pub(super) fn tracefs() -> Result<PathBuf, RecordError> {
    let place = match find_tracefs(Path::new("/"), is_tracefs)? {
        Tracefs::Usable(place) => return Ok(place),
        Tracefs::Mountable(place) => place,
    };
    let no_flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("tracefs"), &place, Some("tracefs"), no_flags, None::<&str>).map_err(|e| {
        RecordError::NoTracefs { why: format!("mounting it on {}: {e}", place.display()) }
    })?;
    usable(&place)
}

/// Checks that the user can read tracefs and create an instance in it.
fn usable(path: &Path) -> Result<PathBuf, RecordError> {
    let instances = path.join("instances");
    fs::read_dir(&instances).map_err(|source| RecordError::of(&instances, "read", source))?;
    access(&instances, AccessFlags::W_OK)
        .map_err(|e| RecordError::of(&instances, "make an instance", e.into()))?;
    Ok(path.to_owned())
}
