//! Collects the events of an input of any format: counts what is lost, puts events in order of time, and has the trace
//! built.
//!
//! Events are put in order when the whole input has been read. Where parts are wanted ([`TakeParts`]) and the head of
//! the input announces all that parts must know before the first event ([`Announced`]), they are put in order while the
//! rest is read, by the rounds of the recorder: see [`CpuClocks::end_round`]. An event that is older than its round
//! allows gets the time of the last event handed over, and counts as a clock that went back ([`Loss::clock_jumps`]).

use std::collections::BTreeMap;
use std::fmt;
use std::mem::take;

use super::batch::{EventBatch, NewName, clock_went_back};
use super::build::{Builder, CGROUPS_MAX};
use super::clocks::CpuClocks;
use super::error::ReadError;
use super::interner::IdentityId;
use super::merge::RunMerger;
use super::parsed::ParsedEvent;
use super::parts::{PartWriter, TakeParts};
use super::pending::{self, EventKinds, Halves, PendingEvent, PendingKind, Unlabelled};
use super::renames::Rename;
use crate::escape::unescape;
use crate::{CgroupInfo, Loss, TaskInfo, Trace};

/// Characters of an unreadable line that a message quotes.
const QUOTE_CHARS: usize = 80;

/// Where in the input the reader is, for messages.
#[derive(Clone, Copy, Debug)]
pub(super) enum InputPosition {
    /// A line, from 1.
    Line(u64),
    /// A byte of the file, from 0.
    Byte(u64),
}

impl fmt::Display for InputPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(number) => write!(f, "line {number}"),
            Self::Byte(offset) => write!(f, "byte {offset}"),
        }
    }
}

/// Properties of all events that the head of an input announces.
#[derive(Clone, Copy, Debug)]
pub(super) struct Announced {
    /// CPU numbers are below it.
    pub(super) cpus: u32,
    /// Kinds that may occur.
    pub(super) kinds: EventKinds,
}

impl Announced {
    fn covers(self, cpus: u32, kinds: EventKinds) -> bool {
        cpus <= self.cpus && self.kinds.include(kinds)
    }
}

/// What has been read so far.
pub(super) struct Collector<'p> {
    /// Where the reader is.
    pub(super) position: InputPosition,
    /// The window, ns, if the input has one.
    pub(super) window: Option<(u64, u64)>,
    /// Tasks that the input lists, in the order of their numbers.
    pub(super) listed: Vec<TaskInfo>,
    builder: Builder<'p>,
    merger: RunMerger,
    /// The receiver of parts, until the first is handed over.
    parts: Option<&'p mut dyn TakeParts>,
    announced: Option<Announced>,
    has_begun: bool,
    clocks: CpuClocks,
    cpus_seen: u32,
    kinds: EventKinds,
    /// Lost events of which the time is not known yet, by CPU.
    pending_lost: BTreeMap<u32, u64>,
}

impl<'p> Collector<'p> {
    pub(super) fn new(parts: Option<&'p mut dyn TakeParts>) -> Self {
        Self {
            position: InputPosition::Line(0),
            window: None,
            listed: Vec::new(),
            builder: Builder::new(),
            merger: RunMerger::default(),
            parts,
            announced: None,
            has_begun: false,
            clocks: CpuClocks::default(),
            cpus_seen: 0,
            kinds: EventKinds::default(),
            pending_lost: BTreeMap::new(),
        }
    }

    /// Lets events be handed over before the whole input is read, if parts are wanted. An event that is not announced
    /// is unreadable then.
    pub(super) fn announce(&mut self, announced: Announced) {
        self.announced = Some(announced).filter(|_| self.parts.is_some());
    }

    /// The trace as far as it is known: number of CPUs, labels, loss.
    pub(super) fn trace(&mut self) -> &mut Trace {
        &mut self.builder.trace
    }

    /// Notes that a task gets a name at a time, in an input whose events do not name the task that ran.
    pub(super) fn rename(&mut self, time_ns: u64, pid: u32, name: NewName) {
        let rename = match name {
            NewName::To(name) => Rename::To(self.builder.interner.name(&name)),
            NewName::Like(pid) => Rename::Like(pid),
        };
        self.builder.renames.add(time_ns, pid, rename);
    }

    /// Whether there is no event yet.
    pub(super) fn is_empty(&self) -> bool {
        self.merger.len() == 0
    }

    /// Adds an event. `running` is the task that the CPU was running, with its name.
    pub(super) fn event(
        &mut self,
        cpu: u32,
        time_ns: u64,
        parsed: ParsedEvent<'_>,
        running: Option<(u32, &str)>,
    ) {
        self.note_clock(cpu, time_ns);
        match pending::pending(parsed, running, &mut self.builder.interner) {
            Some(Unlabelled { kind, text: None }) => self.add(cpu, time_ns, kind),
            Some(Unlabelled { kind, text: Some(text) }) => {
                if let Some(kind) = self.label(kind, text) {
                    self.add(cpu, time_ns, kind);
                }
            }
            None if parsed == ParsedEvent::LostHere => {}
            None => self.trace().loss.skipped += 1,
        }
    }

    /// Notes the time of an event: the clock's order on this CPU, and lost events that waited for a time.
    fn note_clock(&mut self, cpu: u32, time_ns: u64) {
        if let Some(last_ns) = self.clocks.set(cpu, time_ns).filter(|last_ns| *last_ns > time_ns) {
            self.trace().loss.clock_jumps += 1;
            self.first(|| clock_went_back(cpu, last_ns - time_ns));
        }
        if !self.pending_lost.is_empty()
            && let Some(count) = self.pending_lost.remove(&cpu)
        {
            self.add(cpu, time_ns, PendingKind::Lost { count: Halves::of(count) });
        }
    }

    /// Enters the text of an event into its table. `None`, and a message, when the table is full. Only our own writer
    /// escapes.
    fn label(&mut self, kind: PendingKind, text: &str) -> Option<PendingKind> {
        use PendingKind::{CgroupMove, ContentionBegin, ContentionEnd, Mark, Param, Print, Stack};
        let is_own = self.window.is_some();
        let trace = &mut self.builder.trace;
        let labelled = match kind {
            Print { .. } if is_own => {
                trace.intern_print(&unescape(text)).map(|label| Print { label })
            }
            Print { .. } => trace.intern_print(text).map(|label| Print { label }),
            Stack { pid, .. } => trace.intern_stack(text).map(|label| Stack { pid, label }),
            ContentionBegin { pid, holder, flags, .. } => trace
                .intern_stack(&unescape(text))
                .map(|lock| ContentionBegin { pid, holder, flags, lock }),
            ContentionEnd { pid, .. } => {
                trace.intern_stack(&unescape(text)).map(|lock| ContentionEnd { pid, lock })
            }
            Mark { pid, value, .. } => {
                Some(Mark { pid, label: trace.intern(&unescape(text)), value })
            }
            Param { .. } => Some(Param { label: trace.intern(&unescape(text)) }),
            CgroupMove { pid, .. } => {
                Some(CgroupMove { pid, path: self.builder.interner.name(&unescape(text)) })
            }
            other => Some(other),
        };
        if labelled.is_none() {
            self.first(|| match kind {
                Print { .. } => "too many different printed lines".to_owned(),
                Stack { .. } => "too many different stacks".to_owned(),
                _ => "too many different locks".to_owned(),
            });
        }
        labelled
    }

    fn add(&mut self, cpu: u32, time_ns: u64, kind: PendingKind) {
        self.kinds.note(&kind);
        self.cpus_seen = self.cpus_seen.max(cpu.max(kind.cpu_max()) + 1);
        self.merger.push(PendingEvent { time_ns, cpu, kind });
    }

    /// Takes over a cgroup of the header. Its parent must precede it, and the first one is the root.
    pub(super) fn cgroup(&mut self, info: CgroupInfo) {
        let known = self.trace().cgroups().len();
        let is_sound = match info.parent {
            None => known == 0,
            Some(parent) => parent.index() < known,
        };
        if !is_sound || known >= CGROUPS_MAX {
            return self
                .unreadable_text("a cgroup without its parent, or too many of them", &info.path);
        }
        self.trace().add_cgroup(info);
    }

    /// Returns the trace. `read` and `units` are for the message that there is no event. The trace has no
    /// events if they were handed over in parts.
    pub(super) fn finish(
        mut self,
        name: &str,
        read: u64,
        units: &'static str,
    ) -> Result<Trace, ReadError> {
        let Some((_, last_ns)) = self.merger.extent() else {
            let name = name.to_owned();
            let Loss { unreadable, skipped, first, .. } = take(&mut self.trace().loss);
            return Err(ReadError::NoEvents { name, read, units, unreadable, skipped, first });
        };
        for (cpu, count) in take(&mut self.pending_lost) {
            self.add(cpu, last_ns, PendingKind::Lost { count: Halves::of(count) });
        }
        self.begin();
        let (window, cpus_seen) = (self.window, self.cpus_seen);
        let trace = self.trace();
        trace.end_ns = window.map_or(last_ns, |(_, end_ns)| end_ns.max(last_ns));
        trace.cpus = trace.cpus.max(cpus_seen);
        self.hand_over(u64::MAX);
        self.count_late();
        Ok(self.builder.finish())
    }

    fn count_late(&mut self) {
        let late = self.merger.late();
        self.trace().loss.clock_jumps += late;
        if late > 0 {
            self.first_of_all(|| {
                format!(
                    "{late} events are older than the recorder's rounds allow: they were moved to \
                     the end of the round before"
                )
            });
        }
    }

    /// Prepares the trace for its first event.
    fn begin(&mut self) {
        let Some((first_ns, last_ns)) = self.merger.extent().filter(|_| !self.has_begun) else {
            return;
        };
        self.has_begun = true;
        let (start_ns, _) = self.window.unwrap_or((first_ns, last_ns));
        let trace = &mut self.builder.trace;
        trace.start_ns = start_ns.min(first_ns);
        trace.cpus = trace.cpus.max(self.cpus_seen);
        let kinds = self.announced.map_or(self.kinds, |announced| announced.kinds);
        let fits = self.listed.is_empty() && trace.cgroups().is_empty() && !kinds.cgroups;
        let mut parts = self.parts.take().filter(|_| fits);
        match &mut parts {
            Some(parts) => parts.begin(trace, kinds.wakeups),
            None => trace.reserve(self.merger.len()),
        }
        self.builder.begin(take(&mut self.listed), PartWriter::new(parts));
    }

    /// Hands all events up to a time to the builder.
    fn hand_over(&mut self, until_ns: u64) {
        self.builder.renames.sort();
        self.merger.take_until(until_ns, |event| self.builder.push(event));
    }
}

/// Messages, and what is lost.
impl Collector<'_> {
    /// Keeps the words, with the position, if they are of the first problem.
    pub(super) fn first(&mut self, words: impl FnOnce() -> String) {
        let position = self.position;
        self.first_of_all(|| format!("{position}: {}", words()));
    }

    /// Keeps the words of the first problem, which has no position.
    pub(super) fn first_of_all(&mut self, words: impl FnOnce() -> String) {
        self.trace().loss.first.get_or_insert_with(words);
    }

    /// Counts a line or record that cannot be read.
    pub(super) fn unreadable(&mut self, why: &str) {
        self.trace().loss.unreadable += 1;
        self.first(|| why.to_owned());
    }

    /// Counts a line that cannot be read, and quotes it.
    pub(super) fn unreadable_text(&mut self, why: &str, text: &str) {
        self.trace().loss.unreadable += 1;
        self.first(|| {
            let quote: String = text.trim().chars().take(QUOTE_CHARS).collect();
            format!("{why}: {quote:?}")
        });
    }

    /// Notes that the input ends early. `why` has its own position.
    pub(super) fn truncated(&mut self, why: impl FnOnce() -> String) {
        self.trace().loss.truncated = true;
        self.first_of_all(why);
    }

    /// Notes that events of a CPU are missing here: before its next event.
    pub(super) fn lost(&mut self, cpu: u32, count: u64) {
        let pending = self.pending_lost.entry(cpu).or_default();
        *pending = pending.saturating_add(count);
        self.first(|| format!("CPU {cpu} lost {count} events"));
    }

    /// Notes that events of a CPU are missing after its last one.
    pub(super) fn lost_at_the_end(&mut self, cpu: u32, count: u64) {
        self.first_of_all(|| format!("CPU {cpu} lost {count} events: its buffer was full"));
        match self.clocks.last_ns(cpu) {
            Some(last_ns) => self.add(cpu, last_ns, PendingKind::Lost { count: Halves::of(count) }),
            None => *self.pending_lost.entry(cpu).or_default() = count,
        }
    }

    /// Notes that events are missing at an unknown place.
    pub(super) fn lost_somewhere(&mut self, count: u64) {
        let loss = &mut self.trace().loss;
        loss.lost_events = loss.lost_events.saturating_add(count);
    }

    /// Notes that events were overwritten before the first one.
    pub(super) fn overwritten(&mut self, count: u64) {
        self.lost_somewhere(count);
        if count > 0 {
            self.first_of_all(|| {
                format!("{count} events were overwritten before the recording begins")
            });
        }
    }
}

/// Events that come in batches, with the rounds of their recorder.
impl Collector<'_> {
    /// Adds a batch. `identities` are those of the decoder so far, as this collector's.
    pub(super) fn add_batch(&mut self, mut batch: EventBatch, identities: &mut Vec<IdentityId>) {
        let interner = &mut self.builder.interner;
        let new = batch.identities.iter();
        identities.extend(new.map(|(pid, name, class)| interner.identity(*pid, name, *class)));
        for (time_ns, pid, name) in take(&mut batch.names) {
            self.rename(time_ns, pid, name);
        }
        self.join_clocks(&mut batch);
        self.drop_unannounced(&mut batch);
        let loss = &mut self.trace().loss;
        loss.skipped += batch.skipped;
        loss.unreadable += batch.unreadable;
        loss.clock_jumps += batch.clock_jumps;
        if let Some((at, words)) = batch.problem {
            self.position = InputPosition::Byte(at);
            self.first(|| words);
        }
        for text in batch.texts {
            let kind = &mut batch.runs[text.run][text.index].kind;
            *kind = self.label(*kind, &text.text).unwrap_or(PendingKind::Dropped);
        }
        for mut run in batch.runs {
            run.iter_mut().for_each(|event| {
                event.kind.map_identities(|id| identities[id.0 as usize]);
            });
            self.merger.push_run(run);
        }
    }

    /// Compares the clocks with those before the batch.
    fn join_clocks(&mut self, batch: &mut EventBatch) {
        let clocks = take(&mut batch.clocks);
        for span in clocks.iter() {
            let last_ns = self.clocks.set(span.cpu, span.last_ns);
            if let Some(last_ns) = last_ns.filter(|last_ns| *last_ns > span.first_ns) {
                batch.clock_jumps += 1;
                let back_ns = last_ns - span.first_ns;
                batch.note_problem(span.first_at, || clock_went_back(span.cpu, back_ns));
            }
        }
    }

    fn drop_unannounced(&mut self, batch: &mut EventBatch) {
        let Some(announced) =
            self.announced.filter(|announced| !announced.covers(batch.cpus, batch.kinds))
        else {
            self.cpus_seen = self.cpus_seen.max(batch.cpus);
            self.kinds = self.kinds.and(batch.kinds);
            return;
        };
        for event in batch.runs.iter_mut().flatten() {
            let mut kinds = EventKinds::default();
            kinds.note(&event.kind);
            if !announced.covers(event.cpu.max(event.kind.cpu_max()) + 1, kinds) {
                event.kind = PendingKind::Dropped;
                batch.unreadable += 1;
            }
        }
        batch.texts.clear();
        let words = "an event of a CPU or of a kind that the head of the file does not announce";
        batch.problem.get_or_insert_with(|| (0, words.to_owned()));
    }

    /// Notes that a round of the recorder ended, and hands over what is complete.
    pub(super) fn end_round(&mut self) {
        let complete_ns = self.clocks.end_round();
        if let Some(complete_ns) = complete_ns.filter(|_| self.announced.is_some()) {
            self.begin();
            self.hand_over(complete_ns);
        }
    }
}
