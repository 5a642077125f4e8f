//! Readers of recordings as text: `perf sched script`, `perf script`, ftrace and trace-cmd.
//!
//! The texts are relatives: a line is one event, the columns before the event differ a little, the fields are the kernel's
//! own. One reader takes them all, line by line, and decides per line. What it does about trouble:
//!
//! * a line that cannot be read is counted ([`Loss::unreadable`]), the first is kept in words, and reading goes on;
//! * an event of a kind that is not used is counted ([`Loss::skipped`]);
//! * events are put in order of time; equal times keep the order of the file. Where the order of *one CPU* was broken the
//!   clock jumped ([`Loss::clock_jumps`]);
//! * lost-events lines become [`crate::EventKind::Lost`] at the time of the next line of that CPU;
//! * a pid that lives again after its task died, or is born again, is another task ([`Loss::pid_reuses`]);
//! * a last line without line feed may be cut in the middle of a number: it is left out ([`Loss::truncated`]).
//!
//! What a CPU ran before its first switch, and where a task was before its first event, is not in these texts, and is not
//! invented: the first switch of a CPU names its `prev`, and that is all that is known.
//!
//! A task's nice value is taken from the priority in the fields (100…139). When it changes there is a
//! [`crate::EventKind::Nice`] event just before the event that shows it; the change itself happened at some moment since
//! the last event that named the task. Priority inheritance between normal tasks looks the same.

mod build;
mod error;
mod fields;
mod header;
mod line;
mod lines;
mod marks;
mod records;

use std::collections::{BTreeMap, HashMap};
use std::io::BufRead;

pub use error::ReadError;

use crate::escape::unescape;
use crate::{CgroupInfo, Loss, TaskInfo, Trace};
use build::Builder;
use fields::Said;
use header::Remark;
use lines::{End, Lines};
use records::{Names, Record, What};

/// Cgroups that a recording may have.
pub(crate) const CGROUPS_MAX: usize = 1 << 16;

/// Characters of a bad line that a message quotes.
const QUOTE_CHARS: usize = 80;

/// Reads a recording in any of the supported text formats. `name` is for messages.
///
/// # Errors
/// [`ReadError`] when there is no event in it at all; anything less is counted in [`Trace::loss`].
pub fn read(name: &str, input: impl BufRead) -> Result<Trace, ReadError> {
    let mut lines = Lines::new(input);
    let mut reader = Reader::new();
    loop {
        match lines.next() {
            Ok(Some((bytes, end))) => {
                if reader.lines == 0 {
                    refuse_binary(name, bytes)?;
                }
                reader.line(bytes, end);
            }
            Ok(None) => break,
            Err(source) if reader.records.is_empty() => {
                return Err(ReadError::Io { name: name.to_owned(), source });
            }
            Err(e) => {
                reader.trace.loss.truncated = true;
                let line = lines.number;
                reader.first(|| format!("after line {line}: the input failed: {e}"));
                break;
            }
        }
    }
    reader.finish(name)
}

fn refuse_binary(name: &str, first_line: &[u8]) -> Result<(), ReadError> {
    let start = &first_line[..first_line.len().min(error::MAGIC_BYTES)];
    match error::known_binary(start) {
        Some((format, remedy)) => Err(ReadError::Binary { name: name.to_owned(), format, remedy }),
        None => Ok(()),
    }
}

struct Reader {
    /// Labels, loss and the number of CPUs while reading; the events come at the end.
    trace: Trace,
    names: Names,
    records: Vec<Record>,
    listed: Vec<TaskInfo>,
    window: Option<(u64, u64)>,
    lines: u64,
    cpus_seen: u32,
    last_ns: HashMap<u32, u64>,
    /// Lost events whose time is not known yet, by CPU.
    pending_lost: BTreeMap<u32, u64>,
}

impl Reader {
    fn new() -> Self {
        Self {
            trace: Trace::new(0),
            names: Names::default(),
            records: Vec::new(),
            listed: Vec::new(),
            window: None,
            lines: 0,
            cpus_seen: 0,
            last_ns: HashMap::new(),
            pending_lost: BTreeMap::new(),
        }
    }

    /// Keeps the words for the first trouble.
    fn first(&mut self, words: impl FnOnce() -> String) {
        self.trace.loss.first.get_or_insert_with(words);
    }

    fn unreadable(&mut self, why: &str, text: &str) {
        self.trace.loss.unreadable += 1;
        let line = self.lines;
        self.first(|| {
            let quote: String = text.trim().chars().take(QUOTE_CHARS).collect();
            format!("line {line}: {why}: {quote:?}")
        });
    }

    fn line(&mut self, bytes: &[u8], end: End) {
        self.lines += 1;
        let text = String::from_utf8_lossy(bytes);
        match end {
            End::Newline => self.text(&text),
            End::TooLong => {
                self.unreadable(&format!("longer than {} bytes", lines::LINE_BYTES_MAX), &text);
            }
            End::Input => {
                self.trace.loss.truncated = true;
                let line = self.lines;
                self.first(|| {
                    format!("line {line}: the last line has no end, and was left out: the input is cut off")
                });
            }
        }
    }

    fn text(&mut self, text: &str) {
        if let Some(remark) = header::remark(text) {
            return self.remark(remark);
        }
        let line = match line::parse(text) {
            Ok(line) => line,
            Err(_) if header::is_call_chain(text) => return self.remark(Remark::OtherRecord),
            Err(why) => return self.unreadable(why, text),
        };
        let Some(said) = fields::parse(line.event, line.fields) else {
            return self.unreadable(&format!("{} without its fields", line.event), text);
        };
        self.stamp(line.cpu, line.time_ns);
        if let Said::Print { label } = said {
            return self.print(line.cpu, line.time_ns, label);
        }
        let running = line.pid.map(|pid| (pid, line.comm));
        let trace = &mut self.trace;
        let intern = |text: &str| trace.intern(&unescape(text));
        match records::record(said, running, &mut self.names, intern) {
            Some(what) => self.record(line.cpu, line.time_ns, what),
            None if said == Said::LostHere => {}
            None => self.trace.loss.skipped += 1,
        }
    }

    /// A line that a scheduler's program printed. Only our own writer escapes.
    fn print(&mut self, cpu: u32, time_ns: u64, text: &str) {
        let plain = if self.window.is_some() { unescape(text) } else { text.into() };
        match self.trace.intern_print(&plain) {
            Some(label) => self.record(cpu, time_ns, What::Print { label }),
            None => {
                let line = self.lines;
                self.first(|| format!("line {line}: too many different printed lines"));
            }
        }
    }

    /// Notes the time of a line: the clock's order on this CPU, and lost events that waited for a time.
    fn stamp(&mut self, cpu: u32, time_ns: u64) {
        let last = self.last_ns.insert(cpu, time_ns);
        if let Some(last) = last.filter(|last| *last > time_ns) {
            self.trace.loss.clock_jumps += 1;
            let line = self.lines;
            let back = last - time_ns;
            self.first(|| format!("line {line}: the clock of CPU {cpu} went back by {back} ns"));
        }
        if let Some(count) = self.pending_lost.remove(&cpu) {
            self.record(cpu, time_ns, What::Lost { count });
        }
    }

    fn record(&mut self, cpu: u32, time_ns: u64, what: What) {
        self.cpus_seen = self.cpus_seen.max(cpu.max(what.cpu_max()) + 1);
        self.records.push(Record { time_ns, cpu, what });
    }

    fn remark(&mut self, remark: Remark) {
        match remark {
            Remark::Nothing => {}
            Remark::OtherRecord => self.trace.loss.skipped += 1,
            Remark::Cpus(cpus) => self.trace.cpus = cpus,
            Remark::Entries { overwritten, cpus } => {
                self.trace.cpus = cpus.unwrap_or(self.trace.cpus);
                self.trace.loss.lost_events =
                    self.trace.loss.lost_events.saturating_add(overwritten);
                if overwritten > 0 {
                    self.first(|| {
                        format!("{overwritten} events were overwritten before the recording begins")
                    });
                }
            }
            Remark::Lost { cpu, count } => {
                let line = self.lines;
                let pending = self.pending_lost.entry(cpu).or_default();
                *pending = pending.saturating_add(count);
                self.first(|| format!("line {line}: CPU {cpu} lost {count} events"));
            }
            Remark::Window { start_ns, end_ns } => self.window = Some((start_ns, end_ns)),
            Remark::Task(info) => self.listed.push(info),
            Remark::Cgroup(info) => self.cgroup(info),
            Remark::Label(text) => {
                self.trace.intern(&text);
            }
        }
    }

    /// Takes over a cgroup of the header; its parent must stand before it, and the first one is the root.
    fn cgroup(&mut self, info: CgroupInfo) {
        let known = self.trace.cgroups().len();
        let sound = match info.parent {
            None => known == 0,
            Some(parent) => parent.index() < known,
        };
        if !sound || known >= CGROUPS_MAX {
            return self.unreadable("a cgroup without its parent, or too many of them", &info.path);
        }
        self.trace.add_cgroup(info);
    }

    fn finish(mut self, name: &str) -> Result<Trace, ReadError> {
        let end_ns = self.records.iter().map(|record| record.time_ns).max();
        let Some(end_ns) = end_ns else { return Err(self.no_events(name)) };
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

    fn no_events(self, name: &str) -> ReadError {
        let name = name.to_owned();
        if self.lines == 0 {
            return ReadError::Empty { name };
        }
        let Loss { unreadable, skipped, first, .. } = self.trace.loss;
        ReadError::NoEvents { name, lines: self.lines, unreadable, skipped, first }
    }
}
