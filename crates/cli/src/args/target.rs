//! Where a workload runs.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// The target.
#[derive(Clone, Debug, Args)]
pub(crate) struct TargetArgs {
    /// Where to run: `sim` (the simulated machine), `vm:KERNEL` (a real kernel in a virtual machine; `kernels list` names them), `host` (this machine's kernel). `compare` takes several with commas
    #[arg(long, value_delimiter = ',', default_value = "sim", value_name = "TARGET")]
    pub(crate) on: Vec<String>,

    /// How the virtual machine's time goes: by counted instructions, the same in every run, or by the clock on the wall
    #[arg(long, value_enum, default_value_t = VmModeArg::Deterministic)]
    pub(crate) vm_mode: VmModeArg,

    /// A kernel of your own (bzImage) for `--on vm`
    #[arg(long, value_name = "FILE")]
    pub(crate) kernel: Option<PathBuf>,

    /// Memory of the virtual machine, MiB
    #[arg(long, value_name = "MIB", default_value_t = MEMORY_MIB_DEFAULT)]
    pub(crate) memory: u32,

    /// A boot parameter for the virtual machine's kernel; may be given several times
    #[arg(long, value_name = "PARAMETER")]
    pub(crate) append: Vec<String>,

    /// Memory for recorded events on a real kernel, KiB for each CPU
    #[arg(long, value_name = "KIB", default_value_t = BUFFER_KIB_DEFAULT)]
    pub(crate) buffer: u32,

    /// Record no events on a real kernel: nothing disturbs the run, and it tells no more than its tasks and the kernel's own accounting do
    #[arg(long)]
    pub(crate) no_recording: bool,

    /// Record a kernel stack with each switch, and waits for locks, on a real kernel
    #[arg(long, conflicts_with = "no_recording")]
    pub(crate) stacks: bool,

    /// Whether a kernel that is not here is fetched
    #[arg(skip = true)]
    pub(crate) fetch: bool,
}

impl TargetArgs {
    /// What an experiment says of a target; the rest as the flags have it by default. Nothing is fetched for it.
    pub(crate) fn deterministic(on: &str, append: &[String], record: bool) -> TargetArgs {
        TargetArgs {
            on: vec![on.to_owned()],
            vm_mode: VmModeArg::Deterministic,
            kernel: None,
            memory: MEMORY_MIB_DEFAULT,
            append: append.to_vec(),
            buffer: BUFFER_KIB_DEFAULT,
            no_recording: !record,
            stacks: false,
            fetch: false,
        }
    }
}

/// Memory of a virtual machine when nobody says otherwise, MiB.
const MEMORY_MIB_DEFAULT: u32 = 1024;
/// Memory for events when nobody says otherwise, KiB a CPU.
const BUFFER_KIB_DEFAULT: u32 = 16 << 10;

/// How the time of a virtual machine goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum VmModeArg {
    /// By counted instructions, one CPU at a time: bit for bit the same in every run
    Deterministic,
    /// By the clock on the wall, CPUs side by side: for load, not for measuring
    Fast,
}
