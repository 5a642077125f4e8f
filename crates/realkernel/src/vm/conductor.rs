//! Serializes QEMU's threads, so that a guest whose clock counts instructions is deterministic.
//!
//! QEMU runs the virtual CPUs on one thread. Two other threads interrupt it at times that depend on the host's clock:
//!
//! * The RCU thread, which frees memory, stops the running CPU 10 to 60 ms of host time after there is memory to
//!   free, as each time when QEMU's table of translated code has doubled. With a guest that was busy on several CPUs,
//!   three of four runs differed (Linux 6.1, 4 CPUs).
//! * The main thread wakes at each timer of the virtual clock. It has nothing to do, unless it is so late that the
//!   next timer has expired: then it runs that timer in place of the CPUs' thread and stops all CPUs. One run of
//!   fifty differed; the cause is inferred from QEMU's source.
//!
//! Therefore a seccomp filter stops QEMU's threads at the system calls with which they wait for or wake one another,
//! and notifies the conductor, a thread of this program (`seccomp_unotify(2)`, Linux 5.6):
//!
//! * It delays the wake-ups of the main thread by the CPUs' thread until the CPUs' thread sleeps (all CPUs are idle,
//!   or the machine ends), so that the two never run at the same time.
//! * Only the main thread returns from `clock_nanosleep`, so the RCU thread frees no memory until QEMU ends.
//!
//! If the kernel does not permit the filter (an old kernel, a container with its own listener), QEMU runs without it.

use std::collections::BTreeMap;
use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread::JoinHandle;

use libc::{c_long, seccomp_notif, seccomp_notif_resp, sock_filter, sock_fprog};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::child::pid_fd;

/// Bytes of a write to an eventfd, with which one thread of QEMU wakes another.
const BELL_BYTES: u32 = 8;
/// Mask of the futex operation without its flags. Threads wait for conditions with `FUTEX_WAIT_BITSET`, for locks with
/// `FUTEX_WAIT`.
const FUTEX_COMMAND: u32 = !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME).cast_unsigned();

/// The thread that decides which thread of a QEMU process continues. It ends with QEMU.
#[derive(Debug)]
pub(super) struct Conductor {
    thread: Option<JoinHandle<()>>,
}

impl Conductor {
    /// Installs the filter in `command`. Call it before the command is started, on the thread that starts it.
    pub(super) fn attach(command: &mut Command) -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        // If descriptors cannot be copied, filtered calls would wait forever.
        let this = pid_fd(std::process::id());
        if this.and_then(|this| copy_of(&this, reader.as_raw_fd())).is_err() {
            return Ok(Self { thread: None });
        }
        // SAFETY: between fork and exec the closure makes system calls and allocates nothing.
        unsafe { command.pre_exec(move || put_filter(&writer)) };
        Ok(Self { thread: Some(std::thread::spawn(move || conduct(reader))) })
    }
}

impl Drop for Conductor {
    /// Waits for the thread. QEMU must have ended, and a command that was not started must have been dropped.
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            // If it panicked, QEMU has hung and was killed at its deadline.
            let _ = thread.join();
        }
    }
}

/// In the child: installs the filter and writes the process number and the listener's descriptor to `to`. If the kernel
/// refuses, writes nothing.
fn put_filter(to: &PipeWriter) -> io::Result<()> {
    let filter = filter();
    let program = sock_fprog {
        len: filter.len().try_into().expect("a filter of less than 65,536 instructions"),
        filter: filter.as_ptr().cast_mut(),
    };
    // SAFETY: the program lives until the call has returned, and the kernel only reads it.
    let listener = unsafe {
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 {
            return Ok(());
        }
        let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
        let mode = libc::SECCOMP_SET_MODE_FILTER;
        libc::syscall(libc::SYS_seccomp, mode, flags, &raw const program)
    };
    let Ok(listener @ 0..) = RawFd::try_from(listener) else { return Ok(()) };
    let numbers = [std::process::id().to_ne_bytes(), listener.to_ne_bytes()];
    for four_bytes in numbers {
        nix::unistd::write(to, &four_bytes)?;
    }
    // QEMU inherits the listener, which must exist as long as filtered calls can occur.
    // SAFETY: a flag of a descriptor that is open.
    if unsafe { libc::fcntl(listener, libc::F_SETFD, 0) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// The filter: notifies the conductor of the calls that it decides, and allows all others.
fn filter() -> [sock_filter; 12] {
    const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    const EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    const AND: u32 = libc::BPF_ALU | libc::BPF_AND | libc::BPF_K;
    const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
    /// Offset of the lower half of an argument in `seccomp_data` (little-endian).
    const fn argument(number: usize) -> u32 {
        (std::mem::offset_of!(libc::seccomp_data, args) + 8 * number) as u32
    }
    let line = |code: u32, jt, jf, k| sock_filter { code: code as u16, jt, jf, k };
    let is = |call: c_long, jt, jf| line(EQUAL, jt, jf, call as u32);
    [
        line(LOAD, 0, 0, std::mem::offset_of!(libc::seccomp_data, nr) as u32),
        is(libc::SYS_clock_nanosleep, 9, 0),
        is(libc::SYS_write, 2, 0),
        is(libc::SYS_futex, 3, 0),
        line(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
        line(LOAD, 0, 0, argument(2)),
        line(EQUAL, 4, 3, BELL_BYTES),
        line(LOAD, 0, 0, argument(1)),
        line(AND, 0, 0, FUTEX_COMMAND),
        line(EQUAL, 1, 0, libc::FUTEX_WAIT_BITSET.cast_unsigned()),
        line(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
        line(RETURN, 0, 0, libc::SECCOMP_RET_USER_NOTIF),
    ]
}

/// The conductor's thread. It ends with the last process under the filter.
fn conduct(mut from: PipeReader) {
    let mut number = || {
        let mut bytes = [0; 4];
        from.read_exact(&mut bytes).map(|()| RawFd::from_ne_bytes(bytes))
    };
    // Nothing arrives if the filter could not be installed or the command was not started.
    let (Ok(pid), Ok(listener)) = (number(), number()) else { return };
    // Without the listener, filtered calls wait until the deadline of the run.
    let Ok(process) = pid_fd(pid.cast_unsigned()) else { return };
    let Ok(listener) = copy_of(&process, listener) else { return };
    let mut stage = Stage { main: pid, process, bells: BTreeMap::new() };
    while let Some(call) = next_call(&listener) {
        if let Some(answer) = stage.answer(&call) {
            send(&listener, &answer);
        }
    }
}

/// The next filtered call; `None`: no process is left under the filter, or the kernel reports an error.
fn next_call(listener: &OwnedFd) -> Option<seccomp_notif> {
    loop {
        let mut wait = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
        match poll(&mut wait, PollTimeout::NONE) {
            Ok(_) => {}
            Err(Errno::EINTR) => continue,
            Err(_) => return None,
        }
        if !wait[0].revents().is_some_and(|r| r.contains(PollFlags::POLLIN)) {
            return None;
        }
        // SAFETY: a plain structure, for which all zeros is a value, and which the kernel wants to be zero.
        let mut call: seccomp_notif = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel fills the structure, which is of the size that the request's number holds.
        let received = unsafe {
            libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut call)
        };
        match Errno::result(received) {
            Ok(_) => return Some(call),
            // The caller has died, or a signal arrived.
            Err(Errno::ENOENT | Errno::EINTR) => {}
            Err(_) => return None,
        }
    }
}

fn send(listener: &OwnedFd, answer: &seccomp_notif_resp) {
    // SAFETY: the kernel reads a structure of the size that the request's number holds. It fails if
    // the caller has died.
    unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const *answer)
    };
}

/// A copy of a descriptor of another process, `pidfd_getfd(2)`.
fn copy_of(process: &OwnedFd, descriptor: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: plain numbers.
    let copy = unsafe {
        libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), c_long::from(descriptor), 0)
    };
    let copy = RawFd::try_from(copy).ok().filter(|copy| *copy >= 0);
    let copy = copy.ok_or_else(io::Error::last_os_error)?;
    // SAFETY: the kernel has just created it for this process.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}

/// The conductor's state of a QEMU process.
struct Stage {
    /// Its main thread, whose calls always continue.
    main: libc::pid_t,
    process: OwnedFd,
    /// The eventfds with a delayed write, by their descriptor in QEMU.
    bells: BTreeMap<RawFd, OwnedFd>,
}

impl Stage {
    /// The answer to a call; `None`: the caller waits until QEMU ends.
    fn answer(&mut self, call: &seccomp_notif) -> Option<seccomp_notif_resp> {
        let proceed = seccomp_notif_resp {
            id: call.id,
            val: 0,
            error: 0,
            flags: libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32,
        };
        if call.pid.cast_signed() == self.main {
            return Some(proceed);
        }
        match c_long::from(call.data.nr) {
            libc::SYS_clock_nanosleep => None,
            libc::SYS_write => {
                let Some(bell) = self.bell(call.data.args[0]) else { return Some(proceed) };
                self.bells.insert(bell.0, bell.1);
                let written = seccomp_notif_resp { val: BELL_BYTES.into(), flags: 0, ..proceed };
                Some(written)
            }
            _ => {
                self.ring();
                Some(proceed)
            }
        }
    }

    /// A copy of QEMU's descriptor `number`, if it is an eventfd.
    fn bell(&self, number: u64) -> Option<(RawFd, OwnedFd)> {
        let number = RawFd::try_from(number).ok()?;
        let copy = copy_of(&self.process, number).ok()?;
        let what = std::fs::read_link(format!("/proc/self/fd/{}", copy.as_raw_fd())).ok()?;
        (what.as_os_str() == "anon_inode:[eventfd]").then_some((number, copy))
    }

    /// Performs the delayed writes.
    fn ring(&mut self) {
        for bell in std::mem::take(&mut self.bells).values() {
            // Fails only if the eventfd is already signalled.
            let _ = nix::unistd::write(bell, &1u64.to_ne_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, Condvar, Mutex};
    use std::time::Duration;

    use fairground_testing::unavailable;
    use nix::sys::eventfd::EventFd;

    use super::*;

    /// Environment variable that makes the test program the conducted one.
    const CONDUCTED: &str = "FAIRGROUND_TEST_CONDUCTED";

    fn rung(bell: &EventFd) -> bool {
        let mut look = [PollFd::new(bell.as_fd(), PollFlags::POLLIN)];
        poll(&mut look, PollTimeout::ZERO).expect("it can be polled") == 1
    }

    /// Not a test of its own: the program that the next one conducts. Tests run on another thread than the main one.
    #[test]
    fn conducted() {
        if std::env::var_os(CONDUCTED).is_none() {
            return;
        }
        let bell = EventFd::new().expect("an eventfd");
        bell.write(1).expect("written");
        assert!(!rung(&bell), "kept as long as this thread runs");
        let awake = Arc::new(AtomicBool::new(false));
        let sleeper = Arc::clone(&awake);
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(1));
            sleeper.store(true, Ordering::SeqCst);
        });
        let (lock, condition) = (Mutex::new(()), Condvar::new());
        let held = lock.lock().expect("not poisoned");
        drop(condition.wait_timeout(held, Duration::from_millis(300)).expect("not poisoned"));
        assert!(rung(&bell), "told as soon as it slept");
        assert!(!awake.load(Ordering::SeqCst), "a pause has no end");
    }

    #[test]
    fn what_is_told_waits_for_the_teller_to_sleep_and_pauses_do_not_end() {
        let offered = std::fs::read_to_string("/proc/sys/kernel/seccomp/actions_avail");
        if !offered.is_ok_and(|actions| actions.contains("user_notif")) {
            let reason = "no user notification of filtered system calls (Linux 5.0)";
            return unavailable("user-notification", reason);
        }
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["--exact", "vm::conductor::tests::conducted", "--nocapture"]);
        command.env(CONDUCTED, "1").stdout(Stdio::piped()).stderr(Stdio::piped());
        let conductor = Conductor::attach(&mut command).expect("a thread and a pipe");
        if conductor.thread.is_none() {
            let reason = "descriptors of other processes cannot be copied here";
            return unavailable("user-notification", reason);
        }
        let answer = command.output().expect("it runs");
        // First, so that the conductor ends whatever is found below.
        drop(command);
        let said =
            String::from_utf8_lossy(&answer.stdout) + String::from_utf8_lossy(&answer.stderr);
        assert!(answer.status.success() && said.contains("1 passed"), "{said}");
        // It ends with what it conducted.
        drop(conductor);
    }

    #[test]
    fn a_command_that_cannot_be_started_ends_it() {
        let mut command = Command::new("/nowhere/at/all");
        let conductor = Conductor::attach(&mut command).expect("a thread and a pipe");
        command.spawn().expect_err("no such program");
        drop(command);
        drop(conductor);
    }
}
