//! Tracks of Perfetto beside the kernel's events: counters, and instants that the kernel has no tracepoint for.

use std::collections::{HashMap, HashSet};
use std::io;

use super::messages::{
    CounterDescriptor, Data, DebugAnnotation, ThreadDescriptor, TrackDescriptor, TrackEvent,
};
use crate::{Counter, CounterOf, CounterUnit, Event, EventKind, Label, TaskId, Trace};

/// `TrackEvent::Type`.
const SLICE_BEGIN: i32 = 1;
const SLICE_END: i32 = 2;
const INSTANT: i32 = 3;
const COUNTER: i32 = 4;
/// `CounterDescriptor::Unit`.
const UNIT_TIME_NS: i32 = 1;
const UNIT_COUNT: i32 = 2;
/// The unit of numbers that only a scheduler knows.
const OWN_UNIT: &str = "scheduler's own unit";

/// The subject of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    Task(TaskId),
    Mark(TaskId, Label),
    Stacks(TaskId),
    Callbacks(u32),
    Printed(u32),
    Tunables,
    Cgroups,
}

/// The tracks so far. Each is described when it is first used.
#[derive(Default)]
pub(super) struct Tracks {
    uuids: HashMap<Key, u64>,
    /// Tasks that wait for a lock.
    contending: HashSet<TaskId>,
    /// The number of the last one.
    last: u64,
}

impl Tracks {
    /// Writes an event without a tracepoint in the kernel, or with one that Perfetto does not show.
    pub(super) fn event(
        &mut self,
        event: &Event,
        trace: &Trace,
        mut packet: impl FnMut(Option<u64>, Data) -> io::Result<()>,
    ) -> io::Result<()> {
        let Some((key, described)) = described(event, trace) else { return Ok(()) };
        let uuid = self.track(key, event.time_ns, trace, &mut packet)?;
        let track_event = TrackEvent { track_uuid: Some(uuid), ..described };
        let mut write = |track_event| packet(Some(event.time_ns), Data::TrackEvent(track_event));
        match event.kind {
            // A second begin: the task still waits, and the owner has changed.
            EventKind::ContentionBegin { task, .. } if !self.contending.insert(task) => {
                write(TrackEvent { track_uuid: Some(uuid), ..slice_end() })?;
            }
            // The begin is not in the trace.
            EventKind::ContentionEnd { task, .. } if !self.contending.remove(&task) => {
                return Ok(());
            }
            _ => {}
        }
        write(track_event)
    }

    /// Writes a counter.
    pub(super) fn counter(
        &mut self,
        counter: &Counter,
        trace: &Trace,
        mut packet: impl FnMut(Option<u64>, Data) -> io::Result<()>,
    ) -> io::Result<()> {
        let first_ns = counter.points.first().map_or(trace.start_ns, |(time_ns, _)| *time_ns);
        let (name, parent_uuid) = match counter.of {
            CounterOf::Cpu(cpu) => (format!("CPU {cpu} {}", counter.name), None),
            CounterOf::Task(task) => {
                let parent = self.track(Key::Task(task), first_ns, trace, &mut packet)?;
                (counter.name.clone(), Some(parent))
            }
        };
        self.last += 1;
        let uuid = self.last;
        let described = match counter.unit {
            CounterUnit::Ns => CounterDescriptor { unit: Some(UNIT_TIME_NS), unit_name: None },
            CounterUnit::Count => CounterDescriptor { unit: Some(UNIT_COUNT), unit_name: None },
            CounterUnit::Own => {
                CounterDescriptor { unit: None, unit_name: Some(OWN_UNIT.to_owned()) }
            }
        };
        let descriptor = TrackDescriptor {
            uuid: Some(uuid),
            name: Some(name),
            parent_uuid,
            counter: Some(described),
            ..TrackDescriptor::default()
        };
        packet(Some(first_ns), Data::TrackDescriptor(descriptor))?;
        for (time_ns, value) in &counter.points {
            let track_event = TrackEvent {
                kind: Some(COUNTER),
                track_uuid: Some(uuid),
                counter_value: Some(*value),
                ..TrackEvent::default()
            };
            packet(Some(*time_ns), Data::TrackEvent(track_event))?;
        }
        Ok(())
    }

    /// The number of a track, described at this time if it is new: Perfetto takes a pid for the task that has it then.
    fn track(
        &mut self,
        key: Key,
        time_ns: u64,
        trace: &Trace,
        packet: &mut impl FnMut(Option<u64>, Data) -> io::Result<()>,
    ) -> io::Result<u64> {
        if let Some(uuid) = self.uuids.get(&key) {
            return Ok(*uuid);
        }
        let mut descriptor = TrackDescriptor::default();
        match key {
            Key::Task(task) => {
                let info = &trace.tasks()[task.index()];
                descriptor.thread = Some(ThreadDescriptor {
                    pid: info.pid as i32,
                    tid: i64::from(info.pid),
                    thread_name: info.comm.clone(),
                });
            }
            Key::Mark(task, label) => {
                descriptor.parent_uuid =
                    Some(self.track(Key::Task(task), time_ns, trace, packet)?);
                descriptor.name = Some(trace.label(label).to_owned());
                descriptor.counter = Some(CounterDescriptor::default());
            }
            Key::Stacks(task) => {
                descriptor.parent_uuid =
                    Some(self.track(Key::Task(task), time_ns, trace, packet)?);
                descriptor.name = Some("stacks".to_owned());
            }
            Key::Callbacks(cpu) => descriptor.name = Some(format!("CPU {cpu} callbacks")),
            Key::Printed(cpu) => descriptor.name = Some(format!("CPU {cpu} printed")),
            Key::Tunables => descriptor.name = Some("tunables".to_owned()),
            Key::Cgroups => descriptor.name = Some("cgroups".to_owned()),
        }
        self.last += 1;
        descriptor.uuid = Some(self.last);
        self.uuids.insert(key, self.last);
        packet(Some(time_ns), Data::TrackDescriptor(descriptor))?;
        Ok(self.last)
    }
}

/// The track of an event, and the event without the track's number. `None` for what the kernel's events say all of.
fn described(event: &Event, trace: &Trace) -> Option<(Key, TrackEvent)> {
    let cpu = event.cpu;
    let task_name = |task: TaskId| {
        let info = &trace.tasks()[task.index()];
        format!("{} {}", info.comm, info.pid)
    };
    let captioned = || named(INSTANT, event.kind.caption(trace));
    Some(match event.kind {
        // Perfetto shows that a task was preempted, not by which one.
        EventKind::Switch { prev, prev_state, next }
            if prev_state.is_runnable() && !prev.is_idle() && !next.is_idle() =>
        {
            (Key::Task(prev), instant_with("preempted", "by", task_name(next)))
        }
        EventKind::Mark { task, label, value } => {
            let counter_value = Some(value as i64);
            let kind = Some(COUNTER);
            (Key::Mark(task, label), TrackEvent { kind, counter_value, ..TrackEvent::default() })
        }
        EventKind::ContentionBegin { task, lock, flags, holder } => {
            let mut waits = named(SLICE_BEGIN, format!("waits for {}", trace.label(lock)));
            waits.debug_annotations.push(annotation("flags", flags.text()));
            if !holder.is_idle() {
                waits.debug_annotations.push(annotation("holder", task_name(holder)));
            }
            (Key::Task(task), waits)
        }
        EventKind::ContentionEnd { task, .. } => (Key::Task(task), slice_end()),
        EventKind::Stack { task, label } => {
            let stack = trace.label(label);
            let inner = stack.rsplit(';').next().unwrap_or(stack);
            (Key::Stacks(task), instant_with(inner, "stack", stack.to_owned()))
        }
        EventKind::Callback { kind, task } => {
            let name = match task.is_idle() {
                true => kind.name().to_owned(),
                false => format!("{} {}", kind.name(), task_name(task)),
            };
            (Key::Callbacks(cpu), named(INSTANT, name))
        }
        EventKind::Print { .. } => (Key::Printed(cpu), captioned()),
        EventKind::Param { .. } => (Key::Tunables, captioned()),
        EventKind::CgroupWeight { .. } => (Key::Cgroups, captioned()),
        // The kernel's own events.
        EventKind::Switch { .. }
        | EventKind::Waking { .. }
        | EventKind::Wakeup { .. }
        | EventKind::WakeupNew { .. }
        | EventKind::Migrate { .. }
        | EventKind::Fork { .. }
        | EventKind::Exit { .. }
        | EventKind::Tick { .. }
        | EventKind::Charge { .. }
        | EventKind::CgroupMove { .. }
        | EventKind::Lost { .. } => return None,
        kind => (kind.subject().map_or(Key::Tunables, Key::Task), captioned()),
    })
}

fn named(kind: i32, name: String) -> TrackEvent {
    let categories = vec!["fairground".to_owned()];
    TrackEvent { kind: Some(kind), categories, name: Some(name), ..TrackEvent::default() }
}

/// An instant with an argument.
fn instant_with(name: &str, argument: &str, value: String) -> TrackEvent {
    let mut instant = named(INSTANT, name.to_owned());
    instant.debug_annotations.push(annotation(argument, value));
    instant
}

fn slice_end() -> TrackEvent {
    TrackEvent { kind: Some(SLICE_END), ..TrackEvent::default() }
}

fn annotation(name: &str, value: String) -> DebugAnnotation {
    DebugAnnotation { name: name.to_owned(), string_value: value }
}
