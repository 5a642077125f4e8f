//! Gathers what an input says, in any format, until the whole of it is known: then events are put in order of time, and
//! pids become tasks.

use std::collections::BTreeMap;
use std::fmt;
use std::mem::take;
use std::ops::Range;

use super::ReadError;
use super::build::Builder;
use super::fields::Said;
use super::names::Roster;
use super::order::Pile;
use super::parts::{Making, TakeParts};
use super::records::{self, Halves, Record, What};
use super::renames::Renames;
use crate::escape::unescape;
use crate::{CgroupInfo, Loss, TaskInfo, Trace};

/// Cgroups that a recording may have.
pub(crate) const CGROUPS_MAX: usize = 1 << 16;

/// Characters of a bad line that a message quotes.
const QUOTE_CHARS: usize = 80;

/// Where in the input the reader is, for messages.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// A line, from 1.
    Line(u64),
    /// A byte of the file, from 0.
    Byte(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(number) => write!(f, "line {number}"),
            Self::Byte(offset) => write!(f, "byte {offset}"),
        }
    }
}

/// The times of a CPU's events in a part of the input, ns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) cpu: u32,
    pub(super) first_ns: u64,
    pub(super) last_ns: u64,
}

/// Kinds of records that there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Has {
    wakeups: bool,
    cgroups: bool,
    /// Those that speak of a label of the trace.
    labels: bool,
}

impl Has {
    #[inline]
    fn note(&mut self, what: &What) {
        self.wakeups |= matches!(what, What::Wakeup { .. });
        self.cgroups |= matches!(what, What::CgroupMove { .. } | What::CgroupWeight { .. });
        self.labels |= matches!(
            what,
            What::Mark { .. }
                | What::Param { .. }
                | What::Print { .. }
                | What::Stack { .. }
                | What::ContentionBegin { .. }
                | What::ContentionEnd { .. }
        );
    }
}

/// What was read so far.
pub(super) struct Collector<'p> {
    /// Labels, loss and the number of CPUs while reading.
    pub(super) trace: Trace,
    /// Where the reader is.
    pub(super) place: Place,
    /// The window, where the input tells it, ns.
    pub(super) window: Option<(u64, u64)>,
    /// Tasks that the input lists, in the order of their numbers.
    pub(super) listed: Vec<TaskInfo>,
    pub(super) roster: Roster,
    /// Who wants the events, until they begin to be handed out.
    parts: Option<&'p mut dyn TakeParts>,
    /// What became of records that were handed out.
    begun: Option<Begun<'p>>,
    rounds: Rounds,
    records: Pile,
    renames: Renames,
    cpus_seen: u32,
    /// The last stamp of each CPU.
    last_ns: Vec<Option<u64>>,
    /// Lost events whose time is not known yet, by CPU.
    pending_lost: BTreeMap<u32, u64>,
    has: Has,
}

/// Events are handed out.
struct Begun<'p> {
    builder: Builder<'p>,
    /// What those who take them were told, if there are any.
    told: Option<(u32, Has)>,
}

/// Up to which time nothing is missing any more. A recorder that writes what all CPUs have, one after the other, and says so when it is
/// through with them, has nothing left in the next round that happened before the end of the last one began.
#[derive(Clone, Copy, Debug, Default)]
struct Rounds {
    /// The latest time that was seen when the last round ended, ns.
    seen_ns: Option<u64>,
    /// The same of the round before it.
    complete_ns: Option<u64>,
}

impl<'p> Collector<'p> {
    pub(super) fn new() -> Self {
        Self {
            trace: Trace::new(0),
            place: Place::Line(0),
            window: None,
            listed: Vec::new(),
            roster: Roster::default(),
            parts: None,
            begun: None,
            rounds: Rounds::default(),
            records: Pile::default(),
            renames: Renames::default(),
            cpus_seen: 0,
            last_ns: Vec::new(),
            pending_lost: BTreeMap::new(),
            has: Has::default(),
        }
    }

    /// The events are for `parts`, if they fit: where no control groups are.
    pub(super) fn for_parts(mut self, parts: Option<&'p mut dyn TakeParts>) -> Self {
        self.parts = parts;
        self
    }

    /// Notes that a task has a name from a time on, in an input whose events do not name the task that ran. Such inputs give
    /// no name with [`Collector::event`].
    pub(super) fn named_later(&mut self, time_ns: u64, pid: u32, name: &str) {
        let name = self.roster.names.intern(name);
        self.renames.named(time_ns, pid, name);
    }

    /// Notes that a task has its parent's name from a time on.
    pub(super) fn forked_later(&mut self, time_ns: u64, parent: u32, child: u32) {
        self.renames.forked(time_ns, parent, child);
    }

    /// Whether there is no event yet.
    pub(super) fn is_empty(&self) -> bool {
        self.records.len() == 0
    }

    /// Keeps the words for the first trouble; the place is put in front.
    pub(super) fn first(&mut self, words: impl FnOnce() -> String) {
        let place = self.place;
        self.trace.loss.first.get_or_insert_with(|| format!("{place}: {}", words()));
    }

    /// Keeps the words for the first trouble when they have no place.
    pub(super) fn first_of_all(&mut self, words: impl FnOnce() -> String) {
        self.trace.loss.first.get_or_insert_with(words);
    }

    /// Counts a line or record that cannot be read.
    pub(super) fn unreadable(&mut self, why: &str) {
        self.trace.loss.unreadable += 1;
        self.first(|| why.to_owned());
    }

    /// Counts a line that cannot be read, and quotes it.
    pub(super) fn unreadable_text(&mut self, why: &str, text: &str) {
        self.trace.loss.unreadable += 1;
        self.first(|| {
            let quote: String = text.trim().chars().take(QUOTE_CHARS).collect();
            format!("{why}: {quote:?}")
        });
    }

    /// Takes an event over. `running` is the task that the CPU was running, with its name.
    pub(super) fn event(
        &mut self,
        cpu: u32,
        time_ns: u64,
        said: Said<'_>,
        running: Option<(u32, &str)>,
    ) {
        self.stamp(cpu, time_ns);
        if let Said::Print { label } = said {
            return self.print(cpu, time_ns, label);
        }
        if let Said::Stack { folded } = said {
            return self.stack(cpu, time_ns, folded, running.map_or(0, |(pid, _)| pid));
        }
        if let Said::ContentionBegin { lock, .. } | Said::ContentionEnd { lock, .. } = said
            && self.trace.intern_stack(&unescape(lock)).is_none()
        {
            return self.first(|| "too many different locks".to_owned());
        }
        let trace = &mut self.trace;
        let intern = |text: &str| trace.intern(&unescape(text));
        match records::record(said, running, &mut self.roster, intern) {
            Some(what) => self.record(cpu, time_ns, what),
            None if said == Said::LostHere => {}
            None => self.trace.loss.skipped += 1,
        }
    }

    /// A line that a scheduler's program printed. Only our own writer escapes.
    fn print(&mut self, cpu: u32, time_ns: u64, text: &str) {
        let plain = if self.window.is_some() { unescape(text) } else { text.into() };
        match self.trace.intern_print(&plain) {
            Some(label) => self.record(cpu, time_ns, What::Print { label }),
            None => self.first(|| "too many different printed lines".to_owned()),
        }
    }

    /// The kernel stack of the task that the CPU was running.
    fn stack(&mut self, cpu: u32, time_ns: u64, folded: &str, pid: u32) {
        match self.trace.intern_stack(folded) {
            Some(label) => self.record(cpu, time_ns, What::Stack { pid, label }),
            None => self.first(|| "too many different stacks".to_owned()),
        }
    }

    /// Notes the time of an event: the clock's order on this CPU, and lost events that waited for a time.
    fn stamp(&mut self, cpu: u32, time_ns: u64) {
        let index = cpu as usize;
        if self.last_ns.len() <= index {
            self.last_ns.resize(index + 1, None);
        }
        let last = self.last_ns[index].replace(time_ns);
        if let Some(last) = last.filter(|last| *last > time_ns) {
            self.trace.loss.clock_jumps += 1;
            let back = last - time_ns;
            self.first(|| format!("the clock of CPU {cpu} went back by {back} ns"));
        }
        if !self.pending_lost.is_empty()
            && let Some(count) = self.pending_lost.remove(&cpu)
        {
            self.record(cpu, time_ns, What::Lost { count: Halves::of(count) });
        }
    }

    fn record(&mut self, cpu: u32, time_ns: u64, what: What) {
        self.has.note(&what);
        self.cpus_seen = self.cpus_seen.max(cpu.max(what.cpu_max()) + 1);
        self.records.push(Record { time_ns, cpu, what });
    }

    /// Whether no clock goes back where events of those times come next, and nothing waits for them.
    pub(super) fn goes_on(&self, spans: &[Span]) -> bool {
        let last = |cpu: u32| self.last_ns.get(cpu as usize).copied().flatten();
        self.pending_lost.is_empty()
            && spans.iter().all(|span| last(span.cpu).is_none_or(|last| last <= span.first_ns))
    }

    /// Takes many events over, in runs in order of time. `spans` are the times of the CPUs, which go on; CPU numbers in the records are
    /// below `cpus`, and none of them is about control groups or has a label.
    pub(super) fn all(
        &mut self,
        spans: &[Span],
        records: Vec<Record>,
        runs: Vec<Range<usize>>,
        cpus: u32,
        has_wakeups: bool,
    ) {
        for span in spans {
            let index = span.cpu as usize;
            if self.last_ns.len() <= index {
                self.last_ns.resize(index + 1, None);
            }
            self.last_ns[index] = Some(span.last_ns);
        }
        self.cpus_seen = self.cpus_seen.max(cpus);
        self.has.wakeups |= has_wakeups;
        self.records.shelve(records, runs);
    }

    /// A round of the recorder ended, up to which the latest time was `seen_ns` or that of the events so far, if that is later.
    pub(super) fn round(&mut self, seen_ns: u64) {
        let last_ns = self.records.extent().map_or(0, |(_, last_ns)| last_ns);
        self.rounds.complete_ns = self.rounds.seen_ns.replace(last_ns.max(seen_ns));
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
        match self.last_ns.get(cpu as usize).copied().flatten() {
            Some(last_ns) => self.record(cpu, last_ns, What::Lost { count: Halves::of(count) }),
            None => *self.pending_lost.entry(cpu).or_default() = count,
        }
    }

    /// Notes that events are missing, and that nobody knows where.
    pub(super) fn lost_somewhere(&mut self, count: u64) {
        let loss = &mut self.trace.loss;
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

    /// Takes over a cgroup of the header; its parent must stand before it, and the first one is the root.
    pub(super) fn cgroup(&mut self, info: CgroupInfo) {
        let known = self.trace.cgroups().len();
        let sound = match info.parent {
            None => known == 0,
            Some(parent) => parent.index() < known,
        };
        if !sound || known >= CGROUPS_MAX {
            return self
                .unreadable_text("a cgroup without its parent, or too many of them", &info.path);
        }
        self.trace.add_cgroup(info);
    }

    /// The trace; `units` says what `read` counts, for the message that there is no event. Its events are missing if others take them.
    pub(super) fn finish(
        mut self,
        name: &str,
        read: u64,
        units: &'static str,
    ) -> Result<Trace, ReadError> {
        let Some((_, last_ns)) = self.records.extent() else {
            let name = name.to_owned();
            let Loss { unreadable, skipped, first, .. } = self.trace.loss;
            return Err(ReadError::NoEvents { name, read, units, unreadable, skipped, first });
        };
        for (cpu, count) in take(&mut self.pending_lost) {
            self.record(cpu, last_ns, What::Lost { count: Halves::of(count) });
        }
        self.begin(self.records.len());
        let (_, last_ns) = self.records.extent().unwrap_or((last_ns, last_ns));
        let end_ns = self.window.map_or(last_ns, |(_, end_ns)| end_ns);
        self.trace.end_ns = end_ns.max(last_ns);
        self.trace.cpus = self.trace.cpus.max(self.cpus_seen);
        self.follow();
        self.hand_out(u64::MAX);
        if let Some(begun) = self.begun {
            begun.builder.finish(&self.trace);
        }
        Ok(self.trace)
    }
}

/// Events that are handed out before the whole input is read.
impl Collector<'_> {
    /// Begins to hand out events if some are complete, with room for `expected` of them where nobody takes them away. To be followed by
    /// [`Collector::hand_out_complete`].
    pub(super) fn look_ahead(&mut self, expected: usize) {
        let is_told = self.trace.cpus > 0 && !self.has.labels && self.fits();
        if self.rounds.complete_ns.is_some() && (is_told || self.parts.is_none()) {
            self.begin(expected);
        }
        self.follow();
    }

    /// Hands out what is complete, unless something came too late for that.
    pub(super) fn hand_out_complete(&mut self) {
        let news = self.rounds.complete_ns > self.records.passed_ns();
        if let Some(until_ns) = self.rounds.complete_ns.filter(|_| news && !self.is_late()) {
            self.hand_out(until_ns);
        }
    }

    /// Memory of records that were handed out.
    pub(super) fn take_empty(&mut self) -> Vec<Vec<Record>> {
        self.records.take_empty()
    }

    /// Whether something came that should have been known when events before it were handed out: nothing that was made of this input
    /// can be used, and it must be read again to its end before any event is handed out.
    pub(super) fn is_late(&self) -> bool {
        let told = self.begun.as_ref().and_then(|begun| begun.told);
        let is_news = |(cpus, has)| has != self.has || self.cpus_seen > cpus;
        self.records.is_late() || self.renames.is_late() || told.is_some_and(is_news)
    }

    /// Whether the events can be taken away as they come.
    fn fits(&self) -> bool {
        self.listed.is_empty() && self.trace.cgroups().is_empty() && !self.has.cgroups
    }

    fn begin(&mut self, expected: usize) {
        let Some((first_ns, last_ns)) = self.records.extent().filter(|_| self.begun.is_none())
        else {
            return;
        };
        let (start_ns, _) = self.window.unwrap_or((first_ns, last_ns));
        self.trace.start_ns = start_ns.min(first_ns);
        self.trace.cpus = self.trace.cpus.max(self.cpus_seen);
        let fits = self.fits();
        let mut parts = self.parts.take().filter(|_| fits);
        match &mut parts {
            Some(parts) => parts.begin(&self.trace, self.has.wakeups),
            None => self.trace.reserve(expected),
        }
        let told = parts.is_some().then_some((self.trace.cpus, self.has));
        let listed = take(&mut self.listed);
        let making = Making::new(parts);
        let builder = Builder::new(&mut self.trace, listed, self.renames.any(), making);
        self.begun = Some(Begun { builder, told });
    }

    /// Lets the builder know whom records name.
    fn follow(&mut self) {
        if let Some(begun) = &mut self.begun {
            begun.builder.follow(&self.roster);
        }
    }

    fn hand_out(&mut self, until_ns: u64) {
        let Some(begun) = &mut self.begun else { return };
        self.renames.complete(until_ns);
        begun.builder.adding(&mut self.trace, &mut self.renames, |builder| {
            self.records.in_order(until_ns, |record| builder.push(record));
        });
    }
}
