//! Process descriptors, to wait for a child together with other events.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

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
