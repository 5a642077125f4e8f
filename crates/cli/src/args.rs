//! The command line. One definition makes the parsing, `--help`, the man pages and the shell completions.

mod capture;
mod contention;
#[cfg(test)]
mod documented;
mod exit_codes;
mod follow;
mod install;
mod kernels;
mod load;
mod nearest;
mod negative;
mod record;
mod spec;
mod top;

pub(crate) use capture::CaptureArgs;
pub(crate) use contention::ContentionArgs;
pub(crate) use exit_codes::EXIT_CODES;
pub(crate) use follow::FollowArgs;
pub(crate) use install::{CompletionsArgs, DoctorArgs, ManArgs, SchemaArgs};
pub(crate) use kernels::{BootArgs, KernelsCommand};
pub(crate) use load::LoadArgs;
pub(crate) use nearest::with_nearest_command;
pub(crate) use negative::negative_number;
pub(crate) use record::{ConvertArgs, RecordArgs};
pub(crate) use spec::{SpecArgs, choice};
pub(crate) use top::TopArgs;

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use fairground_present::{Per, Selection};
use fairground_session::{
    EngineChoice, Failure, KernelAbiChoice, MachineSpec, NamedChoice, RunSpec, SchedulerSpec,
};

/// A workbench for Linux CPU schedulers: run any sched_ext scheduler on one workload in a deterministic simulated
/// machine, and see which tasks got the CPU, for how long, which waited, and what a switch cost.
#[derive(Debug, Parser)]
#[command(name = "fairground", bin_name = "fairground", version, max_term_width = 100, after_help = exit_codes::help())]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// How results are printed on stdout
    #[arg(long, global = true, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,

    /// Print tables as wide as they are: without it they fit the terminal, or 80 columns where there is none
    #[arg(long, global = true)]
    pub(crate) wide: bool,

    /// Print every parameter of a run, not only those that differ from their defaults
    #[arg(long, global = true)]
    pub(crate) verbose: bool,

    /// Print no progress and no notes on stderr
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
    /// Run a workload under several schedulers or settings, one column each; or compare recordings: which tasks lost
    /// time, and what took it
    Compare(CompareArgs),
    /// Show a simulated run, or this machine (root), while it goes on: which tasks run, which wait, and their shares
    Top(TopArgs),
    /// Record what this machine's scheduler does (root)
    Record(RecordArgs),
    /// Write a recording of any kind as ftrace text, for trace-cmd, Perfetto or Chrome's trace viewer, or as a table
    Convert(ConvertArgs),
    /// Measure a recording: trace.dat, perf.data, Perfetto, CTF, `perf sched script` or ftrace text
    Analyze(AnalyzeArgs),
    /// Report what is wrong in a recording: ranked findings, their evidence, and the command that shows more
    Diagnose(DiagnoseArgs),
    /// Show where tasks wait, and for which task: the histogram of scheduling points, locks, call chains (root, to
    /// record this machine)
    Contention(ContentionArgs),
    /// Run the load of a recording again, under other schedulers
    Replay(ReplayArgs),
    /// Compare a scheduler's decisions, one by one, with those of a recording, on the recorded timeline
    Follow(FollowArgs),
    /// Run a published experiment again: published figures beside measured ones
    Reproduce(ReproduceArgs),
    /// Attach a scheduler to the running kernel until Ctrl-C, and show what it does (root; a kernel with sched_ext)
    Load(LoadArgs),
    /// Real kernels for virtual machines: list them, fetch them from Debian, boot one
    #[command(subcommand)]
    Kernels(KernelsCommand),
    /// Schedulers: list them, show their tunables, build one
    #[command(subcommand)]
    Sched(SchedCommand),
    /// Workloads: list them, show one, check a file
    #[command(subcommand)]
    Workload(WorkloadCommand),
    /// Report what this machine can do with fairground, and how to get what is missing
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

/// Rows and columns of the tables.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct ShowArgs {
    /// One row for each task, for each group of tasks, or for each control group
    #[arg(long, value_parser = per(), default_value = "group")]
    pub(crate) per: Per,

    /// Print every metric
    #[arg(long, conflicts_with = "metrics")]
    pub(crate) all: bool,

    /// Print these metrics alone, by key (`cpu_share`), with all figures of one (`wakeup_latency`), or with `*`
    #[arg(long, value_name = "METRIC", value_delimiter = ',')]
    pub(crate) metrics: Vec<String>,

    /// Print the rows of these tasks or groups alone: names with `*` and `?`; the machine's rows are called `machine`
    #[arg(long, value_name = "GLOB", value_delimiter = ',')]
    pub(crate) tasks: Vec<String>,

    /// Also one row for each interval of this length (`1s`)
    #[arg(long, help_heading = "Measuring")]
    pub(crate) interval: Option<String>,
}

/// Pages and pictures.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Output")]
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

/// The words for the rows of the result.
fn per() -> impl TypedValueParser<Value = Per> {
    let words = [
        PossibleValue::new("group").help("Equal tasks together"),
        PossibleValue::new("task").help("Each task"),
        PossibleValue::new("cgroup").help("Each control group, with those below it"),
    ];
    PossibleValuesParser::new(words).map(|word| match word.as_str() {
        "task" => Per::Task,
        "cgroup" => Per::Cgroup,
        _ => Per::Group,
    })
}

impl ShowArgs {
    /// The chosen rows and columns.
    ///
    /// # Errors
    /// No metric has the name.
    pub(crate) fn selection(&self) -> Result<Selection, Failure> {
        Selection::of(self.all, &self.metrics, &self.tasks)
    }
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) run: SpecArgs<RunSpec>,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
    #[command(flatten)]
    pub(crate) page: PageArgs,
    /// Write the events: `.txt` or `.ftrace`, and `-` for stdout, as ftrace text; `.dat` for trace-cmd and KernelShark;
    /// `.perfetto-trace` for Perfetto, with counters; `.json` for Chrome's viewer; `.parquet` or `.arrow` as a table
    /// (feature `parquet`)
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Also record each callback of the scheduler, for `--trace`
    #[arg(long, help_heading = "Measuring", requires = "trace")]
    pub(crate) callbacks: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    #[command(flatten)]
    pub(crate) run: SpecArgs<RunSpec>,
    /// Recordings. With a recording in place of the workload, what differs between the two; behind a workload, a
    /// column each
    #[arg(value_name = "RECORDING")]
    pub(crate) recordings: Vec<String>,
    /// Recordings after a change, to be compared with those before it: several a side give intervals
    #[arg(long, value_name = "RECORDING", num_args = 1.., help_heading = "Recordings")]
    pub(crate) against: Vec<String>,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) of: TreeArgs,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
    #[command(flatten)]
    pub(crate) page: PageArgs,
}

#[derive(Debug, Args)]
pub(crate) struct AnalyzeArgs {
    /// A recording: trace.dat, perf.data, Perfetto, CTF or text, also compressed with gzip; `-` is stdin
    pub(crate) recording: String,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// Also a row of the tasks of this name or pid, and those that they started, together; several with commas. A
    /// recording of `record -- COMMAND` has that of the command without it
    #[arg(long, help_heading = "Tasks", value_name = "TASK", value_delimiter = ',')]
    pub(crate) tree: Vec<String>,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
    #[command(flatten)]
    pub(crate) page: PageArgs,
}

/// Part of a recording that is read.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Recordings")]
pub(crate) struct SourceArgs {
    /// Of a recording of several machines or buffers read this one: a name that the note on it lists (a file of
    /// `trace-cmd report -i A -i B`, a machine of Perfetto, a buffer of a trace.dat, a folder of CTF)
    #[arg(long, value_name = "NAME")]
    pub(crate) machine: Option<String>,
}

/// Which tasks a result is about.
#[derive(Debug, Args)]
#[command(next_help_heading = "Tasks")]
pub(crate) struct TreeArgs {
    /// About the tasks of this name or pid, and those that they started; several with commas. A recording of `record --
    /// COMMAND` is about the command without it
    #[arg(long, value_name = "TASK", value_delimiter = ',')]
    pub(crate) tree: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct DiagnoseArgs {
    /// A recording: trace.dat, perf.data, Perfetto, CTF or text, also compressed with gzip; `-` is stdin
    pub(crate) recording: String,
    /// A second one, made after a change: which findings are new, gone or grown
    pub(crate) after: Option<String>,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) of: TreeArgs,
    /// Also findings about other tasks than those of the recorded command, or of --tree
    #[arg(long, help_heading = "Tasks")]
    pub(crate) all: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// A recording: trace.dat, perf.data, Perfetto, CTF or text, also compressed with gzip; `-` is stdin
    pub(crate) recording: String,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) sched: SpecArgs<SchedulerSpec>,
    #[command(flatten)]
    pub(crate) machine: SpecArgs<MachineSpec>,
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
    /// How the schedulers' instructions are executed
    #[arg(long, value_parser = choice::<EngineChoice>(), default_value = EngineChoice::Jit.word())]
    pub(crate) engine: EngineChoice,
    /// Make the runs on these targets only: `sim` needs no kernel. Several with commas [default: all of them]
    #[arg(long, value_name = "TARGET", value_delimiter = ',')]
    pub(crate) on: Vec<String>,
    #[command(flatten)]
    pub(crate) page: PageArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SchedCommand {
    /// The schedulers that come with fairground, and those that it can fetch
    List,
    /// Build published schedulers into the cache, for `--sched NAME` (needs a network, curl and clang)
    Fetch {
        /// Schedulers, `scx_lavd`, or certain versions of them, `scx_lavd@1.1.4`
        #[arg(value_name = "NAME[@VERSION]", required = true)]
        scheds: Vec<String>,
    },
    /// A scheduler's tunables, features, parameter sets and size
    Show {
        /// A name, an object file or a source
        sched: String,
        /// Also count what its program executes on a context switch, a wake-up and a tick
        #[arg(long)]
        cost: bool,
        /// The release of Linux whose sched_ext interface it is held against
        #[arg(long, value_parser = choice::<KernelAbiChoice>(), default_value = KernelAbiChoice::default().word(), value_name = "RELEASE")]
        kernel_abi: KernelAbiChoice,
        /// Also have a real kernel's verifier check it in a virtual machine: for each program the instructions that it
        /// processed, or its message
        #[arg(
            long,
            value_name = "TARGET",
            num_args = 0..=1,
            require_equals = true,
            default_missing_value = "vm:newest"
        )]
        verify: Option<String>,
    },
    /// Write a profile of what a scheduler's own loader sets: it runs in a virtual machine
    Capture(CaptureArgs),
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
