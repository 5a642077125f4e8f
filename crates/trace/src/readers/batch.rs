//! Decoded events: in runs that are sorted by time, and those of a part of an input with what was counted beside them.

use super::clocks::ClockSpans;
use super::interner::IdentityId;
use super::renames::Rename;
use super::stated::{LEFT_OUT, Scope, Stated};
use crate::EventKind;
use crate::packed::{Packed, PackedKind};

const NOT_ANNOUNCED: &str =
    "an event of a CPU or of a kind that the head of the file does not announce";

/// Events in the order of the input, cut where the time goes back. Tasks are numbers of identities.
#[derive(Debug, Default)]
pub(super) struct Runs {
    /// Each in order of time.
    pub(super) runs: Vec<Vec<Packed>>,
    pub(super) scope: Scope,
}

impl Runs {
    /// Adds an event. Returns the index of its run, and its index there.
    #[inline]
    pub(super) fn push(
        &mut self,
        time_ns: u64,
        cpu: u32,
        kind: EventKind<IdentityId>,
    ) -> (usize, usize) {
        self.push_packed(Packed::of(time_ns, cpu, PackedKind::new(kind)), Scope::of(cpu, kind))
    }

    #[inline]
    fn push_packed(&mut self, event: Packed, scope: Scope) -> (usize, usize) {
        self.scope = self.scope.with(scope);
        let last = self.runs.last().and_then(|run| run.last());
        if last.is_none_or(|last| last.time_ns > event.time_ns) {
            self.runs.push(Vec::new());
        }
        let number = self.runs.len() - 1;
        let run = &mut self.runs[number];
        run.push(event);
        (number, run.len() - 1)
    }
}

/// The text of an event, which is not in a table yet.
#[derive(Debug)]
pub(super) struct EventText {
    /// Where the event stands in the input.
    pub(super) at: u64,
    /// The index of its run, and its index there.
    pub(super) run: usize,
    pub(super) index: usize,
    pub(super) text: String,
}

/// The number of events that were lost, as a record states it.
#[derive(Clone, Copy, Debug)]
pub(super) struct StatedLoss {
    pub(super) cpu: Option<u32>,
    pub(super) count: u64,
    /// All that an event lost; otherwise those that are missing at the record.
    pub(super) is_total: bool,
}

/// Events of a CPU that are missing before a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    pub(super) cpu: u32,
    /// The time of the CPU's event before, if that is in the same batch, ns.
    pub(super) after_ns: Option<u64>,
    pub(super) before_ns: u64,
    pub(super) count: u64,
}

/// The events of one part of an input, decoded by themselves: what they have in common with the other parts (labels,
/// clocks) is left to the [`super::collect::Collector`].
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) events: Runs,
    pub(super) texts: Vec<EventText>,
    /// From when on which task has which name.
    pub(super) names: Vec<(u64, u32, Rename)>,
    pub(super) losses: Vec<StatedLoss>,
    pub(super) gaps: Vec<Gap>,
    pub(super) clocks: ClockSpans,
    /// If it is known, events that it does not cover are unreadable.
    pub(super) announced: Option<Scope>,
    /// A round of the recorder ends behind the events.
    pub(super) ends_round: bool,
    /// Records of the kernel.
    pub(super) read: u64,
    pub(super) skipped: u64,
    pub(super) unreadable: u64,
    pub(super) clock_jumps: u64,
    /// The first problem, with its line or byte of the input.
    pub(super) problem: Option<(u64, String)>,
}

impl Batch {
    /// Adds what a line or record of the input states.
    #[inline(always)]
    pub(super) fn add(&mut self, at: u64, time_ns: u64, cpu: u32, stated: Stated) {
        match stated {
            Stated::Event(EventKind::Lost { count }) => self.add_gap(at, time_ns, cpu, count),
            Stated::Event(kind) => _ = self.add_event(at, time_ns, cpu, PackedKind::new(kind)),
            Stated::Wakeup { task, target_cpu, waker } => {
                let kind = PackedKind::wakeup(task, target_cpu, waker);
                _ = self.add_event(at, time_ns, cpu, kind);
            }
            Stated::WithText(kind, text) => {
                let place = self.add_event(at, time_ns, cpu, PackedKind::new(kind));
                self.texts.extend(place.map(|(run, index)| EventText { at, run, index, text }));
            }
            Stated::LostHere | Stated::Name { .. } => self.note_clock(at, time_ns, cpu),
            Stated::Other => {
                self.note_clock(at, time_ns, cpu);
                self.skipped += 1;
            }
        }
    }

    /// Events of a CPU are missing between its event before and this time.
    #[cold]
    fn add_gap(&mut self, at: u64, before_ns: u64, cpu: u32, count: u64) {
        let after_ns = self.clocks.last_ns(cpu);
        let is_empty = after_ns.is_some_and(|after_ns| after_ns >= before_ns);
        if is_empty || self.announced.is_some_and(|announced| cpu >= announced.cpus) {
            let lost = PackedKind::new(EventKind::<IdentityId>::Lost { count });
            self.add_event(at, before_ns, cpu, lost);
            return;
        }
        self.note_clock(at, before_ns, cpu);
        self.gaps.push(Gap { cpu, after_ns, before_ns, count });
    }

    #[inline]
    fn note_clock(&mut self, at: u64, time_ns: u64, cpu: u32) {
        if let Some(back_ns) = self.clocks.note(cpu, time_ns, at) {
            self.clock_jumps += 1;
            self.note_problem(at, || clock_went_back(cpu, back_ns));
        }
    }

    /// Returns the index of its run, and its index there; `None` for an event that is left out.
    fn add_event(
        &mut self,
        at: u64,
        time_ns: u64,
        cpu: u32,
        kind: PackedKind,
    ) -> Option<(usize, usize)> {
        self.note_clock(at, time_ns, cpu);
        let event = Packed::of(time_ns, cpu, kind);
        let scope = Scope::of(cpu, event.kind());
        if let Some(announced) = self.announced
            && announced.with(scope) != announced
        {
            self.note_unreadable(at, NOT_ANNOUNCED.to_owned());
            self.events.push(time_ns, 0, EventKind::Print { label: LEFT_OUT });
            return None;
        }
        Some(self.events.push_packed(event, scope))
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
