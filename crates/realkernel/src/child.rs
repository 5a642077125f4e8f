//! Processes: their descriptors and start times, and children that die with their parent.

use std::fs::File;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;

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

/// Makes the kernel kill the child when the thread that starts it ends.
pub(crate) fn die_with_parent(command: &mut Command) {
    let parent = std::process::id();
    let tie = move || {
        set_pdeathsig(Signal::SIGKILL)?;
        // The parent may have died before the call above.
        if nix::unistd::getppid().as_raw().cast_unsigned() != parent {
            return Err(io::ErrorKind::NotConnected.into());
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes two system calls and allocates nothing.
    unsafe { command.pre_exec(tie) };
}

/// Start time of a process in clock ticks since boot (field 22 of `/proc/PID/stat`); `None` if it does not exist.
pub(crate) fn start_time(pid: u32) -> Option<u64> {
    const FIELDS_AFTER_NAME: usize = 19;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may contain any character.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(FIELDS_AFTER_NAME)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_living_process_has_a_start_time() {
        let own = start_time(std::process::id()).expect("we are alive");
        assert!(start_time(1).is_none_or(|init| init <= own));
        assert_eq!(start_time(u32::MAX), None);
    }
}
