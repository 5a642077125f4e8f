//! The events of one part of an input, decoded by themselves: what they have in common with the other parts (numbers of
//! identities and labels, clocks) is left to the [`super::collect::Collector`].

use super::clocks::ClockSpans;
use super::interner::Class;
use super::pending::{EventKinds, PendingEvent, Unlabelled};

/// The text of an event, which is not in a table yet.
#[derive(Debug)]
pub(super) struct EventText {
    /// The run, and the index of the event in it.
    pub(super) run: usize,
    pub(super) index: usize,
    pub(super) text: String,
}

/// How a task gets a name.
#[derive(Debug)]
pub(super) enum NewName {
    To(String),
    /// The name that the task with this pid has at that time.
    Like(u32),
}

/// Decoded events, and what was counted beside them.
#[derive(Debug, Default)]
pub(super) struct EventBatch {
    /// Runs in order of time, in the order of the input.
    pub(super) runs: Vec<Vec<PendingEvent>>,
    pub(super) texts: Vec<EventText>,
    /// Identities that no earlier batch of the same decoder has, in the order of their numbers.
    pub(super) identities: Vec<(u32, String, Class)>,
    /// From when on which task has which name.
    pub(super) names: Vec<(u64, u32, NewName)>,
    pub(super) clocks: ClockSpans,
    pub(super) kinds: EventKinds,
    /// One more than the highest CPU number.
    pub(super) cpus: u32,
    /// Records of the kernel.
    pub(super) read: u64,
    pub(super) skipped: u64,
    pub(super) unreadable: u64,
    pub(super) clock_jumps: u64,
    /// The first problem, with its byte of the input.
    pub(super) problem: Option<(u64, String)>,
}

impl EventBatch {
    /// Adds an event.
    #[inline]
    pub(super) fn push(&mut self, time_ns: u64, cpu: u32, event: Unlabelled<'_>) {
        let Unlabelled { kind, text } = event;
        self.kinds.note(&kind);
        self.cpus = self.cpus.max(cpu.max(kind.cpu_max()) + 1);
        let continues =
            |run: &Vec<PendingEvent>| run.last().is_some_and(|last| last.time_ns <= time_ns);
        if !self.runs.last().is_some_and(continues) {
            self.runs.push(Vec::new());
        }
        let run = self.runs.len() - 1;
        let events = &mut self.runs[run];
        if let Some(text) = text {
            self.texts.push(EventText { run, index: events.len(), text: text.to_owned() });
        }
        events.push(PendingEvent { time_ns, cpu, kind });
    }

    /// Notes the time of an event that begins at a byte of the input.
    #[inline]
    pub(super) fn note_clock(&mut self, cpu: u32, time_ns: u64, at: u64) {
        if let Some(back_ns) = self.clocks.note(cpu, time_ns, at) {
            self.clock_jumps += 1;
            self.note_problem(at, || clock_went_back(cpu, back_ns));
        }
    }

    /// Counts a record that cannot be read.
    #[cold]
    pub(super) fn note_unreadable(&mut self, at: u64, why: String) {
        self.unreadable += 1;
        self.note_problem(at, || why);
    }

    /// Keeps a problem if it is the first one.
    #[cold]
    pub(super) fn note_problem(&mut self, at: u64, words: impl FnOnce() -> String) {
        if self.problem.as_ref().is_none_or(|(first_at, _)| at < *first_at) {
            self.problem = Some((at, words()));
        }
    }
}

/// The message for a clock that goes back.
pub(super) fn clock_went_back(cpu: u32, back_ns: u64) -> String {
    format!("the clock of CPU {cpu} went back by {back_ns} ns")
}
