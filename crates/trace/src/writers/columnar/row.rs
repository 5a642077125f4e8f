//! One event as a row.

use crate::event::{FieldValue, is_subject};
use crate::{CgroupId, Event, EventKind, LockFlags, RtPrio, TaskId, Trace};

/// The columns of one event; `None` is null.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Row<'a> {
    pub(super) kind: &'static str,
    pub(super) task: Option<TaskId>,
    pub(super) state: Option<&'static str>,
    pub(super) other: Option<TaskId>,
    pub(super) from_cpu: Option<u32>,
    pub(super) to_cpu: Option<u32>,
    pub(super) label: Option<&'a str>,
    pub(super) detail: Option<Detail<'a>>,
    pub(super) value: Option<u64>,
    pub(super) nice: Option<i8>,
    pub(super) prio: Option<RtPrio>,
}

/// The column `detail`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Detail<'a> {
    /// The control group that a task left.
    Path(&'a str),
    /// The flags of a lock.
    Flags(LockFlags),
}

impl<'a> Row<'a> {
    pub(super) fn of(trace: &'a Trace, event: &Event) -> Self {
        let path = |cgroup: CgroupId| {
            trace.cgroups().get(cgroup.index()).map_or("", |info| info.path.as_str())
        };
        let mut row = Row { kind: event.kind.name(), ..Row::default() };
        event.kind.each_field(|field, _, value| match value {
            FieldValue::Task(task) if is_subject(field) => row.task = Some(task),
            FieldValue::Task(task) => row.other = Some(task),
            FieldValue::Cpu(cpu) if field == "from_cpu" => row.from_cpu = Some(cpu),
            FieldValue::Cpu(cpu) => row.to_cpu = Some(cpu),
            FieldValue::State(state) => row.state = Some(state.text()),
            FieldValue::Label(label) => row.label = Some(trace.label(label)),
            FieldValue::Cgroup(cgroup) if field == "from" => {
                row.detail = Some(Detail::Path(path(cgroup)));
            }
            FieldValue::Cgroup(cgroup) => row.label = Some(path(cgroup)),
            FieldValue::Nice(nice) => row.nice = Some(nice),
            FieldValue::Prio(prio) => row.prio = Some(prio),
            FieldValue::Call(call) => row.label = Some(call.name()),
            FieldValue::Callback(kind) => row.label = Some(kind.name()),
            FieldValue::Flags(flags) => row.detail = Some(Detail::Flags(flags)),
            FieldValue::Weight(weight) => row.value = Some(weight.into()),
            FieldValue::Number(number) => row.value = Some(number),
            FieldValue::Signed(number) => row.value = Some(number as u64),
        });
        // The idle task has no state, and represents an unknown task in some events.
        let known = |task: &TaskId| !task.is_idle();
        match event.kind {
            EventKind::Switch { prev, .. } if prev.is_idle() => row.state = None,
            EventKind::Callback { .. } => row.task = row.task.filter(known),
            EventKind::ContentionBegin { .. } => row.other = row.other.filter(known),
            _ => {}
        }
        row
    }
}
