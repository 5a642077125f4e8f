//! Decodes an event's bytes, by the kernel's description, into the same [`ParsedEvent`] that a line of text gives.

use std::fmt::Write as _;
use std::sync::OnceLock;

use super::cursor::Endian;
use super::formats::{Field, Format};
use super::symbols::Symbols;
use crate::readers::line::CPUS_MAX;
use crate::readers::marks;
use crate::readers::parsed::{Named, ParsedEvent};
use crate::readers::pending::EventKinds;
use crate::{LockFlags, TaskState};

/// The kernel's functions that are the scheduler's tick: up to 6.8, and after.
const TICK_FUNCTIONS: [&str; 2] = ["tick_sched_timer", "tick_nohz_handler"];

/// Buffers for the texts of one event.
#[derive(Debug, Default)]
pub(in super::super) struct Scratch {
    first: String,
    second: String,
}

/// The result of decoding.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) enum Decoded<'a> {
    /// An event, and the task that the CPU was running (`common_pid`).
    Event { event: ParsedEvent<'a>, running_pid: u32 },
    /// An event of a kind that is not described, or without its fields; why.
    Unreadable(String),
}

/// A task's fields in an event.
#[derive(Clone, Copy, Debug)]
struct TaskFields {
    comm: Field,
    pid: Field,
    prio: Option<Field>,
}

/// The fields of an event that are used.
#[derive(Clone, Debug)]
enum Shape {
    Switch {
        prev: TaskFields,
        next: TaskFields,
        state: Field,
        states: Vec<(u64, TaskState)>,
    },
    Waking {
        task: TaskFields,
        cpu: Field,
    },
    Wakeup {
        task: TaskFields,
        cpu: Field,
        success: Option<Field>,
    },
    WakeupNew {
        task: TaskFields,
        cpu: Field,
    },
    Migrate {
        task: TaskFields,
        from: Field,
        to: Field,
    },
    Fork {
        parent: TaskFields,
        child: TaskFields,
    },
    Exit {
        task: TaskFields,
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
    endian: Endian,
    common_type: Option<Field>,
    common_pid: Option<Field>,
    /// By the number of the type.
    shapes: Vec<Option<(String, Shape)>>,
    /// Addresses of the tick's functions.
    ticks: Vec<u64>,
    kallsyms: &'k str,
    /// Parsed from `kallsyms` at the first stack.
    symbols: OnceLock<Symbols<'k>>,
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
        let symbols = OnceLock::new();
        Self { endian, common_type, common_pid, shapes, ticks, kallsyms, symbols }
    }

    /// The kinds of events that those of a type can become.
    pub(in super::super) fn kinds(&self, id: u64) -> EventKinds {
        let shape = usize::try_from(id).ok().and_then(|id| self.shapes.get(id)?.as_ref());
        let Some((_, shape)) = shape else { return EventKinds::default() };
        EventKinds {
            wakeups: matches!(shape, Shape::Wakeup { .. }),
            cgroups: matches!(shape, Shape::CgroupMove { .. }),
            labels: matches!(
                shape,
                Shape::Mark { .. }
                    | Shape::Print { .. }
                    | Shape::ContentionBegin { .. }
                    | Shape::ContentionEnd { .. }
                    | Shape::Stack { .. }
            ),
        }
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
            let parsed = match symbols.fold(event, *size, *callers, self.endian, &mut scratch.first)
            {
                true => ParsedEvent::Stack { folded: &scratch.first },
                false => ParsedEvent::Other,
            };
            return Decoded::Event { event: parsed, running_pid };
        }
        let reader = Reader { event, endian: self.endian };
        match reader.parsed(shape, &self.ticks, scratch) {
            Some(parsed) => Decoded::Event { event: parsed, running_pid },
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
    let fields = |comm: &str, pid: &str, prio: &str| {
        Some(TaskFields { comm: field(comm)?, pid: field(pid)?, prio: field(prio) })
    };
    let task = || fields("comm", "pid", "prio");
    Some(match format.name.as_str() {
        "sched_switch" => Shape::Switch {
            prev: fields("prev_comm", "prev_pid", "prev_prio")?,
            next: fields("next_comm", "next_pid", "next_prio")?,
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
            parent: fields("parent_comm", "parent_pid", "")?,
            child: fields("child_comm", "child_pid", "")?,
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
    fn parsed<'a>(
        &self,
        shape: &Shape,
        ticks: &[u64],
        scratch: &'a mut Scratch,
    ) -> Option<ParsedEvent<'a>>
    where
        'e: 'a,
    {
        let Scratch { first, second } = scratch;
        Some(match shape {
            Shape::Switch { prev, next, state, states } => {
                let prev_state = state_of(state.number(self.event, self.endian)? as u64, states);
                ParsedEvent::Switch {
                    prev: self.task(prev, first)?,
                    prev_state,
                    next: self.task(next, second)?,
                }
            }
            Shape::Waking { task, cpu } => {
                ParsedEvent::Waking { task: self.task(task, first)?, target_cpu: self.cpu(cpu)? }
            }
            Shape::Wakeup { success: Some(success), .. }
                if success.number(self.event, self.endian) == Some(0) =>
            {
                ParsedEvent::Other
            }
            Shape::Wakeup { task, cpu, .. } => {
                ParsedEvent::Wakeup { task: self.task(task, first)?, target_cpu: self.cpu(cpu)? }
            }
            Shape::WakeupNew { task, cpu } => {
                ParsedEvent::WakeupNew { task: self.task(task, first)?, target_cpu: self.cpu(cpu)? }
            }
            Shape::Migrate { task, from, to } => {
                let (from_cpu, to_cpu) = (self.cpu(from)?, self.cpu(to)?);
                ParsedEvent::Migrate { task: self.task(task, first)?, from_cpu, to_cpu }
            }
            Shape::Fork { parent, child } => ParsedEvent::Fork {
                parent: self.task(parent, first)?,
                child: self.task(child, second)?,
            },
            Shape::Exit { task } => ParsedEvent::Exit { task: self.task(task, first)? },
            Shape::CgroupMove { pid, path } => {
                ParsedEvent::CgroupMove { pid: self.pid(pid)?, path: self.text(path, first)? }
            }
            Shape::Timer { function } => {
                let address = function.number(self.event, self.endian)? as u64;
                if ticks.contains(&address) { ParsedEvent::Tick } else { ParsedEvent::Other }
            }
            Shape::Mark { text } => marks::parse(line(self.text(text, first)?))?,
            Shape::Print { text } => ParsedEvent::Print { label: line(self.text(text, first)?) },
            Shape::ContentionBegin { lock, flags } => {
                let flags = LockFlags(flags.number(self.event, self.endian)? as u8);
                let lock = self.address(lock, first)?;
                ParsedEvent::ContentionBegin { pid: None, holder: 0, flags, lock }
            }
            Shape::ContentionEnd { lock } => {
                ParsedEvent::ContentionEnd { pid: None, lock: self.address(lock, first)? }
            }
            // Stacks need the kernel's functions.
            Shape::Stack { .. } | Shape::Other => ParsedEvent::Other,
        })
    }

    fn task<'a>(&self, task: &TaskFields, room: &'a mut String) -> Option<Named<'a>>
    where
        'e: 'a,
    {
        let prio = match task.prio {
            Some(prio) => Some(i32::try_from(prio.number(self.event, self.endian)?).ok()?),
            None => None,
        };
        Some(Named { pid: self.pid(&task.pid)?, comm: self.text(&task.comm, room)?, prio })
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

/// The first state of the table whose bit is set, as `__print_flags` would print first; a state without any is
/// runnable.
fn state_of(bits: u64, states: &[(u64, TaskState)]) -> TaskState {
    /// The bits that have kept their meaning, for a file whose table cannot be read.
    const OLDEST: [(u64, TaskState); 2] =
        [(1, TaskState::Sleeping), (2, TaskState::Uninterruptible)];
    let states = if states.is_empty() { &OLDEST } else { states };
    let found = states.iter().find(|(bit, _)| bits & bit == *bit);
    found.map_or(TaskState::Runnable, |(_, state)| *state)
}
