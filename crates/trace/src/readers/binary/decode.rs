//! An event's bytes, by the kernel's description, as the same [`Said`] that a line of text gives.

use std::cell::OnceCell;
use std::fmt::Write as _;

use super::Endian;
use super::formats::{Field, Format};
use super::symbols::Symbols;
use crate::readers::fields::{Named, Said};
use crate::readers::line::CPUS_MAX;
use crate::readers::marks;
use crate::{LockFlags, TaskState};

/// The kernel's functions that are the scheduler's tick: up to 6.8, and after.
const TICK_FUNCTIONS: [&str; 2] = ["tick_sched_timer", "tick_nohz_handler"];

/// Room for the texts of one event.
#[derive(Debug, Default)]
pub(in super::super) struct Scratch {
    first: String,
    second: String,
}

/// What decoding gave.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) enum Decoded<'a> {
    /// An event, and the task that the CPU was running (`common_pid`).
    Event { said: Said<'a>, running_pid: u32 },
    /// An event of a kind that nobody describes, or without its fields.
    Unreadable(String),
}

/// A task's fields in an event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Who {
    pub(super) comm: Field,
    pub(super) pid: Field,
    pub(super) prio: Option<Field>,
}

/// The fields of an event that are used.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    Switch {
        prev: Who,
        next: Who,
        state: Field,
        states: Vec<(u64, TaskState)>,
    },
    Waking {
        task: Who,
        cpu: Field,
    },
    Wakeup {
        task: Who,
        cpu: Field,
        success: Option<Field>,
    },
    WakeupNew {
        task: Who,
        cpu: Field,
    },
    Migrate {
        task: Who,
        from: Field,
        to: Field,
    },
    Fork {
        parent: Who,
        child: Who,
    },
    Exit {
        task: Who,
    },
    CgroupMove {
        pid: Field,
        path: Field,
    },
    Timer {
        function: Field,
    },
    Mark {
        text: Field,
    },
    Print {
        text: Field,
    },
    ContentionBegin {
        lock: Field,
        flags: Field,
    },
    ContentionEnd {
        lock: Field,
    },
    Stack {
        size: Field,
        callers: Field,
    },
    /// Says nothing that is used.
    Other,
}

/// Decodes the events of one recording.
#[derive(Debug)]
pub(in super::super) struct Decoder<'k> {
    pub(super) endian: Endian,
    pub(super) common_type: Option<Field>,
    pub(super) common_pid: Option<Field>,
    /// By the number of the type.
    pub(super) shapes: Vec<Option<(String, Shape)>>,
    /// Addresses of the tick's functions.
    pub(super) ticks: Vec<u64>,
    kallsyms: &'k str,
    /// Made of them when the first stack comes.
    symbols: OnceCell<Symbols<'k>>,
}

impl<'k> Decoder<'k> {
    /// Takes the descriptions and, for the timers' functions and for stacks, `/proc/kallsyms`.
    pub(in super::super) fn new<'t>(
        endian: Endian,
        formats: impl Iterator<Item = &'t str>,
        kallsyms: &'k str,
    ) -> Self {
        let (mut common_type, mut common_pid) = (None, None);
        let mut shapes: Vec<Option<(String, Shape)>> = Vec::new();
        for format in formats.filter_map(Format::parse) {
            common_type = common_type.or(format.field("common_type"));
            common_pid = common_pid.or(format.field("common_pid"));
            let shape = shape(&format).unwrap_or(Shape::Other);
            let index = usize::from(format.id);
            if shapes.len() <= index {
                shapes.resize(index + 1, None);
            }
            shapes[index] = Some((format.name, shape));
        }
        let ticks = kallsyms.lines().filter_map(tick_address).collect();
        let symbols = OnceCell::new();
        Self { endian, common_type, common_pid, shapes, ticks, kallsyms, symbols }
    }

    /// Decodes an event.
    pub(in super::super) fn decode<'a>(
        &self,
        event: &'a [u8],
        scratch: &'a mut Scratch,
    ) -> Decoded<'a> {
        let number = |field: Option<Field>| field?.number(event, self.endian);
        let Some(id) = number(self.common_type) else {
            return Decoded::Unreadable("an event without its type".to_owned());
        };
        let id = id as u16;
        let Some(Some((name, shape))) = self.shapes.get(usize::from(id)) else {
            return Decoded::Unreadable(format!(
                "an event of type {id}, which the file does not describe"
            ));
        };
        let Some(running_pid) = number(self.common_pid).and_then(|pid| u32::try_from(pid).ok())
        else {
            return Decoded::Unreadable(format!("{name} without its common fields"));
        };
        if let Shape::Stack { size, callers } = shape {
            let symbols = self.symbols.get_or_init(|| Symbols::parse(self.kallsyms));
            let said = match symbols.fold(event, *size, *callers, self.endian, &mut scratch.first) {
                true => Said::Stack { folded: &scratch.first },
                false => Said::Other,
            };
            return Decoded::Event { said, running_pid };
        }
        let reader = Reader { event, endian: self.endian };
        match reader.said(shape, &self.ticks, scratch) {
            Some(said) => Decoded::Event { said, running_pid },
            None => Decoded::Unreadable(format!("{name} without its fields")),
        }
    }
}

/// `ffffffff81234560 t tick_nohz_handler`
fn tick_address(line: &str) -> Option<u64> {
    let mut words = line.split_whitespace();
    let (address, _, name) = (words.next()?, words.next()?, words.next()?);
    TICK_FUNCTIONS.contains(&name).then(|| u64::from_str_radix(address, 16).ok())?
}

/// Finds the fields that are used; `None` when the kernel's event has not all of them.
fn shape(format: &Format) -> Option<Shape> {
    let field = |name: &str| format.field(name);
    let who = |comm: &str, pid: &str, prio: &str| {
        Some(Who { comm: field(comm)?, pid: field(pid)?, prio: field(prio) })
    };
    let task = || who("comm", "pid", "prio");
    Some(match format.name.as_str() {
        "sched_switch" => Shape::Switch {
            prev: who("prev_comm", "prev_pid", "prev_prio")?,
            next: who("next_comm", "next_pid", "next_prio")?,
            state: field("prev_state")?,
            states: format.states.clone(),
        },
        "sched_waking" => Shape::Waking { task: task()?, cpu: field("target_cpu")? },
        "sched_wakeup" => {
            Shape::Wakeup { task: task()?, cpu: field("target_cpu")?, success: field("success") }
        }
        "sched_wakeup_new" => Shape::WakeupNew { task: task()?, cpu: field("target_cpu")? },
        "sched_migrate_task" => {
            Shape::Migrate { task: task()?, from: field("orig_cpu")?, to: field("dest_cpu")? }
        }
        "sched_process_fork" => Shape::Fork {
            parent: who("parent_comm", "parent_pid", "")?,
            child: who("child_comm", "child_pid", "")?,
        },
        "sched_process_exit" => Shape::Exit { task: task()? },
        "cgroup_attach_task" => Shape::CgroupMove { pid: field("pid")?, path: field("dst_path")? },
        "hrtimer_expire_entry" => Shape::Timer { function: field("function")? },
        "print" => Shape::Mark { text: field("buf")? },
        "contention_begin" => {
            Shape::ContentionBegin { lock: field("lock_addr")?, flags: field("flags")? }
        }
        "contention_end" => Shape::ContentionEnd { lock: field("lock_addr")? },
        "kernel_stack" => Shape::Stack { size: field("size")?, callers: field("caller")? },
        "bpf_trace_printk" => Shape::Print { text: field("bpf_string")? },
        _ => Shape::Other,
    })
}

/// One event.
struct Reader<'e> {
    event: &'e [u8],
    endian: Endian,
}

impl<'e> Reader<'e> {
    fn said<'a>(&self, shape: &Shape, ticks: &[u64], scratch: &'a mut Scratch) -> Option<Said<'a>>
    where
        'e: 'a,
    {
        let Scratch { first, second } = scratch;
        Some(match shape {
            Shape::Switch { prev, next, state, states } => {
                let prev_state = state_of(state.number(self.event, self.endian)? as u64, states);
                Said::Switch {
                    prev: self.who(prev, first)?,
                    prev_state,
                    next: self.who(next, second)?,
                }
            }
            Shape::Waking { task, cpu } => {
                Said::Waking { task: self.who(task, first)?, target_cpu: self.cpu(cpu)? }
            }
            Shape::Wakeup { success: Some(success), .. }
                if success.number(self.event, self.endian) == Some(0) =>
            {
                Said::Other
            }
            Shape::Wakeup { task, cpu, .. } => {
                Said::Wakeup { task: self.who(task, first)?, target_cpu: self.cpu(cpu)? }
            }
            Shape::WakeupNew { task, cpu } => {
                Said::WakeupNew { task: self.who(task, first)?, target_cpu: self.cpu(cpu)? }
            }
            Shape::Migrate { task, from, to } => {
                let (from_cpu, to_cpu) = (self.cpu(from)?, self.cpu(to)?);
                Said::Migrate { task: self.who(task, first)?, from_cpu, to_cpu }
            }
            Shape::Fork { parent, child } => {
                Said::Fork { parent: self.who(parent, first)?, child: self.who(child, second)? }
            }
            Shape::Exit { task } => Said::Exit { task: self.who(task, first)? },
            Shape::CgroupMove { pid, path } => {
                Said::CgroupMove { pid: self.pid(pid)?, path: self.text(path, first)? }
            }
            Shape::Timer { function } => {
                let address = function.number(self.event, self.endian)? as u64;
                if ticks.contains(&address) { Said::Tick } else { Said::Other }
            }
            Shape::Mark { text } => marks::parse(line(self.text(text, first)?))?,
            Shape::Print { text } => Said::Print { label: line(self.text(text, first)?) },
            Shape::ContentionBegin { lock, flags } => {
                let flags = LockFlags(flags.number(self.event, self.endian)? as u8);
                let lock = self.address(lock, first)?;
                Said::ContentionBegin { pid: None, holder: 0, flags, lock }
            }
            Shape::ContentionEnd { lock } => {
                Said::ContentionEnd { pid: None, lock: self.address(lock, first)? }
            }
            // Stacks need the kernel's functions.
            Shape::Stack { .. } | Shape::Other => Said::Other,
        })
    }

    fn who<'a>(&self, who: &Who, room: &'a mut String) -> Option<Named<'a>>
    where
        'e: 'a,
    {
        let prio = match who.prio {
            Some(prio) => Some(i32::try_from(prio.number(self.event, self.endian)?).ok()?),
            None => None,
        };
        Some(Named { pid: self.pid(&who.pid)?, comm: self.text(&who.comm, room)?, prio })
    }

    fn text<'a>(&self, field: &Field, room: &'a mut String) -> Option<&'a str>
    where
        'e: 'a,
    {
        let bytes = field.text(self.event, self.endian)?;
        if let Ok(text) = std::str::from_utf8(bytes) {
            return Some(text);
        }
        room.clear();
        room.push_str(&String::from_utf8_lossy(bytes));
        Some(room)
    }

    /// An address in the kernel's manner: sixteen digits.
    fn address<'a>(&self, field: &Field, room: &'a mut String) -> Option<&'a str> {
        room.clear();
        // Writing to a string cannot fail.
        let _ = write!(room, "{:016x}", field.number(self.event, self.endian)?);
        Some(room)
    }

    fn pid(&self, field: &Field) -> Option<u32> {
        u32::try_from(field.number(self.event, self.endian)?).ok()
    }

    fn cpu(&self, field: &Field) -> Option<u32> {
        self.pid(field).filter(|cpu| *cpu < CPUS_MAX)
    }
}

/// A text as the kernel shows it on a line: without its line feed, and without blanks in front.
fn line(text: &str) -> &str {
    text.strip_suffix('\n').unwrap_or(text).trim_start_matches(' ')
}

/// The first state of the table whose bit is set, as `__print_flags` would print first; a state without any is runnable.
pub(super) fn state_of(bits: u64, states: &[(u64, TaskState)]) -> TaskState {
    /// The bits that have kept their meaning, for a file whose table cannot be read.
    const OLDEST: [(u64, TaskState); 2] =
        [(1, TaskState::Sleeping), (2, TaskState::Uninterruptible)];
    let states = if states.is_empty() { &OLDEST } else { states };
    let found = states.iter().find(|(bit, _)| bits & bit == *bit);
    found.map_or(TaskState::Runnable, |(_, state)| *state)
}
