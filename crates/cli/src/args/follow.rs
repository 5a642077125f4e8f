//! The arguments of `follow`.

use std::path::PathBuf;

use clap::Args;
use fairground_session::{EngineChoice, NamedChoice, NullLoadsChoice, SEED_DEFAULT, TopologySpec};

use super::{SourceArgs, choice};

#[derive(Debug, Args)]
pub(crate) struct FollowArgs {
    /// A recording: trace.dat, perf.data, Perfetto, CTF or text, also compressed with gzip; `-` is stdin
    pub(crate) recording: String,
    #[command(flatten)]
    pub(crate) source: SourceArgs,

    /// The scheduler whose decisions are compared: a name (`eevdf`), a name with a parameter set (`cfs@6.1`), an object
    /// file (`./mine.bpf.o`) or its source (`./mine.bpf.c`)
    #[arg(long)]
    pub(crate) sched: String,

    /// Set a tunable or feature
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,

    /// A profile: what the object's own loader would set, as a file (`experiments/profiles/scx_qmap.toml`)
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) profile: Vec<PathBuf>,

    /// The topology of the recorded machine, if its CPUs do not share one cache: sockets × cores × threads (`1x4x2`),
    /// or a topology file
    #[arg(long)]
    pub(crate) topology: Option<TopologySpec>,

    /// Ticks a second of the recorded machine, for a recording without ticks: 100, 250, 300 or 1000 [default: as
    /// recorded, else 250]
    #[arg(long)]
    pub(crate) hz: Option<u32>,

    /// Seed of the random numbers that the scheduler draws
    #[arg(long, default_value_t = SEED_DEFAULT, env = "FAIRGROUND_SEED")]
    pub(crate) seed: u64,

    /// How many kinds of differences are shown
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) top: usize,

    /// How the scheduler's instructions are executed: both engines give the same result
    #[arg(long, value_parser = choice::<EngineChoice>(), default_value = EngineChoice::Jit.word())]
    pub(crate) engine: EngineChoice,

    /// Result of a load through a NULL pointer: an error, or 0 as in the kernel's exception table
    #[arg(long, value_parser = choice::<NullLoadsChoice>(), default_value = NullLoadsChoice::Error.word())]
    pub(crate) null_loads: NullLoadsChoice,
}
