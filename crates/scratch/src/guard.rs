//! A process that cleans up when the program is killed.
//!
//! It is a shell with a session of its own, which waits for a line on its standard input. The line comes when there is
//! nothing left to clean up; the end of the input without one means that the program was killed. A shell can be started
//! from a program with many threads, where a forked child may do next to nothing, and from any program, Python's too.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

/// The shell. Where there is none, there is no guard, and the next start cleans up.
const SHELL: &str = "/bin/sh";
/// Where its tools are: the program's own `PATH` is not trusted.
const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";
/// Waits; then tries to remove `$0` for some seconds, since processes that die with the program may still use it.
const WAIT: &str = "trap '' INT TERM HUP\nread -r line && exit 0\nturn=0\nwhile test $turn -lt 100 && test -e \"$0\"; do\n";
const AGAIN: &str = "\nturn=$((turn + 1)); test -e \"$0\" && sleep 0.05\ndone";
const REMOVE_FOLDER: &str = "rm -rf -- \"$0\"";
const KILL_PROCESS: &str = "kill -KILL \"${0#/proc/}\"";
const REMOVE_INSTANCE: &str =
    "echo 0 > \"$0/tracing_on\"; echo 0 > \"$0/events/enable\"; rmdir -- \"$0\"";

/// A process that removes something when this one is killed. Dropping the guard ends it without that.
#[derive(Debug)]
pub struct Guard {
    child: Child,
    alive: Option<ChildStdin>,
}

impl Guard {
    /// Guards a folder, which need not exist yet; its path is absolute.
    pub fn of_folder(path: &Path) -> Option<Guard> {
        Self::start(REMOVE_FOLDER, path)
    }

    /// Guards a child of this process: kills it. For a child that changes its user, which takes away what
    /// [`crate::die_with_parent`] has set. Drop the guard after the child was waited for.
    pub fn of_child(child: &Child) -> Option<Guard> {
        let process = format!("/proc/{}", child.id());
        Self::start(KILL_PROCESS, Path::new(&process))
    }

    /// Whether there can be one here.
    pub fn is_possible() -> bool {
        Path::new(SHELL).exists()
    }

    /// Guards an instance of tracefs: turns its events off and removes it.
    pub fn of_instance(path: &Path) -> Option<Guard> {
        Self::start(REMOVE_INSTANCE, path)
    }

    fn start(remove: &str, path: &Path) -> Option<Guard> {
        if !path.is_absolute() || !Self::is_possible() {
            return None;
        }
        let mut command = Command::new(SHELL);
        command.arg("-c").arg(format!("{WAIT}{remove}{AGAIN}")).arg(path).current_dir("/");
        command.env_clear().env("PATH", PATH);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let leave = || nix::unistd::setsid().map(drop).map_err(std::io::Error::from);
        // SAFETY: between fork and exec the closure makes one system call and allocates nothing.
        unsafe { command.pre_exec(leave) };
        let mut child = command.spawn().ok()?;
        let alive = child.stdin.take();
        Some(Guard { child, alive })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Fails only if the guard has been killed.
        if let Some(mut alive) = self.alive.take() {
            let _ = alive.write_all(b"!\n");
        }
        let _ = self.child.wait();
    }
}
