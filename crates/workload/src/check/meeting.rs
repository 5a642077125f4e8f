//! Locks, conditions and barriers on the ideal machine.

use super::execution::{Execution, State, Wait};

/// The state of a wait for a condition, stored as the rest of its operation: the lock is released.
const RELEASED: u64 = 0;
/// It was notified and waits for the lock.
const NOTIFIED: u64 = 1;

impl Execution<'_> {
    pub(super) fn lock(&mut self, task: usize, lock: usize, shared: bool) {
        let state = &mut self.locks[lock];
        let free = state.holders.is_empty() || (shared && state.shared && state.waiters.is_empty());
        if free {
            state.holders.push(task);
            state.shared = shared;
            self.advance(task);
        } else {
            state.waiters.push_back((task, shared));
            self.tasks[task].state = State::Blocked(Wait::Lock(lock));
        }
    }

    /// Passes the lock to the task that has waited longest, and to all readers with a reader: any rule that loses no
    /// wake-up has the same outcome.
    pub(super) fn unlock(&mut self, task: usize, lock: usize) {
        let state = &mut self.locks[lock];
        state.holders.retain(|&holder| holder != task);
        if !state.holders.is_empty() {
            return;
        }
        let Some((first, shared)) = state.waiters.pop_front() else { return };
        let mut next = vec![first];
        if shared {
            next.extend(state.waiters.iter().filter(|(_, shared)| *shared).map(|(task, _)| *task));
            state.waiters.retain(|(_, shared)| !shared);
        }
        state.shared = shared;
        state.holders.clone_from(&next);
        for task in next {
            self.advance(task);
            self.wake(Some(task));
        }
    }

    pub(super) fn condition_wait(&mut self, task: usize, condition: usize, lock: usize) {
        let rest = self.rest(task);
        if rest == Some(NOTIFIED) {
            return self.lock(task, lock, false);
        }
        if rest.is_none() {
            self.set_rest(task, RELEASED);
            self.unlock(task, lock);
        }
        self.conditions[condition].push_back(task);
        self.tasks[task].state = State::Blocked(Wait::Condition(condition));
    }

    pub(super) fn notify(&mut self, task: usize, condition: usize, count: usize) {
        self.advance(task);
        for _ in 0..count.min(self.conditions[condition].len()) {
            if let Some(waiter) = self.conditions[condition].pop_front() {
                self.set_rest(waiter, NOTIFIED);
                self.wake(Some(waiter));
            }
        }
    }

    /// The rest of the operation is one more than the number of times that the barrier had opened on arrival.
    pub(super) fn meet(&mut self, task: usize, barrier: usize) {
        let count = self.workload.barriers[barrier].count;
        let rest = self.rest(task);
        let state = &mut self.barriers[barrier];
        match rest {
            Some(opened) if opened != state.opened + 1 => return self.advance(task),
            Some(_) => {}
            None => state.come += 1,
        }
        if rest.is_none() && state.come >= count {
            state.come = 0;
            state.opened += 1;
            let waiters = std::mem::take(&mut state.waiters);
            self.advance(task);
            for waiter in waiters {
                self.advance(waiter);
                self.wake(Some(waiter));
            }
            return;
        }
        state.waiters.push(task);
        let rest = state.opened + 1;
        self.set_rest(task, rest);
        self.tasks[task].state = State::Blocked(Wait::Barrier(barrier));
    }
}
