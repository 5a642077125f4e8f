//! What `top` takes.

use clap::Args;

use super::{GroundArgs, LockArgs, MachineArgs, SchedArgs};

#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// A workload for a simulated run: a name (`slice:16`), several joined by `+`, or a file. With `--on host`, none: this machine is shown as it is
    pub(crate) workload: Option<String>,
    #[command(flatten)]
    pub(crate) ground: GroundArgs,
    #[command(flatten)]
    pub(crate) sched: SchedArgs,
    #[command(flatten)]
    pub(crate) machine: MachineArgs,
    #[command(flatten)]
    pub(crate) locks: LockArgs,
    /// Shares, slices and waits are those of the last interval of this length
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub(crate) interval: String,
    /// How fast a simulated run begins: so many times the speed of the clock on the wall, doubled (`3`: 8 times) or halved (`-3`)
    #[arg(long, value_name = "DOUBLINGS", default_value_t = 0, allow_negative_numbers = true)]
    pub(crate) speed: i32,
    /// Begin held, at time 0
    #[arg(long)]
    pub(crate) hold: bool,
}
