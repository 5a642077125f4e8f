//! The recorder: an instance of tracefs from start to stop.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use super::capture::Capture;
use super::instance::{Instance, read_text};
use super::stats::Stats;
use super::trace_dat::{self, Description};
use super::{RecordError, events, mounted};
use crate::job::RecordingJob;

/// The clock of every recording: `CLOCK_MONOTONIC`.
const CLOCK: &str = "mono";

/// A recording that is being made. Dropping it ends it and keeps nothing.
#[derive(Debug)]
pub struct Recorder {
    // The order matters: the buffers are closed before the instance can be removed.
    pub(super) capture: Capture,
    marker: Option<File>,
    events: Vec<String>,
    stacks: bool,
    pub(super) instance: Instance,
}

/// What a recording holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Events in the file.
    pub events: u64,
    /// Events that the kernel had no room for, and that are missing.
    pub lost: u64,
}

impl Recorder {
    /// Starts to record the events of scheduling on all CPUs, in the kernel's monotonic clock, into memory of the
    /// kernel. When that is full, nothing more of that CPU is recorded, and the missing events are counted. Nothing
    /// is read while the recording lasts.
    ///
    /// # Errors
    /// [`RecordError`] where there is no tracefs, or it may not be used, or an event that was asked for does not exist.
    pub fn start(job: &RecordingJob) -> Result<Self, RecordError> {
        let recorder = Self::prepare(job, false)?;
        recorder.instance.write("tracing_on", "1")?;
        Ok(recorder)
    }

    /// Like [`Recorder::start`], for a recording of any length: a thread moves the events to files without a name in
    /// `folder` whenever the memory of a CPU is half full. Where it is too slow, the oldest events are overwritten, and
    /// counted where they are missing.
    ///
    /// # Errors
    /// Those of [`Recorder::start`], and when no file can be made in `folder`.
    pub fn start_streaming(job: &RecordingJob, folder: &Path) -> Result<Self, RecordError> {
        let mut recorder = Self::prepare(job, true)?;
        recorder.capture.stream(folder)?;
        recorder.instance.write("tracing_on", "1")?;
        Ok(recorder)
    }

    /// Everything but the switch.
    pub(super) fn prepare(job: &RecordingJob, overwrite: bool) -> Result<Self, RecordError> {
        let instance = Instance::make(&mounted::tracefs()?)?;
        instance.write("tracing_on", "0")?;
        instance.write("trace_clock", CLOCK)?;
        instance.write("options/overwrite", if overwrite { "1" } else { "0" })?;
        instance.write("buffer_size_kb", &job.kib_per_cpu.to_string())?;
        let events = events::enable(&instance, job)?;
        let capture = Capture::open(&instance, &read(&instance, "events/header_page")?)?;
        let marker = instance.open_to_write("trace_marker").ok();
        Ok(Self { capture, marker, events, stacks: job.stacks, instance })
    }

    /// The file that takes marks (`trace_marker`): each write is one mark of the writing task.
    pub fn marker(&self) -> Option<BorrowedFd<'_>> {
        self.marker.as_ref().map(AsFd::as_fd)
    }

    /// The instance's folder in tracefs, for who wants to look at its other files (`trace`).
    pub fn folder(&self) -> PathBuf {
        self.instance.path("")
    }

    /// Switches the recording off; what was recorded stays until [`Recorder::stop`].
    ///
    /// # Errors
    /// [`RecordError`] when tracefs refuses.
    pub fn pause(&self) -> Result<(), RecordError> {
        self.instance.write("tracing_on", "0")
    }

    /// Ends the recording and writes it to `into` (trace-cmd's format, version 6), under another name first, then
    /// renamed.
    ///
    /// # Errors
    /// [`RecordError`] when the kernel's pages cannot be read or the file cannot be written.
    pub fn stop(mut self, into: &Path) -> Result<Recorded, RecordError> {
        self.pause()?;
        self.capture.finish().map_err(|e| RecordError::output(into, e))?;
        let described = self.describe()?;
        let failed = |e| RecordError::output(into, e);
        let folder = match into.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let file = tempfile::Builder::new()
            .prefix(".fairground-recording-")
            .tempfile_in(folder)
            .map_err(failed)?;
        let mut out = BufWriter::new(file.as_file());
        let recorded = Recorded::default();
        let mut source = Buffers { capture: &mut self.capture, instance: &self.instance, recorded };
        trace_dat::write(&mut out, &described, &mut source).map_err(failed)?;
        let recorded = source.recorded;
        drop(out);
        readable_by_all(file.as_file()).map_err(failed)?;
        file.persist(into).map_err(|e| failed(e.error))?;
        Ok(recorded)
    }

    /// What a reader must know to understand the pages.
    pub(super) fn describe(&self) -> Result<Description, RecordError> {
        let instance = &self.instance;
        Ok(Description {
            header_page: read(instance, "events/header_page")?,
            header_event: read(instance, "events/header_event")?,
            ftrace_formats: ftrace_formats(instance),
            systems: events::formats(instance, &self.events)?,
            kallsyms: if self.stacks {
                fs::read("/proc/kallsyms").unwrap_or_default()
            } else {
                Vec::new()
            },
            printk_formats: read(instance, "printk_formats").unwrap_or_default(),
            cmdlines: cmdlines(instance),
            clock: instance.read("trace_clock")?,
            uname: uname(),
            cpus: self.capture.cpus().max().map_or(0, |last| last + 1),
            page_bytes: self.capture.page_bytes(),
        })
    }
}

/// The buffers of an instance on their way into a file, and what is counted on the way.
struct Buffers<'a> {
    capture: &'a mut Capture,
    instance: &'a Instance,
    recorded: Recorded,
}

impl trace_dat::Source for Buffers<'_> {
    fn pages(&mut self, cpu: u32, out: &mut impl Write) -> io::Result<u64> {
        self.capture.move_cpu(cpu, out)
    }

    fn stats(&mut self, cpu: u32) -> io::Result<String> {
        let file = format!("per_cpu/cpu{cpu}/stats");
        if !self.instance.has(&file) {
            return Ok(String::new());
        }
        let text = self.instance.read(&file).map_err(io::Error::other)?;
        let counts = Stats::parse(&text);
        self.recorded.events = self.recorded.events.saturating_add(counts.kept());
        self.recorded.lost = self.recorded.lost.saturating_add(counts.lost());
        Ok(format!("CPU: {cpu}\n{text}"))
    }
}

/// A file of tracefs itself.
fn read(instance: &Instance, file: &str) -> Result<String, RecordError> {
    read_text(&instance.root().join(file))
}

/// The formats of ftrace's own events, in order of their names; what cannot be read is left out.
fn ftrace_formats(instance: &Instance) -> Vec<String> {
    let folder = instance.root().join("events/ftrace");
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> =
        entries.filter_map(|entry| Some(entry.ok()?.path().join("format"))).collect();
    paths.sort();
    paths.iter().filter_map(|path| read_text(path).ok()).collect()
}

/// The names of tasks: those that the kernel saved while recording, and of the others those that live now.
fn cmdlines(instance: &Instance) -> Vec<u8> {
    let mut names: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    let saved = fs::read(instance.root().join("saved_cmdlines")).unwrap_or_default();
    for line in saved.split(|byte| *byte == b'\n') {
        let Some(blank) = line.iter().position(|byte| *byte == b' ') else { continue };
        let pid = str::from_utf8(&line[..blank]).ok().and_then(|pid| pid.parse().ok());
        // "<...>" is the kernel's word for a name that it did not keep.
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
fn numbers(folder: &str) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

fn uname() -> String {
    let Ok(names) = nix::sys::utsname::uname() else { return String::new() };
    let parts =
        [names.sysname(), names.nodename(), names.release(), names.version(), names.machine()];
    parts.map(|part| part.to_string_lossy().into_owned()).join(" ")
}

/// A temporary file is its owner's alone; a recording is as public as any file that one writes.
fn readable_by_all(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    // The mask can only be asked for by setting it, which would touch other threads: the usual one is assumed.
    const USUAL_MODE: u32 = 0o644;
    file.set_permissions(fs::Permissions::from_mode(USUAL_MODE))
}
