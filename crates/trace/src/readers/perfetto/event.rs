//! One event of the kernel (`FtraceEvent`): the fields by their numbers in Perfetto's `ftrace/*.proto`.

use std::collections::{HashMap, HashSet};

use super::super::binary::TextBytes;
use super::super::collect::NAMES_MAX;
use super::super::interner::{IdentityId, Interner, Named, UNNAMED};
use super::super::line::CPUS_MAX;
use super::super::marks;
use super::super::state_bits::StateBits;
use super::super::stated::{Stated, TICK_FUNCTIONS, Tasks};
use super::wire::{Fields, Record};
use crate::EventKind;

/// In `common_flags`: `TRACE_FLAG_HARDIRQ`, `TRACE_FLAG_SOFTIRQ` and `TRACE_FLAG_NMI`
/// (`include/linux/trace_events.h`).
const IN_INTERRUPT: u64 = 0x08 | 0x10 | 0x40;

/// Fields of `FtraceEvent`. Any other sized field is the event itself.
const TIMESTAMP: u32 = 1;
const PID: u32 = 2;
const COMMON_FLAGS: u32 = 5;

/// The field of each event that is used.
mod kind {
    pub(super) const PRINT: u32 = 3;
    pub(super) const SCHED_SWITCH: u32 = 4;
    pub(super) const SCHED_WAKEUP: u32 = 17;
    pub(super) const SCHED_BLOCKED_REASON: u32 = 18;
    pub(super) const SCHED_WAKING: u32 = 20;
    pub(super) const CGROUP_ATTACH_TASK: u32 = 67;
    pub(super) const SCHED_WAKEUP_NEW: u32 = 114;
    pub(super) const TASK_NEWTASK: u32 = 235;
    pub(super) const SCHED_PROCESS_EXIT: u32 = 238;
    pub(super) const SCHED_PROCESS_FORK: u32 = 239;
    pub(super) const SCHED_MIGRATE_TASK: u32 = 491;
    pub(super) const HRTIMER_EXPIRE_ENTRY: u32 = 553;
}

/// Whether an event with these flags happened in an interrupt.
pub(super) fn in_interrupt(common_flags: u64) -> bool {
    common_flags & IN_INTERRUPT != 0
}

/// An event before its tasks are looked up.
#[derive(Clone, Copy, Debug)]
pub(super) struct KernelEvent<'a> {
    pub(super) time_ns: u64,
    pub(super) pid: Option<u32>,
    pub(super) in_interrupt: bool,
    kind: u32,
    body: &'a [u8],
}

impl<'a> KernelEvent<'a> {
    /// `None` when it is damaged, or without its time.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (mut time_ns, mut pid, mut flags, mut event) = (None, None, 0, None);
        for field in Fields(bytes) {
            let (number, value) = field.ok()?;
            match number {
                TIMESTAMP => time_ns = value.number(),
                PID => pid = u32::try_from(value.number()?).ok(),
                COMMON_FLAGS => flags = value.number()?,
                _ => event = event.or(value.bytes().map(|body| (number, body))),
            }
        }
        let (kind, body) = event.unwrap_or((0, &[]));
        Some(Self { time_ns: time_ns?, pid, in_interrupt: in_interrupt(flags), kind, body })
    }

    /// The meaning of the event. `None` where the fields that it must have are missing or impossible.
    pub(super) fn stated(
        &self,
        context: &mut Context,
        states: StateBits,
        interner: &mut Interner,
    ) -> Option<Stated> {
        let Context { names, functions, born } = context;
        let running = self.pid.map(|pid| Named { pid, comm: name(names, pid), prio: None });
        let mut tasks = Tasks { interner, running, in_interrupt: self.in_interrupt };
        let record = Record::parse(self.body).ok()?;
        let event = match self.kind {
            kind::SCHED_SWITCH => EventKind::Switch {
                prev: task(&record, [1, 2, 3], &mut tasks)?,
                prev_state: states.state(record.number(4)?),
                next: task(&record, [5, 6, 7], &mut tasks)?,
            },
            kind::SCHED_WAKING => {
                let woken = task(&record, [1, 2, 3], &mut tasks)?;
                EventKind::Waking {
                    task: woken,
                    waker: tasks.waker(),
                    target_cpu: cpu(&record, 5)?,
                }
            }
            // Field 4 is `success`, which newer kernels do not have.
            kind::SCHED_WAKEUP if record.number(4) == Some(0) => return Some(Stated::Other),
            kind::SCHED_WAKEUP => {
                let woken = task(&record, [1, 2, 3], &mut tasks)?;
                return Some(tasks.wakeup(woken, cpu(&record, 5)?));
            }
            kind::SCHED_WAKEUP_NEW => EventKind::WakeupNew {
                task: task(&record, [1, 2, 3], &mut tasks)?,
                target_cpu: cpu(&record, 5)?,
            },
            kind::SCHED_MIGRATE_TASK => EventKind::Migrate {
                task: task(&record, [1, 2, 3], &mut tasks)?,
                from_cpu: cpu(&record, 4)?,
                to_cpu: cpu(&record, 5)?,
            },
            kind::SCHED_PROCESS_EXIT => {
                EventKind::Exit { task: task(&record, [1, 2, 4], &mut tasks)? }
            }
            kind::TASK_NEWTASK => {
                let child = named(&record, [2, 1], &mut tasks)?;
                born.insert(pid(&record, 1)?);
                EventKind::Fork { parent: tasks.running(), child }
            }
            // The kernel has both events for a new task, this one second.
            kind::SCHED_PROCESS_FORK if born.remove(&pid(&record, 4)?) => {
                return Some(Stated::Other);
            }
            kind::SCHED_PROCESS_FORK => EventKind::Fork {
                parent: named(&record, [1, 2], &mut tasks)?,
                child: named(&record, [3, 4], &mut tasks)?,
            },
            _ => return self.other(&record, functions, &mut tasks),
        };
        Some(Stated::Event(event))
    }

    /// The events that are not of the scheduler itself.
    fn other(
        &self,
        record: &Record<'_>,
        functions: &HashMap<u64, String>,
        tasks: &mut Tasks<'_>,
    ) -> Option<Stated> {
        Some(match self.kind {
            kind::CGROUP_ATTACH_TASK => {
                let path = TextBytes(record.bytes(7)?).text().into_owned();
                tasks.cgroup_move(pid(record, 3)?, path)
            }
            kind::PRINT => {
                let text = TextBytes(record.bytes(2)?).text();
                return marks::parse(text.trim_end_matches('\n'), tasks);
            }
            kind::HRTIMER_EXPIRE_ENTRY => {
                let function = functions.get(&record.number(3).unwrap_or(0));
                let is_tick = |function: &String| TICK_FUNCTIONS.contains(&function.as_str());
                tasks.timer(function.is_some_and(is_tick))
            }
            // Without the function's name its number means nothing.
            kind::SCHED_BLOCKED_REASON => match functions.get(&record.number(2).unwrap_or(0)) {
                Some(function) => tasks.blocked(pid(record, 1)?, function),
                None => Stated::Other,
            },
            _ => Stated::Other,
        })
    }
}

/// A task by the numbers of its fields for the name, the pid and the priority.
fn task(
    record: &Record<'_>,
    [comm, pid, prio]: [usize; 3],
    tasks: &mut Tasks<'_>,
) -> Option<IdentityId> {
    // Numbers of 32 bits with a sign are written with 64.
    let prio = i32::try_from(record.number(prio)? as i64).ok()?;
    identity(record, comm, pid, Some(prio), tasks)
}

/// A task of an event without its priority.
fn named(
    record: &Record<'_>,
    [comm, pid]: [usize; 2],
    tasks: &mut Tasks<'_>,
) -> Option<IdentityId> {
    identity(record, comm, pid, None, tasks)
}

fn identity(
    record: &Record<'_>,
    comm: usize,
    pid_field: usize,
    prio: Option<i32>,
    tasks: &mut Tasks<'_>,
) -> Option<IdentityId> {
    let comm = TextBytes(record.bytes(comm)?);
    Some(tasks.interner.identity_of_bytes(pid(record, pid_field)?, comm, prio))
}

fn pid(record: &Record<'_>, field: usize) -> Option<u32> {
    u32::try_from(record.number(field)?).ok()
}

fn cpu(record: &Record<'_>, field: usize) -> Option<u32> {
    pid(record, field).filter(|cpu| *cpu < CPUS_MAX)
}

/// Names that the trace states beside its events.
#[derive(Debug, Default)]
pub(super) struct Context {
    /// Names of tasks from the process tree, by pid.
    pub(super) names: HashMap<u32, String>,
    /// Names of the kernel's functions by their numbers.
    functions: HashMap<u64, String>,
    /// Tasks whose `task_newtask` has been read, but not yet their `sched_process_fork`.
    born: HashSet<u32>,
}

fn name(names: &HashMap<u32, String>, pid: u32) -> &str {
    let unknown = if pid == 0 { "<idle>" } else { UNNAMED };
    names.get(&pid).map_or(unknown, String::as_str)
}

impl Context {
    /// Takes over a `ProcessTree`: processes (1) with pid (1) and command line (3), threads (2) with tid (1) and name
    /// (2). The name of a thread is its own; the command line of a process only stands in for it.
    pub(super) fn process_tree(&mut self, tree: &[u8]) -> Option<()> {
        for field in Fields(tree) {
            let (number, value) = field.ok()?;
            if !(1..=2).contains(&number) {
                continue;
            }
            let (mut pid, mut name) = (None, None);
            for field in Fields(value.bytes()?) {
                match (number, field.ok()?) {
                    (_, (1, id)) => pid = u32::try_from(id.number()?).ok(),
                    (1, (3, text)) | (2, (2, text)) => name = name.or(text.bytes()),
                    _ => {}
                }
            }
            let Some((pid, name)) = pid.zip(name.filter(|name| !name.is_empty())) else { continue };
            let name = String::from_utf8_lossy(name);
            let is_new = !self.names.contains_key(&pid);
            if (number == 2 || is_new) && (self.names.len() < NAMES_MAX || !is_new) {
                self.names.insert(pid, name.rsplit('/').next().unwrap_or(&name).to_owned());
            }
        }
        Some(())
    }

    /// Takes over `InternedData`: names of the kernel's functions (26) by their numbers.
    pub(super) fn interned(&mut self, data: &[u8]) -> Option<()> {
        const KERNEL_SYMBOLS: u32 = 26;
        for field in Fields(data) {
            let (number, value) = field.ok()?;
            if number != KERNEL_SYMBOLS {
                continue;
            }
            let symbol = Record::parse(value.bytes()?).ok()?;
            let (id, name) = (symbol.number(1)?, symbol.bytes(2)?);
            if self.functions.len() < NAMES_MAX || self.functions.contains_key(&id) {
                self.functions.insert(id, String::from_utf8_lossy(name).into_owned());
            }
        }
        Some(())
    }
}
