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

use super::parsed::{ParsedEvent, value};
use crate::{CallbackKind, LockFlags};

/// Understands the text of a mark; other programs' marks are [`ParsedEvent::Other`]. `None` for a damaged one of our
/// own.
pub(super) fn parse(text: &str) -> Option<ParsedEvent<'_>> {
    if let Some(counter) = text.strip_prefix("C|") {
        return Some(self::counter(counter).unwrap_or(ParsedEvent::Other));
    }
    let Some(own) = text.strip_prefix("fairground:") else { return Some(ParsedEvent::Other) };
    let (kind, rest) = own.split_once(' ').unwrap_or((own, ""));
    Some(match kind {
        "param" => ParsedEvent::Param { label: rest },
        "nice" => {
            let nice = value(rest, "nice=")?.parse().ok().filter(|nice| (-20..=19).contains(nice));
            ParsedEvent::Nice { pid: value(rest, "pid=")?.parse().ok()?, nice: nice? }
        }
        "callback" => {
            let name = rest.split(' ').next()?;
            let kind = CallbackKind::ALL.into_iter().find(|kind| kind.name() == name)?;
            ParsedEvent::Callback { kind, pid: value(rest, "pid=")?.parse().ok()? }
        }
        "cgroup_weight" => ParsedEvent::CgroupWeight {
            cgroup: value(rest, "cgroup=")?.parse().ok()?,
            weight: value(rest, "weight=")?.parse().ok()?,
        },
        "contention_begin" => {
            let (numbers, lock) = rest.split_once(" lock=")?;
            ParsedEvent::ContentionBegin {
                pid: Some(value(numbers, "pid=")?.parse().ok()?),
                holder: value(numbers, "holder=")?.parse().ok()?,
                flags: LockFlags::parse(value(numbers, "flags=")?)?,
                lock,
            }
        }
        "contention_end" => {
            let (numbers, lock) = rest.split_once(" lock=")?;
            ParsedEvent::ContentionEnd { pid: Some(value(numbers, "pid=")?.parse().ok()?), lock }
        }
        "lost" => ParsedEvent::LostHere,
        _ => ParsedEvent::Other,
    })
}

/// `pid|name|value`, the counter of Android's atrace.
fn counter(text: &str) -> Option<ParsedEvent<'_>> {
    let (pid, rest) = text.split_once('|')?;
    let (label, value) = rest.rsplit_once('|')?;
    Some(ParsedEvent::Mark { pid: pid.parse().ok()?, label, value: value.parse().ok()? })
}
