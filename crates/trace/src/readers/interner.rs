//! Tasks as events name them: a pid with a name and a scheduling class. Each distinct name and each distinct identity
//! is kept once and referred to by number.

use std::collections::HashMap;

/// The number of a name in its [`Interner`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct NameId(u32);

/// What an event says of a task's scheduling class.
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
    pub(super) fn of(prio: Option<i32>) -> Self {
        match prio {
            None => Self::Unknown,
            Some(prio @ 100..=139) => Self::Nice((prio - 120) as i8),
            Some(_) => Self::Other,
        }
    }
}

/// A task as an event names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct TaskIdentity {
    pub(super) pid: u32,
    pub(super) name: NameId,
    pub(super) class: Class,
}

/// The number of an identity in its [`Interner`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IdentityId(pub(super) u32);

/// Entries of each cache that is looked at before the hash tables.
const RECENT: usize = 1 << 11;

/// The first and the last eight bytes of a name, and its length: no two names of up to [`KEY_BYTES`] share them.
type NameKey = (u64, u64, usize);
const KEY_BYTES: usize = 16;

/// Names and identities by number. Numbers are given in order of first appearance.
#[derive(Debug)]
pub(super) struct Interner {
    names: Vec<Box<str>>,
    name_numbers: HashMap<Box<str>, u32>,
    identities: Vec<TaskIdentity>,
    identity_numbers: HashMap<TaskIdentity, u32>,
    recent_names: Box<[(NameKey, NameId)]>,
    recent_identities: Box<[Option<(TaskIdentity, IdentityId)>]>,
}

impl Default for Interner {
    fn default() -> Self {
        Self {
            names: Vec::new(),
            name_numbers: HashMap::new(),
            identities: Vec::new(),
            identity_numbers: HashMap::new(),
            recent_names: vec![((0, 0, usize::MAX), NameId(0)); RECENT].into(),
            recent_identities: vec![None; RECENT].into(),
        }
    }
}

impl Interner {
    /// The number of a name.
    pub(super) fn name(&mut self, text: &str) -> NameId {
        if text.len() > KEY_BYTES {
            return self.look_up_name(text);
        }
        let key = name_key(text.as_bytes());
        let mixed = key.0 ^ key.1.rotate_left(29) ^ key.2 as u64;
        let index = (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 53) as usize % RECENT;
        let (recent, name) = self.recent_names[index];
        if recent == key {
            return name;
        }
        let name = self.look_up_name(text);
        self.recent_names[index] = (key, name);
        name
    }

    fn look_up_name(&mut self, text: &str) -> NameId {
        if let Some(number) = self.name_numbers.get(text) {
            return NameId(*number);
        }
        let number = self.names.len() as u32;
        self.names.push(text.into());
        self.name_numbers.insert(text.into(), number);
        NameId(number)
    }

    /// The number of an identity. The idle task (pid 0) has a name for each CPU; all of them are one identity.
    pub(super) fn identity(&mut self, pid: u32, name: &str, class: Class) -> IdentityId {
        let (name, class) = if pid == 0 { ("", Class::Unknown) } else { (name, class) };
        let identity = TaskIdentity { pid, name: self.name(name), class };
        // Wakers are named by their pids alone, and have entries of their own.
        let index = (pid as usize * 2 + usize::from(class == Class::Unknown)) % RECENT;
        if let Some((recent, id)) = self.recent_identities[index]
            && recent == identity
        {
            return id;
        }
        let fresh = self.identities.len() as u32;
        let number = *self.identity_numbers.entry(identity).or_insert(fresh);
        if number == fresh {
            self.identities.push(identity);
        }
        self.recent_identities[index] = Some((identity, IdentityId(number)));
        IdentityId(number)
    }

    /// The identity with this number, which must be one of this interner.
    #[inline]
    pub(super) fn get(&self, id: IdentityId) -> TaskIdentity {
        self.identities[id.0 as usize]
    }

    /// The text of a name, which must be one of this interner.
    pub(super) fn text(&self, name: NameId) -> &str {
        &self.names[name.0 as usize]
    }

    /// The identities from a number on, with their names, in the order of their numbers.
    pub(super) fn identities_from(
        &self,
        first: usize,
    ) -> impl ExactSizeIterator<Item = (TaskIdentity, &str)> {
        self.identities[first..].iter().map(|identity| (*identity, self.text(identity.name)))
    }
}

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

    #[test]
    fn equal_identities_have_one_number() {
        let mut interner = Interner::default();
        let nice = |nice| Class::Nice(nice);
        let first = interner.identity(7, "cat", nice(0));
        assert_eq!(interner.identity(7, "cat", nice(0)), first);
        let long = "a name of more than sixteen bytes";
        let others = [
            interner.identity(8, "cat", nice(0)),
            interner.identity(7, "dog", nice(0)),
            interner.identity(7, "cat", nice(5)),
            interner.identity(7, "cat", Class::Unknown),
            interner.identity(7, long, nice(0)),
        ];
        assert_eq!(others.map(|id| id.0), [1, 2, 3, 4, 5]);
        assert_eq!(interner.text(interner.get(others[4]).name), long);
        assert_eq!(interner.identity(7, long, nice(0)), others[4]);
        assert_eq!(
            interner.identities_from(4).map(|(_, name)| name).collect::<Vec<_>>(),
            ["cat", long]
        );
    }

    #[test]
    fn the_idle_task_has_one_identity() {
        let mut interner = Interner::default();
        let idle = interner.identity(0, "swapper/0", Class::Nice(0));
        assert_eq!(interner.identity(0, "swapper/1", Class::Unknown), idle);
    }

    /// Short names, and names whose ends are equal, are told apart.
    #[test]
    fn names_of_all_lengths() {
        let mut interner = Interner::default();
        let texts: Vec<String> = (0..40).map(|length| "n".repeat(length)).collect();
        for (number, text) in texts.iter().enumerate() {
            assert_eq!(interner.name(text), NameId(number as u32));
        }
        assert!(texts.iter().all(|text| {
            let name = interner.name(text);
            interner.text(name) == text
        }));
    }
}
