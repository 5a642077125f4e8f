//! Marks that the project writes into a trace beside the kernel's events, through `trace_marker` or by its own writer.
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
//! tracing_mark_write: fairground:wake_sync pid=77
//! tracing_mark_write: fairground:lost            the time of the lost-events line before it
//! ```

use super::interner::IdentityId;
use super::line::CPUS_MAX;
use super::stated::{NO_LABEL, Stated, Tasks, value};
use crate::event::{FieldValue, Role, Tag, mark_key};
use crate::{Call, CallbackKind, CgroupId, EventKind, LockFlags, RtPrio};

/// Parses the text of a mark; other programs' marks are [`Stated::Other`]. `None` for a damaged one of our own.
pub(super) fn parse(text: &str, tasks: &mut Tasks<'_>) -> Option<Stated> {
    if let Some(counter) = text.strip_prefix("C|") {
        return Some(self::counter(counter, tasks).unwrap_or(Stated::Other));
    }
    let Some(own) = text.strip_prefix("fairground:") else { return Some(Stated::Other) };
    let (mark, rest) = own.split_once(' ').unwrap_or((own, ""));
    match mark {
        "lost" => return Some(Stated::LostHere),
        "cgroup_weight" if rest.contains(" path=") => return weight_by_path(rest),
        _ => {}
    }
    let mut text = None;
    let Some(tag) = Tag::of_mark(mark) else { return Some(Stated::Other) };
    let kind = EventKind::of_fields(tag, |field, _, role| {
        let key = mark_key(field, role);
        if role == Role::Label {
            let label = match key {
                Some(key) => rest.split_once(&format!(" {key}="))?.1,
                None => rest,
            };
            text = Some(label.to_owned());
        }
        let word = match key {
            Some(key) => rest.split(' ').find_map(|word| word.strip_prefix(key)?.strip_prefix('=')),
            None => rest.split(' ').next(),
        };
        field_value(role, word?, tasks)
    })?;
    Some(match text {
        Some(text) => Stated::WithText(kind, text),
        None => Stated::Event(kind),
    })
}

/// The value of a field from its word; that of a label is its text, which is entered later.
pub(super) fn field_value(
    role: Role,
    word: &str,
    tasks: &mut Tasks<'_>,
) -> Option<FieldValue<IdentityId>> {
    Some(match role {
        Role::Task => FieldValue::Task(tasks.by_pid(word.parse().ok()?)),
        Role::Cpu => FieldValue::Cpu(word.parse().ok().filter(|cpu| *cpu < CPUS_MAX)?),
        Role::State => return None,
        Role::Label => FieldValue::Label(NO_LABEL),
        Role::Cgroup => FieldValue::Cgroup(CgroupId(word.parse().ok()?)),
        Role::Nice => FieldValue::Nice(word.parse().ok().filter(|nice| (-20..=19).contains(nice))?),
        Role::Prio => FieldValue::Prio(RtPrio::new(word.parse().ok()?)?),
        Role::Call => FieldValue::Call(Call::of_name(word)?),
        Role::Callback => {
            let kind = CallbackKind::ALL.into_iter().find(|kind| kind.name() == word);
            FieldValue::Callback(kind?)
        }
        Role::Flags => FieldValue::Flags(LockFlags::parse(word)?),
        Role::Weight => FieldValue::Weight(word.parse().ok()?),
        Role::Number => FieldValue::Number(word.parse().ok()?),
        Role::Signed => FieldValue::Signed(word.parse().ok()?),
    })
}

/// The weight of a group changes that is named by its path.
fn weight_by_path(words: &str) -> Option<Stated> {
    let weight = value(words, "weight=")?.parse().ok()?;
    let (_, path) = words.split_once(" path=")?;
    let kind = EventKind::CgroupWeight { cgroup: CgroupId::ROOT, weight };
    Some(Stated::WithText(kind, path.to_owned()))
}

/// `pid|name|value`, the counter of Android's atrace.
fn counter(text: &str, tasks: &mut Tasks<'_>) -> Option<Stated> {
    let (pid, rest) = text.split_once('|')?;
    let (name, value) = rest.rsplit_once('|')?;
    let task = tasks.by_pid(pid.parse().ok()?);
    let mark = EventKind::Mark { task, label: NO_LABEL, value: value.parse().ok()? };
    Some(Stated::WithText(mark, name.to_owned()))
}
