//! The recorder: a recording from start to stop.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fairground_scratch::{free_name, write_whole_named};
use nix::time::{ClockId, clock_gettime};

use super::capture::Capture;
use super::events::Enabled;
use super::instance::{Instance, read_text};
use super::snapshot::Snapshot;
use super::stats::Stats;
use super::trace_dat::{self, Description};
use super::{RecordError, events, mounted};
use crate::job::RecordingJob;

/// The clock of every recording: `CLOCK_MONOTONIC`.
const CLOCK: &str = "mono";
/// Space that is reserved beside that of the file's head: names of tasks that start during the recording, the file
/// system's own blocks.
const RESERVE_BYTES: u64 = 1 << 20;

/// A recording in progress. Dropping it discards it.
#[derive(Debug)]
pub struct Recorder {
    // In drop order: the buffers must be closed before the instance can be removed.
    pub(super) capture: Capture,
    marker: Option<File>,
    events: Vec<String>,
    missing: Option<String>,
    /// The machine when the recording began.
    snapshot: Option<Snapshot>,
    stacks: bool,
    pub(super) instance: Instance,
}

/// The counts of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Events in the file.
    pub events: u64,
    /// Events that the kernel dropped.
    pub lost: u64,
}

impl Recorder {
    /// Starts to record scheduling events on all CPUs, with the kernel's monotonic clock, to memory of the kernel.
    /// When the buffer of a CPU is full, its further events are dropped and counted. The buffers are not read during
    /// the recording.
    ///
    /// # Errors
    /// There is no usable tracefs, or a requested event does not exist.
    pub fn start(job: &RecordingJob) -> Result<Self, RecordError> {
        let mut recorder = Self::ready(job)?;
        recorder.turn_on()?;
        recorder.describe_tasks();
        Ok(recorder)
    }

    /// As [`Recorder::start`], but records from [`Recorder::turn_on`] on.
    ///
    /// # Errors
    /// Those of [`Recorder::start`].
    pub fn ready(job: &RecordingJob) -> Result<Self, RecordError> {
        Self::prepare(job, false)
    }

    /// As [`Recorder::start`], for recordings of any length: a thread moves the events to anonymous files in `folder`
    /// whenever the buffer of a CPU is half full. If it is too slow, the oldest events are overwritten and counted.
    ///
    /// # Errors
    /// Those of [`Recorder::start`]; no file can be created in `folder`, or a recording without events has no room
    /// there.
    pub fn start_streaming(job: &RecordingJob, folder: &Path) -> Result<Self, RecordError> {
        let mut recorder = Self::prepare(job, true)?;
        let head = trace_dat::size_without_pages(&recorder.describe()?);
        let head = head.map_err(|e| RecordError::output(folder, e))?;
        recorder.capture.stream(folder, head.saturating_add(RESERVE_BYTES))?;
        recorder.turn_on()?;
        recorder.describe_tasks();
        Ok(recorder)
    }

    /// Begins to record.
    ///
    /// # Errors
    /// tracefs reports an error.
    pub fn turn_on(&self) -> Result<(), RecordError> {
        self.instance.write("tracing_on", "1")
    }

    /// Describes the tasks that exist now, if the job asks for details.
    pub fn describe_tasks(&mut self) {
        self.snapshot.iter_mut().for_each(Snapshot::add_tasks);
    }

    /// The recording is of this command and all that it starts.
    pub(super) fn set_command(&mut self, pid: Option<u32>) {
        self.snapshot.iter_mut().for_each(|snapshot| snapshot.origin.command_pid = pid);
    }

    /// Prepares a recording without turning it on.
    pub(super) fn prepare(job: &RecordingJob, overwrite: bool) -> Result<Self, RecordError> {
        let instance = Instance::make(&mounted::tracefs()?)?;
        instance.write("tracing_on", "0")?;
        instance.write("trace_clock", CLOCK)?;
        instance.write("options/overwrite", if overwrite { "1" } else { "0" })?;
        instance.write("buffer_size_kb", &job.kib_per_cpu.to_string())?;
        let Enabled { events, missing } = events::enable(&instance, job)?;
        let capture = Capture::open(&instance, &read(&instance, "events/header_page")?)?;
        let snapshot = job.details.then(Snapshot::take);
        let marker = instance.open("trace_marker", OpenOptions::new().write(true)).ok();
        Ok(Self { capture, marker, events, missing, snapshot, stacks: job.stacks, instance })
    }

    /// The file for marks (`trace_marker`): each write is a mark of the writing task.
    pub fn marker(&self) -> Option<BorrowedFd<'_>> {
        self.marker.as_ref().map(AsFd::as_fd)
    }

    /// Events that were requested and that the kernel does not have, in words.
    pub fn missing(&self) -> Option<&str> {
        self.missing.as_deref()
    }

    /// The instance's folder in tracefs.
    pub fn folder(&self) -> PathBuf {
        self.instance.path("")
    }

    /// A descriptor that becomes readable when a recording that is streamed cannot go on: its disk is full.
    /// [`Recorder::stop`] says why.
    pub fn failed(&self) -> Option<BorrowedFd<'_>> {
        self.capture.failed()
    }

    /// Turns the recording off; the events stay until [`Recorder::stop`].
    ///
    /// # Errors
    /// tracefs reports an error.
    pub fn pause(&self) -> Result<(), RecordError> {
        self.instance.write("tracing_on", "0")
    }

    /// Ends the recording and writes it to `into` (trace-cmd's format, version 6) as a whole, or not at all.
    ///
    /// # Errors
    /// The kernel's pages cannot be read, or the file cannot be written. [`RecordError::Partial`]: the recording ended
    /// early, or the disk is full. What there is of it is written to `into`, or beside it if that exists.
    pub fn stop(mut self, into: &Path) -> Result<Recorded, RecordError> {
        self.pause()?;
        let end_ns = now_ns().unwrap_or(u64::MAX);
        let drained = self.capture.finish();
        let described = self.describe()?;
        let (cpus, mut spills) = self.capture.spills();
        let mut recorded = Recorded::default();
        let stats = |cpu| recorded.count(&self.instance, cpu);
        let written = write_whole_named(into, |out| {
            if spills.is_empty() {
                trace_dat::write(out, &described, &mut self.capture, stats)?;
                return Ok((None, into.to_owned()));
            }
            let copied = trace_dat::write_spilled(out, &described, &cpus, &mut spills, stats)?;
            let error = drained.err().or(copied.error);
            let is_beside = error.is_some() && into.exists();
            let path = if is_beside { free_name(into, "partial") } else { into.to_owned() };
            let missing_ns = copied.missing_from_ns.map(|from| end_ns.saturating_sub(from));
            let partial = error.map(|source| RecordError::Partial {
                path: path.clone(),
                source,
                missing_bytes: copied.missing_bytes,
                missing_ns,
            });
            Ok((partial, path))
        });
        match written.map_err(|e| RecordError::output(into, e))? {
            Some(partial) => Err(partial),
            None => Ok(recorded),
        }
    }

    /// The metadata with which a reader decodes the pages.
    pub(super) fn describe(&self) -> Result<Description, RecordError> {
        let instance = &self.instance;
        Ok(Description {
            header_page: read(instance, "events/header_page")?,
            header_event: read(instance, "events/header_event")?,
            ftrace_formats: ftrace_formats(instance),
            systems: events::formats(instance, &self.events)?,
            kallsyms: events::symbols_of(&self.events, self.stacks).into_bytes(),
            printk_formats: read(instance, "printk_formats").unwrap_or_default(),
            cmdlines: cmdlines(instance),
            clock: instance.read("trace_clock")?,
            uname: uname(),
            start_state: self.snapshot.as_ref().map(|snapshot| snapshot.state().to_text()),
            cpus: self.capture.cpus().max().map_or(0, |last| last + 1),
            page_bytes: self.capture.page_bytes(),
        })
    }
}

impl Recorded {
    /// Adds the counts of a CPU; returns its `stats` for the file.
    fn count(&mut self, instance: &Instance, cpu: u32) -> io::Result<String> {
        let file = format!("per_cpu/cpu{cpu}/stats");
        if !instance.has(&file) {
            return Ok(String::new());
        }
        let text = instance.read(&file).map_err(io::Error::other)?;
        let counts = Stats::parse(&text);
        self.events = self.events.saturating_add(counts.kept());
        self.lost = self.lost.saturating_add(counts.lost());
        Ok(format!("CPU: {cpu}\n{text}"))
    }
}

/// A file in the root folder of tracefs.
fn read(instance: &Instance, file: &str) -> Result<String, RecordError> {
    read_text(&instance.root().join(file))
}

/// The formats of ftrace's own events, sorted by name, except unreadable ones.
fn ftrace_formats(instance: &Instance) -> Vec<String> {
    let folder = instance.root().join("events/ftrace");
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> =
        entries.filter_map(|entry| Some(entry.ok()?.path().join("format"))).collect();
    paths.sort();
    paths.iter().filter_map(|path| read_text(path).ok()).collect()
}

/// The names of tasks: those that the kernel saved during the recording, and those of living tasks.
fn cmdlines(instance: &Instance) -> Vec<u8> {
    let mut names: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    let saved = fs::read(instance.root().join("saved_cmdlines")).unwrap_or_default();
    for line in saved.split(|byte| *byte == b'\n') {
        let Some(blank) = line.iter().position(|byte| *byte == b' ') else { continue };
        let pid = str::from_utf8(&line[..blank]).ok().and_then(|pid| pid.parse().ok());
        // The kernel writes "<...>" for a name that it has not saved.
        if let Some(pid) = pid.filter(|_| !line.ends_with(b" <...>")) {
            names.insert(pid, line[blank + 1..].to_vec());
        }
    }
    for pid in numbers("/proc") {
        for tid in numbers(&format!("/proc/{pid}/task")) {
            names.entry(tid).or_insert_with(|| {
                let comm = fs::read(format!("/proc/{pid}/task/{tid}/comm")).unwrap_or_default();
                comm.strip_suffix(b"\n").unwrap_or(&comm).to_vec()
            });
        }
    }
    let known = names.iter().filter(|(_, name)| !name.is_empty() && !name.contains(&b'\n'));
    known.flat_map(|(pid, name)| [format!("{pid} ").as_bytes(), name, b"\n"].concat()).collect()
}

/// The entries of a folder that are numbers.
pub(super) fn numbers(folder: &str) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// The current time of the recording's clock, ns.
pub(super) fn now_ns() -> io::Result<u64> {
    let now = Duration::from(clock_gettime(ClockId::CLOCK_MONOTONIC)?);
    Ok(u64::try_from(now.as_nanos()).unwrap_or(u64::MAX))
}

fn uname() -> String {
    let Ok(names) = nix::sys::utsname::uname() else { return String::new() };
    let parts =
        [names.sysname(), names.nodename(), names.release(), names.version(), names.machine()];
    parts.map(|part| part.to_string_lossy().into_owned()).join(" ")
}
