//! A recording whose events are handed out as they are put in order, so that nobody keeps all of them.

use crate::{Event, TaskId, TaskInfo, Trace};

/// Events of a part.
pub(super) const PART_EVENTS: usize = 1 << 13;

/// Some of a recording's events, in order of time. The tasks that they name are of this part or of one before it, or the idle one, and
/// the CPUs are the recording's.
#[derive(Clone, Debug, Default)]
pub struct Part {
    /// The tasks that are met for the first time, in the order of their numbers. Their names may still change.
    pub tasks: Vec<TaskInfo>,
    /// What [`TaskInfo::nice`] of tasks of the parts before turned out to be.
    pub nices: Vec<(TaskId, i8)>,
    /// What happened.
    pub events: Vec<Event>,
}

impl Part {
    /// Forgets what is in it and keeps its memory.
    pub fn clear(&mut self) {
        self.tasks.clear();
        self.nices.clear();
        self.events.clear();
    }
}

/// Who takes over the parts of a recording.
pub trait TakeParts {
    /// All that is known before the first event: when the recording begins, the number of CPUs, labels; no tasks but the idle one.
    /// When it ends is said by the trace that comes back. `has_wakeups`: there will be a [`crate::EventKind::Wakeup`].
    ///
    /// Called again, all parts so far are void: something in the recording did not come in order, and it begins anew.
    fn begin(&mut self, header: &Trace, has_wakeups: bool);

    /// Takes the next part, and gives an empty one.
    fn take(&mut self, part: Part) -> Part;
}

/// A part in the making.
#[derive(Default)]
pub(super) struct Making<'p> {
    to: Option<&'p mut dyn TakeParts>,
    part: Part,
    /// Tasks that were handed out.
    tasks: usize,
}

impl<'p> Making<'p> {
    pub(super) fn new(to: Option<&'p mut dyn TakeParts>) -> Self {
        Self { to, ..Self::default() }
    }

    /// Takes an event. Where nobody wants parts it goes into the trace.
    #[inline(always)]
    pub(super) fn event(&mut self, trace: &mut Trace, event: Event) {
        if self.to.is_none() {
            return trace.push(event);
        }
        if self.part.events.len() == self.part.events.capacity() {
            self.part.events.reserve_exact(PART_EVENTS);
        }
        self.part.events.push(event);
        if self.part.events.len() >= PART_EVENTS {
            self.hand_out(trace);
        }
    }

    /// A task's first nice value is known.
    pub(super) fn nice(&mut self, task: TaskId, nice: i8) {
        if task.index() < self.tasks {
            self.part.nices.push((task, nice));
        }
    }

    /// Hands out what there is.
    pub(super) fn hand_out(&mut self, trace: &Trace) {
        let Some(to) = &mut self.to else { return };
        self.part.tasks.extend_from_slice(&trace.tasks()[self.tasks.max(1)..]);
        self.tasks = trace.tasks().len();
        self.part = to.take(std::mem::take(&mut self.part));
    }
}
