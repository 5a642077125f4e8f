//! Waiting for a number in shared memory to change, and the kernel's locks with priority inheritance.

use std::sync::atomic::AtomicU32;

/// Sleeps while the word holds `expected`, at most `limit_ns` when given. Returns at a wake-up, at a signal, at the
/// limit, and for no reason: the caller looks again.
pub(super) fn wait(word: &AtomicU32, expected: u32, limit_ns: Option<u64>) {
    let limit = limit_ns.map(|ns| libc::timespec {
        tv_sec: (ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (ns % 1_000_000_000) as libc::c_long,
    });
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the word and the limit outlive the call; the word is shared between processes, so no private futex.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, expected, limit);
    }
}

/// Wakes at most `count` of those who wait for the word, those who have waited longest first.
pub(super) fn wake(word: &AtomicU32, count: u32) {
    let count = count.min(i32::MAX as u32);
    // SAFETY: the kernel uses the address as a key only.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, count);
    }
}

/// Takes a lock with priority inheritance for the calling task; waits while another one has it. False: the error
/// number says why not.
pub(super) fn lock_inheriting(word: &AtomicU32) -> bool {
    // SAFETY: the word outlives the call, and is shared between processes, so no private futex.
    let done = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_LOCK_PI,
            0,
            std::ptr::null::<libc::timespec>(),
        )
    };
    done == 0
}

/// Gives a lock with priority inheritance back that the calling task has and others wait for. False: the error number
/// says why not.
pub(super) fn unlock_inheriting(word: &AtomicU32) -> bool {
    // SAFETY: as above.
    let done = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_UNLOCK_PI) };
    done == 0
}
