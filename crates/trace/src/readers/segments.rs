//! A recording whose events are passed on in parts while it is read, so that none of them is kept.

use crate::packed::Packed;
use crate::{Event, RtPrio, TaskId, TaskInfo, Trace};

/// Events of a part.
pub(super) const SEGMENT_EVENTS: usize = 1 << 13;

/// Some of a recording's events, in order of time. They refer to tasks of this part or of an earlier one, or to the
/// idle task.
#[derive(Clone, Debug, Default)]
pub struct Segment {
    /// The tasks that appear for the first time, in the order of their numbers. Their names may still change.
    pub tasks: Vec<TaskInfo>,
    /// Values of [`TaskInfo::nice`] that became known, of tasks of earlier parts.
    pub nices: Vec<(TaskId, i8)>,
    /// Values of [`TaskInfo::rt_prio`] that became known, of tasks of earlier parts.
    pub rt_prios: Vec<(TaskId, RtPrio)>,
    events: Vec<Packed>,
}

impl Segment {
    /// The events, in order of time.
    pub fn events(&self) -> impl ExactSizeIterator<Item = Event> {
        self.events.iter().map(Packed::event)
    }

    /// Appends an event, whose time must not be before that of the last one.
    pub fn push(&mut self, event: Event) {
        self.events.push(Packed::new(event));
    }

    /// Removes the content and keeps the memory.
    pub fn clear(&mut self) {
        self.tasks.clear();
        self.nices.clear();
        self.rt_prios.clear();
        self.events.clear();
    }
}

/// Receives the parts of a recording.
pub trait TakeSegments {
    /// Called once, before the first part, with all that is known then: the beginning of the window, the number of
    /// CPUs, labels, and no task but the idle one. The end of the window is in the trace that the reader returns.
    /// `has_wakeups`: the recording contains [`crate::EventKind::Wakeup`] events.
    fn begin(&mut self, header: &Trace, has_wakeups: bool);

    /// Takes the next part and returns an empty one, whose memory is used again.
    fn take(&mut self, part: Segment) -> Segment;
}

/// Collects events into parts, or appends them to the trace where no parts are wanted.
#[derive(Default)]
pub(super) struct SegmentWriter<'p> {
    to: Option<&'p mut dyn TakeSegments>,
    part: Segment,
    /// Tasks that were passed on.
    tasks: usize,
}

impl<'p> SegmentWriter<'p> {
    pub(super) fn new(to: Option<&'p mut dyn TakeSegments>) -> Self {
        Self { to, ..Self::default() }
    }

    /// Takes an event.
    #[inline(always)]
    pub(super) fn event(&mut self, trace: &mut Trace, event: Packed) {
        if self.to.is_none() {
            return trace.push_packed(event);
        }
        if self.part.events.len() == self.part.events.capacity() {
            self.part.events.reserve_exact(SEGMENT_EVENTS);
        }
        self.part.events.push(event);
        if self.part.events.len() >= SEGMENT_EVENTS {
            self.flush(trace);
        }
    }

    /// Notes the first nice value or priority of a task.
    pub(super) fn class(&mut self, task: TaskId, nice: Option<i8>, rt_prio: Option<RtPrio>) {
        if task.index() < self.tasks {
            self.part.nices.extend(nice.map(|nice| (task, nice)));
            self.part.rt_prios.extend(rt_prio.map(|prio| (task, prio)));
        }
    }

    /// Passes the part as it is.
    pub(super) fn flush(&mut self, trace: &Trace) {
        let Some(to) = &mut self.to else { return };
        self.part.tasks.extend_from_slice(&trace.tasks()[self.tasks.max(1)..]);
        self.tasks = trace.tasks().len();
        self.part = to.take(std::mem::take(&mut self.part));
    }
}
