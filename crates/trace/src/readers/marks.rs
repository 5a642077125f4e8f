//! What the project writes into a trace beside the kernel's events, through `trace_marker` or by its own writer.
//!
//! ```text
//! tracing_mark_write: C|77|answers|12            a mark: a counter track in Perfetto
//! tracing_mark_write: fairground:param name=value
//! tracing_mark_write: fairground:nice pid=77 nice=-5
//! tracing_mark_write: fairground:prio pid=77 prio=49
//! tracing_mark_write: fairground:slice pid=77 slice_ns=3000000
//! tracing_mark_write: fairground:affinity pid=77 cpus=0-3,8
//! tracing_mark_write: fairground:callback enqueue pid=77
//! tracing_mark_write: fairground:call_enter pid=77 call=read object=3
//! tracing_mark_write: fairground:call_exit pid=77 result=-11
//! tracing_mark_write: fairground:cgroup_weight cgroup=2 weight=300
//! tracing_mark_write: fairground:cgroup_weight weight=300 path=/web/front
//! tracing_mark_write: fairground:contention_begin pid=77 holder=78 flags=SPIN lock=queue
//! tracing_mark_write: fairground:contention_end pid=77 lock=queue
//! tracing_mark_write: fairground:lost            the time of the lost-events line before it
//! ```

use super::stated::{NO_LABEL, Stated, Tasks, value};
use crate::{Call, CallbackKind, CgroupId, EventKind, LockFlags, RtPrio};

/// Parses the text of a mark; other programs' marks are [`Stated::Other`]. `None` for a damaged one of our own.
pub(super) fn parse(text: &str, tasks: &mut Tasks<'_>) -> Option<Stated> {
    if let Some(counter) = text.strip_prefix("C|") {
        return Some(self::counter(counter, tasks).unwrap_or(Stated::Other));
    }
    let Some(own) = text.strip_prefix("fairground:") else { return Some(Stated::Other) };
    let (kind, rest) = own.split_once(' ').unwrap_or((own, ""));
    let mut pid = |key, words| Some(tasks.by_pid(value(words, key)?.parse().ok()?));
    Some(match kind {
        "param" => Stated::WithText(EventKind::Param { label: NO_LABEL }, rest.to_owned()),
        "nice" => {
            let nice = value(rest, "nice=")?.parse().ok().filter(|nice| (-20..=19).contains(nice));
            Stated::Event(EventKind::Nice { task: pid("pid=", rest)?, nice: nice? })
        }
        "prio" => {
            let prio = RtPrio::new(value(rest, "prio=")?.parse().ok()?)?;
            Stated::Event(EventKind::RtPrio { task: pid("pid=", rest)?, prio })
        }
        "slice" => {
            let slice_ns = value(rest, "slice_ns=")?.parse().ok()?;
            Stated::Event(EventKind::Slice { task: pid("pid=", rest)?, slice_ns })
        }
        "affinity" => {
            let (numbers, cpus) = rest.split_once(" cpus=")?;
            let task = pid("pid=", numbers)?;
            Stated::WithText(EventKind::Affinity { task, cpus: NO_LABEL }, cpus.to_owned())
        }
        "callback" => {
            let name = rest.split(' ').next()?;
            let kind = CallbackKind::ALL.into_iter().find(|kind| kind.name() == name)?;
            Stated::Event(EventKind::Callback { kind, task: pid("pid=", rest)? })
        }
        "call_enter" => Stated::Event(EventKind::CallEnter {
            task: pid("pid=", rest)?,
            call: Call::of_name(value(rest, "call=")?)?,
            object: value(rest, "object=")?.parse().ok()?,
        }),
        "call_exit" => Stated::Event(EventKind::CallExit {
            task: pid("pid=", rest)?,
            result: value(rest, "result=")?.parse().ok()?,
        }),
        "cgroup_weight" => cgroup_weight(rest)?,
        "contention_begin" => {
            let (numbers, lock) = rest.split_once(" lock=")?;
            let (task, holder) = (pid("pid=", numbers)?, pid("holder=", numbers)?);
            let flags = LockFlags::parse(value(numbers, "flags=")?)?;
            let begin = EventKind::ContentionBegin { task, lock: NO_LABEL, flags, holder };
            Stated::WithText(begin, lock.to_owned())
        }
        "contention_end" => {
            let (numbers, lock) = rest.split_once(" lock=")?;
            let end = EventKind::ContentionEnd { task: pid("pid=", numbers)?, lock: NO_LABEL };
            Stated::WithText(end, lock.to_owned())
        }
        "lost" => Stated::LostHere,
        _ => Stated::Other,
    })
}

/// A group's weight changes: a group of the header by its number, or any by its path.
fn cgroup_weight(words: &str) -> Option<Stated> {
    let weight = value(words, "weight=")?.parse().ok()?;
    if let Some((_, path)) = words.split_once(" path=") {
        let kind = EventKind::CgroupWeight { cgroup: CgroupId::ROOT, weight };
        return Some(Stated::WithText(kind, path.to_owned()));
    }
    let cgroup = CgroupId(value(words, "cgroup=")?.parse().ok()?);
    Some(Stated::Event(EventKind::CgroupWeight { cgroup, weight }))
}

/// `pid|name|value`, the counter of Android's atrace.
fn counter(text: &str, tasks: &mut Tasks<'_>) -> Option<Stated> {
    let (pid, rest) = text.split_once('|')?;
    let (name, value) = rest.rsplit_once('|')?;
    let task = tasks.by_pid(pid.parse().ok()?);
    let mark = EventKind::Mark { task, label: NO_LABEL, value: value.parse().ok()? };
    Some(Stated::WithText(mark, name.to_owned()))
}
