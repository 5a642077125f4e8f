//! Tasks as events name them: a pid with a name and a scheduling class. Each distinct identity is kept once. Until it
//! is known which task it means at the time of an event, the event has its number as [`TaskId`].
//!
//! The threads of a reader share one table. Numbers depend on which thread asks first; only their equality counts.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::TaskId;

/// In place of an identity: the task that the CPU runs, which the event does not name.
pub(super) const NOT_NAMED: TaskId = TaskId(u32::MAX);

/// A task as a line or record names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Named<'a> {
    pub(super) pid: u32,
    pub(super) comm: &'a str,
    /// The kernel's priority; 100…139 are the nice values.
    pub(super) prio: Option<i32>,
}

/// A task's scheduling class, as far as an event shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Class {
    /// The event has no priority.
    Unknown,
    Nice(i8),
    /// Real-time, deadline or stop.
    Other,
}

impl Class {
    /// From the kernel's priority: 100…139 are nice −20…19 (`NICE_TO_PRIO`).
    fn of(prio: Option<i32>) -> Self {
        match prio {
            None => Self::Unknown,
            Some(prio @ 100..=139) => Self::Nice((prio - 120) as i8),
            Some(_) => Self::Other,
        }
    }
}

/// A task as an event names it.
#[derive(Clone, Debug)]
pub(super) struct TaskIdentity {
    pub(super) pid: u32,
    /// Pids are numbered in the order of their appearance.
    pub(super) pid_number: usize,
    pub(super) name: Arc<str>,
    pub(super) class: Class,
}

/// The first and the last eight bytes of a name, and its length: no two names of up to [`KEY_BYTES`] share them.
type NameKey = (u64, u64, usize);
const KEY_BYTES: usize = 16;

/// An identity that was asked for before, with its number.
type Recent = ((u32, Class, NameKey), TaskId);
/// Identities that are found without the table.
const RECENT: usize = 1 << 11;
/// Equals none: no name is so long.
const NO_IDENTITY: Recent = ((0, Class::Unknown, (0, 0, usize::MAX)), NOT_NAMED);

/// The identities by number.
#[derive(Debug, Default)]
struct Table {
    identities: Vec<TaskIdentity>,
    numbers: HashMap<(u32, Class, Arc<str>), TaskId>,
    pid_numbers: HashMap<u32, usize>,
}

/// Gives identities their numbers. Clones share the table; each has identities of its own that it finds fast.
#[derive(Clone, Debug)]
pub(super) struct Interner {
    table: Arc<Mutex<Table>>,
    /// By pid and whether the class is known.
    recent: Box<[Recent; RECENT]>,
}

impl Default for Interner {
    fn default() -> Self {
        Self { table: Arc::default(), recent: Box::new([NO_IDENTITY; RECENT]) }
    }
}

impl Interner {
    /// The number of an identity. The idle task (pid 0) has a name for each CPU; all of them are one identity.
    #[inline]
    pub(super) fn identity(&mut self, named: Named<'_>) -> TaskId {
        let Named { pid, comm, prio } = named;
        let (name, class) = if pid == 0 { ("", Class::Unknown) } else { (comm, Class::of(prio)) };
        if name.len() > KEY_BYTES {
            return self.look_up(pid, name, class);
        }
        let key = (pid, class, name_key(name.as_bytes()));
        // Wakers are named by their pids alone, and have entries of their own.
        let index = (pid as usize * 2 + usize::from(class == Class::Unknown)) % RECENT;
        let (known, id) = self.recent[index];
        if known == key {
            return id;
        }
        let id = self.look_up(pid, name, class);
        self.recent[index] = (key, id);
        id
    }

    /// The identity of a task that an event names by its pid alone.
    pub(super) fn by_pid(&mut self, pid: u32) -> TaskId {
        self.identity(Named { pid, comm: "<...>", prio: None })
    }

    #[cold]
    fn look_up(&mut self, pid: u32, name: &str, class: Class) -> TaskId {
        let name: Arc<str> = name.into();
        let table = &mut *self.table();
        let fresh = TaskId(table.identities.len() as u32);
        let id = *table.numbers.entry((pid, class, Arc::clone(&name))).or_insert(fresh);
        if id == fresh {
            let pids = table.pid_numbers.len();
            let pid_number = *table.pid_numbers.entry(pid).or_insert(pids);
            table.identities.push(TaskIdentity { pid, pid_number, name, class });
        }
        id
    }

    /// Appends the identities that are not known yet; `known` are the first of this interner.
    #[cold]
    pub(super) fn extend(&self, known: &mut Vec<TaskIdentity>) {
        known.extend_from_slice(&self.table().identities[known.len()..]);
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // Another thread's panic ends the reading anyway.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[inline]
fn name_key(text: &[u8]) -> NameKey {
    let short = || text.iter().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
    let ends = text.first_chunk().zip(text.last_chunk());
    let ends = ends.map(|(a, b)| (u64::from_le_bytes(*a), u64::from_le_bytes(*b)));
    let (first, last) = ends.unwrap_or_else(|| (short(), 0));
    (first, last, text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(pid: u32, comm: &str, prio: Option<i32>) -> Named<'_> {
        Named { pid, comm, prio }
    }

    fn identities(interner: &Interner) -> Vec<TaskIdentity> {
        let mut all = Vec::new();
        interner.extend(&mut all);
        all
    }

    #[test]
    fn equal_identities_have_one_number() {
        let mut interner = Interner::default();
        let first = interner.identity(named(7, "cat", Some(120)));
        let long = "a name of more than sixteen bytes";
        let mut clone = interner.clone();
        assert_eq!(clone.identity(named(7, "cat", Some(120))), first);
        let others = [
            interner.identity(named(8, "cat", Some(120))),
            interner.identity(named(7, "dog", Some(120))),
            clone.identity(named(7, "cat", Some(125))),
            interner.identity(named(7, "cat", None)),
            interner.identity(named(7, long, Some(120))),
        ];
        assert_eq!(others.map(|id| id.0), [1, 2, 3, 4, 5]);
        assert_eq!(clone.identity(named(7, long, Some(120))), others[4]);
        let all = identities(&interner);
        assert_eq!(
            all.iter().map(|known| known.pid_number).collect::<Vec<_>>(),
            [0, 1, 0, 0, 0, 0]
        );
        assert_eq!((&*all[4].name, &*all[5].name), ("cat", long));
    }

    #[test]
    fn the_idle_task_has_one_identity() {
        let mut interner = Interner::default();
        let idle = interner.identity(named(0, "swapper/0", Some(120)));
        assert_eq!(interner.identity(named(0, "swapper/1", None)), idle);
    }

    #[test]
    fn names_of_all_lengths() {
        let mut interner = Interner::default();
        for length in 0..40 {
            let name = "n".repeat(length);
            for other in [name.clone() + "m", format!("m{name}"), name.clone()] {
                let id = interner.identity(named(7, &other, Some(0)));
                assert_eq!(&*identities(&interner)[id.index()].name, other);
            }
        }
    }
}
