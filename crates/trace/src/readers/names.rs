//! Tasks as records name them, each kept once: the name alone, and a pid with its name and class.

use std::collections::HashMap;

/// A name's number in [`Names`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Name(u32);

/// The names of tasks, each kept once.
#[derive(Debug)]
pub(super) struct Names {
    texts: Vec<Box<str>>,
    numbers: HashMap<Box<str>, u32>,
    /// The names last asked for: looked at before the table.
    recent: Box<[(Key, Name); RECENT_NAMES]>,
}

const RECENT_NAMES: usize = 1 << 10;

/// The first and the last eight bytes of a name, and its length. No other name of up to 16 bytes has the same.
type Key = (u64, u64, usize);
const KEY_BYTES: usize = 16;

impl Default for Names {
    fn default() -> Self {
        let recent = Box::new([((0, 0, usize::MAX), Name(0)); RECENT_NAMES]);
        Self { texts: Vec::new(), numbers: HashMap::new(), recent }
    }
}

impl Names {
    pub(super) fn intern(&mut self, text: &str) -> Name {
        if text.len() > KEY_BYTES {
            return self.look_up(text);
        }
        let key = key(text.as_bytes());
        let mixed =
            (key.0 ^ key.1.rotate_left(29) ^ key.2 as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let slot = (mixed >> 54) as usize;
        let (recent, name) = self.recent[slot];
        if recent == key {
            return name;
        }
        let name = self.look_up(text);
        self.recent[slot] = (key, name);
        name
    }

    fn look_up(&mut self, text: &str) -> Name {
        if let Some(number) = self.numbers.get(text) {
            return Name(*number);
        }
        let number = self.texts.len() as u32;
        self.texts.push(text.into());
        self.numbers.insert(text.into(), number);
        Name(number)
    }
}

fn key(text: &[u8]) -> Key {
    let short = || text.iter().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
    let ends = text.first_chunk().zip(text.last_chunk());
    let ends = ends.map(|(a, b)| (u64::from_le_bytes(*a), u64::from_le_bytes(*b)));
    let (first, last) = ends.unwrap_or_else(|| (short(), 0));
    (first, last, text.len())
}

/// What of a roster others look at while it grows: no number in it ever means anything else.
#[derive(Debug, Default)]
pub(super) struct Mirror {
    texts: Vec<Box<str>>,
    faces: Vec<Face>,
}

impl Mirror {
    /// Takes over what is new in the roster.
    pub(super) fn follow(&mut self, roster: &Roster) {
        self.texts.extend_from_slice(&roster.names.texts[self.texts.len()..]);
        self.faces.extend_from_slice(&roster.faces.faces[self.faces.len()..]);
    }

    /// How many faces there are.
    pub(super) fn faces(&self) -> usize {
        self.faces.len()
    }

    pub(super) fn face(&self, who: Who) -> Face {
        self.faces[who.0 as usize]
    }

    pub(super) fn text(&self, name: Name) -> &str {
        &self.texts[name.0 as usize]
    }
}

/// What a record says of a task's class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Class {
    Unsaid,
    Nice(i8),
    /// Real-time, deadline or stop.
    Other,
}

impl Class {
    /// From the kernel's priority: 100…139 are nice −20…19 (`NICE_TO_PRIO`).
    pub(super) fn of(prio: Option<i32>) -> Self {
        match prio {
            None => Self::Unsaid,
            Some(prio @ 100..=139) => Self::Nice((prio - 120) as i8),
            Some(_) => Self::Other,
        }
    }
}

/// A task as a record names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Face {
    pub(super) pid: u32,
    pub(super) name: Name,
    pub(super) class: Class,
}

/// A face's number in [`Faces`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Who(pub(super) u32);

/// The faces, each kept once.
#[derive(Debug)]
pub(super) struct Faces {
    faces: Vec<Face>,
    numbers: HashMap<Face, u32>,
    /// The face last asked for of some pids: looked at before the table.
    recent: Box<[Option<(Face, Who)>; RECENT_FACES]>,
}

const RECENT_FACES: usize = 1 << 10;

impl Default for Faces {
    fn default() -> Self {
        let recent = Box::new([None; RECENT_FACES]);
        Self { faces: Vec::new(), numbers: HashMap::new(), recent }
    }
}

impl Faces {
    pub(super) fn intern(&mut self, face: Face) -> Who {
        let slot = face.pid as usize % RECENT_FACES;
        if let Some((recent, who)) = self.recent[slot]
            && recent == face
        {
            return who;
        }
        let fresh = self.faces.len() as u32;
        let number = *self.numbers.entry(face).or_insert(fresh);
        if number == fresh {
            self.faces.push(face);
        }
        self.recent[slot] = Some((face, Who(number)));
        Who(number)
    }
}

/// All that records name tasks by.
#[derive(Debug, Default)]
pub(super) struct Roster {
    pub(super) names: Names,
    pub(super) faces: Faces,
}

impl Roster {
    pub(super) fn who(&mut self, pid: u32, name: &str, class: Class) -> Who {
        let name = self.names.intern(name);
        self.faces.intern(Face { pid, name, class })
    }
}
