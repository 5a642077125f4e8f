//! Processes: their descriptors, and files without a name.

use std::fs::File;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use nix::sys::memfd::{MFdFlags, memfd_create};

/// A descriptor of this process or of a child that has not been waited for (`pidfd_open`, Linux 5.3): it becomes
/// readable when the process ends.
pub(crate) fn pid_fd(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: the call touches no memory.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made the descriptor for this process, and it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// An anonymous file: nothing remains of it if the process is killed.
pub(crate) fn nameless_file() -> io::Result<File> {
    Ok(File::from(memfd_create("fairground", MFdFlags::MFD_CLOEXEC)?))
}
