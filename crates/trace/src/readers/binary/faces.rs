//! Tasks as the events of a file name them, each with a number, before anything is made of the bytes of their names.

use std::collections::HashMap;

use crate::readers::names::Who;

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

/// The faces that one thread met, each with a number of its own.
#[derive(Debug, Default)]
pub(in super::super) struct RawFaces {
    numbers: HashMap<RawFace, u32>,
    /// The face last met of some pids, and the one without a name: looked at before the table.
    recent: Vec<[(RawFace, u32); 2]>,
    /// Those that were not told yet.
    pub(in super::super) fresh: Vec<RawFace>,
}

impl RawFaces {
    const NOBODY: (RawFace, u32) =
        (RawFace { pid: u32::MAX, comm: [0; COMM_BYTES], prio: None }, 0);

    #[inline]
    pub(super) fn who(&mut self, face: &RawFace) -> Who {
        // The idle task has as many names as there are CPUs, and none of them counts.
        match face.pid {
            0 => self.bare(0),
            _ => self.find(face, 0),
        }
    }

    /// A task of which nothing but its pid is known.
    #[inline]
    pub(super) fn bare(&mut self, pid: u32) -> Who {
        self.find(&RawFace { pid, ..RawFace::default() }, 1)
    }

    #[inline]
    fn find(&mut self, face: &RawFace, which: usize) -> Who {
        let slot = face.pid as usize % RECENT_FACES;
        if let Some(recent) = self.recent.get(slot)
            && recent[which].0 == *face
        {
            return Who(recent[which].1);
        }
        self.look_up(face, slot, which)
    }

    fn look_up(&mut self, face: &RawFace, slot: usize, which: usize) -> Who {
        let fresh = self.numbers.len() as u32;
        let number = *self.numbers.entry(*face).or_insert(fresh);
        if number == fresh {
            self.fresh.push(*face);
        }
        self.recent.resize(RECENT_FACES, [Self::NOBODY; 2]);
        self.recent[slot][which] = (*face, number);
        Who(number)
    }
}
