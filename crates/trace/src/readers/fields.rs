//! The fields of the events that are used, in the raw form that the kernel's format strings give and in the pretty form
//! of libtraceevent's plugins (`bash:123 [120] S ==> swapper/0:0 [120]`).
//!
//! Names can hold blanks and `=`, so fields are taken from the right, where only numbers stand.

use super::calls;
use super::interner::{IdentityId, Named};
use super::line::CPUS_MAX;
use super::marks;
use super::old_fields;
use super::stated::{Stated, TICK_FUNCTIONS, Tasks, printed, value};
use crate::event::{FieldValue, Role, Tag};
use crate::{EventKind, LockFlags, TaskState};

/// A name can hold the arrow of a switch; after this many the line is unreadable.
const ARROWS_MAX: usize = 16;

/// The bits of `prev_state` that have a name since Linux 4.14 (`TASK_REPORT`, `TASK_REPORT_MAX`).
const NAMED_STATES: u64 = 0x1ff;

/// Parses an event's fields; `None` when a known event lacks one.
pub(super) fn parse(event: &str, fields: &str, tasks: &mut Tasks<'_>) -> Option<Stated> {
    Some(match event {
        "contention_begin" => {
            let (lock, rest) = fields.split_once(" (flags=")?;
            let flags = LockFlags::parse(rest.strip_suffix(')')?)?;
            tasks.contention(Some(flags), lock.to_owned())
        }
        "contention_end" => tasks.contention(None, first_word(fields).to_owned()),
        "cgroup_attach_task" => {
            let (_, rest) = fields.split_once("dst_path=")?;
            let (path, rest) = rest.split_once(" pid=")?;
            tasks.cgroup_move(first_word(rest).parse().ok()?, path.to_owned())
        }
        "tracing_mark_write" => return marks::parse(fields, tasks),
        // trace-cmd calls the same event `print` and puts the function before the text.
        "print" => {
            let text = fields.strip_prefix("tracing_mark_write: ").unwrap_or(fields);
            return marks::parse(text, tasks);
        }
        "bpf_trace_printk" => printed(fields),
        "sched_blocked_reason" => {
            let (pid, caller) = (value(fields, "pid=")?, value(fields, "caller=")?);
            tasks.blocked(pid.parse().ok()?, caller)
        }
        "hrtimer_expire_entry" => {
            let function = value(fields, "function=");
            tasks.timer(function.is_some_and(|function| TICK_FUNCTIONS.contains(&function)))
        }
        "PERF_RECORD_LOST" => {
            let count = fields.rsplit(' ').find_map(|word| word.parse().ok())?;
            Stated::Event(EventKind::Lost { count })
        }
        _ if event.starts_with("sys_") => return calls::parse(event, fields, tasks),
        _ => return scheduling(event, fields, tasks),
    })
}

/// The events of the scheduler itself.
fn scheduling(event: &str, fields: &str, tasks: &mut Tasks<'_>) -> Option<Stated> {
    Some(Stated::Event(match event {
        "sched_switch" => switch(fields, tasks)?,
        "sched_waking" => {
            let (task, rest) = one_task(fields)?;
            let target_cpu = target_cpu(rest)?;
            EventKind::Waking { task: tasks.named(task), waker: tasks.waker(), target_cpu }
        }
        "sched_wakeup" => {
            let (task, rest) = one_task(fields)?;
            if value(rest, "success=") == Some("0") {
                return Some(Stated::Other);
            }
            let (task, target_cpu) = (tasks.named(task), target_cpu(rest)?);
            return Some(tasks.wakeup(task, target_cpu));
        }
        "sched_process_fork" => fork(fields, tasks)?,
        _ => {
            let Some(tag) = Tag::of_tracepoint(event) else { return Some(Stated::Other) };
            let task = one_task(fields);
            let rest = task.map_or(fields, |(_, rest)| rest);
            EventKind::of_fields(tag, |_, source, role| match role {
                Role::Task => Some(FieldValue::Task(tasks.named(task?.0))),
                role => marks::field_value(role, field_text(source, rest)?, tasks),
            })?
        }
    }))
}

fn switch(fields: &str, tasks: &mut Tasks<'_>) -> Option<EventKind<IdentityId>> {
    if let Some((prev, state, next)) = old_fields::switch(fields, tasks.running) {
        let (prev, next) = (tasks.named(prev), tasks.named(next));
        return Some(EventKind::Switch { prev, prev_state: task_state(state)?, next });
    }
    let raw = fields.strip_prefix("prev_comm=");
    let text = raw.unwrap_or(fields);
    // `trace-cmd report -R` prints the fields alone.
    let arrows: &[&str] =
        if raw.is_some() { &[" ==> next_comm=", " next_comm="] } else { &[" ==> "] };
    let places = arrows.iter().flat_map(|arrow| {
        text.match_indices(arrow).take(ARROWS_MAX).map(|(at, _)| (at, at + arrow.len()))
    });
    for (left_end, right_start) in places {
        let (left, right) = (&text[..left_end], &text[right_start..]);
        let sides = if raw.is_some() { raw_sides(left, right) } else { pretty_sides(left, right) };
        if let Some((prev, state, next)) = sides {
            let (prev, next) = (tasks.named(prev), tasks.named(next));
            return Some(EventKind::Switch { prev, prev_state: task_state(state)?, next });
        }
    }
    None
}

pub(super) type Sides<'a> = (Named<'a>, &'a str, Named<'a>);

fn raw_sides<'a>(left: &'a str, right: &'a str) -> Option<Sides<'a>> {
    let (left, state) = left.rsplit_once(" prev_state=")?;
    let (left, prio) = left.rsplit_once(" prev_prio=")?;
    let (comm, pid) = left.rsplit_once(" prev_pid=")?;
    let prev = Named { pid: pid.parse().ok()?, comm, prio: Some(prio.parse().ok()?) };
    let (right, prio) = right.rsplit_once(" next_prio=")?;
    let (comm, pid) = right.rsplit_once(" next_pid=")?;
    let prio = first_word(prio).parse().ok()?;
    Some((prev, state, Named { pid: pid.parse().ok()?, comm, prio: Some(prio) }))
}

fn pretty_sides<'a>(left: &'a str, right: &'a str) -> Option<Sides<'a>> {
    let (left, state) = left.rsplit_once(' ')?;
    let (prev, rest) = pretty_task(left)?;
    if !rest.is_empty() {
        return None;
    }
    Some((prev, state, pretty_task(right)?.0))
}

/// `comm:pid [prio] rest`.
pub(super) fn pretty_task(text: &str) -> Option<(Named<'_>, &str)> {
    let open = text.rfind(" [")?;
    let (prio, rest) = text[open + 2..].split_once(']')?;
    let (comm, pid) = text[..open].rsplit_once(':')?;
    let task = Named { pid: pid.parse().ok()?, comm, prio: Some(prio.parse().ok()?) };
    Some((task, rest.trim()))
}

/// `comm=… pid=… prio=… rest`, or the pretty form.
fn one_task(fields: &str) -> Option<(Named<'_>, &str)> {
    let Some(text) = fields.strip_prefix("comm=") else {
        return old_fields::task(fields).or_else(|| pretty_task(fields));
    };
    let at = text.rfind(" pid=")?;
    let rest = &text[at + 1..];
    let prio = match value(rest, "prio=") {
        Some(prio) => Some(prio.parse().ok()?),
        None => None,
    };
    let pid = value(rest, "pid=")?.parse().ok()?;
    Some((Named { pid, comm: &text[..at], prio }, rest))
}

fn fork(fields: &str, tasks: &mut Tasks<'_>) -> Option<EventKind<IdentityId>> {
    if let Some((parent, child)) = old_fields::fork(fields) {
        return Some(EventKind::Fork { parent: tasks.named(parent), child: tasks.named(child) });
    }
    // The names of the fields themselves (`trace-cmd report -R`), or those that the kernel prints.
    let (text, pid_key) = match fields.strip_prefix("parent_comm=") {
        Some(text) => (text, " parent_pid="),
        None => (fields.strip_prefix("comm=")?, " pid="),
    };
    let (text, child_pid) = text.rsplit_once(" child_pid=")?;
    let (text, child_comm) = text.rsplit_once(" child_comm=")?;
    let (comm, pid) = text.rsplit_once(pid_key)?;
    let mut named = |pid: &str, comm| {
        let named = Named { pid: pid.parse().ok()?, comm, prio: None };
        Some(tasks.named(named))
    };
    Some(EventKind::Fork {
        parent: named(pid, comm)?,
        child: named(first_word(child_pid), child_comm)?,
    })
}

fn first_word(text: &str) -> &str {
    text.split(' ').next().unwrap_or(text)
}

fn target_cpu(rest: &str) -> Option<u32> {
    field_text("target_cpu", rest)?.parse().ok().filter(|cpu| *cpu < CPUS_MAX)
}

/// The text of a field, by its name or in the form of older kernels.
fn field_text<'a>(name: &str, rest: &'a str) -> Option<&'a str> {
    let named = rest.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    named.or_else(|| match name {
        "target_cpu" => value(rest, "CPU:").or_else(|| old_fields::target_cpu(rest)),
        "orig_cpu" => Some(old_fields::from_and_to(rest)?.0),
        "dest_cpu" => Some(old_fields::from_and_to(rest)?.1),
        _ => None,
    })
}

/// The first letter decides: `D|K` is a killable sleep. `R+` was preempted in the kernel. A letter that is not known is
/// no sleep and no end. A number is the field's bits (`trace-cmd report -R`; with `0x` from a kernel of 32 bits). With
/// `0x` the kernel prints a state without a name, too, which is above those that have one.
pub(super) fn task_state(text: &str) -> Option<TaskState> {
    if let Ok(bits) = text.parse() {
        return Some(TaskState::of_bits(bits));
    }
    if let Some(bits) = text.strip_prefix("0x") {
        let bits = u64::from_str_radix(first_word(bits), 16).ok()?;
        return Some(match bits {
            bits if bits == 0 || bits & NAMED_STATES != 0 => TaskState::of_bits(bits),
            _ => TaskState::Parked,
        });
    }
    Some(match text.bytes().next()? {
        b'R' if text.contains('+') => TaskState::Preempted,
        b'R' => TaskState::Runnable,
        b'S' => TaskState::Sleeping,
        b'D' => TaskState::Uninterruptible,
        b'T' => TaskState::Stopped,
        b't' => TaskState::Traced,
        b'X' | b'x' => TaskState::Dead,
        b'Z' => TaskState::Zombie,
        b'I' => TaskState::Idle,
        b'A'..=b'W' | b'Y' | b'a'..=b'w' => TaskState::Parked,
        _ => return None,
    })
}
