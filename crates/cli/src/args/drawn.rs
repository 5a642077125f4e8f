//! The options of an experiment at points that are drawn at random.

use std::path::PathBuf;

use clap::Args;

/// The most points of one seed.
const POINTS_MAX: i64 = 10_000;

#[derive(Debug, Args)]
#[command(next_help_heading = "Drawn points")]
pub(crate) struct DrawnArgs {
    /// Draw the experiment's points at random from this seed: the workloads `drawn:SEED.0`, `drawn:SEED.1` …, for 1, 2
    /// and 4 CPUs in turn
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// How many points are drawn
    #[arg(
        long, value_name = "N", requires = "seed", default_value_t = 40,
        value_parser = clap::value_parser!(u32).range(1..=POINTS_MAX)
    )]
    pub(crate) points: u32,
    /// Also write the result as a page in Markdown; a page that this command wrote before keeps the history of its
    /// seeds
    #[arg(long, value_name = "FILE.md", requires = "seed")]
    pub(crate) report: Option<PathBuf>,
}
