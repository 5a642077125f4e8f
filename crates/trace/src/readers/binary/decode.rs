//! Decodes an event's bytes, by the kernel's description, into the same [`Stated`] that a line of text gives.

use std::borrow::Cow;
use std::sync::OnceLock;

use super::cursor::Endian;
use super::formats::{Field, Format};
use super::symbols::Symbols;
use crate::event::{FieldValue, Role, Tag};
use crate::readers::calls::{self, KnownCall};
use crate::readers::interner::{IdentityId, Interner, Named};
use crate::readers::line::CPUS_MAX;
use crate::readers::marks;
use crate::readers::stated::{Scope, Stated, TICK_FUNCTIONS, Tasks, of_number, printed};
use crate::{EventKind, LockFlags, TaskState};

/// In `common_flags`: `TRACE_FLAG_HARDIRQ`, `TRACE_FLAG_SOFTIRQ` and `TRACE_FLAG_NMI`
/// (`include/linux/trace_events.h`).
const IN_INTERRUPT: i64 = 0x08 | 0x10 | 0x40;

/// The kind that an event is decoded into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
enum Kind {
    Switch,
    Waking,
    Wakeup,
    /// A tracepoint of the table of events.
    Event(Tag),
    CgroupMove,
    Timer,
    CallEnter,
    CallExit,
    // From here on with labels.
    Mark,
    Print,
    ContentionBegin,
    ContentionEnd,
    Stack,
    Blocked,
}

/// The events that are used: the kernel's name, the prefixes of the fields of its tasks (`comm`, `pid`, `prio`), and
/// the names of its other fields.
const USED: [(&str, Kind, &[&str], &[&str]); 11] = [
    ("sched_switch", Kind::Switch, &["prev_", "next_"], &["prev_state"]),
    ("sched_waking", Kind::Waking, &[""], &["target_cpu"]),
    ("sched_wakeup", Kind::Wakeup, &[""], &["target_cpu"]),
    ("cgroup_attach_task", Kind::CgroupMove, &[], &["pid", "dst_path"]),
    ("hrtimer_expire_entry", Kind::Timer, &[], &["function"]),
    ("print", Kind::Mark, &[], &["buf"]),
    ("bpf_trace_printk", Kind::Print, &[], &["bpf_string"]),
    ("contention_begin", Kind::ContentionBegin, &[], &["lock_addr", "flags"]),
    ("contention_end", Kind::ContentionEnd, &[], &["lock_addr"]),
    ("kernel_stack", Kind::Stack, &[], &["size", "caller"]),
    ("sched_blocked_reason", Kind::Blocked, &[], &["pid", "caller"]),
];

/// A task's fields in an event.
#[derive(Clone, Copy, Debug)]
struct TaskFields {
    comm: Field,
    pid: Field,
    prio: Option<Field>,
}

/// An event that is used, with its fields in the order of [`USED`].
#[derive(Clone, Debug)]
struct Shape {
    kind: Kind,
    tasks: Vec<TaskFields>,
    fields: Vec<Field>,
    /// Of a wakeup in older kernels.
    success: Option<Field>,
    /// Of a switch: the bits of its state.
    states: Vec<(u64, TaskState)>,
    /// Of the entry into a system call; the fields are its object and its selector.
    call: Option<&'static KnownCall>,
}

impl Shape {
    /// `None` for an event that is not used, or that lacks one of the fields.
    fn of(format: &Format) -> Option<Self> {
        if let Some(call) = format.name.strip_prefix("sys_enter_") {
            return Self::of_entry(format, KnownCall::of(call)?);
        }
        if let Some(call) = format.name.strip_prefix("sys_exit_") {
            KnownCall::of(call)?;
            return Some(Self::plain(Kind::CallExit, vec![format.field("ret")?]));
        }
        let task = |prefix: &str| {
            let field = |name| format.field(&format!("{prefix}{name}"));
            Some(TaskFields { comm: field("comm")?, pid: field("pid")?, prio: field("prio") })
        };
        if let Some(tag) = Tag::of_tracepoint(&format.name) {
            let mut shape = Self::plain(Kind::Event(tag), Vec::new());
            for (source, role) in tag.sources() {
                match role {
                    Role::Task => shape.tasks.push(task(source)?),
                    _ => shape.fields.push(format.field(source)?),
                }
            }
            return Some(shape);
        }
        let (_, kind, prefixes, fields) = USED.iter().find(|(name, ..)| *name == format.name)?;
        Some(Self {
            kind: *kind,
            tasks: prefixes.iter().map(|prefix| task(prefix)).collect::<Option<_>>()?,
            fields: fields.iter().map(|name| format.field(name)).collect::<Option<_>>()?,
            success: format.field("success"),
            states: format.states.clone(),
            call: None,
        })
    }

    /// Without tasks.
    fn plain(kind: Kind, fields: Vec<Field>) -> Self {
        Self { kind, tasks: Vec::new(), fields, success: None, states: Vec::new(), call: None }
    }

    fn of_entry(format: &Format, known: &'static KnownCall) -> Option<Self> {
        let named = [known.object, known.selector].into_iter().flatten();
        let fields = named.map(|name| format.field(name)).collect::<Option<_>>()?;
        Some(Self { call: Some(known), ..Self::plain(Kind::CallEnter, fields) })
    }
}

/// Decodes the events of one recording.
#[derive(Debug)]
pub(in super::super) struct Decoder<'k> {
    endian: Endian,
    common_type: Option<Field>,
    common_pid: Option<Field>,
    common_flags: Option<Field>,
    /// The name of each type of event, and its shape if it is used.
    types: Vec<Option<(String, Option<Shape>)>>,
    /// Addresses of the tick's functions.
    ticks: Vec<u64>,
    kallsyms: &'k str,
    /// Parsed from `kallsyms` at the first stack.
    symbols: OnceLock<Symbols<'k>>,
}

impl<'k> Decoder<'k> {
    /// Takes the descriptions and, for the timers' functions and for stacks, `/proc/kallsyms`.
    pub(in super::super) fn new(endian: Endian, formats: &[String], kallsyms: &'k str) -> Self {
        let (mut common_type, mut common_pid, mut common_flags) = (None, None, None);
        let mut types: Vec<Option<(String, Option<Shape>)>> = Vec::new();
        for format in formats.iter().filter_map(|text| Format::parse(text)) {
            common_type = common_type.or(format.field("common_type"));
            common_pid = common_pid.or(format.field("common_pid"));
            common_flags = common_flags.or(format.field("common_flags"));
            let index = usize::from(format.id);
            types.resize(types.len().max(index + 1), None);
            let shape = Shape::of(&format);
            types[index] = Some((format.name, shape));
        }
        let ticks = tick_symbols(kallsyms).map(|(address, _)| address).collect();
        let symbols = OnceLock::new();
        Self { endian, common_type, common_pid, common_flags, types, ticks, kallsyms, symbols }
    }

    /// The kinds of events that those of a type can become.
    pub(in super::super) fn kinds(&self, id: u64) -> Scope {
        let known = usize::try_from(id).ok().and_then(|id| self.types.get(id)?.as_ref());
        let kind = known.and_then(|(_, shape)| shape.as_ref()).map(|shape| shape.kind);
        Scope {
            wakeups: kind == Some(Kind::Wakeup),
            wakings: kind == Some(Kind::Waking),
            cgroups: kind == Some(Kind::CgroupMove),
            labels: kind.is_some_and(|kind| kind >= Kind::Mark),
            ..Scope::default()
        }
    }

    fn symbols(&self) -> &Symbols<'k> {
        self.symbols.get_or_init(|| Symbols::parse(self.kallsyms))
    }

    /// Decodes an event and passes it to `add`. `running` names the task that the CPU was running, from `common_pid`.
    /// The error says why the event is unreadable: its kind is not described, or it is without its fields.
    #[inline]
    pub(in super::super) fn decode<'n>(
        &self,
        event: &[u8],
        interner: &mut Interner,
        running: impl FnOnce(u32) -> Option<Named<'n>>,
        add: impl FnOnce(Stated),
    ) -> Result<(), String> {
        let number = |field: Option<Field>| field?.number(event, self.endian);
        let id = number(self.common_type).ok_or("an event without its type")? as u16;
        let Some(Some((name, shape))) = self.types.get(usize::from(id)) else {
            return Err(format!("an event of type {id}, which the file does not describe"));
        };
        let pid = number(self.common_pid).and_then(|pid| u32::try_from(pid).ok());
        let pid = pid.ok_or_else(|| format!("{name} without its common fields"))?;
        let Some(shape) = shape else {
            add(Stated::Other);
            return Ok(());
        };
        let flags = number(self.common_flags).unwrap_or(0);
        let in_interrupt = flags & IN_INTERRUPT != 0;
        let tasks = Tasks { interner, running: running(pid), in_interrupt };
        let added = EventBytes { event, endian: self.endian, shape }.add(self, tasks, add);
        added.ok_or_else(|| format!("{name} without its fields"))
    }
}

/// The functions of the scheduler's tick in the text of `/proc/kallsyms`: the address of each, and its line there.
pub fn tick_symbols(kallsyms: &str) -> impl Iterator<Item = (u64, &str)> {
    kallsyms.lines().filter_map(|line| {
        // ffffffff81234560 t tick_nohz_handler
        let mut words = line.split_whitespace();
        let (address, _, name) = (words.next()?, words.next()?, words.next()?);
        let address = u64::from_str_radix(address, 16).ok()?;
        TICK_FUNCTIONS.contains(&name).then_some((address, line))
    })
}

/// One event.
struct EventBytes<'e, 's> {
    event: &'e [u8],
    endian: Endian,
    shape: &'s Shape,
}

impl<'e> EventBytes<'e, '_> {
    /// `None` when it is shorter than its fields, or a number is impossible.
    fn add(
        &self,
        decoder: &Decoder<'_>,
        mut tasks: Tasks<'_>,
        add: impl FnOnce(Stated),
    ) -> Option<()> {
        match self.shape.kind {
            Kind::Switch => {
                let prev_state = state_of(self.number(0)? as u64, &self.shape.states);
                let prev = self.task(0, &mut tasks)?;
                let next = self.task(1, &mut tasks)?;
                add(Stated::Event(EventKind::Switch { prev, prev_state, next }));
            }
            Kind::Waking => {
                let (task, target_cpu) = (self.task(0, &mut tasks)?, self.cpu(0)?);
                let waker = tasks.waker();
                add(Stated::Event(EventKind::Waking { task, waker, target_cpu }));
            }
            _ => add(self.other(decoder, tasks)?),
        }
        Some(())
    }

    /// The events of tasks that are less frequent.
    fn other(&self, decoder: &Decoder<'_>, mut tasks: Tasks<'_>) -> Option<Stated> {
        match self.shape.kind {
            Kind::Wakeup if self.has_failed() => Some(Stated::Other),
            Kind::Wakeup => {
                let (task, target_cpu) = (self.task(0, &mut tasks)?, self.cpu(0)?);
                Some(tasks.wakeup(task, target_cpu))
            }
            Kind::Event(tag) => {
                let (mut tasks_read, mut fields_read) = (0.., 0..);
                let event = EventKind::of_fields(tag, |_, _, role| match role {
                    Role::Task => {
                        Some(FieldValue::Task(self.task(tasks_read.next()?, &mut tasks)?))
                    }
                    role => of_number(role, self.number(fields_read.next()?)?),
                });
                event.map(Stated::Event)
            }
            _ => self.rare(decoder, tasks),
        }
    }

    /// The other events.
    fn rare(&self, decoder: &Decoder<'_>, mut tasks: Tasks<'_>) -> Option<Stated> {
        Some(match self.shape.kind {
            Kind::CgroupMove => tasks.cgroup_move(self.small(0)?, self.text(1)?.into_owned()),
            Kind::Timer => tasks.timer(decoder.ticks.contains(&(self.number(0)? as u64))),
            Kind::CallEnter => {
                let known = self.shape.call?;
                let mut numbers = (0..self.shape.fields.len()).map(|index| self.number(index));
                let mut argument = |name: Option<&str>| match name {
                    Some(_) => numbers.next().flatten().map(|number| number as u64),
                    None => Some(0),
                };
                let (object, selector) = (argument(known.object)?, argument(known.selector)?);
                known.enter(object, selector, &mut tasks)
            }
            Kind::CallExit => calls::exit(self.number(0)?, &mut tasks),
            Kind::Mark => marks::parse(line(&self.text(0)?), &mut tasks)?,
            Kind::Print => printed(line(&self.text(0)?)),
            Kind::ContentionBegin => {
                tasks.contention(Some(LockFlags(self.number(1)? as u8)), self.address(0)?)
            }
            Kind::ContentionEnd => tasks.contention(None, self.address(0)?),
            Kind::Stack => {
                let symbols = decoder.symbols();
                let [size, callers] = self.shape.fields[..] else { return None };
                let stack = symbols.fold(self.event, size, callers, self.endian);
                stack.map_or(Stated::Other, |stack| tasks.stack(stack))
            }
            Kind::Blocked => {
                let caller = decoder.symbols().text(self.number(1)? as u64);
                tasks.blocked(self.small(0)?, &caller)
            }
            _ => return None,
        })
    }

    fn field(&self, index: usize) -> Option<&Field> {
        self.shape.fields.get(index)
    }

    fn number(&self, index: usize) -> Option<i64> {
        self.field(index)?.number(self.event, self.endian)
    }

    fn small(&self, index: usize) -> Option<u32> {
        u32::try_from(self.number(index)?).ok()
    }

    fn cpu(&self, index: usize) -> Option<u32> {
        self.small(index).filter(|cpu| *cpu < CPUS_MAX)
    }

    fn text(&self, index: usize) -> Option<Cow<'e, str>> {
        Some(self.field(index)?.text(self.event, self.endian)?.text())
    }

    /// An address in the kernel's manner: sixteen digits.
    fn address(&self, index: usize) -> Option<String> {
        Some(format!("{:016x}", self.number(index)?))
    }

    /// A wakeup with `success=0`.
    fn has_failed(&self) -> bool {
        self.shape.success.is_some_and(|field| field.number(self.event, self.endian) == Some(0))
    }

    #[inline]
    fn task(&self, index: usize, tasks: &mut Tasks<'_>) -> Option<IdentityId> {
        let TaskFields { comm, pid, prio } = self.shape.tasks.get(index)?;
        let number = |field: &Field| field.number(self.event, self.endian);
        let prio = match prio {
            Some(prio) => Some(i32::try_from(number(prio)?).ok()?),
            None => None,
        };
        let pid = u32::try_from(number(pid)?).ok()?;
        let comm = comm.text(self.event, self.endian)?;
        Some(tasks.interner.identity_of_bytes(pid, comm, prio))
    }
}

/// A text as the kernel shows it on a line: without its line feed, and without blanks in front.
fn line(text: &str) -> &str {
    text.strip_suffix('\n').unwrap_or(text).trim_start_matches(' ')
}

/// The first state of the table whose bit is set, as `__print_flags` would print first; a state without any is
/// runnable, and a bit above all of them says that it was preempted in the kernel (`TASK_REPORT_MAX`, once
/// `TASK_STATE_MAX`).
fn state_of(bits: u64, states: &[(u64, TaskState)]) -> TaskState {
    /// The bits that have kept their meaning, for a file whose table cannot be read.
    const OLDEST: [(u64, TaskState); 2] =
        [(1, TaskState::Sleeping), (2, TaskState::Uninterruptible)];
    let has_table = !states.is_empty();
    let states = if has_table { states } else { &OLDEST };
    let found = states.iter().find(|(bit, _)| bits & bit == *bit);
    let all = states.iter().fold(0, |all, (bit, _)| all | bit);
    match found {
        Some((_, state)) => *state,
        None if has_table && bits > all => TaskState::Preempted,
        None => TaskState::Runnable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of Linux 4.14 and later.
    const MODERN: [(u64, TaskState); 8] = [
        (1, TaskState::Sleeping),
        (2, TaskState::Uninterruptible),
        (4, TaskState::Stopped),
        (8, TaskState::Traced),
        (0x10, TaskState::Dead),
        (0x20, TaskState::Zombie),
        (0x40, TaskState::Parked),
        (0x80, TaskState::Idle),
    ];

    #[test]
    fn bits_of_a_state() {
        for (bit, state) in MODERN {
            assert_eq!(state_of(bit, &MODERN), state);
        }
        assert_eq!(state_of(0, &MODERN), TaskState::Runnable);
        assert_eq!(state_of(0x100, &MODERN), TaskState::Preempted);
        // A file without a table.
        assert_eq!(state_of(2, &[]), TaskState::Uninterruptible);
        assert_eq!(state_of(4, &[]), TaskState::Runnable);
    }
}
