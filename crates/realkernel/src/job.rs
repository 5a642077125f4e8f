//! Jobs and outcomes: the input and the result of a run on a real kernel, as JSON in the job's folder.
//!
//! ```text
//! FOLDER/job.json         the job
//! FOLDER/scheduler.bpf.o  the scheduler's object, when there is one
//! FOLDER/trace.dat        the recording (trace-cmd's format, version 6), if requested and possible
//! FOLDER/outcome.json     the outcome; written last, and renamed: complete or absent
//! FOLDER/error.txt        instead of the outcome: why the job failed
//! ```

use serde::{Deserialize, Serialize};

use crate::sched_ext::VerifiedProgram;

/// The job's file in its folder.
pub const JOB_FILE: &str = "job.json";
/// The scheduler's object in the job's folder.
pub const SCHEDULER_FILE: &str = "scheduler.bpf.o";
/// The recording in the job's folder.
pub const TRACE_FILE: &str = "trace.dat";
/// The outcome in the job's folder.
pub const OUTCOME_FILE: &str = "outcome.json";
/// The error message, if there is no outcome; complete or absent.
pub const ERROR_FILE: &str = "error.txt";

/// Maximum of [`Job::hold_ns`]: a whole tick of any kernel.
pub const HOLD_NS_MAX: u64 = 1_000_000_000;

/// A run on a real kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// The workload as TOML ([`fairground_workload::to_toml`]).
    pub workload: String,
    /// Duration of the workload, ns of the kernel's monotonic clock.
    pub duration_ns: u64,
    /// Additional time for which all tasks sleep before they start, ns, up to [`HOLD_NS_MAX`]: the phase of the tick
    /// at which the workload starts.
    pub hold_ns: u64,
    /// Start the recording at a whole second of the monotonic clock, and the tasks `hold_ns` after a whole tick, so
    /// that the start does not depend on the duration of the boot. For machines on which waiting takes no wall time.
    pub on_the_second: bool,
    /// Seed of the workload's random draws.
    pub seed: u64,
    /// The scheduler to attach for the run; `None`: the kernel's scheduler.
    pub scheduler: Option<SchedulerJob>,
    /// The program that attaches the scheduler in place of the runner; `None` if there is a [`Job::scheduler`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loader: Option<LoaderJob>,
    /// Knobs of the kernel to set before and during the run.
    pub knobs: Vec<Knob>,
    /// The recording to make; `None`: only each task's accounting.
    pub recording: Option<RecordingJob>,
}

/// A sched_ext scheduler to attach.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchedulerJob {
    /// Its name in messages.
    pub name: String,
    /// Writes to its data sections, before it is loaded or during the run.
    pub writes: Vec<GlobalWrite>,
    /// Further actions of its loader.
    pub setup: SchedulerSetup,
}

/// A scheduler's own loader: a program that attaches the scheduler, and is its part in user space.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoaderJob {
    /// Its name in messages.
    pub name: String,
    /// The path of the program.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// The folders of its libraries (`LD_LIBRARY_PATH`); empty: where the system has them.
    pub library_path: Vec<String>,
    /// Whether what it has set is read from the kernel.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub capture: bool,
}

/// The actions of a scheduler's loader besides setting variables.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchedulerSetup {
    /// The scheduler's `struct sched_ext_ops`, if the object has several.
    pub table: Option<String>,
    /// Integer members of `struct sched_ext_ops` by name, such as `timeout_ms`.
    pub ops: Vec<(String, u64)>,
    /// `max_entries` of maps by name, set before the object is loaded.
    pub max_entries: Vec<(String, u32)>,
    /// Elements of maps, written after the object is loaded and before any of its programs runs.
    pub maps: Vec<MapWrite>,
    /// Programs of the object (`SEC("syscall")`) to run before it is attached, in this order.
    pub before: Vec<ProgramJob>,
    /// Programs to run once it is attached, in this order.
    pub after: Vec<ProgramJob>,
    /// Programs to run at each full second of the run, in this order.
    pub each_second: Vec<ProgramJob>,
    /// Programs to attach to the events of their sections, though these begin with `?`.
    #[serde(default)]
    pub attach: Vec<String>,
    /// Programs not to attach, and not to load.
    #[serde(default)]
    pub detach: Vec<String>,
}

/// A run of a program (`SEC("syscall")`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramJob {
    /// The program.
    pub program: String,
    /// The CPU to run it on; `None`: any.
    pub cpu: Option<u32>,
    /// The structure that it gets (its context), before `load`; empty: it gets none.
    pub context: Vec<u8>,
    /// Members that get a value that an earlier run saved.
    pub load: Vec<ContextValue>,
    /// Members whose value after the run is saved.
    pub save: Vec<ContextValue>,
    /// Whether the loader would write into the program's arena after the run, which is done by a loader of its own
    /// only.
    pub stores: bool,
}

/// A member of a program's context, and the value under whose name it is saved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContextValue {
    /// The value's name.
    pub name: String,
    /// Byte offset of the member in the context.
    pub offset: u64,
    /// Its bytes, 1 to 8.
    pub size: u64,
}

/// A part of an element of an array or hash table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MapWrite {
    /// The map.
    pub map: String,
    /// The key, as a number of the key's size, 1 to 8 bytes.
    pub key: u64,
    /// The CPU whose copy it is, in a per-CPU map; `None`: every CPU's.
    pub cpu: Option<u32>,
    /// Byte offset in the value.
    pub offset: u64,
    /// The bytes. The rest of a new element is 0.
    pub bytes: Vec<u8>,
}

/// A write to a variable of a scheduler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GlobalWrite {
    /// The setting in messages, `name=value`.
    pub label: String,
    /// The section of the object: `.rodata`, `.data`, `.bss`.
    pub section: String,
    /// The bytes that change.
    pub patches: Vec<Patch>,
    /// Time from the start of the run, ns; `None`: before the object is loaded, as `.rodata` requires.
    pub at_ns: Option<u64>,
}

/// A change of some bytes of a section.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Patch {
    /// Byte offset in the section.
    pub offset: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The bits of them that change, for a bit field; empty: all.
    pub mask: Vec<u8>,
}

impl Patch {
    /// The bytes after the change, by those before it.
    pub fn over(&self, old: &[u8]) -> Vec<u8> {
        let mask = |index: usize| self.mask.get(index).copied().unwrap_or(u8::MAX);
        let bytes = old.iter().zip(&self.bytes).enumerate();
        bytes.map(|(index, (old, new))| (old & !mask(index)) | (new & mask(index))).collect()
    }
}

/// A feature or tunable of the kernel, or whether a CPU is online.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Knob {
    /// Its name: a feature of `/sys/kernel/debug/sched/features` (`GENTLE_FAIR_SLEEPERS`), a file of
    /// `/sys/kernel/debug/sched` (`min_granularity_ns`), a file of `/proc/sys/kernel`, or `cpu.N.online`.
    pub name: String,
    /// The value: `on` or `off` for a feature and a CPU, else the text for the file.
    pub value: String,
    /// Time from the start of the run, ns; `None`: before it.
    pub at_ns: Option<u64>,
}

/// The options of a recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordingJob {
    /// Buffer size per CPU, KiB.
    pub kib_per_cpu: u32,
    /// Additional events, `system:event`.
    pub events: Vec<String>,
    /// Record kernel stacks of switches away from tasks and of waits for locks.
    pub stacks: bool,
    /// Record the calls in which tasks may wait or wake others ([`fairground_trace::Call`]): those that the kernel has.
    pub calls: bool,
    /// Record what the scheduler goes by, too: the machine and its tasks when the recording begins
    /// ([`fairground_trace::StartState`]), what the kernel charges its tasks, and the CPUs' ticks.
    pub details: bool,
}

impl Default for RecordingJob {
    fn default() -> Self {
        Self {
            kib_per_cpu: 16 << 10,
            events: Vec::new(),
            stacks: false,
            calls: false,
            details: false,
        }
    }
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The kernel that it ran on.
    pub kernel: KernelInfo,
    /// Start of the workload, ns of the monotonic clock.
    pub start_ns: u64,
    /// End of the workload, ns of the monotonic clock.
    pub end_ns: u64,
    /// The tasks of the workload, in the order in which they were made.
    pub tasks: Vec<TaskUsage>,
    /// The tasks' marks in order of time, if no recording contains them.
    pub marks: Vec<Mark>,
    /// Settings that changed during the run, in order of time.
    pub changes: Vec<Change>,
    /// How the attached scheduler was disabled; `None` if none was attached.
    pub exit: Option<SchedulerExit>,
    /// The programs of the attached object, as the kernel's verifier has seen them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<VerifiedProgram>,
    /// Whether the scheduler was in charge; `None` if none was attached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub charge: Option<Charge>,
    /// The report on the scheduler's own loader; `None` if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loader: Option<LoaderReport>,
    /// Why a requested recording is missing.
    pub not_recorded: Option<String>,
    /// Notes for the reader of the figures.
    pub notes: Vec<String>,
}

/// Whether the run's sched_ext scheduler was the enabled one (`/sys/kernel/sched_ext`: `state`, `enable_seq`).
/// Otherwise the kernel's own scheduler ran the tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charge {
    /// When the tasks were to start. Without it they did not.
    pub at_start: bool,
    /// At the end of the run.
    pub at_end: bool,
}

/// The report on a loader after a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoaderReport {
    /// Its name in messages.
    pub name: String,
    /// The name of the scheduler that it attached (`/sys/kernel/sched_ext/root/ops`).
    pub scheduler: Option<String>,
    /// The last lines that it printed on standard output and standard error.
    pub output: Vec<String>,
    /// All that it printed, bytes.
    pub output_bytes: u64,
    /// How it ended: its exit code or signal, and what led to it.
    pub end: String,
    /// Whether it ended before it was stopped.
    pub by_itself: bool,
    /// The values that it set, if they were requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub captured: Option<Captured>,
}

/// The values that a loader set, as the kernel has them once the scheduler is enabled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Captured {
    /// The data sections.
    pub sections: Vec<CapturedSection>,
    /// The integers of the callback table that are not 0.
    pub ops: Vec<(String, u64)>,
    /// The values that could not be read.
    pub notes: Vec<String>,
}

/// The content of a data section.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapturedSection {
    /// `.rodata`, `.data`, `.bss`.
    pub name: String,
    /// Its bytes, two hexadecimal digits each.
    pub bytes: String,
}

impl CapturedSection {
    /// Its bytes. `None`: the text is damaged.
    pub fn content(&self) -> Option<Vec<u8>> {
        let digits = self.bytes.as_bytes().chunks(2);
        digits.map(|two| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok()).collect()
    }
}

/// The description of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelInfo {
    /// `uname -r`.
    pub release: String,
    /// `uname -v`.
    pub version: String,
    /// CPUs that are online.
    pub cpus: u32,
    /// Ticks per second, if known.
    pub hz: Option<u32>,
    /// Whether it has sched_ext.
    pub sched_ext: bool,
    /// Whether it is a PREEMPT_RT build.
    pub preempt_rt: bool,
    /// The words of `/sys/kernel/debug/sched/features`; empty if they cannot be read.
    pub features: Vec<String>,
    /// The tunables in `/sys/kernel/debug/sched`, with their values.
    pub tunables: Vec<(String, String)>,
}

/// A task's own accounting.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskUsage {
    /// The task's name in the workload: `worker/3`.
    pub name: String,
    /// Its thread number (TID).
    pub tid: u32,
    /// Its nice value at the start.
    pub nice: i8,
    /// User time, µs (getrusage).
    pub utime_us: u64,
    /// System time, µs (getrusage).
    pub stime_us: u64,
    /// Voluntary switches, including the one at its exit.
    pub nvcsw: u64,
    /// Involuntary switches.
    pub nivcsw: u64,
    /// CPU time, ns (`/proc/PID/schedstat`); `None` if the kernel does not account it.
    pub run_ns: Option<u64>,
    /// Time runnable and not running, ns (`/proc/PID/schedstat`); `None` if the kernel does not account it.
    pub wait_ns: Option<u64>,
    /// Completed operations, including those of its signal handler.
    pub ops: u64,
}

/// A mark of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// Time, ns of the monotonic clock.
    pub time_ns: u64,
    /// The task.
    pub tid: u32,
    /// The label.
    pub label: String,
    /// The value of the mark.
    pub value: u64,
}

/// A setting that took effect during the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Time, ns of the monotonic clock.
    pub time_ns: u64,
    /// `name=value`.
    pub label: String,
}

/// How a scheduler was disabled (`struct scx_exit_info`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchedulerExit {
    /// `enum scx_exit_kind`: 64 unregistered by its user, 1024 an error, 1026 a stall. `None`: unknown.
    pub kind: Option<u64>,
    /// The exit code.
    pub code: Option<i64>,
    /// The reason.
    pub reason: String,
    /// The message.
    pub message: String,
}
