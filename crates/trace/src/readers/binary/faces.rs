//! Tasks as the events of a file name them, each with its number in the roster, which is asked once for the same bytes.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::readers::names::{Class, Roster, Who};

/// Bytes of a task's name (`TASK_COMM_LEN`).
pub(super) const COMM_BYTES: usize = 16;

/// A task as an event names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in super::super) struct RawFace {
    /// The name, a zero byte, and anything behind it.
    comm: [u64; 2],
    pid: u32,
    prio: i32,
}

impl RawFace {
    /// No event says this priority: one that does is not taken apart the short way.
    const UNSAID: i32 = i32::MIN;

    /// `None` for a priority that stands for none here.
    #[inline(always)]
    pub(super) fn new(pid: u32, comm: [u8; COMM_BYTES], prio: Option<i32>) -> Option<Self> {
        let word = |at: usize| u64::from_le_bytes(*comm[at..].first_chunk().unwrap_or(&[0; 8]));
        if prio == Some(Self::UNSAID) {
            return None;
        }
        Some(Self { comm: [word(0), word(8)], pid, prio: prio.unwrap_or(Self::UNSAID) })
    }

    fn name(&self) -> String {
        let comm = self.comm.map(u64::to_le_bytes).concat();
        let name = comm.split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(name).into_owned()
    }

    fn class(&self) -> Class {
        Class::of(Some(self.prio).filter(|prio| *prio != Self::UNSAID))
    }
}

const RECENT_FACES: usize = 1 << 10;

/// The faces that one thread met. All threads enter new ones in one roster: which number a face gets there hangs on who comes first, and
/// nothing hangs on the number.
#[derive(Debug)]
pub(in super::super) struct RawFaces<'r> {
    roster: &'r Mutex<Roster>,
    known: HashMap<RawFace, Who>,
    /// The face last met of some pids, and the one without a name: looked at before the table.
    recent: Box<[[(RawFace, Who); 2]; RECENT_FACES]>,
}

impl<'r> RawFaces<'r> {
    const NOBODY: (RawFace, Who) =
        (RawFace { pid: u32::MAX, comm: [0; 2], prio: RawFace::UNSAID }, Who(0));

    pub(in super::super) fn new(roster: &'r Mutex<Roster>) -> Self {
        let recent = Box::new([[Self::NOBODY; 2]; RECENT_FACES]);
        Self { roster, known: HashMap::new(), recent }
    }

    #[inline(always)]
    pub(super) fn who(&mut self, face: &RawFace) -> Who {
        // The idle task has as many names as there are CPUs, and none of them counts.
        match face.pid {
            0 => self.bare(0),
            _ => self.find(face, 0),
        }
    }

    /// A task of which nothing but its pid is known.
    #[inline(always)]
    pub(super) fn bare(&mut self, pid: u32) -> Who {
        self.find(&RawFace { pid, comm: [0; 2], prio: RawFace::UNSAID }, 1)
    }

    #[inline(always)]
    fn find(&mut self, face: &RawFace, which: usize) -> Who {
        let (recent, who) = &self.recent[face.pid as usize % RECENT_FACES][which];
        if recent == face { *who } else { self.look_up(face, which) }
    }

    #[cold]
    fn look_up(&mut self, face: &RawFace, which: usize) -> Who {
        let who = *self.known.entry(*face).or_insert_with(|| {
            let mut roster = self.roster.lock().unwrap_or_else(PoisonError::into_inner);
            roster.who(face.pid, &face.name(), face.class())
        });
        self.recent[face.pid as usize % RECENT_FACES][which] = (*face, who);
        who
    }
}
