//! Fields as kernels before 2.6.35 print them, and as the tracers of 2.6.27 do (`wakeup` still does).
//!
//! ```text
//! sched_switch: task swapper:0 [140] (R) ==> events/1:8 [115]
//! sched_wakeup: task events/1:8 [115] success=1 [001]
//! sched_migrate_task: task cat:7 [120] from: 0  to: 1
//! sched_process_fork: parent bash:7  child bash:8
//! 3997:120:R ==> [001]  4055:120:R cat                 a switch
//! 3997:120:R   + [001]  4055:120:S cat                 a wake-up
//! ```

use super::fields::{Sides, pretty_task};
use super::interner::{Named, UNNAMED};
use super::line::leading_number;

/// A name may hold brackets; after this many the fields are unreadable.
const BRACKETS_MAX: usize = 16;

/// The tasks of a switch and the state of the first; `running` has its name where the fields do not.
pub(super) fn switch<'a>(fields: &'a str, running: Option<Named<'a>>) -> Option<Sides<'a>> {
    if fields.starts_with(|c: char| c.is_ascii_digit()) {
        let (left, right) = fields.split_once(" ==> ")?;
        let (pid, prio, state, _) = numbers(left)?;
        let comm =
            running.filter(|running| running.pid == pid).map_or(UNNAMED, |running| running.comm);
        let prev = Named { pid, comm, prio: Some(prio) };
        return Some((prev, state, numbered(right)?.0));
    }
    let (prev, rest) = named(fields.strip_prefix("task ")?)?;
    let (state, rest) = rest.strip_prefix('(')?.split_once(')')?;
    let (next, _) = pretty_task(rest.trim_start().strip_prefix("==> ")?)?;
    Some((prev, state, next))
}

/// The task of an event, and what follows it.
pub(super) fn task(fields: &str) -> Option<(Named<'_>, &str)> {
    if fields.starts_with(|c: char| c.is_ascii_digit()) {
        let (_, right) = fields.split_once(" + ")?;
        return numbered(right);
    }
    named(fields.strip_prefix("task ")?)
}

/// `name:pid [prio] rest`: the first bracket with a pid before it.
fn named(text: &str) -> Option<(Named<'_>, &str)> {
    text.match_indices(" [").take(BRACKETS_MAX).find_map(|(open, _)| {
        let (comm, pid) = text[..open].rsplit_once(':')?;
        let (prio, rest) = text[open + 2..].split_once(']')?;
        let task = Named { pid: pid.parse().ok()?, comm, prio: Some(prio.parse().ok()?) };
        Some((task, rest.trim_start()))
    })
}

/// `[001]  4055: 94:R cat`: the task, and the text with the CPU.
fn numbered(text: &str) -> Option<(Named<'_>, &str)> {
    let text = text.trim_start();
    let behind = text.strip_prefix('[').map_or(Some(text), |rest| Some(rest.split_once(']')?.1))?;
    let (pid, prio, _, comm) = numbers(behind)?;
    let comm = if comm.is_empty() { UNNAMED } else { comm };
    Some((Named { pid, comm, prio: Some(prio) }, text))
}

/// `4055: 94:R rest`.
fn numbers(text: &str) -> Option<(u32, i32, &str, &str)> {
    let (pid, rest) = text.split_once(':')?;
    let (prio, rest) = rest.split_once(':')?;
    let (state, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    Some((pid.trim().parse().ok()?, prio.trim().parse().ok()?, state, rest.trim()))
}

/// The CPU of a wake-up: `success=1 [001]`, or in front of the task.
pub(super) fn target_cpu(rest: &str) -> Option<&str> {
    let (_, inside) = rest.split_once('[')?;
    let (cpu, _) = inside.split_once(']')?;
    leading_number(cpu).filter(|(_, rest)| rest.is_empty()).map(|_| cpu)
}

/// `from: 0  to: 1`.
pub(super) fn from_and_to(rest: &str) -> Option<(&str, &str)> {
    let mut words = rest.split_whitespace();
    let (from, first, to, second) = (words.next()?, words.next()?, words.next()?, words.next()?);
    ((from, to) == ("from:", "to:")).then_some((first, second))
}

/// The parent and the child of a new task.
pub(super) fn fork(fields: &str) -> Option<(Named<'_>, Named<'_>)> {
    let (parent, child) = fields.strip_prefix("parent ")?.rsplit_once(" child ")?;
    let task = |text: &'_ str| -> Option<(u32, usize)> {
        let (comm, pid) = text.rsplit_once(':')?;
        Some((pid.parse().ok()?, comm.len()))
    };
    let (parent, child) = (parent.trim_end(), child.trim_end());
    let ((parent_pid, parent_len), (child_pid, child_len)) = (task(parent)?, task(child)?);
    let named = |pid, comm| Named { pid, comm, prio: None };
    Some((named(parent_pid, &parent[..parent_len]), named(child_pid, &child[..child_len])))
}
