//! Gathers what an input says, in any format, until the whole of it is known: then events are put in order of time, and
//! pids become tasks.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use super::ReadError;
use super::build::Builder;
use super::fields::Said;
use super::records::{self, Name, Names, Record, What};
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

/// How a task comes to a name.
#[derive(Clone, Copy, Debug)]
enum Rename {
    To(Name),
    /// That of another task at that time.
    Like(u32),
}

/// What was read so far.
#[derive(Debug)]
pub(super) struct Collector {
    /// Labels, loss and the number of CPUs while reading; the events come at the end.
    pub(super) trace: Trace,
    /// Where the reader is.
    pub(super) place: Place,
    /// The window, where the input tells it, ns.
    pub(super) window: Option<(u64, u64)>,
    /// Tasks that the input lists, in the order of their numbers.
    pub(super) listed: Vec<TaskInfo>,
    names: Names,
    records: Vec<Record>,
    /// Names of tasks that come with a time of their own.
    renames: Vec<(u64, u32, Rename)>,
    cpus_seen: u32,
    /// The last stamp of each CPU.
    last_ns: Vec<Option<u64>>,
    /// Lost events whose time is not known yet, by CPU.
    pending_lost: BTreeMap<u32, u64>,
}

impl Collector {
    pub(super) fn new() -> Self {
        Self {
            trace: Trace::new(0),
            place: Place::Line(0),
            window: None,
            listed: Vec::new(),
            names: Names::default(),
            records: Vec::new(),
            renames: Vec::new(),
            cpus_seen: 0,
            last_ns: Vec::new(),
            pending_lost: BTreeMap::new(),
        }
    }

    /// Notes that a task has a name from a time on, in an input whose events do not name the task that ran. Such inputs give
    /// no name with [`Collector::event`].
    pub(super) fn named_later(&mut self, time_ns: u64, pid: u32, name: &str) {
        let name = self.names.intern(name);
        self.renames.push((time_ns, pid, Rename::To(name)));
    }

    /// Notes that a task has its parent's name from a time on.
    pub(super) fn forked_later(&mut self, time_ns: u64, parent: u32, child: u32) {
        self.renames.push((time_ns, child, Rename::Like(parent)));
    }

    /// Gives the tasks that ran their names, when the records are in order of time.
    fn rename(&mut self) {
        let mut renames = std::mem::take(&mut self.renames);
        if renames.is_empty() {
            return;
        }
        renames.sort_by_key(|(time_ns, ..)| *time_ns);
        let mut known: HashMap<u32, Name> = HashMap::new();
        let mut next = renames.into_iter().peekable();
        for record in &mut self.records {
            while let Some((_, pid, to)) = next.next_if(|(time_ns, ..)| *time_ns <= record.time_ns)
            {
                let name = match to {
                    Rename::To(name) => Some(name),
                    Rename::Like(parent) => known.get(&parent).copied(),
                };
                name.map(|name| known.insert(pid, name));
            }
            if let Some((pid, name)) = record.what.running_mut() {
                let names = &mut self.names;
                *name = *known.entry(*pid).or_insert_with(|| names.intern(&format!(":{pid}")));
            }
        }
    }

    /// Whether there is no event yet.
    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
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
        match records::record(said, running, &mut self.names, intern) {
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
            self.record(cpu, time_ns, What::Lost { count });
        }
    }

    fn record(&mut self, cpu: u32, time_ns: u64, what: What) {
        self.cpus_seen = self.cpus_seen.max(cpu.max(what.cpu_max()) + 1);
        self.records.push(Record { time_ns, cpu, what });
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
            Some(last_ns) => self.record(cpu, last_ns, What::Lost { count }),
            None => *self.pending_lost.entry(cpu).or_default() = count,
        }
    }

    /// Notes that events were overwritten before the first one.
    pub(super) fn overwritten(&mut self, count: u64) {
        let loss = &mut self.trace.loss;
        loss.lost_events = loss.lost_events.saturating_add(count);
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

    /// The trace; `units` says what `read` counts, for the message that there is no event.
    pub(super) fn finish(
        mut self,
        name: &str,
        read: u64,
        units: &'static str,
    ) -> Result<Trace, ReadError> {
        let end_ns = self.records.iter().map(|record| record.time_ns).max();
        let Some(end_ns) = end_ns else {
            let name = name.to_owned();
            let Loss { unreadable, skipped, first, .. } = self.trace.loss;
            return Err(ReadError::NoEvents { name, read, units, unreadable, skipped, first });
        };
        for (cpu, count) in std::mem::take(&mut self.pending_lost) {
            self.record(cpu, end_ns, What::Lost { count });
        }
        if !self.records.is_sorted_by_key(|record| record.time_ns) {
            self.records.sort_by_key(|record| record.time_ns);
        }
        let (start_ns, end_ns) = self.records.first().map_or((0, 0), |first| {
            let (start, end) = self.window.unwrap_or((first.time_ns, end_ns));
            (start.min(first.time_ns), end.max(end_ns))
        });
        self.rename();
        self.trace.start_ns = start_ns;
        self.trace.end_ns = end_ns;
        self.trace.cpus = self.trace.cpus.max(self.cpus_seen);
        self.trace.reserve(self.records.len());
        let mut builder = Builder::new(self.trace, self.listed, &self.names);
        for record in &self.records {
            builder.push(record);
        }
        Ok(builder.finish())
    }
}
