//! QEMU as a child process.

use std::fs::{DirEntry, read_dir, read_to_string};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use fairground_scratch::{Guard, die_with_parent};

use super::conductor::Conductor;
use super::console::Console;
use super::error::VmError;
use super::qemu_command::is_root;

/// Threads of QEMU that are looked at.
const THREADS_MAX: usize = 4096;

/// A running QEMU process. It is killed when this value is dropped, and when the program dies.
#[derive(Debug)]
pub(super) struct Machine {
    child: Child,
    /// Kills QEMU with the program where the kernel does not: after QEMU has given up the rights of root.
    guard: Option<Guard>,
    // Ends with QEMU, which is killed before the fields are dropped.
    _conductor: Option<Conductor>,
    pub(super) console: Console,
}

impl Machine {
    /// Starts `command` as a child that dies with this process, under a [`Conductor`] if `is_conducted`. Its standard
    /// output and standard error are the console.
    pub(super) fn spawn(mut command: Command, is_conducted: bool) -> Result<Self, VmError> {
        let program = command.get_program().to_string_lossy().into_owned();
        let fail = || VmError::io(format!("start {program}"));
        let (reader, writer) = std::io::pipe().map_err(fail())?;
        let writer_too = writer.try_clone().map_err(fail())?;
        command.stdin(Stdio::null()).stdout(writer).stderr(writer_too);
        die_with_parent(&mut command);
        // After `die_with_parent`: a child whose conductor is gone would hang.
        let conductor = is_conducted.then(|| Conductor::attach(&mut command));
        let conductor = conductor.transpose().map_err(fail())?;
        let child = command.spawn();
        // The command holds the pipe's write end. Without it, the console and the conductor end with QEMU.
        drop(command);
        let child = child.map_err(fail())?;
        let guard = is_root().then(|| Guard::of_child(&child)).flatten();
        Ok(Self { child, guard, _conductor: conductor, console: Console::follow(reader) })
    }

    /// Its exit status, if it has ended.
    pub(super) fn ended(&mut self) -> Result<Option<ExitStatus>, VmError> {
        let status = self.child.try_wait().map_err(VmError::io("wait for QEMU"))?;
        if status.is_some() {
            self.guard = None;
            self.console.finish();
        }
        Ok(status)
    }

    /// How long it has waited for a CPU of the host, of its threads the one that waited longest
    /// (`/proc/PID/task/TID/schedstat`, `run_delay`). 0 where the host does not count that.
    pub(super) fn waited(&self) -> Duration {
        let threads = format!("/proc/{}/task", self.child.id());
        let waited_ns = |thread: DirEntry| {
            let text = read_to_string(thread.path().join("schedstat")).ok()?;
            text.split_whitespace().nth(1)?.parse().ok()
        };
        let threads = read_dir(threads).into_iter().flatten().take(THREADS_MAX).flatten();
        Duration::from_nanos(threads.filter_map(waited_ns).max().unwrap_or(0))
    }

    /// Kills it.
    pub(super) fn kill(&mut self) {
        // Both fail only if it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.guard = None;
        self.console.finish();
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.kill();
    }
}
