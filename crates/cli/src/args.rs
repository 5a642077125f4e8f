//! What can be typed. One definition makes the parsing, `--help`, the man pages and the shell completions.

mod contention;
#[cfg(test)]
mod documented;
mod exit_codes;
mod install;
mod kernels;
mod load;
mod record;
mod target;
mod top;

pub(crate) use contention::ContentionArgs;
pub(crate) use exit_codes::EXIT_CODES;
pub(crate) use install::{CompletionsArgs, DoctorArgs, ManArgs, SchemaArgs};
pub(crate) use kernels::{BootArgs, KernelsCommand};
pub(crate) use load::LoadArgs;
pub(crate) use record::{ConvertArgs, RecordArgs};
pub(crate) use target::{TargetArgs, VmModeArg};
pub(crate) use top::TopArgs;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use fairground_session::{COSTS_DEFAULT, SEED_DEFAULT};
use fairground_workload::LockModel;

/// A workbench for Linux CPU schedulers: run any sched_ext scheduler on one workload in a deterministic simulated machine,
/// and see who got the CPU, for how long, who waited, and what a switch cost.
#[derive(Debug, Parser)]
#[command(name = "fairground", version, max_term_width = 100, after_help = exit_codes::help())]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// How results are printed on stdout
    #[arg(long, global = true, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,

    /// No progress, no remarks on stderr
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
}

/// Output formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Aligned text
    Table,
    /// JSON with a schema version and units
    Json,
    /// Comma-separated values
    Csv,
    /// Markdown
    Markdown,
    /// Apache Parquet, one row per value as in CSV (builds with the feature `parquet`)
    Parquet,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a workload under a scheduler in the simulated machine
    Run(RunArgs),
    /// Run a workload under several schedulers or settings, one column each
    Compare(CompareArgs),
    /// Show a simulated run, or this machine (root), while it goes on: who runs, who waits, who got how much
    Top(TopArgs),
    /// Record what this machine's scheduler does (root)
    Record(RecordArgs),
    /// Write a recording of any kind as ftrace text, for Perfetto, for Chrome's trace viewer, or as a table
    Convert(ConvertArgs),
    /// Measure a recording: trace.dat, perf.data, `perf sched script` or ftrace text
    Analyze(AnalyzeArgs),
    /// Say what is wrong in a recording: ranked findings, their evidence, and the command that shows more
    Diagnose(DiagnoseArgs),
    /// Say who waits where for whom: the histogram of scheduling points, locks, call chains (root, to record this machine)
    Contention(ContentionArgs),
    /// Run the load of a recording again, under other schedulers
    Replay(ReplayArgs),
    /// Run a published experiment again: published figures beside measured ones
    Reproduce(ReproduceArgs),
    /// Attach a scheduler to the running kernel until Ctrl-C, and show what it does (root; a kernel with sched_ext)
    Load(LoadArgs),
    /// Real kernels for virtual machines: what is here, fetch them from Debian, boot one
    #[command(subcommand)]
    Kernels(KernelsCommand),
    /// Schedulers: what there is, what they can be told, how to build one
    #[command(subcommand)]
    Sched(SchedCommand),
    /// Workloads: what there is, what is in one, whether a file is right
    #[command(subcommand)]
    Workload(WorkloadCommand),
    /// Say what this machine can do with fairground, and how to get what is missing
    Doctor(DoctorArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Print the man page, or write the pages of all commands into a folder
    Man(ManArgs),
    /// Print the JSON Schema of a format that is written, or list the formats and their versions
    Schema(SchemaArgs),
    /// Carry out the job in a folder: the program calls itself with it
    #[command(name = fairground_realkernel::run::RUNNER_COMMAND, hide = true)]
    RunJob {
        /// The job's folder
        folder: std::path::PathBuf,
    },
    /// Describe the running kernel: the program calls itself with it in a guest
    #[command(name = fairground_realkernel::run::INFO_COMMAND, hide = true)]
    KernelInfo,
}

/// The scheduler's side.
#[derive(Clone, Debug, Args)]
pub(crate) struct SchedArgs {
    /// Scheduler: a name (`cfs`), a name with a parameter set (`cfs@6.1`), an object file (`./mine.bpf.o`), its source (`./mine.bpf.c`), or, on a real kernel, `kernel`: that kernel's own. Several with commas [default: cfs in simulation, kernel elsewhere]
    #[arg(long, value_delimiter = ',')]
    pub(crate) sched: Vec<String>,

    /// Set a tunable or feature before the run (`kernel.NAME=VALUE`: one of a real kernel itself); with several values, `compare` runs each
    #[arg(long, value_name = "NAME=VALUE[,VALUE]")]
    pub(crate) set: Vec<String>,

    /// Set a tunable or feature during the run
    #[arg(long, value_name = "TIME:NAME=VALUE")]
    pub(crate) at: Vec<String>,

    /// What the program that loads an object for real would set in it, as a file (`experiments/profiles/scx_qmap.toml`)
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) profile: Vec<PathBuf>,

    /// How the scheduler's instructions are executed: both engines give the same result
    #[arg(long, value_enum, default_value_t = EngineArg::Jit)]
    pub(crate) engine: EngineArg,

    /// What a load through a NULL pointer does: an error, or 0 as in the kernel's exception table
    #[arg(long, value_enum, default_value_t = NullLoadsArg::Error)]
    pub(crate) null_loads: NullLoadsArg,
}

/// How BPF is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineArg {
    /// Machine code
    Jit,
    /// Instruction by instruction: the oracle
    Interpreter,
}

/// What NULL loads do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum NullLoadsArg {
    /// End the run with an error
    Error,
    /// Read 0
    Zero,
}

/// What ends a sleep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TimersArg {
    /// A high-resolution timer: at its time
    #[default]
    Hrtimer,
    /// The tick: at the tick after its length, rounded up to ticks, has passed
    Jiffies,
}

/// The machine's side.
#[derive(Clone, Debug, Args)]
pub(crate) struct MachineArgs {
    /// Number of CPUs, of the simulated machine or of the virtual one
    #[arg(long, conflicts_with = "topology")]
    pub(crate) cpus: Option<u32>,

    /// Sockets × cores × threads (`2x4x2`), on so many NUMA nodes (`8x1x1,nodes=1`), or a topology file (`./laptop.toml`)
    #[arg(long)]
    pub(crate) topology: Option<String>,

    /// Ticks a second: 100, 250, 300 or 1000 [default: 250]. A real kernel has what it was built with
    #[arg(long)]
    pub(crate) hz: Option<u32>,

    /// What ends a sleep: a timer of its own, or a tick, as on x86-64 up to Linux 2.6.23
    #[arg(long, value_enum, default_value_t = TimersArg::Hrtimer)]
    pub(crate) timers: TimersArg,

    /// Seed of every random draw
    #[arg(long, default_value_t = SEED_DEFAULT, env = "FAIRGROUND_SEED")]
    pub(crate) seed: u64,

    /// What things cost in time: a preset
    #[arg(long, default_value = COSTS_DEFAULT)]
    pub(crate) costs: String,

    /// Change one cost
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) cost: Vec<String>,

    /// Check the simulator's invariants after each event: a run that breaks one ends with an error
    #[arg(long)]
    pub(crate) check: bool,

    /// With `--check`: no CPU may rest for so long while a task that may run there waits
    #[arg(long, value_name = "TIME", requires = "check")]
    pub(crate) idle_bound: Option<String>,

    /// How long to run, in simulated time; the workload's own length by default
    #[arg(long)]
    pub(crate) duration: Option<String>,

    /// How long before a simulated run its tasks are made and sleep; they begin with a wake-up. Without it they begin as forks
    /// [default: 400ms beside a real kernel, else none]
    #[arg(long, value_name = "TIME")]
    pub(crate) lead_in: Option<String>,

    /// How many events a simulated run may record, 32 bytes of memory each: one more ends it with an error [default: 100000000]
    #[arg(long, value_name = "N")]
    pub(crate) max_events: Option<usize>,
}

/// What spin locks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LocksArg {
    /// Spinning, as the workload says
    Spin,
    /// Sleeping, as `CONFIG_PREEMPT_RT` makes them
    Rt,
    /// Sleeping, as the -rt kernels of 2006 made them: nobody spins for one that is taken, nobody overtakes, and an rwlock has one
    /// reader at a time
    #[value(name = "rt-2006")]
    Rt2006,
}

impl LocksArg {
    /// The model of the workload.
    pub(crate) fn model(self) -> LockModel {
        match self {
            LocksArg::Spin => LockModel::Spin,
            LocksArg::Rt => LockModel::Rt,
            LocksArg::Rt2006 => LockModel::Rt2006,
        }
    }
}

/// The workload's side.
#[derive(Clone, Debug, Args)]
pub(crate) struct LockArgs {
    /// What the workload's spin locks are: themselves, or the sleeping locks with priority inheritance that PREEMPT_RT makes of them
    #[arg(long, value_enum)]
    pub(crate) locks: Option<LocksArg>,
}

/// What is shown.
#[derive(Clone, Debug, Args)]
pub(crate) struct ShowArgs {
    /// One row for each task, for each group of tasks, or for each control group
    #[arg(long, value_enum, default_value_t = Per::Group)]
    pub(crate) per: Per,

    /// Every metric, not only the usual ones
    #[arg(long)]
    pub(crate) all: bool,

    /// Also one row for each interval of this length (`1s`)
    #[arg(long)]
    pub(crate) interval: Option<String>,
}

/// What is drawn.
#[derive(Clone, Debug, Args)]
pub(crate) struct PageArgs {
    /// Also write a page with charts, one file that needs nothing else
    #[arg(long, value_name = "FILE.html")]
    pub(crate) html: Option<PathBuf>,

    /// Also write each chart into this folder, as SVG and as PNG; files of the same names are replaced
    #[arg(long, value_name = "DIR")]
    pub(crate) plots: Option<PathBuf>,
}

impl PageArgs {
    /// Whether anything is to be drawn.
    pub(crate) fn is_wanted(&self) -> bool {
        self.html.is_some() || self.plots.is_some()
    }
}

/// Rows of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Per {
    /// Equal tasks together
    Group,
    /// Each task
    Task,
    /// Each control group, with those below it
    Cgroup,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// A workload: a name (`slice:16`), several joined by `+`, or a file: TOML, or JSON of rt-app. `workload list` names them
    pub(crate) workload: String,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    #[command(flatten)]
    pub(crate) sched: SchedArgs,
    #[command(flatten)]
    pub(crate) machine: MachineArgs,
    #[command(flatten)]
    pub(crate) locks: LockArgs,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
    #[command(flatten)]
    pub(crate) page: PageArgs,
    /// Write the events: `.perfetto-trace` for Perfetto, with counters; `.json` for Chrome's viewer; `.parquet` or `.arrow` as a table (feature `parquet`); any other name, and `-` for stdout, ftrace text
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Also record each callback of the scheduler
    #[arg(long)]
    pub(crate) callbacks: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// A workload: a name (`slice:16`), several joined by `+`, or a file: TOML, or JSON of rt-app. `workload list` names them
    pub(crate) workload: String,
    #[command(flatten)]
    pub(crate) locks: LockArgs,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    #[command(flatten)]
    pub(crate) sched: SchedArgs,
    #[command(flatten)]
    pub(crate) machine: MachineArgs,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
    #[command(flatten)]
    pub(crate) page: PageArgs,
}

#[derive(Debug, Args)]
pub(crate) struct AnalyzeArgs {
    /// A recording: trace.dat, perf.data, or text, also compressed with gzip; `-` is stdin
    pub(crate) recording: String,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
    #[command(flatten)]
    pub(crate) page: PageArgs,
}

#[derive(Debug, Args)]
pub(crate) struct DiagnoseArgs {
    /// A recording: trace.dat, perf.data, or text, also compressed with gzip; `-` is stdin
    pub(crate) recording: String,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// A recording: trace.dat, perf.data, or text, also compressed with gzip; `-` is stdin
    pub(crate) recording: String,
    #[command(flatten)]
    pub(crate) sched: SchedArgs,
    #[command(flatten)]
    pub(crate) machine: MachineArgs,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
    #[command(flatten)]
    pub(crate) page: PageArgs,
    /// Write the workload that was made from the recording as TOML, and do not run it; `-` is stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) write_workload: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ReproduceArgs {
    /// An experiment by name, or a file; without it, the list of experiments
    pub(crate) experiment: Option<String>,
    /// How BPF is executed
    #[arg(long, value_enum, default_value_t = EngineArg::Jit)]
    pub(crate) engine: EngineArg,
    #[command(flatten)]
    pub(crate) page: PageArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SchedCommand {
    /// The schedulers that come with fairground
    List,
    /// A scheduler's tunables, features, parameter sets and size
    Show {
        /// A name, an object file or a source
        sched: String,
        /// Also count what its program executes on a context switch, a wake-up and a tick
        #[arg(long)]
        cost: bool,
    },
    /// Compile a scheduler written in BPF C to an object file
    Build {
        /// The source, `NAME.bpf.c`
        source: PathBuf,
        /// Where the object goes; beside the source by default
        #[arg(long, short)]
        output: Option<PathBuf>,
    },
}

/// Forms of workload files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WorkloadForm {
    /// fairground's own
    Toml,
    /// JSON of rt-app
    RtApp,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WorkloadCommand {
    /// The workloads that come with fairground
    List,
    /// A workload as TOML
    Show {
        /// A name with its arguments, or a file
        workload: String,
    },
    /// A workload as a file of another form, on stdout
    Convert {
        /// A name with its arguments, or a file: TOML, or JSON of rt-app
        workload: String,
        /// The form
        #[arg(long, value_enum)]
        to: WorkloadForm,
    },
    /// Check a workload file
    Check {
        /// The file
        file: PathBuf,
    },
}
