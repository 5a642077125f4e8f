//! Where tracefs is.

use std::fs;
use std::path::{Path, PathBuf};

use nix::mount::{MsFlags, mount};
use nix::sys::statfs::{FsType, statfs};

use super::RecordError;

/// Where it is mounted since Linux 4.1.
const TRACEFS: &str = "/sys/kernel/tracing";
/// Where it appears by itself below a mounted debugfs.
const BELOW_DEBUGFS: &str = "/sys/kernel/debug/tracing";
/// `TRACEFS_MAGIC` of `include/uapi/linux/magic.h`.
const TRACEFS_MAGIC: FsType = FsType(0x7472_6163);

fn is_tracefs(path: &Path) -> bool {
    statfs(path).is_ok_and(|found| found.filesystem_type() == TRACEFS_MAGIC)
}

/// The folder of tracefs; mounts it where it is not.
pub(super) fn tracefs() -> Result<PathBuf, RecordError> {
    for place in [TRACEFS, BELOW_DEBUGFS] {
        if is_tracefs(Path::new(place)) {
            return usable(Path::new(place));
        }
    }
    if !Path::new(TRACEFS).is_dir() {
        let why = format!(
            "there is no folder {TRACEFS}: the kernel is built without it, or /sys is not mounted"
        );
        return Err(RecordError::NoTracefs { why });
    }
    let no_flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("tracefs"), TRACEFS, Some("tracefs"), no_flags, None::<&str>)
        .map_err(|e| RecordError::NoTracefs { why: format!("mounting it on {TRACEFS}: {e}") })?;
    usable(Path::new(TRACEFS))
}

/// Refuses a tracefs that this user cannot look into.
fn usable(path: &Path) -> Result<PathBuf, RecordError> {
    let instances = path.join("instances");
    fs::read_dir(&instances).map_err(|source| RecordError::of(&instances, "read", source))?;
    Ok(path.to_owned())
}
