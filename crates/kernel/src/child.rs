//! Waiting for a child together with other things.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::Child;

/// A descriptor of a child that has not been waited for (`pidfd_open`, Linux 5.3): it becomes readable when the child ends.
pub(crate) fn pid_fd(child: &Child) -> io::Result<OwnedFd> {
    // SAFETY: the call touches no memory.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, child.id() as libc::pid_t, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made the descriptor for this process, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}
