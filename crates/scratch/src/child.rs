//! Children that die with their parent, and the start times by which processes of one number are told apart.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sys::prctl::set_pdeathsig;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::Signal;

/// Makes the kernel kill the child when the thread that starts it ends.
pub fn die_with_parent(command: &mut Command) {
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

/// Limits a child's memory and its processor time. What exceeds them fails there or ends it.
pub fn limit(command: &mut Command, memory_bytes: u64, processor_s: u64) {
    let set = move || {
        setrlimit(Resource::RLIMIT_AS, memory_bytes, memory_bytes)?;
        setrlimit(Resource::RLIMIT_CPU, processor_s, processor_s)?;
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes two system calls and allocates nothing.
    unsafe { command.pre_exec(set) };
}

/// Start time of a process in clock ticks since boot (field 22 of `/proc/PID/stat`); `None` if it does not exist.
pub fn start_time(pid: u32) -> Option<u64> {
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
