//! A process that restores knobs and removes control groups if the runner is killed. It has a session of its own.

use std::io::{self, PipeWriter, Write};
use std::os::fd::AsRawFd;
use std::thread::sleep;
use std::time::Duration;

use nix::sys::wait::waitpid;
use nix::unistd::Pid;

use crate::knobs::{Original, restore};
use crate::tasks::cgroups::remove_leftovers;

/// Time from the runner's death until its tasks have ended.
const TASKS_GONE: Duration = Duration::from_millis(20);

/// The runner's end of the connection. Dropping it ends the janitor without an action.
#[derive(Debug)]
pub(super) struct Janitor {
    alive: PipeWriter,
    pid: libc::pid_t,
}

impl Janitor {
    /// Starts a janitor that restores `originals` and removes control groups. This process must have one thread.
    pub(super) fn start(originals: &[Original]) -> io::Result<Self> {
        let (read, alive) = io::pipe()?;
        // SAFETY: the process has one thread, so that its child may do everything.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => watch(read.as_raw_fd(), originals),
            pid => Ok(Self { alive, pid }),
        }
    }
}

impl Drop for Janitor {
    fn drop(&mut self) {
        // Fails only if the janitor has been killed.
        let _ = self.alive.write_all(b"!");
        // The child is ours, and ends when it reads the byte.
        let _ = waitpid(Pid::from_raw(self.pid), None);
    }
}

fn watch(alive: libc::c_int, originals: &[Original]) -> ! {
    let mut byte = 0u8;
    // SAFETY: changes only this process's state, and uses only the arguments.
    let read = unsafe {
        libc::setsid();
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            libc::signal(signal, libc::SIG_IGN);
        }
        libc::prctl(libc::PR_SET_NAME, c"janitor".as_ptr(), 0, 0, 0);
        let alive_number = alive as libc::c_uint;
        if alive_number > 0 {
            libc::close_range(0, alive_number - 1, 0);
        }
        libc::close_range(alive_number + 1, libc::c_uint::MAX, 0);
        loop {
            let read = libc::read(alive, (&raw mut byte).cast(), 1);
            if read >= 0 || *libc::__errno_location() != libc::EINTR {
                break read;
            }
        }
    };
    if read <= 0 {
        restore(originals);
        sleep(TASKS_GONE);
        remove_leftovers();
    }
    // SAFETY: ends the process at once.
    unsafe { libc::_exit(0) }
}
