//! Options of `contention`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use fairground_session::{LocksSpec, MachineSpec, SchedulerSpec, TargetSpec};

use super::{PageArgs, SourceArgs, SpecArgs, TreeArgs};

/// Functions of a call chain by default: those of the mail.
const DEPTH: u8 = fairground_analysis::contention::DEPTH as u8;

#[derive(Debug, Args)]
pub(crate) struct ContentionArgs {
    /// A recording (`trace.dat` or text, made with `record --stacks`; `-` is stdin), or a workload, which runs on the
    /// target of `--on`; without it this machine is recorded
    pub(crate) what: Option<String>,

    /// Record this machine while this command runs
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "what")]
    pub(crate) command: Vec<OsString>,

    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) of: TreeArgs,
    /// The waits of all tasks, not only of the recorded command's
    #[arg(long, help_heading = "Tasks", conflicts_with = "tree")]
    pub(crate) all: bool,

    /// Functions of a call chain that are shown
    #[arg(long, help_heading = "Output", default_value_t = DEPTH, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) depth: u8,

    /// Lines of each table: of the histogram the most frequent, of the places those with the longest waits
    #[arg(long, help_heading = "Output", default_value_t = 20)]
    pub(crate) top: usize,

    /// Write the call chains of all waits for a flame graph, a line each, with the time waited in µs
    #[arg(long, help_heading = "Output", value_name = "FILE")]
    pub(crate) folded: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) target: SpecArgs<TargetSpec>,
    #[command(flatten)]
    pub(crate) sched: SpecArgs<SchedulerSpec>,
    #[command(flatten)]
    pub(crate) machine: SpecArgs<MachineSpec>,
    #[command(flatten)]
    pub(crate) locks: SpecArgs<LocksSpec>,
    #[command(flatten)]
    pub(crate) page: PageArgs,
}
