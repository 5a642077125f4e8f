//! An event as a line of text or a binary record states it: names and texts are borrowed from the input.

use crate::{CallbackKind, LockFlags, TaskState};

/// A task as a line names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Named<'a> {
    pub(super) pid: u32,
    pub(super) comm: &'a str,
    /// The kernel's priority; 100…139 are the nice values.
    pub(super) prio: Option<i32>,
}

/// An event as its line says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParsedEvent<'a> {
    Switch {
        prev: Named<'a>,
        prev_state: TaskState,
        next: Named<'a>,
    },
    Waking {
        task: Named<'a>,
        target_cpu: u32,
    },
    Wakeup {
        task: Named<'a>,
        target_cpu: u32,
    },
    WakeupNew {
        task: Named<'a>,
        target_cpu: u32,
    },
    Migrate {
        task: Named<'a>,
        from_cpu: u32,
        to_cpu: u32,
    },
    Fork {
        parent: Named<'a>,
        child: Named<'a>,
    },
    Exit {
        task: Named<'a>,
    },
    Nice {
        pid: u32,
        nice: i8,
    },
    Tick,
    Callback {
        kind: CallbackKind,
        pid: u32,
    },
    Mark {
        pid: u32,
        label: &'a str,
        value: u64,
    },
    Param {
        label: &'a str,
    },
    CgroupMove {
        pid: u32,
        path: &'a str,
    },
    CgroupWeight {
        cgroup: u32,
        weight: u32,
    },
    /// Without a pid: of the task that the CPU was running. Holder 0: not told.
    ContentionBegin {
        pid: Option<u32>,
        holder: u32,
        flags: LockFlags,
        lock: &'a str,
    },
    ContentionEnd {
        pid: Option<u32>,
        lock: &'a str,
    },
    Print {
        label: &'a str,
    },
    /// A whole stack, `outer;…;inner`.
    Stack {
        folded: &'a str,
    },
    /// Gives the preceding lost-events line its time.
    LostHere,
    Lost {
        count: u64,
    },
    /// Of a kind that says nothing that is used.
    Other,
}

/// The value of `key` among words of the form `key=value`; the key is given with its `=`.
pub(super) fn value<'a>(words: &'a str, key: &str) -> Option<&'a str> {
    words.split(' ').find_map(|word| word.strip_prefix(key))
}
