//! The fields of the events that are used, in the raw form that the kernel's format strings give and in the pretty form
//! of libtraceevent's plugins (`bash:123 [120] S ==> swapper/0:0 [120]`).
//!
//! Names can hold blanks and `=`, so fields are taken from the right, where only numbers stand.

use super::line::{CPUS_MAX, leading_number};
use super::marks;
use super::parsed::{Named, ParsedEvent, value};
use crate::{LockFlags, TaskState};

/// A name can hold the arrow of a switch; after this many the line is given up.
const ARROWS_MAX: usize = 16;

/// Understands an event's fields; `None` when a known event has not its fields.
pub(super) fn parse<'a>(event: &str, fields: &'a str) -> Option<ParsedEvent<'a>> {
    Some(match event {
        "sched_switch" => return switch(fields),
        "sched_waking" => {
            let (task, rest) = one_task(fields)?;
            ParsedEvent::Waking { task, target_cpu: target_cpu(rest)? }
        }
        "sched_wakeup" => {
            let (task, rest) = one_task(fields)?;
            if value(rest, "success=") == Some("0") {
                return Some(ParsedEvent::Other);
            }
            ParsedEvent::Wakeup { task, target_cpu: target_cpu(rest)? }
        }
        "sched_wakeup_new" => {
            let (task, rest) = one_task(fields)?;
            ParsedEvent::WakeupNew { task, target_cpu: target_cpu(rest)? }
        }
        "sched_migrate_task" => {
            let (task, rest) = one_task(fields)?;
            let from_cpu = cpu(value(rest, "orig_cpu=")?)?;
            ParsedEvent::Migrate { task, from_cpu, to_cpu: cpu(value(rest, "dest_cpu=")?)? }
        }
        "sched_process_fork" => return fork(fields),
        "cgroup_attach_task" => {
            let (_, rest) = fields.split_once("dst_path=")?;
            let (path, rest) = rest.split_once(" pid=")?;
            ParsedEvent::CgroupMove { pid: first_word(rest).parse().ok()?, path }
        }
        "sched_process_exit" => ParsedEvent::Exit { task: one_task(fields)?.0 },
        "contention_begin" => {
            let (lock, rest) = fields.split_once(" (flags=")?;
            let flags = LockFlags::parse(rest.strip_suffix(')')?)?;
            ParsedEvent::ContentionBegin { pid: None, holder: 0, flags, lock }
        }
        "contention_end" => ParsedEvent::ContentionEnd { pid: None, lock: first_word(fields) },
        "hrtimer_expire_entry" => tick(fields),
        "tracing_mark_write" => return marks::parse(fields),
        // trace-cmd calls the same event `print` and puts the function before the text.
        "print" => {
            let text = fields.strip_prefix("tracing_mark_write: ").unwrap_or(fields);
            return marks::parse(text);
        }
        "bpf_trace_printk" => ParsedEvent::Print { label: fields },
        "PERF_RECORD_LOST" => {
            let count = fields.rsplit(' ').find_map(|word| word.parse().ok())?;
            ParsedEvent::Lost { count }
        }
        _ => ParsedEvent::Other,
    })
}

/// The timer that is the scheduler's tick: `tick_sched_timer` up to 6.8, `tick_nohz_handler` after.
fn tick<'a>(fields: &str) -> ParsedEvent<'a> {
    match value(fields, "function=") {
        Some("tick_nohz_handler" | "tick_sched_timer") => ParsedEvent::Tick,
        _ => ParsedEvent::Other,
    }
}

fn switch(fields: &str) -> Option<ParsedEvent<'_>> {
    let raw = fields.strip_prefix("prev_comm=");
    let arrow = if raw.is_some() { " ==> next_comm=" } else { " ==> " };
    let text = raw.unwrap_or(fields);
    for (at, _) in text.match_indices(arrow).take(ARROWS_MAX) {
        let (left, right) = (&text[..at], &text[at + arrow.len()..]);
        let sides = if raw.is_some() { raw_sides(left, right) } else { pretty_sides(left, right) };
        if let Some((prev, state, next)) = sides {
            return Some(ParsedEvent::Switch { prev, prev_state: task_state(state)?, next });
        }
    }
    None
}

type Sides<'a> = (Named<'a>, &'a str, Named<'a>);

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
fn pretty_task(text: &str) -> Option<(Named<'_>, &str)> {
    let open = text.rfind(" [")?;
    let (prio, rest) = text[open + 2..].split_once(']')?;
    let (comm, pid) = text[..open].rsplit_once(':')?;
    let task = Named { pid: pid.parse().ok()?, comm, prio: Some(prio.parse().ok()?) };
    Some((task, rest.trim()))
}

/// `comm=… pid=… prio=… rest`, or the pretty form.
fn one_task(fields: &str) -> Option<(Named<'_>, &str)> {
    let Some(text) = fields.strip_prefix("comm=") else { return pretty_task(fields) };
    let at = text.rfind(" pid=")?;
    let rest = &text[at + 1..];
    let prio = match value(rest, "prio=") {
        Some(prio) => Some(prio.parse().ok()?),
        None => None,
    };
    let pid = value(rest, "pid=")?.parse().ok()?;
    Some((Named { pid, comm: &text[..at], prio }, rest))
}

fn fork(fields: &str) -> Option<ParsedEvent<'_>> {
    let text = fields.strip_prefix("comm=")?;
    let (text, child_pid) = text.rsplit_once(" child_pid=")?;
    let (text, child_comm) = text.rsplit_once(" child_comm=")?;
    let (comm, pid) = text.rsplit_once(" pid=")?;
    let named = |pid: &str, comm| Some(Named { pid: pid.parse().ok()?, comm, prio: None });
    Some(ParsedEvent::Fork {
        parent: named(pid, comm)?,
        child: named(first_word(child_pid), child_comm)?,
    })
}

fn first_word(text: &str) -> &str {
    text.split(' ').next().unwrap_or(text)
}

fn target_cpu(rest: &str) -> Option<u32> {
    cpu(value(rest, "target_cpu=").or_else(|| value(rest, "CPU:"))?)
}

fn cpu(text: &str) -> Option<u32> {
    text.parse().ok().filter(|cpu| *cpu < CPUS_MAX)
}

/// The first letter decides: `R+` is a runnable task that was preempted in the kernel, `D|K` a killable sleep.
pub(super) fn task_state(text: &str) -> Option<TaskState> {
    Some(match text.bytes().next()? {
        b'R' => TaskState::Runnable,
        b'S' => TaskState::Sleeping,
        b'D' => TaskState::Uninterruptible,
        b'T' | b't' => TaskState::Stopped,
        b'X' | b'x' | b'Z' => TaskState::Dead,
        b'A'..=b'W' | b'Y' | b'a'..=b'w' => TaskState::Parked,
        // The kernel prints an unnamed state in hexadecimal.
        b'0' if leading_number(text).is_some() => TaskState::Parked,
        _ => return None,
    })
}
