//! The process that holds the tasks' process group.

use super::error::TaskError;

/// Forks a process that only sleeps and leads the tasks' process group, so that the group's number stays valid for
/// the whole run. Returns its process number.
pub(super) fn anchor() -> Result<libc::pid_t, TaskError> {
    // SAFETY: the child only makes calls that are allowed after a fork.
    unsafe {
        let runner = libc::getpid();
        let pid = libc::fork();
        if pid < 0 {
            return Err(TaskError::last("start a process", None));
        }
        if pid == 0 {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
            libc::prctl(libc::PR_SET_NAME, c"anchor".as_ptr(), 0, 0, 0);
            libc::close_range(0, libc::c_uint::MAX, 0);
            while libc::getppid() == runner {
                libc::pause();
            }
            libc::_exit(0);
        }
        libc::setpgid(pid, pid);
        Ok(pid)
    }
}
