//! Locks: their owners, their waiters, and the order in which they are handed over.
//!
//! * `spin`: `queued_spin_lock_slowpath` of Linux: waiters spin in the order of arrival, and the lock goes directly to
//!   the first of them. A task that holds it, or spins for it, cannot be preempted.
//! * `mutex`: a futex with the values free, taken, and taken and possibly contended (U. Drepper, "Futexes Are Tricky",
//!   2011, section 6). It is free before the system call that wakes the first waiter. That one competes with the tasks
//!   that arrive meanwhile; when it loses, it waits again behind the others. Nothing is handed over. The word of one
//!   that has waited says contended, so that its release is a system call, whether others wait or not.
//! * `rt_mutex`: `kernel/locking/rtmutex.c`: waiters are ordered by priority, and equal ones by arrival.
//!   `__waiter_prio` makes all tasks that are neither real-time nor deadline tasks equal, and all tasks here are of
//!   that kind: the order is that of arrival, and no task inherits a priority. Unlocking wakes the first, and until
//!   that one takes it no other may. The futex's word of one to which it was handed over has `FUTEX_WAITERS`, so that
//!   its release is a system call, too (`wake_futex_pi`).
//! * `rt_spin`: the same as in `rtlock_slowlock`, where an equal one that arrives at that moment may take the lock
//!   first (`rt_mutex_steal`, the lateral steal). With `steal = false` none may, as in the -rt kernels before 2008.
//! * `rwlock`: a word with the number of readers or a writer, and a futex. New readers wait while a writer waits. The
//!   release that frees it wakes all that wait, and they compete.
//!
//! Of `rt_mutex` and `rt_spin`, the first waiter spins as long as the owner is running (`rtmutex_spin_on_owner`).

use std::collections::BTreeSet;

use fairground_workload::LockKind;

use super::actor::{CallPart, Phase, WaitLink};
use super::code::Step;
use super::effect::{ActorId, Effect, Need};
use super::error::ActorError;
use super::state::Actors;

/// Links of a cycle of waiting tasks that a message shows.
const CHAIN_SHOWN_MAX: usize = 16;

impl Actors {
    /// The kind of a lock.
    pub(crate) fn lock_kind(&self, lock: u32) -> LockKind {
        self.locks[lock as usize].kind
    }

    /// The name of a lock.
    pub(crate) fn lock_name(&self, lock: u32) -> &str {
        &self.locks[lock as usize].name
    }

    /// Whether an arriving or woken actor may take a lock.
    pub(super) fn is_free_for(&self, id: u32, lock: u32, shared: bool) -> bool {
        let actor = &self.actors[id as usize];
        let waited = actor.frames[actor.level].progress > 0;
        let first = self.shared.first(self.shared.lockers(lock));
        self.locks[lock as usize].is_free_for(id, waited, shared, first)
    }

    /// Takes a free lock in user mode, or begins to wait for it.
    pub(super) fn begin_lock(
        &mut self,
        id: u32,
        step: Step,
        (lock, shared): (u32, bool),
        effects: &mut Vec<Effect>,
    ) -> Option<Need> {
        if self.is_free_for(id, lock, shared) {
            self.take_lock(id, lock, shared, effects);
            return self.finish(id);
        }
        let state = &mut self.locks[lock as usize];
        match state.kind {
            LockKind::Mutex => state.contended = true,
            LockKind::RwLock => {
                state.waiting += 1;
                state.writers += u32::from(!shared);
            }
            LockKind::RtMutex | LockKind::RtSpin | LockKind::Spin => {}
        }
        self.enter(id, step)
    }

    /// The actor becomes the owner of the lock.
    pub(super) fn take_lock(
        &mut self,
        id: u32,
        lock: u32,
        shared: bool,
        effects: &mut Vec<Effect>,
    ) {
        let state = &mut self.locks[lock as usize];
        match shared {
            false => state.owner = Some(id),
            true if state.readers.contains(&id) => {}
            true => state.readers.push(id),
        }
        let kind = state.kind;
        let waited = self.actors[id as usize].frame().progress > 0;
        let in_queue = self.actors[id as usize].wait != WaitLink::FREE;
        // One that goes without waiting sets the word to its plain value.
        state.contended = in_queue;
        if in_queue {
            self.shared.leave(&mut self.actors, id);
        }
        self.actors[id as usize].held += 1;
        if waited {
            effects.push(Effect::ContentionEnd { lock });
        } else {
            self.enter_section(id, kind, effects);
        }
    }

    /// The actor is inside the kernel from the moment at which it asks for a spin lock.
    fn enter_section(&mut self, id: u32, kind: LockKind, effects: &mut Vec<Effect>) {
        let actor = &mut self.actors[id as usize];
        actor.in_kernel += u32::from(kind.is_atomic());
        if kind == LockKind::Spin {
            actor.unpreempted += 1;
            if actor.unpreempted == 1 {
                effects.push(Effect::Preempt { off: true });
            }
        }
    }

    fn leave_section(&mut self, id: u32, kind: LockKind, effects: &mut Vec<Effect>) {
        let actor = &mut self.actors[id as usize];
        actor.held -= 1;
        actor.in_kernel -= u32::from(kind.is_atomic());
        if kind == LockKind::Spin {
            actor.unpreempted -= 1;
            if actor.unpreempted == 0 {
                effects.push(Effect::Preempt { off: false });
            }
        }
    }

    /// In the system call of an actor that found a lock taken, or tries again after a wake-up.
    pub(super) fn lock(
        &mut self,
        id: u32,
        step: Step,
        (lock, shared): (u32, bool),
        now_ns: u64,
        effects: &mut Vec<Effect>,
    ) -> Result<Option<Need>, Box<ActorError>> {
        if self.is_free_for(id, lock, shared) {
            self.take_lock(id, lock, shared, effects);
            self.got_after_all(lock, shared);
            return Ok(self.finish(id));
        }
        let kind = self.locks[lock as usize].kind;
        if self.holds(id, lock) && !(self.hangs && kind == LockKind::Mutex) {
            let problem = format!("takes the lock `{}`, which it holds", self.lock_name(lock));
            return Err(self.misuse(id, problem, now_ns));
        }
        let state = &mut self.locks[lock as usize];
        state.contended = true;
        let owner = state.owner;
        self.begin_waiting(id, lock, shared, effects);
        let list = self.shared.lockers(lock);
        if matches!(kind, LockKind::Mutex | LockKind::RwLock) {
            self.find_deadlock(id, lock, now_ns)?;
            return Ok(self.wait_again(id, step, list));
        }
        if self.actors[id as usize].takes_signal() {
            self.leave_queue(id);
            self.actors[id as usize].frame().phase = Phase::Retry;
            return Ok(None);
        }
        if self.actors[id as usize].wait == WaitLink::FREE {
            self.shared.wait(&mut self.actors, list, id);
        }
        self.find_deadlock(id, lock, now_ns)?;
        let first = self.shared.first(list) == Some(id);
        let frame = self.actors[id as usize].frame();
        if kind == LockKind::Spin {
            frame.phase = Phase::Spinning;
            return Ok(Some(Need::Spin));
        }
        if let Some(owner) = owner
            && first
            && self.locks[lock as usize].adaptive
        {
            frame.phase = Phase::Spinning;
            return Ok(Some(Need::SpinOn { owner: u64::from(owner) }));
        }
        frame.phase = Phase::Waiting;
        Ok(Some(self.lock_sleep(kind)))
    }

    /// An actor that did not get the lock in user mode has it now.
    fn got_after_all(&mut self, lock: u32, shared: bool) {
        let state = &mut self.locks[lock as usize];
        match state.kind {
            // Its word said contended all the time.
            LockKind::Mutex => state.contended = true,
            LockKind::RwLock => {
                state.waiting -= 1;
                state.writers -= u32::from(!shared);
            }
            LockKind::RtMutex | LockKind::RtSpin | LockKind::Spin => {}
        }
    }

    /// How a waiter sleeps: one inside the kernel in a state that no signal ends (`TASK_RTLOCK_WAIT`).
    fn lock_sleep(&self, kind: LockKind) -> Need {
        if kind.is_atomic() { Need::BlockHard } else { Need::Block }
    }

    /// Reports that the actor waits, once for each owner of the lock.
    fn begin_waiting(&mut self, id: u32, lock: u32, shared: bool, effects: &mut Vec<Effect>) {
        let state = &self.locks[lock as usize];
        let reader = match state.readers.as_slice() {
            [only] => Some(*only),
            _ => None,
        };
        let (kind, holder) = (state.kind, state.owner.or(reader));
        let told = holder.map_or(u64::from(u32::MAX), u64::from) + 1;
        let frame = self.actors[id as usize].frame();
        let first_time = frame.progress == 0;
        if frame.progress != told {
            frame.progress = told;
            let holder = holder.map(ActorId);
            effects.push(Effect::ContentionBegin { lock, holder, shared });
        }
        if first_time {
            self.enter_section(id, kind, effects);
        }
    }

    /// A waiter that spins while the owner runs stops doing so. What it needs instead; `None`: it handles a signal
    /// first.
    pub(crate) fn stop_spinning(&mut self, actor: ActorId) -> Option<Need> {
        let id = actor.0;
        let frame = self.actors[id as usize].frame();
        let step = self.code.steps[frame.pc as usize];
        if frame.phase != Phase::Spinning {
            return None;
        }
        if self.spins_for_pipe(id, step) {
            self.actors[id as usize].frame().phase = Phase::Waiting;
            return Some(Need::BlockHard);
        }
        let Step::Lock { lock, .. } = step else { return None };
        if self.actors[id as usize].takes_signal() {
            self.leave_queue(id);
            self.actors[id as usize].frame().phase = Phase::Retry;
            return None;
        }
        self.actors[id as usize].frame().phase = Phase::Waiting;
        Some(self.lock_sleep(self.locks[lock as usize].kind))
    }

    /// In the system call of an actor that releases a lock, or does not hold it.
    pub(super) fn unlock(
        &mut self,
        id: u32,
        lock: u32,
        now_ns: u64,
        effects: &mut Vec<Effect>,
    ) -> Result<Option<Need>, Box<ActorError>> {
        if self.actors[id as usize].frame().part == CallPart::Whole && !self.holds(id, lock) {
            let name = &self.locks[lock as usize].name;
            let problem = format!("releases the lock `{name}`, which it does not hold");
            return Err(self.misuse(id, problem, now_ns));
        }
        if self.locks[lock as usize].kind == LockKind::RwLock {
            return Ok(self.wake_all(id, self.shared.lockers(lock), effects));
        }
        self.release_in_call(id, lock, effects);
        Ok(self.finish(id))
    }

    /// Whether the actor holds the lock, alone or with others.
    pub(super) fn holds(&self, id: u32, lock: u32) -> bool {
        self.locks[lock as usize].is_held_by(id)
    }

    /// Releases a lock that the actor holds as far as that happens in user mode. True: all is done; false: a system
    /// call follows, for [`Actors::release_in_call`].
    pub(super) fn release_in_user_mode(
        &mut self,
        id: u32,
        lock: u32,
        effects: &mut Vec<Effect>,
    ) -> bool {
        let state = &mut self.locks[lock as usize];
        let wakes = match state.kind {
            LockKind::RtMutex if state.contended => return false,
            LockKind::RtMutex | LockKind::RtSpin | LockKind::Spin => {
                self.release_to_first(id, lock, effects);
                return true;
            }
            LockKind::Mutex => {
                state.owner = None;
                std::mem::take(&mut state.contended)
            }
            LockKind::RwLock => {
                state.owner = None;
                state.readers.retain(|reader| *reader != id);
                state.readers.is_empty() && state.waiting > 0
            }
        };
        let kind = state.kind;
        self.leave_section(id, kind, effects);
        if wakes {
            self.actors[id as usize].frame().part = CallPart::Wake;
        }
        !wakes
    }

    /// The system call of a release of one that is no rwlock: a mutex wakes the first that waits; an rt_mutex is
    /// released here.
    pub(super) fn release_in_call(&mut self, id: u32, lock: u32, effects: &mut Vec<Effect>) {
        let list = self.shared.lockers(lock);
        match self.locks[lock as usize].kind {
            LockKind::Mutex => {
                self.wake_first(list, false, effects);
            }
            LockKind::RwLock => {}
            LockKind::RtMutex | LockKind::RtSpin | LockKind::Spin => {
                self.release_to_first(id, lock, effects);
            }
        }
    }

    /// Releases a lock that only the first waiter may take next, and wakes that one.
    fn release_to_first(&mut self, id: u32, lock: u32, effects: &mut Vec<Effect>) {
        let first = self.shared.first(self.shared.lockers(lock));
        let state = &mut self.locks[lock as usize];
        let kind = state.kind;
        (state.owner, state.contended) = (None, false);
        if let Some(first) = first {
            if kind == LockKind::Spin {
                self.locks[lock as usize].owner = Some(first);
                self.shared.leave(&mut self.actors, first);
            }
            let frame = self.actors[first as usize].frame();
            match frame.phase {
                Phase::Waiting => {
                    frame.phase = Phase::Ready;
                    effects.push(Effect::Wake { actor: ActorId(first), sync: false });
                }
                Phase::Spinning => {
                    frame.phase = Phase::Ready;
                    effects.push(Effect::SpinOver { actor: ActorId(first) });
                }
                // It was woken before and has not run yet.
                _ => {}
            }
        }
        self.leave_section(id, kind, effects);
    }

    /// Removes an actor from the list that it waits in, if any.
    pub(super) fn leave_queue(&mut self, id: u32) {
        self.shared.leave(&mut self.actors, id);
    }

    /// A task must not exit with a lock.
    pub(super) fn ends_without_locks(&self, id: u32, now_ns: u64) -> Result<(), Box<ActorError>> {
        if self.actors[id as usize].held == 0 {
            return Ok(());
        }
        let held = (0..self.locks.len() as u32).find(|lock| self.holds(id, *lock));
        let name = held.map_or("", |lock| self.lock_name(lock));
        Err(self.misuse(id, format!("exits while it holds the lock `{name}`"), now_ns))
    }

    pub(super) fn misuse(&self, id: u32, problem: String, time_ns: u64) -> Box<ActorError> {
        Box::new(ActorError::LockMisuse { task: self.task_name(ActorId(id)), problem, time_ns })
    }

    /// The lock that an actor waits for.
    fn wanted_lock(&self, id: u32) -> Option<u32> {
        let actor = &self.actors[id as usize];
        let frame = &actor.frames[actor.level];
        match (frame.phase, self.code.steps[frame.pc as usize]) {
            (Phase::Waiting | Phase::Spinning, Step::Lock { lock, .. }) => Some(lock),
            _ => None,
        }
    }

    /// Whether an owner of the lock waits, through others, for the actor that begins to wait for it now. Each new wait
    /// is checked, so every cycle is found. Visits no actor twice.
    fn find_deadlock(&self, id: u32, lock: u32, time_ns: u64) -> Result<(), Box<ActorError>> {
        // Nearly always the owner waits for no lock, and there is no cycle.
        let mut holders = self.locks[lock as usize].holders();
        if holders.all(|holder| self.wanted_lock(holder).is_none()) {
            return Ok(());
        }
        // Which actor waits for which lock, and which has that: each link with the one before it.
        let mut links: Vec<(u32, u32, u32, usize)> = Vec::new();
        let mut seen = BTreeSet::new();
        let mut next = vec![(id, lock, usize::MAX)];
        while let Some((waiter, wanted, before)) = next.pop() {
            for holder in self.locks[wanted as usize].holders() {
                let link = links.len();
                links.push((waiter, wanted, holder, before));
                if holder == id {
                    let circle = circle(&links);
                    let is_mutex = |lock: u32| self.locks[lock as usize].kind == LockKind::Mutex;
                    if self.hangs && circle.iter().all(|&(_, lock, _)| is_mutex(lock)) {
                        return Ok(());
                    }
                    let chain = self.chain(&circle);
                    return Err(Box::new(ActorError::Deadlock { chain, time_ns }));
                }
                if seen.insert(holder)
                    && let Some(lock) = self.wanted_lock(holder)
                {
                    next.push((holder, lock, link));
                }
            }
        }
        Ok(())
    }

    /// A circle in words.
    fn chain(&self, circle: &[(u32, u32, u32)]) -> String {
        let name = |id: u32| self.task_name(ActorId(id));
        let shown = circle.iter().take(CHAIN_SHOWN_MAX).map(|&(waiter, lock, holder)| {
            let (waiter, lock, holder) = (name(waiter), self.lock_name(lock), name(holder));
            format!("`{waiter}` waits for the lock `{lock}`, which `{holder}` has")
        });
        let mut text = shown.collect::<Vec<_>>().join("; ");
        if circle.len() > CHAIN_SHOWN_MAX {
            text.push_str(&format!("; and {} more", circle.len() - CHAIN_SHOWN_MAX));
        }
        text
    }
}

/// The circle that the last link closes, from its beginning: which actor waits for which lock, and which has that.
fn circle(links: &[(u32, u32, u32, usize)]) -> Vec<(u32, u32, u32)> {
    let mut circle = Vec::new();
    let mut at = links.len() - 1;
    while let Some(&(waiter, lock, holder, before)) = links.get(at) {
        circle.push((waiter, lock, holder));
        at = before;
    }
    circle.reverse();
    circle
}
