//! The trace itself: tasks, labels, and the events in columns.

use crate::{CallbackKind, Event, EventKind, Label, Loss, TaskId, TaskInfo, TaskState};

/// A recording: who there was, and what happened in order of time.
///
/// Events are appended with [`Trace::push`] and read back with [`Trace::events`]. Times never decrease (readers sort).
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// The number of CPUs; CPU numbers in events are below it.
    pub cpus: u32,
    /// The first instant of the window, ns. Before the first event where the recorder knows that it was on.
    pub start_ns: u64,
    /// The last instant of the window, ns.
    pub end_ns: u64,
    /// Whether [`Event::insns`] is measured.
    pub counts_insns: bool,
    /// What was lost or not understood on the way in.
    pub loss: Loss,
    tasks: Vec<TaskInfo>,
    labels: Vec<String>,
    time_ns: Vec<u64>,
    cpu: Vec<u32>,
    insns: Vec<u32>,
    tag: Vec<u8>,
    extra: Vec<u8>,
    a: Vec<u32>,
    b: Vec<u32>,
    c: Vec<u32>,
}

impl Trace {
    /// An empty trace of `cpus` CPUs; task 0 is the idle task.
    pub fn new(cpus: u32) -> Self {
        Self { cpus, tasks: vec![TaskInfo::new(0, "swapper")], ..Self::default() }
    }

    /// Adds a task and returns its number.
    pub fn add_task(&mut self, info: TaskInfo) -> TaskId {
        self.tasks.push(info);
        TaskId((self.tasks.len() - 1) as u32)
    }

    /// All tasks; [`TaskId`] is the index.
    pub fn tasks(&self) -> &[TaskInfo] {
        &self.tasks
    }

    /// A task's entry, to correct.
    pub fn task_mut(&mut self, task: TaskId) -> &mut TaskInfo {
        &mut self.tasks[task.index()]
    }

    /// The number of a text in the label table, entering it if it is new.
    pub fn intern(&mut self, text: &str) -> Label {
        if let Some(i) = self.labels.iter().position(|l| l == text) {
            return Label(i as u32);
        }
        self.labels.push(text.to_owned());
        Label((self.labels.len() - 1) as u32)
    }

    /// The text of a label.
    pub fn label(&self, label: Label) -> &str {
        &self.labels[label.0 as usize]
    }

    /// The number of events.
    pub fn len(&self) -> usize {
        self.time_ns.len()
    }

    /// Whether there are no events.
    pub fn is_empty(&self) -> bool {
        self.time_ns.is_empty()
    }

    /// Bytes that one event takes in memory.
    pub const BYTES_PER_EVENT: usize = 8 + 4 + 4 + 1 + 1 + 3 * 4;

    /// Appends an event. Its time must not lie before the last one's.
    #[inline]
    pub fn push(&mut self, event: Event) {
        debug_assert!(self.time_ns.last().is_none_or(|t| *t <= event.time_ns));
        let (tag, extra, a, b, c) = encode(event.kind);
        self.time_ns.push(event.time_ns);
        self.cpu.push(event.cpu);
        self.insns.push(event.insns);
        self.tag.push(tag);
        self.extra.push(extra);
        self.a.push(a);
        self.b.push(b);
        self.c.push(c);
    }

    /// The event at an index.
    pub fn get(&self, index: usize) -> Option<Event> {
        if index >= self.len() {
            return None;
        }
        Some(Event {
            time_ns: self.time_ns[index],
            cpu: self.cpu[index],
            insns: self.insns[index],
            kind: decode(self.tag[index], self.extra[index], self.a[index], self.b[index], self.c[index]),
        })
    }

    /// The events in order.
    pub fn events(&self) -> Events<'_> {
        Events { trace: self, at: 0 }
    }
}

/// The events of a trace in order.
#[derive(Clone, Debug)]
pub struct Events<'a> {
    trace: &'a Trace,
    at: usize,
}

impl Iterator for Events<'_> {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        let event = self.trace.get(self.at)?;
        self.at += 1;
        Some(event)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.trace.len() - self.at;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Events<'_> {}

fn wide(value: u64) -> (u32, u32) {
    (value as u32, (value >> 32) as u32)
}

#[inline]
fn encode(kind: EventKind) -> (u8, u8, u32, u32, u32) {
    match kind {
        EventKind::Switch { prev, prev_state, next } => (0, prev_state as u8, prev.0, next.0, 0),
        EventKind::Waking { task, waker, target_cpu } => (1, 0, task.0, waker.0, target_cpu),
        EventKind::Wakeup { task, target_cpu } => (2, 0, task.0, target_cpu, 0),
        EventKind::WakeupNew { task, target_cpu } => (3, 0, task.0, target_cpu, 0),
        EventKind::Migrate { task, from_cpu, to_cpu } => (4, 0, task.0, from_cpu, to_cpu),
        EventKind::Fork { parent, child } => (5, 0, parent.0, child.0, 0),
        EventKind::Exit { task } => (6, 0, task.0, 0, 0),
        EventKind::Nice { task, nice } => (7, nice as u8, task.0, 0, 0),
        EventKind::Tick { task } => (8, 0, task.0, 0, 0),
        EventKind::Callback { kind, task } => (9, kind as u8, task.0, 0, 0),
        EventKind::Mark { task, label, value } => {
            let (low, high) = wide(value);
            debug_assert!(label.0 <= u8::MAX.into(), "at most 256 labels in marks");
            (10, label.0 as u8, task.0, low, high)
        }
        EventKind::Param { label } => (11, 0, label.0, 0, 0),
        EventKind::Lost { count } => {
            let (low, high) = wide(count);
            (12, 0, 0, low, high)
        }
    }
}

fn decode(tag: u8, extra: u8, a: u32, b: u32, c: u32) -> EventKind {
    let task = TaskId(a);
    let value = u64::from(b) | u64::from(c) << 32;
    match tag {
        0 => EventKind::Switch { prev: task, prev_state: STATES[extra as usize], next: TaskId(b) },
        1 => EventKind::Waking { task, waker: TaskId(b), target_cpu: c },
        2 => EventKind::Wakeup { task, target_cpu: b },
        3 => EventKind::WakeupNew { task, target_cpu: b },
        4 => EventKind::Migrate { task, from_cpu: b, to_cpu: c },
        5 => EventKind::Fork { parent: task, child: TaskId(b) },
        6 => EventKind::Exit { task },
        7 => EventKind::Nice { task, nice: extra as i8 },
        8 => EventKind::Tick { task },
        9 => EventKind::Callback { kind: CallbackKind::ALL[extra as usize], task },
        10 => EventKind::Mark { task, label: Label(extra.into()), value },
        11 => EventKind::Param { label: Label(a) },
        _ => EventKind::Lost { count: value },
    }
}

const STATES: [TaskState; 6] = [
    TaskState::Runnable,
    TaskState::Sleeping,
    TaskState::Uninterruptible,
    TaskState::Stopped,
    TaskState::Dead,
    TaskState::Parked,
];
