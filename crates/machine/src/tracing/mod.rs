//! Programs of an object that are no callbacks of its scheduler, and are called at events of the kernel: at
//! tracepoints, and where functions begin or end.
//!
//! Which event a program is attached to is in its section, as for libbpf: `tp_btf/sched_switch`. A section that begins
//! with `?` is one that the loader attaches only if it wants to; a profile names those.

use std::fmt;

use fairground_bpf::Object;

pub(crate) mod helpers;
mod raise;
pub(crate) mod targets;

use crate::error::SetupError;
use targets::{TargetKind, target};

/// Arguments of an event, at most.
pub(crate) const ARGS_MAX: usize = 6;
/// Bytes of a program's context: the number of arguments, the arguments and the result, or a record.
pub(crate) const CONTEXT_BYTES: u64 = 8 * (ARGS_MAX as u64 + 4);

/// Bytes of a cgroup's path, with the terminating zero.
pub(crate) const PATH_BYTES: u64 = 4096;

/// An event of the kernel at which programs are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// `(preempt, prev, next, prev_state)`.
    SchedSwitch,
    /// `(task)`.
    SchedWaking,
    /// `(task)`.
    SchedWakeup,
    /// `(task)`.
    SchedWakeupNew,
    /// `(parent, child)`.
    ProcessFork,
    /// `(task, group_dead)`.
    ProcessExit,
    /// `(task)`.
    ProcessFree,
    /// `(task, clone_flags)`.
    NewTask,
    /// `(cgroup, path, task, threadgroup)`.
    CgroupAttachTask,
    /// `(address, op, value, timeout, address2, value3)`.
    SysEnterFutex,
    /// `(result)`.
    SysExitFutex,
    /// `(address, flags, value, timeout, bitset)`.
    FutexWait,
    /// `(address, flags, pop, nr_wake, bitset)`.
    FutexWake,
    /// `(address, flags, timeout, trylock)`.
    FutexLockPi,
    /// `(address, flags, pop)`.
    FutexUnlockPi,
    /// `(ops, link)`.
    Register,
}

/// How a program is attached to its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// With the arguments of a tracepoint.
    Args,
    /// With the record of a tracepoint.
    Record,
    /// Where a function begins.
    Entry,
    /// Where a function has returned.
    Exit,
}

/// The beginnings of sections, and what they mean. Probes of instructions and of returns are none of them.
const SECTIONS: &[(&str, Way)] = &[
    ("tp_btf/", Way::Args),
    ("raw_tp/", Way::Args),
    ("raw_tracepoint/", Way::Args),
    ("tp/", Way::Record),
    ("tracepoint/", Way::Record),
    ("fentry/", Way::Entry),
    ("fentry.s/", Way::Entry),
    ("fexit/", Way::Exit),
    ("fexit.s/", Way::Exit),
];
/// The beginnings of sections of programs that are called at events which the machine does not have at all.
const FOREIGN: &[&str] = &[
    "kprobe",
    "kretprobe",
    "ksyscall",
    "kretsyscall",
    "uprobe",
    "uretprobe",
    "usdt",
    "perf_event",
    "fmod_ret",
    "lsm",
];

impl Way {
    /// The kind of target that it is for.
    pub(crate) fn kind(self) -> TargetKind {
        match self {
            Way::Args => TargetKind::Tracepoint,
            Way::Record => TargetKind::Record,
            Way::Entry | Way::Exit => TargetKind::Function,
        }
    }
}

/// State of a tracing program in the simulated machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TracingState {
    /// It is called at each such event.
    Called,
    /// The same; what is different from the kernel.
    Approximated(&'static str),
    /// It is never called; why.
    Never(String),
}

/// A program of an object that is called at an event of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracingProgram {
    /// Its function.
    pub name: String,
    /// Its target, as its section states: `tp_btf/sched_switch`.
    pub target: String,
    /// It is attached without being asked for: its section does not begin with `?`.
    pub by_itself: bool,
    /// Its state, if it is attached.
    pub state: TracingState,
}

impl fmt::Display for TracingState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TracingState::Called => write!(f, "called"),
            TracingState::Approximated(how) => write!(f, "called: {how}"),
            TracingState::Never(why) => write!(f, "{why}"),
        }
    }
}

/// The programs of an object that are called at events of the kernel, in its order.
pub fn tracing_programs(object: &Object) -> Vec<TracingProgram> {
    let functions = object.functions().iter();
    functions.filter_map(|function| program(&function.name, &function.section)).collect()
}

/// Whether the programs of a section are called at events.
pub(crate) fn is_traced(in_section: &str) -> bool {
    placed(section(in_section).0).is_some()
}

fn program(name: &str, in_section: &str) -> Option<TracingProgram> {
    let (target, by_itself) = section(in_section);
    let is_foreign =
        target.split(['/', '.', '+']).next().is_some_and(|start| FOREIGN.contains(&start));
    let state = match placed(target) {
        Some((way, name)) => state(way, name),
        None if is_foreign => {
            TracingState::Never("never called: the machine has no probes of this kind".to_owned())
        }
        None => return None,
    };
    let (name, target) = (name.to_owned(), target.to_owned());
    Some(TracingProgram { name, target, by_itself, state })
}

/// Target of a section, and whether its programs are attached without being asked for.
fn section(section: &str) -> (&str, bool) {
    match section.strip_prefix('?') {
        Some(rest) => (rest, false),
        None => (section, true),
    }
}

/// How and to what the programs of a section are attached.
fn placed(section: &str) -> Option<(Way, &str)> {
    SECTIONS.iter().find_map(|(start, way)| Some((*way, section.strip_prefix(start)?)))
}

fn state(way: Way, name: &str) -> TracingState {
    use crate::interface::State;
    let Some(target) = target(way, name) else {
        return TracingState::Never("never called: the machine has no such event".to_owned());
    };
    match (target.event, target.feature.state) {
        (Some(_), State::Approximated(how)) => TracingState::Approximated(how),
        (Some(_), _) => TracingState::Called,
        (None, State::Approximated(why)) => TracingState::Never(why.to_owned()),
        (None, State::Absent(why)) => TracingState::Never(format!("never called: {why}")),
        (None, State::Done) => TracingState::Never("never called".to_owned()),
    }
}

/// A program that is attached to an event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attached {
    pub(crate) function: usize,
    pub(crate) event: Event,
    pub(crate) way: Way,
}

/// The programs of a scheduler that are attached to events.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tracing {
    programs: Vec<Attached>,
    /// A bit for each event with a program.
    events: u32,
}

impl Tracing {
    /// The programs that are attached: those whose sections say so, without `leave`, and `more`. `functions`: the names
    /// and sections of all functions.
    ///
    /// # Errors
    /// A name of which the object has no tracing program.
    pub(crate) fn of(
        functions: &[(&str, &str)],
        more: &[String],
        leave: &[String],
    ) -> Result<Tracing, SetupError> {
        let has = |wanted: &String| {
            functions
                .iter()
                .any(|(name, section)| name == wanted && program(name, section).is_some())
        };
        if let Some(name) = more.iter().chain(leave).find(|name| !has(name)) {
            return Err(SetupError {
                what: format!("program `{name}`"),
                problem: "it is called at no event of the kernel, and cannot be attached to one"
                    .to_owned(),
            });
        }
        let mut tracing = Tracing::default();
        for (function, (name, in_section)) in functions.iter().enumerate() {
            let is_named = |names: &[String]| names.iter().any(|other| other == name);
            let (target_name, by_itself) = section(in_section);
            let is_attached = (by_itself || is_named(more)) && !is_named(leave);
            let found = placed(target_name).filter(|_| is_attached);
            let found = found.and_then(|(way, name)| Some((way, target(way, name)?.event?)));
            if let Some((way, event)) = found {
                tracing.programs.push(Attached { function, event, way });
                tracing.events |= 1 << event as u32;
            }
        }
        Ok(tracing)
    }

    /// Whether a program is attached to an event.
    #[inline]
    pub(crate) fn has(&self, event: Event) -> bool {
        self.events & (1 << event as u32) != 0
    }

    /// Whether any is attached to an event of futexes.
    pub(crate) fn has_futexes(&self) -> bool {
        use Event::*;
        [SysEnterFutex, SysExitFutex, FutexWait, FutexWake, FutexLockPi, FutexUnlockPi]
            .into_iter()
            .any(|event| self.has(event))
    }

    /// Whether there is any.
    pub(crate) fn is_empty(&self) -> bool {
        self.programs.is_empty()
    }

    /// The next program of an event, from a number on: its number and its function.
    pub(crate) fn next(&self, from: usize, event: Event, way: Way) -> Option<(usize, usize)> {
        let rest = self.programs.iter().enumerate().skip(from);
        let mut found = rest.filter(|(_, program)| program.event == event && program.way == way);
        found.next().map(|(number, program)| (number, program.function))
    }

    /// The functions of all.
    pub(crate) fn functions(&self) -> impl Iterator<Item = usize> {
        self.programs.iter().map(|program| program.function)
    }
}
