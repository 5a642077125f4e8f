//! A lock: its owner, its waiters, and which of them may take it.

use fairground_workload::{LockKind, Workload};

/// A lock of the workload.
#[derive(Clone, Debug)]
pub(super) struct LockState {
    pub(super) name: String,
    pub(super) kind: LockKind,
    pub(super) adaptive: bool,
    pub(super) steal: bool,
    pub(super) owner: Option<u32>,
    /// Of an rwlock that has no owner.
    pub(super) readers: Vec<u32>,
    /// Its owner has to call the kernel to release it: others wait, or have waited (a mutex, an rt_mutex).
    pub(super) contended: bool,
    /// Actors that wait for an rwlock or are about to, until they have it.
    pub(super) waiting: u32,
    /// Those of them that are writers.
    pub(super) writers: u32,
}

impl LockState {
    pub(super) fn of(workload: &Workload) -> Vec<LockState> {
        let locks = workload.locks.iter().map(|lock| LockState {
            name: lock.name.clone(),
            kind: lock.kind,
            adaptive: lock.adaptive && lock.kind.inherits(),
            steal: lock.steal,
            owner: None,
            readers: Vec::new(),
            contended: false,
            waiting: 0,
            writers: 0,
        });
        locks.collect()
    }

    /// The actors that have it.
    pub(super) fn holders(&self) -> impl Iterator<Item = u32> {
        self.owner.iter().chain(&self.readers).copied()
    }

    /// Whether the actor holds it, alone or with others.
    pub(super) fn is_held_by(&self, id: u32) -> bool {
        self.owner == Some(id) || self.readers.contains(&id)
    }

    /// Whether an actor that comes, or was woken after it has `waited`, may take it. `first`: of those that wait.
    pub(super) fn is_free_for(
        &self,
        id: u32,
        waited: bool,
        shared: bool,
        first: Option<u32>,
    ) -> bool {
        if self.owner.is_some() {
            // A spin lock was handed over to one that waited.
            return waited && self.owner == Some(id) && self.kind == LockKind::Spin;
        }
        match self.kind {
            LockKind::RwLock if shared => self.writers == 0,
            LockKind::RwLock => self.readers.is_empty(),
            LockKind::RtSpin if self.steal => true,
            LockKind::RtMutex | LockKind::RtSpin => first.is_none_or(|first| first == id),
            LockKind::Spin | LockKind::Mutex => true,
        }
    }
}
