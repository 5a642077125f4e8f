//! CPU accounting of processes.

use std::fs;

use nix::sys::resource::{UsageWho, getrusage};

/// The accounting of a process that has been waited for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Used {
    pub(super) figures: [u64; 4],
    pub(super) schedstat: Option<(u64, u64)>,
}

/// CPU time and run-queue waiting time, ns (`/proc/PID/schedstat`); `None` if the kernel does not account them.
pub(super) fn schedstat(pid: u32) -> Option<(u64, u64)> {
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
    let mut words = text.split_whitespace().map(str::parse);
    match (words.next(), words.next()) {
        // A kernel without the accounting reports 0 for every process.
        (Some(Ok(run)), Some(Ok(wait))) if run > 0 || wait > 0 => Some((run, wait)),
        _ => None,
    }
}

/// User and system time in µs, voluntary and involuntary switches of this process or thread.
pub(super) fn own_usage(who: UsageWho) -> [u64; 4] {
    getrusage(who).map_or([0; 4], |usage| figures(usage.as_ref()))
}

/// User and system time in µs, voluntary and involuntary switches of a usage.
pub(super) fn figures(usage: &libc::rusage) -> [u64; 4] {
    let us = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
    [us(usage.ru_utime), us(usage.ru_stime), usage.ru_nvcsw as u64, usage.ru_nivcsw as u64]
}
