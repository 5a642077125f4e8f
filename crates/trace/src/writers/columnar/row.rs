//! One event as a row.

use crate::{CgroupId, Event, EventKind, Label, LockFlags, RtPrio, TaskId, Trace};

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
        let label = |label: Label| Some(trace.label(label));
        // There the idle task represents an unknown task.
        let known = |task: TaskId| Some(task).filter(|task| !task.is_idle());
        let row = |kind| Row { kind, ..Row::default() };
        let of = |kind, task| Row { kind, task: Some(task), ..Row::default() };
        let to = |kind, task, cpu| Row { to_cpu: Some(cpu), ..of(kind, task) };
        match event.kind {
            EventKind::Switch { prev, prev_state, next } => {
                let state = Some(prev_state.text()).filter(|_| !prev.is_idle());
                Row { state, other: Some(next), ..of("switch", prev) }
            }
            EventKind::Waking { task, waker, target_cpu } => {
                Row { other: Some(waker), ..to("waking", task, target_cpu) }
            }
            EventKind::Wakeup { task, target_cpu } => to("wakeup", task, target_cpu),
            EventKind::WakeupNew { task, target_cpu } => to("wakeup_new", task, target_cpu),
            EventKind::Migrate { task, from_cpu, to_cpu } => {
                Row { from_cpu: Some(from_cpu), ..to("migrate", task, to_cpu) }
            }
            EventKind::Fork { parent, child } => Row { other: Some(child), ..of("fork", parent) },
            EventKind::Exit { task } => of("exit", task),
            EventKind::Nice { .. }
            | EventKind::RtPrio { .. }
            | EventKind::Slice { .. }
            | EventKind::Affinity { .. }
            | EventKind::CgroupMove { .. }
            | EventKind::CgroupWeight { .. } => Self::of_change(trace, event.kind),
            EventKind::Tick { task } => of("tick", task),
            EventKind::Charge { task, runtime_ns } => {
                Row { value: Some(runtime_ns), ..of("charge", task) }
            }
            EventKind::Callback { kind, task } => {
                Row { label: Some(kind.name()), task: known(task), ..row("callback") }
            }
            EventKind::Mark { task, label: text, value } => {
                Row { label: label(text), value: Some(value), ..of("mark", task) }
            }
            EventKind::ContentionBegin { task, lock, flags, holder } => Row {
                other: known(holder),
                label: label(lock),
                detail: Some(Detail::Flags(flags)),
                ..of("contention_begin", task)
            },
            EventKind::ContentionEnd { task, lock } => {
                Row { label: label(lock), ..of("contention_end", task) }
            }
            EventKind::CallEnter { task, call, object } => {
                let (label, value) = (Some(call.name()), Some(object));
                Row { label, value, ..of("call_enter", task) }
            }
            EventKind::CallExit { task, result } => {
                Row { value: Some(result as u64), ..of("call_exit", task) }
            }
            EventKind::Stack { task, label: text } => {
                Row { label: label(text), ..of("stack", task) }
            }
            EventKind::Param { label: text } => Row { label: label(text), ..row("param") },
            EventKind::Print { label: text } => Row { label: label(text), ..row("print") },
            EventKind::Lost { count } => Row { value: Some(count), ..row("lost") },
        }
    }

    /// A change of a task's attributes, or of a control group's.
    fn of_change(trace: &'a Trace, kind: EventKind) -> Self {
        let path = |cgroup: CgroupId| {
            trace.cgroups().get(cgroup.index()).map_or("", |info| info.path.as_str())
        };
        let of = |kind, task| Row { kind, task: Some(task), ..Row::default() };
        match kind {
            EventKind::Nice { task, nice } => Row { nice: Some(nice), ..of("nice", task) },
            EventKind::RtPrio { task, prio } => Row { prio: Some(prio), ..of("rt_prio", task) },
            EventKind::Slice { task, slice_ns } => {
                Row { value: Some(slice_ns), ..of("slice", task) }
            }
            EventKind::Affinity { task, cpus } => {
                Row { label: Some(trace.label(cpus)), ..of("affinity", task) }
            }
            EventKind::CgroupMove { task, from, to } => Row {
                label: Some(path(to)),
                detail: Some(Detail::Path(path(from))),
                ..of("cgroup_move", task)
            },
            EventKind::CgroupWeight { cgroup, weight } => {
                let value = Some(u64::from(weight));
                Row { label: Some(path(cgroup)), value, kind: "cgroup_weight", ..Row::default() }
            }
            _ => Row::default(),
        }
    }
}
