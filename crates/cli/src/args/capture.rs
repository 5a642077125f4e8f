//! `sched capture`: what can be typed.

use std::path::PathBuf;

use clap::Args;

/// Memory of the guest, MiB: loaders of large machines' schedulers need more than the usual guest has.
const MEMORY_MIB_DEFAULT: u32 = 2048;

#[derive(Clone, Debug, Args)]
pub(crate) struct CaptureArgs {
    /// The scheduler's own loader, a program with its arguments, in one word (`'./scx_bpfland -s 5000'`)
    #[arg(long, value_name = "COMMAND")]
    pub(crate) loader: String,
    /// The virtual machine that it runs in (`kernels list` names the kernels)
    #[arg(long, value_name = "TARGET", default_value = "vm:newest")]
    pub(crate) on: String,
    /// The object that the loader loads, where it is not within the program
    #[arg(long, value_name = "FILE.bpf.o")]
    pub(crate) object: Option<PathBuf>,
    /// Write no profile, but compare with what a scheduler's entry sets (`scx_bpfland`), or a profile (`./mine.toml`);
    /// differences are a negative verdict
    #[arg(long, value_name = "PROFILE")]
    pub(crate) against: Option<String>,
    /// CPUs of the virtual machine
    #[arg(long, default_value_t = fairground_session::CPUS_DEFAULT)]
    pub(crate) cpus: u32,
    /// Memory of the virtual machine, MiB
    #[arg(long, value_name = "MIB", default_value_t = MEMORY_MIB_DEFAULT)]
    pub(crate) memory: u32,
    /// Where the profile goes; standard output by default
    #[arg(long, short)]
    pub(crate) output: Option<PathBuf>,
}
