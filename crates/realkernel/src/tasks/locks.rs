//! Locks of real processes, in memory that all of them share.
//!
//! * `mutex`: three values and a futex, as U. Drepper describes it ("Futexes Are Tricky", 2011, section 6): free,
//!   taken, taken and perhaps waited for. Who gives it back wakes one waiter, which competes with whoever comes;
//!   there is no handing over.
//! * `rt_mutex` and `rt_spin`: `FUTEX_LOCK_PI`: the kernel's own rt_mutex, with its order, its inheritance and its
//!   spinning on a running owner, which it cannot be told to leave.
//! * `spin`: tickets, first come first served, in user space. The kernel knows nothing of it: a task that has the
//!   lock, or whose ticket is next, can be preempted, and then all spin until it runs again. So there should be no
//!   more tasks than CPUs.
//! * `rwlock`: readers are counted and a writer sets a bit; while a writer waits no reader comes in. Whoever gives it
//!   back as the last wakes all that wait, and these compete.
//!
//! A recording gets the events of contention as marks, with the waiter and who has the lock. Writing one takes about a
//! microsecond of the waiter's time.

use std::sync::atomic::Ordering::SeqCst;

use fairground_workload::LockKind;

use super::futex;
use super::lock_words::LockWords;
use super::shared::Trouble;
use super::task::Task;
use super::text::Line;
use super::usage::errno;

/// Turns of a waiter for a spin lock before it gives its CPU away: more than any section is long.
const SPIN_TURNS: u32 = 10_000;

const FREE: u32 = 0;
const TAKEN: u32 = 1;
const WAITED_FOR: u32 = 2;
/// A writer has it; else the number of its readers.
const WRITER: u32 = 1 << 31;

impl Task<'_> {
    pub(super) fn lock(&self, lock: usize) {
        let words = &self.world.locks[lock];
        let kind = self.world.plan.locks[lock].kind;
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
        let words = &self.world.locks[lock];
        words.holder.store(0, SeqCst);
        match self.world.plan.locks[lock].kind {
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
                    futex::wake(&words.serving, u32::MAX);
                }
            }
            LockKind::RtMutex | LockKind::RtSpin => {
                let own = self.slot.tid.load(SeqCst);
                let alone = words.futex.compare_exchange(own, FREE, SeqCst, SeqCst).is_ok();
                if !alone && !futex::unlock_inheriting(&words.futex) {
                    self.trouble(Trouble::Lock);
                }
            }
        }
    }

    /// True: it had to wait.
    fn lock_mutex(&self, lock: usize, words: &LockWords) -> bool {
        if words.futex.compare_exchange(FREE, TAKEN, SeqCst, SeqCst).is_ok() {
            return false;
        }
        self.contention_begins(lock, "MUTEX");
        // Ends: each further turn is another task that was faster, a signal, or a wake-up for no reason.
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
        words.next.fetch_add(1, SeqCst);
        // Ends: each further turn is another task that was faster, a signal, or a wake-up for no reason.
        loop {
            let seen = words.serving.load(SeqCst);
            if take() {
                break;
            }
            futex::wait(&words.serving, seen, None);
        }
        words.next.fetch_sub(1, SeqCst);
        true
    }

    pub(super) fn read_lock(&self, lock: usize) {
        let words = &self.world.locks[lock];
        let more = |state: u32| (state & WRITER == 0).then(|| state + 1);
        let take = || {
            words.next.load(SeqCst) == 0 && words.futex.fetch_update(SeqCst, SeqCst, more).is_ok()
        };
        let mut waited = false;
        // Ends: as above.
        loop {
            let seen = words.serving.load(SeqCst);
            if take() {
                break;
            }
            if !waited {
                waited = true;
                self.contention_begins(lock, "READ");
            }
            futex::wait(&words.serving, seen, None);
        }
        if waited {
            self.contention_ends(lock);
        }
    }

    fn lock_spin(&self, lock: usize, words: &LockWords) -> bool {
        let ticket = words.next.fetch_add(1, SeqCst);
        if words.serving.load(SeqCst) == ticket {
            return false;
        }
        self.contention_begins(lock, "SPIN");
        let mut turns = 0_u32;
        while words.serving.load(SeqCst) != ticket {
            std::hint::spin_loop();
            turns = turns.wrapping_add(1);
            // So long nobody has it who is running: whoever has it, or is next, gets the CPU.
            if turns.is_multiple_of(SPIN_TURNS) {
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
        // Ends: each further turn is a signal.
        while !futex::lock_inheriting(&words.futex) {
            if !matches!(errno(), libc::EINTR | libc::EAGAIN) {
                self.trouble(Trouble::Lock);
                break;
            }
        }
        true
    }

    fn contention_begins(&self, lock: usize, flags: &str) {
        if self.world.marker.is_none() {
            return;
        }
        let holder = self.world.locks[lock].holder.load(SeqCst);
        let mut line = Line::new();
        line.text("fairground:contention_begin pid=").number(self.slot.tid.load(SeqCst).into());
        line.text(" holder=").number(holder.into()).text(" flags=").text(flags);
        line.text(" lock=").text(&self.world.plan.locks[lock].name);
        self.say(&line);
    }

    fn contention_ends(&self, lock: usize) {
        if self.world.marker.is_none() {
            return;
        }
        let mut line = Line::new();
        line.text("fairground:contention_end pid=").number(self.slot.tid.load(SeqCst).into());
        line.text(" lock=").text(&self.world.plan.locks[lock].name);
        self.say(&line);
    }
}
