//! Tasks as events name them: a pid with a name and a scheduling class. Each distinct identity is kept once. Until it
//! is known which task it means at the time of an event, the event has its [`IdentityId`] in place of a task's number.
//!
//! The threads of a reader share one table. Numbers depend on which thread asks first; only their equality counts.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::binary::TextBytes;
use crate::RtPrio;
use crate::packed::Word;

/// The number of an identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct IdentityId(pub(super) u32);

impl IdentityId {
    /// As an index.
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

impl Word for IdentityId {
    #[inline(always)]
    fn word(self) -> u64 {
        self.0.into()
    }

    #[inline(always)]
    fn of_word(word: u64) -> Self {
        Self(word as u32)
    }
}

/// In place of an identity: the task that the CPU runs, which the event does not name.
pub(super) const NOT_NAMED: IdentityId = IdentityId(u32::MAX);

/// The name of a task whose name an event does not tell.
pub(super) const UNNAMED: &str = "<...>";

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
    Above(RtPrio),
    /// A priority that no class has; [`crate::write_ftrace`] prints one where it knows none.
    Other,
}

impl Class {
    /// From the kernel's priority: 100…139 are nice −20…19 (`NICE_TO_PRIO`).
    fn of(prio: Option<i32>) -> Self {
        match prio {
            None => Self::Unknown,
            Some(prio @ 100..=139) => Self::Nice((prio - 120) as i8),
            Some(prio) => RtPrio::new(prio).map_or(Self::Other, Self::Above),
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

/// The first and the last eight bytes of a name or of a field that holds one, and its length: no two of up to
/// [`KEY_BYTES`] share them.
type NameKey = (u64, u64, usize);
const KEY_BYTES: usize = 16;
/// Added to the length of a field.
const OF_BYTES: usize = KEY_BYTES + 1;

/// An identity that was asked for before, with its number.
type Recent = ((u32, Class, NameKey), IdentityId);
/// Identities that are found without the table.
const RECENT: usize = 1 << 11;
/// Equals none: no name is so long.
const NO_IDENTITY: Recent = ((0, Class::Unknown, (0, 0, usize::MAX)), NOT_NAMED);

/// The identities by number.
#[derive(Debug, Default)]
struct Table {
    identities: Vec<TaskIdentity>,
    numbers: HashMap<(u32, Class, Arc<str>), IdentityId>,
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
    pub(super) fn identity(&mut self, named: Named<'_>) -> IdentityId {
        let Named { pid, comm, prio } = named;
        let (name, class) = if pid == 0 { ("", Class::Unknown) } else { (comm, Class::of(prio)) };
        let key = name_key(name.as_bytes());
        self.recent(pid, class, key, || name.into())
    }

    /// The same for a name in a field of an event. What the field holds behind the end of the name matters only to the
    /// speed.
    #[inline]
    pub(super) fn identity_of_bytes(
        &mut self,
        pid: u32,
        comm: TextBytes<'_>,
        prio: Option<i32>,
    ) -> IdentityId {
        if pid == 0 {
            return self.identity(Named { pid, comm: "", prio });
        }
        let key = name_key(comm.0).map(|(first, last, len)| (first, last, OF_BYTES + len));
        self.recent(pid, Class::of(prio), key, || comm.text())
    }

    #[inline]
    fn recent<'n>(
        &mut self,
        pid: u32,
        class: Class,
        key: Option<NameKey>,
        name: impl FnOnce() -> Cow<'n, str>,
    ) -> IdentityId {
        let Some(key) = key else { return self.look_up(pid, &name(), class) };
        let key = (pid, class, key);
        // Wakers are named by their pids alone, and have entries of their own.
        let index = (pid as usize * 2 + usize::from(class == Class::Unknown)) % RECENT;
        let (known, id) = self.recent[index];
        if known == key {
            return id;
        }
        let id = self.look_up(pid, &name(), class);
        self.recent[index] = (key, id);
        id
    }

    /// The identity of a task that an event names by its pid alone.
    pub(super) fn by_pid(&mut self, pid: u32) -> IdentityId {
        self.identity(Named { pid, comm: UNNAMED, prio: None })
    }

    #[cold]
    fn look_up(&mut self, pid: u32, name: &str, class: Class) -> IdentityId {
        let name: Arc<str> = name.into();
        let table = &mut *self.table();
        let fresh = IdentityId(table.identities.len() as u32);
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

/// `None` for more than [`KEY_BYTES`].
#[inline]
fn name_key(text: &[u8]) -> Option<NameKey> {
    let short = || text.iter().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
    let ends = text.first_chunk().zip(text.last_chunk());
    let ends = ends.map(|(a, b)| (u64::from_le_bytes(*a), u64::from_le_bytes(*b)));
    let (first, last) = ends.unwrap_or_else(|| (short(), 0));
    (text.len() <= KEY_BYTES).then_some((first, last, text.len()))
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

    /// A field of 16 bytes may hold the rest of a longer name, and names of a field without end.
    #[test]
    fn the_name_in_a_field() {
        let mut interner = Interner::default();
        let cat = interner.identity(named(7, "cat", Some(120)));
        let long = interner.identity(named(7, "cat\u{fffd}", Some(120)));
        for (field, id) in [
            (&b"cat"[..], cat),
            (b"cat\0", cat),
            (b"cat\0\0\0\0\0\0\0\0\0\0\0\0\0", cat),
            (b"cat\0tten\0\0\0\0\0\0\0\0", cat),
            (b"cat\0 with a field of more than sixteen bytes", cat),
            (b"cat\xff\0\0\0\0", long),
        ] {
            for _ in 0..2 {
                assert_eq!(interner.identity_of_bytes(7, TextBytes(field), Some(120)), id);
            }
        }
        let idle = interner.identity_of_bytes(0, TextBytes(b"swapper/1"), None);
        assert_eq!(idle, interner.identity(named(0, "swapper/0", Some(120))));
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
