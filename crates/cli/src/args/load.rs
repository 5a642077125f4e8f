//! Options of `load`.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct LoadArgs {
    /// Scheduler: a name (`cfs`), a name with a parameter set (`cfs@6.1`), an object file (`./mine.bpf.o`), or its
    /// source (`./mine.bpf.c`)
    pub(crate) sched: String,

    /// Set a tunable or feature before it is attached
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,

    /// A profile: what the object's own loader would set, as a file
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) profile: Option<std::path::PathBuf>,

    /// Set a tunable or feature while it is attached
    #[arg(long, value_name = "TIME:NAME=VALUE")]
    pub(crate) at: Vec<String>,

    /// Leave after this time; without it, on Ctrl-C
    #[arg(long = "for", value_name = "TIME")]
    pub(crate) length: Option<String>,

    /// How often to show what it does
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub(crate) stats: String,
}
