//! What the project writes into a trace beside the kernel's events, through `trace_marker` or by its own writer.
//!
//! ```text
//! tracing_mark_write: C|77|answers|12            a mark: a counter track in Perfetto
//! tracing_mark_write: fairground:param name=value
//! tracing_mark_write: fairground:nice pid=77 nice=-5
//! tracing_mark_write: fairground:callback enqueue pid=77
//! tracing_mark_write: fairground:cgroup_weight cgroup=2 weight=300
//! tracing_mark_write: fairground:contention_begin pid=77 holder=78 flags=SPIN lock=queue
//! tracing_mark_write: fairground:contention_end pid=77 lock=queue
//! tracing_mark_write: fairground:lost            the time of the lost-events line before it
//! ```

use super::fields::{Said, value};
use crate::{CallbackKind, LockFlags};

/// Understands the text of a mark; other programs' marks are [`Said::Other`]. `None` for a damaged one of our own.
pub(super) fn parse(text: &str) -> Option<Said<'_>> {
    if let Some(counter) = text.strip_prefix("C|") {
        return Some(self::counter(counter).unwrap_or(Said::Other));
    }
    let Some(own) = text.strip_prefix("fairground:") else { return Some(Said::Other) };
    let (kind, rest) = own.split_once(' ').unwrap_or((own, ""));
    Some(match kind {
        "param" => Said::Param { label: rest },
        "nice" => {
            let nice = value(rest, "nice=")?.parse().ok().filter(|nice| (-20..=19).contains(nice));
            Said::Nice { pid: value(rest, "pid=")?.parse().ok()?, nice: nice? }
        }
        "callback" => {
            let name = rest.split(' ').next()?;
            let kind = CallbackKind::ALL.into_iter().find(|kind| kind.name() == name)?;
            Said::Callback { kind, pid: value(rest, "pid=")?.parse().ok()? }
        }
        "cgroup_weight" => Said::CgroupWeight {
            cgroup: value(rest, "cgroup=")?.parse().ok()?,
            weight: value(rest, "weight=")?.parse().ok()?,
        },
        "contention_begin" => {
            let (numbers, lock) = rest.split_once(" lock=")?;
            Said::ContentionBegin {
                pid: Some(value(numbers, "pid=")?.parse().ok()?),
                holder: value(numbers, "holder=")?.parse().ok()?,
                flags: LockFlags::parse(value(numbers, "flags=")?)?,
                lock,
            }
        }
        "contention_end" => {
            let (numbers, lock) = rest.split_once(" lock=")?;
            Said::ContentionEnd { pid: Some(value(numbers, "pid=")?.parse().ok()?), lock }
        }
        "lost" => Said::LostHere,
        _ => Said::Other,
    })
}

/// `pid|name|value`, the counter of Android's atrace.
fn counter(text: &str) -> Option<Said<'_>> {
    let (pid, rest) = text.split_once('|')?;
    let (label, value) = rest.rsplit_once('|')?;
    Some(Said::Mark { pid: pid.parse().ok()?, label, value: value.parse().ok()? })
}
