//! Where tracefs is.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nix::mount::{MsFlags, mount};
use nix::sys::statfs::{FsType, statfs};
use nix::unistd::{AccessFlags, access};

use super::RecordError;
use crate::rights::Rights;

/// Where it is mounted since Linux 4.1, below the root.
const TRACEFS: &str = "sys/kernel/tracing";
/// Where it appears by itself below a mounted debugfs.
const BELOW_DEBUGFS: &str = "sys/kernel/debug/tracing";
/// `TRACEFS_MAGIC` of `include/uapi/linux/magic.h`.
const TRACEFS_MAGIC: FsType = FsType(0x7472_6163);

/// Where tracefs is, for who looks without changing anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tracefs {
    /// It is mounted here, and recordings can be made in it.
    Usable(PathBuf),
    /// It is not mounted; whoever records mounts it here, and has the rights to.
    Mountable(PathBuf),
}

/// Whether a folder is a tracefs.
pub fn is_tracefs(path: &Path) -> bool {
    statfs(path).is_ok_and(|found| found.filesystem_type() == TRACEFS_MAGIC)
}

/// Where tracefs is below `root`; nothing is mounted. `is_tracefs` tells one from another folder ([`is_tracefs`]).
///
/// # Errors
/// Why there can be no recording.
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
            "there is no folder {}: the kernel is built without it, or /sys is not mounted",
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

/// The folder of tracefs; mounts it where it is not.
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

/// Refuses a tracefs that this user cannot look into, or make an instance in.
fn usable(path: &Path) -> Result<PathBuf, RecordError> {
    let instances = path.join("instances");
    fs::read_dir(&instances).map_err(|source| RecordError::of(&instances, "read", source))?;
    access(&instances, AccessFlags::W_OK)
        .map_err(|e| RecordError::of(&instances, "make an instance", e.into()))?;
    Ok(path.to_owned())
}
