//! What the lines said, compact, before it is sorted: names interned, tasks still as pids.

use std::collections::HashMap;

use super::fields::{Named, Said};
use crate::escape::unescape;
use crate::{CallbackKind, Label, LockFlags, TaskState};

/// A name's number in [`Names`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    pub(super) fn text(&self, name: Name) -> &str {
        &self.texts[name.0 as usize]
    }

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

/// What a line says of a task's class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Unsaid,
    Nice(i8),
    /// Real-time, deadline or stop.
    Other,
}

impl Class {
    /// From the kernel's priority: 100…139 are nice −20…19 (`NICE_TO_PRIO`).
    fn of(prio: Option<i32>) -> Self {
        match prio {
            None => Self::Unsaid,
            Some(prio @ 100..=139) => Self::Nice((prio - 120) as i8),
            Some(_) => Self::Other,
        }
    }
}

/// A task as a line names it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Who {
    pub(super) pid: u32,
    pub(super) name: Name,
    pub(super) class: Class,
}

/// One event before its tasks are known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    pub(super) time_ns: u64,
    pub(super) cpu: u32,
    pub(super) what: What,
}

/// Stated in `docs/formats.md`.
const RECORD_BYTES_MAX: usize = 48;
const _: () = assert!(size_of::<Record>() <= RECORD_BYTES_MAX);

/// See [`Said`].
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    Switch { prev: Who, prev_state: TaskState, next: Who },
    Waking { task: Who, waker: Option<(u32, Name)>, target_cpu: u32 },
    Wakeup { task: Who, target_cpu: u32 },
    WakeupNew { task: Who, target_cpu: u32 },
    Migrate { task: Who, from_cpu: u32, to_cpu: u32 },
    Fork { parent: Who, child: Who },
    Exit { task: Who },
    Nice { pid: u32, nice: i8 },
    Tick { running: Option<(u32, Name)> },
    Callback { kind: CallbackKind, pid: u32 },
    Mark { pid: u32, label: Label, value: u64 },
    Param { label: Label },
    CgroupMove { pid: u32, path: Name },
    CgroupWeight { cgroup: u32, weight: u32 },
    ContentionBegin { pid: u32, holder: u32, flags: LockFlags, lock: Label },
    ContentionEnd { pid: u32, lock: Label },
    Print { label: Label },
    Stack { pid: u32, label: Label },
    Lost { count: u64 },
}

/// Turns what a line said into a record. `running` is the task of the line's first columns; `label` interns a label.
/// `None` for what makes no event.
pub(super) fn record(
    said: Said<'_>,
    running: Option<(u32, &str)>,
    names: &mut Names,
    mut label: impl FnMut(&str) -> Label,
) -> Option<What> {
    let mut who = |named: Named<'_>| Who {
        pid: named.pid,
        name: names.intern(named.comm),
        class: Class::of(named.prio),
    };
    Some(match said {
        Said::Switch { prev, prev_state, next } => {
            What::Switch { prev: who(prev), prev_state, next: who(next) }
        }
        Said::Waking { task, target_cpu } => {
            let task = who(task);
            let waker = running.map(|(pid, comm)| (pid, names.intern(comm)));
            What::Waking { task, waker, target_cpu }
        }
        Said::Wakeup { task, target_cpu } => What::Wakeup { task: who(task), target_cpu },
        Said::WakeupNew { task, target_cpu } => What::WakeupNew { task: who(task), target_cpu },
        Said::Migrate { task, from_cpu, to_cpu } => {
            What::Migrate { task: who(task), from_cpu, to_cpu }
        }
        Said::Fork { parent, child } => What::Fork { parent: who(parent), child: who(child) },
        Said::Exit { task } => What::Exit { task: who(task) },
        Said::Nice { pid, nice } => What::Nice { pid, nice },
        Said::Tick => What::Tick { running: running.map(|(pid, comm)| (pid, names.intern(comm))) },
        Said::Callback { kind, pid } => What::Callback { kind, pid },
        Said::Mark { pid, label: text, value } => What::Mark { pid, label: label(text), value },
        Said::Param { label: text } => What::Param { label: label(text) },
        Said::CgroupMove { pid, path } => {
            What::CgroupMove { pid, path: names.intern(&unescape(path)) }
        }
        Said::CgroupWeight { cgroup, weight } => What::CgroupWeight { cgroup, weight },
        Said::ContentionBegin { pid, holder, flags, lock } => {
            let pid = pid.or(running.map(|(pid, _)| pid))?;
            What::ContentionBegin { pid, holder, flags, lock: label(lock) }
        }
        Said::ContentionEnd { pid, lock } => {
            let pid = pid.or(running.map(|(pid, _)| pid))?;
            What::ContentionEnd { pid, lock: label(lock) }
        }
        Said::Lost { count } => What::Lost { count },
        // A printed line and a stack may find no room: the reader enters them itself.
        Said::Print { .. } | Said::Stack { .. } | Said::LostHere | Said::Other => return None,
    })
}

impl What {
    /// The task that the CPU was running, where the event speaks of it.
    pub(super) fn running_mut(&mut self) -> Option<(&u32, &mut Name)> {
        match self {
            Self::Waking { waker: Some((pid, name)), .. }
            | Self::Tick { running: Some((pid, name)) } => Some((pid, name)),
            _ => None,
        }
    }

    /// The highest CPU number in the operands.
    pub(super) fn cpu_max(&self) -> u32 {
        match *self {
            Self::Waking { target_cpu, .. }
            | Self::Wakeup { target_cpu, .. }
            | Self::WakeupNew { target_cpu, .. } => target_cpu,
            Self::Migrate { from_cpu, to_cpu, .. } => from_cpu.max(to_cpu),
            _ => 0,
        }
    }
}
