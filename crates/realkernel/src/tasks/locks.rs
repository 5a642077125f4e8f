//! Locks of real processes, in shared memory.
//!
//! * `mutex`: a futex with three values (U. Drepper, "Futexes Are Tricky", 2011, section 6): free, taken, taken and
//!   possibly contended. An unlock wakes one waiter, which competes with other tasks: there is no hand-off.
//! * `rt_mutex` and `rt_spin`: `FUTEX_LOCK_PI`, the kernel's rt_mutex, with its order, priority inheritance and
//!   adaptive spinning, which cannot be disabled.
//! * `spin`: a ticket lock in user space. The kernel does not know it: the owner or the next waiter can be preempted,
//!   and then all others spin until it runs again. Therefore there should be no more tasks than CPUs.
//! * `rwlock`: a counter of readers and a writer bit. New readers wait while a writer waits. The unlock that frees it
//!   wakes all waiters, if there are any, and they compete.
//!
//! Contention events are recorded as marks with the waiter and the owner. Writing a mark takes about a microsecond of
//! the waiter's time.

use std::sync::atomic::Ordering::SeqCst;

use fairground_workload::LockKind;
use nix::errno::Errno;

use super::futex;
use super::shared::{FailedOperation, LockWords};
use super::task::Task;

/// Iterations after which a waiter for a spin lock yields its CPU: longer than any critical section.
const SPIN_ITERATIONS: u32 = 10_000;

const FREE: u32 = 0;
const TAKEN: u32 = 1;
const WAITED_FOR: u32 = 2;
/// The writer bit; without it, the word is the number of readers.
const WRITER: u32 = 1 << 31;

impl Task<'_> {
    pub(super) fn lock(&self, lock: usize) {
        let words = &self.shared.locks[lock];
        let kind = self.shared.plan.locks[lock].kind;
        let waited = match kind {
            LockKind::Mutex => self.lock_mutex(lock, words),
            LockKind::Spin => self.lock_spin(lock, words),
            LockKind::RtMutex | LockKind::RtSpin => self.lock_inheriting(lock, words),
            LockKind::RwLock => self.write_lock(lock, words),
        };
        words.holder.store(self.slot.tid.load(SeqCst), SeqCst);
        if waited {
            self.contention_ends(lock);
        }
    }

    pub(super) fn unlock(&self, lock: usize) {
        let words = &self.shared.locks[lock];
        words.holder.store(0, SeqCst);
        match self.shared.plan.locks[lock].kind {
            LockKind::Mutex => {
                if words.futex.swap(FREE, SeqCst) == WAITED_FOR {
                    futex::wake(&words.futex, 1);
                }
            }
            LockKind::Spin => {
                words.serving.fetch_add(1, SeqCst);
            }
            LockKind::RwLock => {
                let state = &words.futex;
                let left = match state.load(SeqCst) & WRITER {
                    0 => state.fetch_sub(1, SeqCst) - 1,
                    _ => {
                        state.store(FREE, SeqCst);
                        FREE
                    }
                };
                if left == FREE {
                    words.serving.fetch_add(1, SeqCst);
                    // A task that is counted after this load finds the lock free.
                    if words.waiting.load(SeqCst) > 0 {
                        futex::wake(&words.serving, u32::MAX);
                    }
                }
            }
            LockKind::RtMutex | LockKind::RtSpin => {
                let own = self.slot.tid.load(SeqCst);
                let alone = words.futex.compare_exchange(own, FREE, SeqCst, SeqCst).is_ok();
                if !alone && !futex::unlock_inheriting(&words.futex) {
                    self.record_failure(FailedOperation::Lock);
                }
            }
        }
    }

    /// Returns whether it waited.
    fn lock_mutex(&self, lock: usize, words: &LockWords) -> bool {
        if words.futex.compare_exchange(FREE, TAKEN, SeqCst, SeqCst).is_ok() {
            return false;
        }
        self.contention_begins(lock, "MUTEX");
        // Terminates: each further iteration is due to a faster task, a signal, or a spurious wake-up.
        while words.futex.swap(WAITED_FOR, SeqCst) != FREE {
            futex::wait(&words.futex, WAITED_FOR, None);
        }
        true
    }

    fn write_lock(&self, lock: usize, words: &LockWords) -> bool {
        let take = || words.futex.compare_exchange(FREE, WRITER, SeqCst, SeqCst).is_ok();
        if take() {
            return false;
        }
        self.contention_begins(lock, "WRITE");
        words.waiting.fetch_add(1, SeqCst);
        words.next.fetch_add(1, SeqCst);
        // Terminates: each further iteration is due to a faster task, a signal, or a spurious wake-up.
        loop {
            let seen = words.serving.load(SeqCst);
            if take() {
                break;
            }
            futex::wait(&words.serving, seen, None);
        }
        words.next.fetch_sub(1, SeqCst);
        words.waiting.fetch_sub(1, SeqCst);
        true
    }

    pub(super) fn read_lock(&self, lock: usize) {
        let words = &self.shared.locks[lock];
        let more = |state: u32| (state & WRITER == 0).then(|| state + 1);
        let take = || {
            words.next.load(SeqCst) == 0 && words.futex.fetch_update(SeqCst, SeqCst, more).is_ok()
        };
        if take() {
            return;
        }
        self.contention_begins(lock, "READ");
        words.waiting.fetch_add(1, SeqCst);
        // Terminates as above.
        loop {
            let seen = words.serving.load(SeqCst);
            if take() {
                break;
            }
            futex::wait(&words.serving, seen, None);
        }
        words.waiting.fetch_sub(1, SeqCst);
        self.contention_ends(lock);
    }

    fn lock_spin(&self, lock: usize, words: &LockWords) -> bool {
        let ticket = words.next.fetch_add(1, SeqCst);
        if words.serving.load(SeqCst) == ticket {
            return false;
        }
        self.contention_begins(lock, "SPIN");
        let mut iterations = 0_u32;
        while words.serving.load(SeqCst) != ticket {
            std::hint::spin_loop();
            iterations = iterations.wrapping_add(1);
            // After so many iterations, the owner or the next waiter is not running: yield the CPU to it.
            if iterations.is_multiple_of(SPIN_ITERATIONS) {
                // SAFETY: takes no arguments.
                unsafe { libc::sched_yield() };
            }
        }
        true
    }

    fn lock_inheriting(&self, lock: usize, words: &LockWords) -> bool {
        let own = self.slot.tid.load(SeqCst);
        if words.futex.compare_exchange(FREE, own, SeqCst, SeqCst).is_ok() {
            return false;
        }
        self.contention_begins(lock, "RT");
        // Terminates: each further iteration is due to a signal.
        while !futex::lock_inheriting(&words.futex) {
            if !matches!(Errno::last_raw(), libc::EINTR | libc::EAGAIN) {
                self.record_failure(FailedOperation::Lock);
                break;
            }
        }
        true
    }

    fn contention_begins(&self, lock: usize, flags: &str) {
        let holder = self.shared.locks[lock].holder.load(SeqCst);
        let pid = self.slot.tid.load(SeqCst);
        let name = &self.shared.plan.locks[lock].name;
        self.write_marker(format_args!(
            "fairground:contention_begin pid={pid} holder={holder} flags={flags} lock={name}"
        ));
    }

    fn contention_ends(&self, lock: usize) {
        let pid = self.slot.tid.load(SeqCst);
        let name = &self.shared.plan.locks[lock].name;
        self.write_marker(format_args!("fairground:contention_end pid={pid} lock={name}"));
    }
}
