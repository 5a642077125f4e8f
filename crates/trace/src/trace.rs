//! The trace itself: tasks, labels, and the events.

use std::collections::HashMap;
use std::ops::Range;

use crate::packed::{MARK_LABELS_MAX, Packed};
use crate::{CgroupId, CgroupInfo, Event, Label, Loss, Origin, TaskId, TaskInfo};

/// A recording: the tasks, and the events in order of time.
///
/// Events are appended with [`Trace::push`] and read back with [`Trace::events`]. Times never decrease (readers sort).
/// Two traces are equal when everything in them is; [`Trace::digest`] condenses that into one number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The number of CPUs; CPU numbers in events are below it.
    pub cpus: u32,
    /// The first instant of the window, ns. Before the first event where the recorder knows that it was on.
    pub start_ns: u64,
    /// The last instant of the window, ns.
    pub end_ns: u64,
    /// Whether [`Event::insns`] is measured.
    pub counts_insns: bool,
    /// Counts of lost events and of input that could not be read.
    pub loss: Loss,
    /// The machine and the scheduler that made it, as far as the recording says so.
    pub origin: Origin,
    tasks: Vec<TaskInfo>,
    cgroups: Vec<CgroupInfo>,
    labels: Vec<String>,
    label_numbers: HashMap<String, Label>,
    events: Vec<Packed>,
}

impl Trace {
    /// Bytes that one event takes in memory.
    pub const BYTES_PER_EVENT: usize = size_of::<Packed>();

    /// No new text of a printed line enters a label table of this length. A program may print a different text each
    /// time.
    pub const PRINT_LABELS_MAX: usize = 1 << 18;

    /// No new stack or lock of a recording enters a label table of this length.
    pub const STACKS_MAX: usize = 1 << 18;

    /// An empty trace of `cpus` CPUs; task 0 is the idle task.
    pub fn new(cpus: u32) -> Self {
        Self { cpus, tasks: vec![TaskInfo::new(0, "swapper")], ..Self::default() }
    }

    /// Reserves memory for `additional` more events. Does nothing where there is not enough.
    pub fn reserve(&mut self, additional: usize) {
        // Without it, push allocates as events come.
        let _ = self.events.try_reserve_exact(additional);
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

    /// A task's entry, to be changed.
    ///
    /// # Panics
    /// When the task is not one of this trace.
    pub fn task_mut(&mut self, task: TaskId) -> &mut TaskInfo {
        &mut self.tasks[task.index()]
    }

    /// A trace of the same machine and cgroups from the same time on, without tasks and events.
    pub fn begun(&self) -> Trace {
        let mut begun = Trace::new(self.cpus);
        (begun.start_ns, begun.counts_insns) = (self.start_ns, self.counts_insns);
        (begun.cgroups, begun.origin) = (self.cgroups.clone(), self.origin.clone());
        begun
    }

    /// Adds a cgroup and returns its number. The first is the root; every other one follows its parent.
    pub fn add_cgroup(&mut self, info: CgroupInfo) -> CgroupId {
        self.cgroups.push(info);
        CgroupId((self.cgroups.len() - 1) as u32)
    }

    /// All cgroups, the root first; [`CgroupId`] is the index. Empty when the recording has none.
    pub fn cgroups(&self) -> &[CgroupInfo] {
        &self.cgroups
    }

    /// Sets the weight of a cgroup that has none yet.
    pub(crate) fn set_cgroup_weight(&mut self, cgroup: CgroupId, weight: Option<u32>) {
        let info = self.cgroups.get_mut(cgroup.index());
        info.into_iter().for_each(|info| info.weight = info.weight.or(weight));
    }

    /// The number of a text in the label table, entering it if it is new.
    pub fn intern(&mut self, text: &str) -> Label {
        if let Some(label) = self.label_numbers.get(text) {
            return *label;
        }
        let label = Label(self.labels.len() as u32);
        self.labels.push(text.to_owned());
        self.label_numbers.insert(text.to_owned(), label);
        label
    }

    /// The number of a printed line's text, like [`Trace::intern`]; `None`, and counted in [`Loss::prints`], when it is
    /// new and the label table is full.
    pub fn intern_print(&mut self, text: &str) -> Option<Label> {
        let label = self.intern_below(Self::PRINT_LABELS_MAX, text);
        self.loss.prints += u64::from(label.is_none());
        label
    }

    /// The number of a stack's text, like [`Trace::intern`]; `None`, and counted in [`Loss::stacks`], when it is new
    /// and the label table is full.
    pub fn intern_stack(&mut self, text: &str) -> Option<Label> {
        let label = self.intern_below(Self::STACKS_MAX, text);
        self.loss.stacks += u64::from(label.is_none());
        label
    }

    /// The number of a mark's text, like [`Trace::intern`]; `None`, and counted in [`Loss::unreadable`], when it is new
    /// and an event has no room for its number.
    pub(crate) fn intern_mark(&mut self, text: &str) -> Option<Label> {
        let label = self.intern_below(MARK_LABELS_MAX as usize, text);
        self.loss.unreadable += u64::from(label.is_none());
        label
    }

    /// Enters no new text into a label table of that length.
    fn intern_below(&mut self, labels_max: usize, text: &str) -> Option<Label> {
        let is_known = self.label_numbers.contains_key(text);
        (is_known || self.labels.len() < labels_max).then(|| self.intern(text))
    }

    /// The text of a label.
    ///
    /// # Panics
    /// When the label is not one of this trace.
    pub fn label(&self, label: Label) -> &str {
        &self.labels[label.0 as usize]
    }

    /// The texts of all labels; [`Label`] is the index.
    pub fn labels(&self) -> &[String] {
        &self.labels
    }

    /// The number of events.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether there are no events.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Appends an event. Its time must not be less than the last one's.
    #[inline]
    pub fn push(&mut self, event: Event) {
        self.push_packed(Packed::new(event));
    }

    #[inline]
    pub(crate) fn push_packed(&mut self, event: Packed) {
        debug_assert!(self.events.last().is_none_or(|last| last.time_ns <= event.time_ns));
        self.events.push(event);
    }

    /// Removes all events; keeps their memory, the tasks and the labels.
    pub fn clear_events(&mut self) {
        self.events.clear();
    }

    /// The event at an index.
    pub fn get(&self, index: usize) -> Option<Event> {
        self.events.get(index).map(Packed::event)
    }

    /// The events in order.
    pub fn events(&self) -> Events<'_> {
        Events { packed: self.events.iter() }
    }

    /// The indices of the events with `from_ns <= time_ns < to_ns`, found by bisection.
    pub fn window(&self, from_ns: u64, to_ns: u64) -> Range<usize> {
        let before = |limit: u64| self.events.partition_point(|e| e.time_ns < limit);
        let from = before(from_ns);
        from..before(to_ns).max(from)
    }

    /// The events at a range of indices ([`Trace::window`]); what lies beyond the end is left out.
    pub fn events_in(&self, range: Range<usize>) -> Events<'_> {
        let end = range.end.min(self.len());
        Events { packed: self.events[range.start.min(end)..end].iter() }
    }

    /// A hash of the whole content — tasks, labels, window, events — without [`Trace::loss`] and [`Trace::origin`].
    /// The same on every machine and in every build; a difference in one bit of one event changes it.
    pub fn digest(&self) -> u64 {
        let mut digest = Digest::new();
        digest.words(&[u64::from(self.cpus), self.start_ns, self.end_ns]);
        digest.words(&[u64::from(self.counts_insns), self.tasks.len() as u64]);
        for task in &self.tasks {
            let nice = task.nice.map_or(u64::MAX, |nice| u64::from(nice as u8));
            let prio = task.rt_prio.map_or(nice, |prio| prio.prio() as u64 ^ 1 << 32);
            digest.words(&[u64::from(task.pid), prio]);
            digest.text(&task.comm);
            if let (policy, slice_ns) = (task.policy, task.slice_ns)
                && (policy.is_some() || slice_ns.is_some())
            {
                let policy = policy.map_or(u64::MAX, |policy| policy as u64);
                digest.words(&[policy, slice_ns.unwrap_or(u64::MAX)]);
            }
            if let (ahead_ns, last_cpu) = (task.vruntime_ahead_ns, task.last_cpu)
                && (ahead_ns.is_some() || last_cpu.is_some())
            {
                let ahead_ns = ahead_ns.unwrap_or(i64::MAX) as u64;
                digest.words(&[ahead_ns, last_cpu.map_or(u64::MAX, u64::from)]);
            }
            let ranges = task.allowed_cpus.as_deref();
            digest.words(&[ranges.map_or(u64::MAX, |ranges| ranges.len() as u64)]);
            for (first, last) in ranges.unwrap_or_default() {
                digest.words(&[u64::from(*first), u64::from(*last)]);
            }
        }
        if !self.cgroups.is_empty() {
            self.digest_cgroups(&mut digest);
        }
        digest.words(&[self.labels.len() as u64]);
        for label in &self.labels {
            digest.text(label);
        }
        digest.words(&[self.events.len() as u64]);
        for event in &self.events {
            digest.words(&event.words());
        }
        digest.finish()
    }
}

impl Trace {
    fn digest_cgroups(&self, digest: &mut Digest) {
        digest.words(&[self.cgroups.len() as u64]);
        for cgroup in &self.cgroups {
            let parent = cgroup.parent.map_or(u64::MAX, |parent| u64::from(parent.0));
            digest.words(&[parent, cgroup.weight.map_or(u64::MAX, u64::from)]);
            digest.text(&cgroup.path);
        }
        for task in &self.tasks {
            digest.words(&[task.cgroup.map_or(u64::MAX, |cgroup| u64::from(cgroup.0))]);
        }
    }
}

/// The events of a trace in order.
#[derive(Clone, Debug)]
pub struct Events<'a> {
    packed: std::slice::Iter<'a, Packed>,
}

impl Iterator for Events<'_> {
    type Item = Event;

    #[inline]
    fn next(&mut self) -> Option<Event> {
        self.packed.next().map(Packed::event)
    }

    #[inline]
    fn nth(&mut self, n: usize) -> Option<Event> {
        self.packed.nth(n).map(Packed::event)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.packed.size_hint()
    }
}

impl DoubleEndedIterator for Events<'_> {
    fn next_back(&mut self) -> Option<Event> {
        self.packed.next_back().map(Packed::event)
    }
}

impl ExactSizeIterator for Events<'_> {}

/// FNV-1a (Fowler, Noll, Vo) over 64-bit words instead of bytes, with a final mix so that every bit of the last word
/// counts.
struct Digest(u64);

impl Digest {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;

    fn new() -> Self {
        Self(Self::OFFSET)
    }

    fn words(&mut self, words: &[u64]) {
        for word in words {
            let mixed = (self.0 ^ word).wrapping_mul(Self::PRIME);
            // The multiplication carries upwards only: bring the high bits back down.
            self.0 = mixed ^ mixed >> 29;
        }
    }

    fn text(&mut self, text: &str) {
        self.words(&[text.len() as u64]);
        for chunk in text.as_bytes().chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.words(&[u64::from_le_bytes(word)]);
        }
    }

    fn finish(self) -> u64 {
        let mixed = (self.0 ^ self.0 >> 32).wrapping_mul(Self::PRIME);
        mixed ^ mixed >> 31
    }
}
