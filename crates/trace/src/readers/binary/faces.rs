//! Tasks as the events of a file name them, each with its number in the roster, which is asked once for the same bytes.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::readers::names::{Class, Roster, Who};

/// Bytes of a task's name (`TASK_COMM_LEN`).
pub(super) const COMM_BYTES: usize = 16;

/// A task as an event names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(in super::super) struct RawFace {
    pub(in super::super) pid: u32,
    /// The name, a zero byte, and anything behind it.
    pub(in super::super) comm: [u8; COMM_BYTES],
    pub(in super::super) prio: Option<i32>,
}

const RECENT_FACES: usize = 1 << 10;

/// The faces that one thread met. All threads enter new ones in one roster: which number a face gets there hangs on who comes first, and
/// nothing hangs on the number.
#[derive(Debug)]
pub(in super::super) struct RawFaces<'r> {
    roster: &'r Mutex<Roster>,
    known: HashMap<RawFace, Who>,
    /// The face last met of some pids, and the one without a name: looked at before the table.
    recent: Vec<[(RawFace, Who); 2]>,
}

impl<'r> RawFaces<'r> {
    const NOBODY: (RawFace, Who) =
        (RawFace { pid: u32::MAX, comm: [0; COMM_BYTES], prio: None }, Who(0));

    pub(in super::super) fn new(roster: &'r Mutex<Roster>) -> Self {
        Self { roster, known: HashMap::new(), recent: Vec::new() }
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
        self.find(&RawFace { pid, ..RawFace::default() }, 1)
    }

    #[inline(always)]
    fn find(&mut self, face: &RawFace, which: usize) -> Who {
        let slot = face.pid as usize % RECENT_FACES;
        if let Some(recent) = self.recent.get(slot)
            && recent[which].0 == *face
        {
            return recent[which].1;
        }
        self.look_up(face, slot, which)
    }

    #[cold]
    fn look_up(&mut self, face: &RawFace, slot: usize, which: usize) -> Who {
        let who = *self.known.entry(*face).or_insert_with(|| {
            let name = face.comm.split(|byte| *byte == 0).next().unwrap_or_default();
            let (name, class) = (String::from_utf8_lossy(name), Class::of(face.prio));
            self.roster.lock().unwrap_or_else(PoisonError::into_inner).who(face.pid, &name, class)
        });
        self.recent.resize(RECENT_FACES, [Self::NOBODY; 2]);
        self.recent[slot][which] = (*face, who);
        who
    }
}
