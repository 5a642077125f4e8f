//! Tasks that spin because the owner of a lock runs (`rtmutex_spin_on_owner`).

use super::Slot;

/// The owners, each with the task that spins. At most one on each CPU.
#[derive(Debug, Default)]
pub(crate) struct Spinners(Vec<(Slot, Slot)>);

impl Spinners {
    /// Whether no task spins.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A task spins on an owner from now on.
    pub(crate) fn add(&mut self, owner: Slot, spinner: Slot) {
        self.0.push((owner, spinner));
    }

    /// A task that spins on an owner.
    #[inline]
    pub(crate) fn on(&self, owner: Slot) -> Option<Slot> {
        let found = self.0.iter().find(|(known, _)| *known == owner);
        found.map(|(_, spinner)| *spinner)
    }

    /// A task does not spin any more. False: it did not.
    pub(crate) fn remove(&mut self, spinner: Slot) -> bool {
        let at = self.0.iter().position(|(_, known)| *known == spinner);
        at.map(|at| self.0.swap_remove(at)).is_some()
    }
}
