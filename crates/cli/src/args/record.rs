//! Options of `record` and `convert`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;

use super::SourceArgs;

#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    /// Where the recording goes: `.dat` is trace-cmd's format, `.txt` or `.ftrace` is text, `.perfetto-trace` is for
    /// Perfetto, `.json` for Chrome's viewer, `.parquet` or `.arrow` a table (feature `parquet`); `-` is text on stdout
    #[arg(long, short, value_name = "FILE", default_value = "trace.dat")]
    pub(crate) output: PathBuf,

    /// Replace the file if it exists
    #[arg(long, short)]
    pub(crate) force: bool,

    /// How long; without it until the command ends, or Ctrl-C
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) duration: Option<String>,

    /// Memory of the kernel for each CPU's events, KiB
    #[arg(
        long,
        value_name = "KIB",
        default_value_t = 4096,
        value_parser = clap::value_parser!(u32).range(16..=4_194_304)
    )]
    pub(crate) buffer: u32,

    /// Events beyond those of scheduling, `system:event`; several with commas
    #[arg(long, value_name = "EVENT", value_delimiter = ',')]
    pub(crate) events: Vec<String>,

    /// A kernel stack with each switch
    #[arg(long)]
    pub(crate) stacks: bool,

    /// The calls in which tasks may wait or wake others: futexes, pipes, sockets, polls, sleeps, waits for children
    #[arg(long)]
    pub(crate) calls: bool,

    /// Record while this command runs
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    /// A recording: trace.dat, perf.data, Perfetto, CTF or text, also compressed with gzip; `-` is stdin
    pub(crate) recording: String,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// Where it goes: `.txt` or `.ftrace` is ftrace text with nanoseconds, `.dat` is for trace-cmd and KernelShark,
    /// `.perfetto-trace` for Perfetto, `.json` for Chrome's viewer, `.parquet` or `.arrow` a table (feature `parquet`);
    /// `-` is text on stdout
    #[arg(required_unless_present = "output_option")]
    output: Option<PathBuf>,
    /// The same, as `record` has it
    #[arg(
        id = "output_option",
        short = 'o',
        long = "output",
        value_name = "OUTPUT",
        conflicts_with = "output"
    )]
    output_option: Option<PathBuf>,
}

impl ConvertArgs {
    /// Where it goes.
    pub(crate) fn output(&self) -> &Path {
        let output = self.output.as_deref().or(self.output_option.as_deref());
        output.unwrap_or(Path::new("-"))
    }
}
