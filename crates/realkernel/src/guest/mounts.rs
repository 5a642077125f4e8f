//! The file systems of the guest.

use std::fs;
use std::path::Path;

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};

/// File system, mount point, options, and whether it is required.
const MOUNTS: [(&str, &str, Option<&str>, bool); 9] = [
    ("proc", "/proc", None, true),
    ("sysfs", "/sys", None, true),
    ("devtmpfs", "/dev", None, true),
    ("tmpfs", "/dev/shm", None, false),
    ("tmpfs", "/tmp", None, true),
    ("tracefs", "/sys/kernel/tracing", None, false),
    ("debugfs", "/sys/kernel/debug", None, false),
    ("cgroup2", "/sys/fs/cgroup", None, false),
    ("bpf", "/sys/fs/bpf", None, false),
];

/// Mounts all file systems. Reports an optional one that this kernel lacks on the console.
///
/// # Errors
///
/// A required file system cannot be mounted.
pub(super) fn mount_all() -> Result<(), String> {
    for (kind, target, options, needed) in MOUNTS {
        if !Path::new(target).is_dir()
            && let Err(error) = fs::create_dir_all(target)
        {
            if needed {
                return Err(format!("make {target}: {error}"));
            }
            continue; // A kernel without the mount point in sysfs lacks the file system, too.
        }
        match mount(Some(kind), target, Some(kind), MsFlags::empty(), options) {
            Ok(()) | Err(Errno::EBUSY) => {}
            Err(error) if needed => return Err(format!("mount {kind} on {target}: {error}")),
            Err(error) => eprintln!("fairground: no {kind} on {target}: {error}"),
        }
    }
    // The scheduler's domains are shown below this file's folder only then. Kernels before 5.13 have no such file.
    let _ = fs::write("/sys/kernel/debug/sched/verbose", "Y");
    Ok(())
}
