//! The monotonic clock and the thread CPU clock.

use std::mem::MaybeUninit;

const NS_PER_S: u64 = 1_000_000_000;

/// Now, ns of the monotonic clock.
pub(crate) fn now_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// CPU time of this thread so far, ns.
pub(super) fn own_cpu_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: the kernel (or the vDSO) fills the time in; these clocks exist on every Linux.
    let time = unsafe {
        libc::clock_gettime(clock, time.as_mut_ptr());
        time.assume_init()
    };
    time.tv_sec as u64 * NS_PER_S + time.tv_nsec as u64
}

fn timespec(ns: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: (ns / NS_PER_S) as libc::time_t,
        tv_nsec: (ns % NS_PER_S) as libc::c_long,
    }
}

/// Sleeps until a time of the monotonic clock, regardless of signals.
pub(crate) fn sleep_until(at_ns: u64) {
    let until = timespec(at_ns);
    loop {
        // SAFETY: the time outlives the call.
        let error = unsafe {
            libc::clock_nanosleep(
                libc::CLOCK_MONOTONIC,
                libc::TIMER_ABSTIME,
                &raw const until,
                std::ptr::null_mut(),
            )
        };
        if error != libc::EINTR {
            return;
        }
    }
}

/// Sleeps for a duration. At each signal, calls back whether to sleep for the rest.
pub(super) fn sleep_for(length_ns: u64, mut go_on: impl FnMut() -> bool) {
    let mut left = timespec(length_ns);
    loop {
        let requested = left;
        // SAFETY: both times outlive the call.
        let error = unsafe {
            libc::clock_nanosleep(libc::CLOCK_MONOTONIC, 0, &raw const requested, &raw mut left)
        };
        if error != libc::EINTR || !go_on() {
            return;
        }
    }
}
