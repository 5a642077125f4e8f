//! Joins the batches of an input of any format: counts what is lost, puts events in order of time, and has the trace
//! built.
//!
//! Events are put in order when the whole input has been read. Where parts are wanted ([`TakeSegments`]) and the head
//! of the input announces all that parts must know before the first event ([`Collector::announce`]), they are put in
//! order while the rest is read, by the rounds of the recorder: see [`CpuClocks::end_round`]. An event that is older
//! than its round allows gets the time of the last event passed on, and counts as a clock that went back
//! ([`Loss::clock_jumps`]).

use std::collections::{BTreeMap, HashMap};
use std::mem::take;

use super::batch::{Batch, EventText, Gap, StatedLoss, clock_went_back};
use super::build::{BY_PATH, Builder, CGROUPS_MAX};
use super::clocks::CpuClocks;
use super::error::ReadError;
use super::interner::{IdentityId, Interner, UNNAMED};
use super::merge::RunMerger;
use super::segments::{SegmentWriter, TakeSegments};
use super::stated::{LEFT_OUT, Scope, Stated};
use super::tie_order::TieOrder;
use crate::escape::unescape;
use crate::origin::OriginError;
use crate::packed::{Packed, PackedKind};
use crate::{CgroupId, CgroupInfo, EventKind, Loss, TaskId, TaskInfo, Trace};

/// Characters of an unreadable line that a message quotes.
const QUOTE_CHARS: usize = 80;

/// Files whose names are kept of a text of several.
const FILES_MAX: usize = 64;

/// Names of tasks that are kept beside events.
pub(super) const NAMES_MAX: usize = 1 << 20;

/// Texts of events that may wait to be entered into tables.
const TEXTS_MAX: usize = 1 << 12;

/// The state of reading: batches so far, and counts of losses.
pub(super) struct Collector<'p> {
    /// Where the reader is, for messages: a `line`, from 1, or a `byte` of the file, from 0.
    pub(super) position: (&'static str, u64),
    /// The window, ns, if the input has one.
    pub(super) window: Option<(u64, u64)>,
    /// Tasks that the input lists, in the order of their numbers.
    pub(super) listed: Vec<TaskInfo>,
    /// Has the identities of the tasks in the events.
    pub(super) interner: Interner,
    pub(super) builder: Builder<'p>,
    /// Lines or records of the kernel so far.
    pub(super) read: u64,
    merger: RunMerger,
    /// Of the events that the merger gives.
    pub(super) order: TieOrder,
    /// Events that were added one by one and are not in the merger yet.
    batch: Batch,
    /// Of the events in the merger.
    scope: Scope,
    /// The receiver of parts, until the first is passed.
    parts: Option<&'p mut dyn TakeSegments>,
    announced: Option<Scope>,
    has_begun: bool,
    clocks: CpuClocks,
    /// Lost events of which the time is not known yet, by CPU.
    pending_lost: BTreeMap<u32, u64>,
    /// The files that a text names at its lines, by their names.
    pub(super) files: Vec<String>,
    /// The file of the next line, where that does not name it: behind lost events.
    source_of_next: Option<String>,
    /// The one that is read, where it is not the first.
    pub(super) chosen_file: Option<String>,
    /// Names of tasks that are stated beside events, by pid.
    pub(super) names: HashMap<u32, String>,
    /// Lost events as records state them, by CPU if they name it: those that are missing at the records, and in all.
    stated_losses: BTreeMap<Option<u32>, [u64; 2]>,
}

impl<'p> Collector<'p> {
    pub(super) fn new(parts: Option<&'p mut dyn TakeSegments>) -> Self {
        let interner = Interner::default();
        Self {
            position: ("line", 0),
            window: None,
            listed: Vec::new(),
            builder: Builder::new(interner.clone()),
            interner,
            read: 0,
            merger: RunMerger::default(),
            order: TieOrder::default(),
            batch: Batch::default(),
            scope: Scope::default(),
            parts,
            announced: None,
            has_begun: false,
            clocks: CpuClocks::default(),
            pending_lost: BTreeMap::new(),
            files: Vec::new(),
            source_of_next: None,
            chosen_file: None,
            names: HashMap::new(),
            stated_losses: BTreeMap::new(),
        }
    }

    /// Lets events be passed on before the whole input is read, if parts are wanted; then batches must have no other
    /// events. Returns what they must keep to.
    pub(super) fn announce(&mut self, scope: Scope) -> Option<Scope> {
        self.announced = self.parts.is_some().then_some(scope);
        self.announced
    }

    /// The trace as far as it is known: number of CPUs, labels, loss.
    pub(super) fn trace(&mut self) -> &mut Trace {
        &mut self.builder.trace
    }

    /// Whether there is no event yet.
    pub(super) fn is_empty(&self) -> bool {
        self.merger.len == 0 && self.batch.events.runs.is_empty() && self.batch.gaps.is_empty()
    }

    /// Adds what a line or record states.
    pub(super) fn add(&mut self, cpu: u32, time_ns: u64, stated: Stated) {
        let (_, at) = self.position;
        if let Stated::Name { pid, name } = &stated
            && (self.names.len() < NAMES_MAX || self.names.contains_key(pid))
        {
            self.names.insert(*pid, name.clone());
        }
        if !self.pending_lost.is_empty()
            && let Some(count) = self.pending_lost.remove(&cpu)
        {
            // Our own writer says when it was.
            if stated == Stated::LostHere {
                self.batch.events.push(time_ns, cpu, EventKind::Lost { count });
            } else {
                self.batch.add(at, time_ns, cpu, Stated::Event(EventKind::Lost { count }));
            }
        }
        self.batch.add(at, time_ns, cpu, stated);
        if self.batch.texts.len() >= TEXTS_MAX {
            self.join();
        }
    }

    /// Enters the text of an event into its table. Only our own writer escapes. The error says what fills the table.
    fn label(
        &mut self,
        mut kind: EventKind<IdentityId>,
        text: &str,
    ) -> Result<EventKind<IdentityId>, &'static str> {
        let is_escaped = match kind {
            EventKind::Print { .. } => self.window.is_some(),
            EventKind::Stack { .. } => false,
            _ => true,
        };
        let text = if is_escaped { unescape(text) } else { text.into() };
        let trace = &mut self.builder.trace;
        let label = match &mut kind {
            EventKind::CgroupMove { to: by_path, .. }
            | EventKind::CgroupWeight { cgroup: by_path, .. } => {
                *by_path = CgroupId(BY_PATH | self.builder.paths_named.len() as u32);
                self.builder.paths_named.push(text.into_owned());
                return Ok(kind);
            }
            EventKind::Print { .. } => trace.intern_print(&text).ok_or("printed lines")?,
            EventKind::Stack { .. } => trace.intern_stack(&text).ok_or("stacks")?,
            EventKind::ContentionBegin { .. } | EventKind::ContentionEnd { .. } => {
                trace.intern_stack(&text).ok_or("locks")?
            }
            EventKind::Mark { .. } => trace.intern_mark(&text).ok_or("marks")?,
            _ => trace.intern(&text),
        };
        kind.label_mut().into_iter().for_each(|place| *place = label);
        Ok(kind)
    }

    /// Whether lines that name this source are read. In a text of several files each begins with its number of CPUs:
    /// they may be of several machines, and one is read. A buffer instance has no such line.
    pub(super) fn reads_source(&mut self, source: Option<&str>, rest: &str) -> bool {
        let carried = self.source_of_next.take();
        let Some(source) = source.or(carried.as_deref()) else { return true };
        self.source_of_next = rest.starts_with("CPU:").then(|| source.to_owned());
        if rest.starts_with("cpus=") && !self.files.iter().any(|file| file == source) {
            if self.files.len() < FILES_MAX {
                self.files.push(source.to_owned());
            }
            if self.files.len() == 2 && self.chosen_file.is_none() {
                let (first, second) = (&self.files[0], &self.files[1]);
                let words = format!(
                    "the text has several recordings, {first} and {second}, which may be of several \
                     machines: only {first} is read (--machine {second} reads the other)"
                );
                self.first(|| words);
            }
        }
        let chosen = self.chosen_file.as_ref().or(self.files.first());
        let is_file = self.files.iter().any(|file| file == source);
        let is_other = is_file && chosen.is_none_or(|chosen| chosen != source);
        self.trace().loss.skipped += u64::from(is_other);
        !is_other
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

    /// Takes over a fact about the origin. An unknown one is skipped, an impossible one unreadable.
    pub(super) fn origin(&mut self, key: &str, value: &str) {
        match self.trace().origin.take(key, value) {
            Ok(()) => {}
            Err(OriginError::UnknownKey) => self.trace().loss.skipped += 1,
            Err(OriginError::BadValue) => {
                self.unreadable_text(&format!("an impossible {key} of the origin"), value);
            }
        }
    }

    /// Returns the trace. It has no events if they were passed on in parts.
    pub(super) fn finish(mut self, name: &str) -> Result<Trace, ReadError> {
        self.add_stated_losses();
        self.join();
        // Our own writer writes whatever a trace has.
        let is_recording = self.scope.scheduling || self.window.is_some();
        let Some((_, last_ns)) = self.merger.extent.filter(|_| is_recording) else {
            let (name, read) = (name.to_owned(), self.read);
            let units = if self.position.0 == "line" { "lines" } else { "records" };
            let Loss { unreadable, skipped, first, .. } = take(&mut self.trace().loss);
            return Err(ReadError::NoEvents { name, read, units, unreadable, skipped, first });
        };
        for (cpu, count) in take(&mut self.pending_lost) {
            self.batch.add(0, last_ns, cpu, Stated::Event(EventKind::Lost { count }));
        }
        self.join();
        self.begin();
        let (window, cpus_seen) = (self.window, self.scope.cpus);
        let trace = self.trace();
        trace.end_ns = window.map_or(last_ns, |(_, end_ns)| end_ns.max(last_ns));
        trace.cpus = trace.cpus.max(cpus_seen);
        self.pass(u64::MAX);
        let late = self.merger.late;
        self.trace().loss.clock_jumps += late;
        if late > 0 {
            self.first_of_all(|| {
                format!(
                    "{late} events are older than the recorder's rounds allow: they were moved to \
                     the end of the round before"
                )
            });
        }
        let mut trace = self.builder.finish();
        for index in 1..trace.tasks().len() {
            let info = trace.task_mut(TaskId(index as u32));
            if let Some(name) = self.names.get(&info.pid).filter(|_| info.comm == UNNAMED) {
                name.clone_into(&mut info.comm);
            }
        }
        Ok(trace)
    }

    /// Joins what was added one by one.
    fn join(&mut self) {
        let batch = take(&mut self.batch);
        self.add_batch(batch);
    }

    /// Prepares the trace for its first event.
    fn begin(&mut self) {
        let Some((first_ns, last_ns)) = self.merger.extent.filter(|_| !self.has_begun) else {
            return;
        };
        self.has_begun = true;
        let (start_ns, _) = self.window.unwrap_or((first_ns, last_ns));
        let trace = &mut self.builder.trace;
        trace.start_ns = start_ns.min(first_ns);
        trace.cpus = trace.cpus.max(self.scope.cpus);
        let scope = self.announced.unwrap_or(self.scope);
        let fits = self.listed.is_empty() && trace.cgroups().is_empty() && !scope.cgroups;
        let mut parts = self.parts.take().filter(|_| fits);
        match &mut parts {
            Some(parts) => parts.begin(trace, scope.wakeups),
            None => trace.reserve(self.merger.len),
        }
        // Our own writer writes whatever a trace has.
        let wakes_at_wakeups = self.window.is_none() && !scope.wakings;
        self.builder.begin(take(&mut self.listed), SegmentWriter::new(parts), wakes_at_wakeups);
    }

    /// Passes all events up to a time to the builder.
    fn pass(&mut self, until_ns: u64) {
        self.builder.renames.sort();
        let Self { merger, order, builder, .. } = self;
        merger.take_until(until_ns, |event| order.take(event, |event| builder.push(event)));
        order.release(|event| builder.push(event));
    }
}

/// Messages, and what is lost.
impl Collector<'_> {
    /// Keeps the words, with the position, if they are of the first problem.
    pub(super) fn first(&mut self, words: impl FnOnce() -> String) {
        let (unit, number) = self.position;
        self.first_of_all(|| format!("{unit} {number}: {}", words()));
    }

    /// Keeps the words of the first problem, which has no position.
    pub(super) fn first_of_all(&mut self, words: impl FnOnce() -> String) {
        if self.trace().loss.first.is_none() {
            self.join();
            self.trace().loss.first.get_or_insert_with(words);
        }
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
        self.join();
        self.first_of_all(|| format!("CPU {cpu} lost {count} events: its buffer was full"));
        match self.clocks.last_ns(cpu) {
            Some(last_ns) => _ = self.batch.events.push(last_ns, cpu, EventKind::Lost { count }),
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
    /// Adds a batch.
    pub(super) fn add_batch(&mut self, mut batch: Batch) {
        let gaps = self.locate(&batch.gaps);
        self.join_clocks(&mut batch);
        self.enter_texts(&mut batch);
        self.builder.renames.add(&mut batch.names);
        self.scope = self.scope.with(batch.events.scope);
        self.read += batch.read;
        let loss = &mut self.builder.trace.loss;
        loss.skipped += batch.skipped;
        loss.unreadable += batch.unreadable;
        loss.clock_jumps += batch.clock_jumps;
        if let Some((at, words)) = batch.problem {
            let (unit, _) = self.position;
            loss.first.get_or_insert_with(|| format!("{unit} {at}: {words}"));
        }
        for StatedLoss { cpu, count, is_total } in batch.losses {
            let sum = &mut self.stated_losses.entry(cpu).or_default()[usize::from(is_total)];
            *sum = sum.saturating_add(count);
        }
        // Of equal times what is added first comes first: a gap of no length before the event that ends it.
        let (empty, long): (Vec<_>, Vec<_>) = gaps.into_iter().partition(|(_, is_empty)| *is_empty);
        empty.into_iter().for_each(|(lost, _)| self.merger.add(vec![lost]));
        batch.events.runs.into_iter().for_each(|run| self.merger.add(run));
        long.into_iter().for_each(|(lost, _)| self.merger.add(vec![lost]));
        if batch.ends_round {
            self.end_round();
        }
    }

    /// Lost events, each at the CPU's last event before it: what the CPU did since is not known. Beside them, whether
    /// no time passed until they were told of.
    fn locate(&mut self, gaps: &[Gap]) -> Vec<(Packed, bool)> {
        let located = gaps.iter().map(|gap| {
            let after_ns = gap.after_ns.or(self.clocks.last_ns(gap.cpu)).unwrap_or(gap.before_ns);
            let at_ns = after_ns.min(gap.before_ns);
            let lost = EventKind::Lost { count: gap.count };
            self.scope = self.scope.with(Scope::of(gap.cpu, lost));
            let lost = Packed::of(at_ns, gap.cpu, PackedKind::new(lost));
            (lost, at_ns == gap.before_ns)
        });
        located.collect()
    }

    /// Enters the texts of a batch into their tables. Events without room there are left out.
    fn enter_texts(&mut self, batch: &mut Batch) {
        for EventText { at, run, index, text } in take(&mut batch.texts) {
            let event = &mut batch.events.runs[run][index];
            match self.label(event.kind(), &text) {
                Ok(kind) => event.set_kind(kind),
                Err(what) => {
                    event.set_kind(EventKind::<IdentityId>::Print { label: LEFT_OUT });
                    batch.note_problem(at, || format!("too many different {what}"));
                }
            }
        }
    }

    /// Adds the lost events that no record locates.
    ///
    /// A `perf.data` reports them twice: where they are missing (`PERF_RECORD_LOST`), for each buffer that had no room;
    /// and when the recorder ends, what each event lost on each CPU in all (`PERF_RECORD_LOST_SAMPLES` without a time;
    /// Linux 6.0 and later). The last losses of a CPU have no record behind them that reports them: only the count at
    /// the end includes them.
    fn add_stated_losses(&mut self) {
        for (cpu, [here, in_all]) in take(&mut self.stated_losses) {
            match (cpu, in_all.saturating_sub(here)) {
                (None, unlocated) => self.lost_somewhere(here.saturating_add(unlocated)),
                (Some(_), 0) => {}
                (Some(cpu), unlocated) => self.lost_at_the_end(cpu, unlocated),
            }
        }
    }

    /// Compares the clocks with those before the batch.
    fn join_clocks(&mut self, batch: &mut Batch) {
        for span in take(&mut batch.clocks).iter() {
            let last_ns = self.clocks.set(span.cpu, span.last_ns);
            if let Some(last_ns) = last_ns.filter(|last_ns| *last_ns > span.first_ns) {
                batch.clock_jumps += 1;
                let back_ns = last_ns - span.first_ns;
                batch.note_problem(span.first_at, || clock_went_back(span.cpu, back_ns));
            }
        }
    }

    /// Notes that a round of the recorder ended, and passes the complete events on.
    fn end_round(&mut self) {
        let complete_ns = self.clocks.end_round();
        if let Some(complete_ns) = complete_ns.filter(|_| self.announced.is_some()) {
            self.begin();
            self.pass(complete_ns);
        }
    }
}
