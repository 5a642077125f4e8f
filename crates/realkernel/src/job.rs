//! What a ground is asked to do, and what it answers: plain data, as JSON in the job's folder.
//!
//! ```text
//! FOLDER/job.json         the job
//! FOLDER/scheduler.bpf.o  the scheduler's object, when there is one
//! FOLDER/trace.dat        the recording (trace-cmd's format, version 6), when one was asked for and can be had
//! FOLDER/outcome.json     the outcome; written last, under another name, and renamed: whole or absent
//! FOLDER/error.txt        in its place: why the job could not be carried out
//! ```

use serde::{Deserialize, Serialize};

/// The job's own file in its folder.
pub const JOB_FILE: &str = "job.json";
/// The scheduler's object in the job's folder.
pub const SCHEDULER_FILE: &str = "scheduler.bpf.o";
/// The recording in the job's folder.
pub const TRACE_FILE: &str = "trace.dat";
/// The outcome in the job's folder.
pub const OUTCOME_FILE: &str = "outcome.json";
/// Why there is no outcome, in words; whole or absent, as the outcome.
pub const ERROR_FILE: &str = "error.txt";

/// The longest that tasks may be held back before they are let go, ns: enough for a whole tick of any kernel.
pub const HOLD_NS_MAX: u64 = 1_000_000_000;

/// What to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// The workload as TOML ([`fairground_workload::to_toml`]).
    pub workload: String,
    /// How long the workload runs, ns of the kernel's monotonic clock.
    pub duration_ns: u64,
    /// How much longer the tasks wait, all of them ready and asleep, before they are let go, ns, up to [`HOLD_NS_MAX`]: where in a tick
    /// the workload starts.
    pub hold_ns: u64,
    /// The recording begins at a whole second of the monotonic clock, and the tasks are let go at a whole tick and `hold_ns`: the same
    /// each time, however long the boot took, which hangs on the program's size. For machines where waiting takes no time.
    pub on_the_second: bool,
    /// Seed of the workload's random draws.
    pub seed: u64,
    /// The scheduler to attach for the run; `None`: the kernel's own class.
    pub scheduler: Option<SchedulerJob>,
    /// What to tell the kernel itself, before and during the run.
    pub knobs: Vec<Knob>,
    /// What to record; `None`: only what each task's own accounting tells.
    pub recording: Option<RecordingJob>,
}

/// A sched_ext scheduler to attach.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchedulerJob {
    /// What messages call it.
    pub name: String,
    /// Bytes to put into its data sections, before it is loaded or during the run.
    pub writes: Vec<GlobalWrite>,
    /// What else its own loader would do.
    pub setup: SchedulerSetup,
}

/// What the program that loads an object for real does beside setting variables.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchedulerSetup {
    /// Integers of the callback table, by the members' names: `timeout_ms`.
    pub ops: Vec<(String, u64)>,
    /// Elements of maps, after the object is loaded and before any of its programs runs.
    pub maps: Vec<MapWrite>,
    /// Programs of the object (`SEC("syscall")`) to run before it is attached, in this order.
    pub before: Vec<String>,
    /// Programs to run at each full second of the run, in this order.
    pub each_second: Vec<String>,
}

/// A part of one element of an array or hash table; of every CPU's copy, if the map is per CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MapWrite {
    /// The map.
    pub map: String,
    /// The key, as a number of the key's size, 1 to 8 bytes.
    pub key: u64,
    /// Where in the value, bytes.
    pub offset: u64,
    /// What stands there. The rest of a new element is 0.
    pub bytes: Vec<u8>,
}

/// Bytes for a variable of a scheduler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GlobalWrite {
    /// The setting as a person would write it, `name=value`.
    pub label: String,
    /// The section of the object: `.rodata`, `.data`, `.bss`.
    pub section: String,
    /// Where in the section, bytes.
    pub offset: u64,
    /// What to put there.
    pub bytes: Vec<u8>,
    /// When, ns from the start of the run; `None`: before the object is loaded. `.rodata` is frozen then.
    pub at_ns: Option<u64>,
}

/// A switch or tunable of the kernel itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Knob {
    /// Its name: a feature of `/sys/kernel/debug/sched/features` (`GENTLE_FAIR_SLEEPERS`), a file of
    /// `/sys/kernel/debug/sched` (`min_granularity_ns`), or a file of `/proc/sys/kernel`.
    pub name: String,
    /// The value: `on` or `off` for a feature, else what the file takes.
    pub value: String,
    /// When, ns from the start of the run; `None`: before it.
    pub at_ns: Option<u64>,
}

/// What to record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordingJob {
    /// Memory for the events of each CPU, KiB.
    pub kib_per_cpu: u32,
    /// Events beyond those of scheduling, `system:event`.
    pub events: Vec<String>,
    /// A kernel stack with each switch away from a task, and waits for locks with theirs.
    pub stacks: bool,
}

impl Default for RecordingJob {
    fn default() -> Self {
        Self { kib_per_cpu: 16 << 10, events: Vec::new(), stacks: false }
    }
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The kernel that it ran on.
    pub kernel: KernelInfo,
    /// When the workload started, ns of the monotonic clock.
    pub start_ns: u64,
    /// When it ended, ns of the monotonic clock.
    pub end_ns: u64,
    /// The tasks of the workload, in the order in which they were made.
    pub tasks: Vec<TaskUsage>,
    /// What the tasks said, when there is no recording that holds it; in order of time.
    pub marks: Vec<Mark>,
    /// What was changed during the run, in order of time.
    pub changes: Vec<Change>,
    /// How the attached scheduler's time in charge ended; `None` when none was attached.
    pub exit: Option<SchedulerExit>,
    /// Why there is no recording although one was asked for.
    pub not_recorded: Option<String>,
    /// What a reader of the figures should know.
    pub notes: Vec<String>,
}

/// A kernel as it was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelInfo {
    /// `uname -r`.
    pub release: String,
    /// `uname -v`.
    pub version: String,
    /// CPUs that are online.
    pub cpus: u32,
    /// Ticks a second, where they can be found out.
    pub hz: Option<u32>,
    /// Whether it has sched_ext.
    pub sched_ext: bool,
    /// Whether it is a PREEMPT_RT build.
    pub preempt_rt: bool,
    /// The words of `/sys/kernel/debug/sched/features`; empty where they cannot be read.
    pub features: Vec<String>,
    /// The files of `/sys/kernel/debug/sched` that hold a tunable, with their values.
    pub tunables: Vec<(String, String)>,
}

/// A task's own accounting.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskUsage {
    /// The task's name in the workload: `worker/3`.
    pub name: String,
    /// Its thread number in its own kernel.
    pub tid: u32,
    /// Its nice value at the start.
    pub nice: i8,
    /// User time, µs (getrusage).
    pub utime_us: u64,
    /// System time, µs (getrusage).
    pub stime_us: u64,
    /// Voluntary switches; the one at its death is among them.
    pub nvcsw: u64,
    /// Involuntary switches.
    pub nivcsw: u64,
    /// CPU time, ns (`/proc/PID/schedstat`); `None` where the kernel does not tell.
    pub run_ns: Option<u64>,
    /// Time runnable and not running, ns (`/proc/PID/schedstat`); `None` where the kernel does not tell.
    pub wait_ns: Option<u64>,
    /// Operations that it finished, those of its signal handler included: progress.
    pub ops: u64,
}

/// Something that a task said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// When, ns of the monotonic clock.
    pub time_ns: u64,
    /// Who.
    pub tid: u32,
    /// What.
    pub label: String,
    /// The number with it.
    pub value: u64,
}

/// A setting that took effect during the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// When, ns of the monotonic clock.
    pub time_ns: u64,
    /// `name=value`.
    pub label: String,
}

/// How a scheduler's time in charge ended (`struct scx_exit_info`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchedulerExit {
    /// `enum scx_exit_kind`: 64 unregistered by its user, 1024 an error, 1026 a stall. `None`: the object does not say.
    pub kind: Option<u64>,
    /// The exit code.
    pub code: Option<i64>,
    /// The reason in words.
    pub reason: String,
    /// The message.
    pub message: String,
}
