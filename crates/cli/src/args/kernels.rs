//! Options of `kernels`.

use clap::{Args, Subcommand};
use fairground_session::{NamedChoice, VmModeChoice};

use super::choice;

/// Kernels for virtual machines.
#[derive(Debug, Subcommand)]
pub(crate) enum KernelsCommand {
    /// Kernels that are here, and those that can be fetched
    List,
    /// Fetch kernels, and QEMU where the machine has none that is new enough, from Debian's archive into the cache
    Fetch {
        /// Kernels (`6.1`, `newest-rt`) [default: all that there are]
        names: Vec<String>,
    },
    /// Boot a kernel, describe it, and report the duration of each part; or run this program with other arguments in it
    Boot(BootArgs),
}

/// A machine to boot.
#[derive(Debug, Args)]
pub(crate) struct BootArgs {
    /// The kernel: a name (`6.1`), fetched when it is not here, or the path of a bzImage (with a `/`)
    pub(crate) kernel: String,

    /// Virtual CPUs
    #[arg(long, default_value_t = 2)]
    pub(crate) cpus: u32,

    /// Memory, MiB
    #[arg(long, default_value_t = 1024, value_name = "MIB")]
    pub(crate) memory: u32,

    /// How the machine's time passes
    #[arg(long, value_parser = choice::<VmModeChoice>(), default_value = VmModeChoice::Deterministic.word())]
    pub(crate) vm_mode: VmModeChoice,

    /// A parameter for the kernel's command line; may be given several times
    #[arg(long, value_name = "PARAMETER", allow_hyphen_values = true)]
    pub(crate) append: Vec<String>,

    /// How long the command lasts, in the guest's time: its deadline follows from it
    #[arg(long = "for", default_value = "10s", value_name = "TIME")]
    pub(crate) duration: String,

    /// Arguments of this program for the guest, after `--`, as in `-- sched list`
    #[arg(last = true)]
    pub(crate) command: Vec<String>,
}
