//! Options of `top`.

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, FromArgMatches};

use fairground_session::{BUFFER_KIB_DEFAULT, LocksSpec, MachineSpec, SchedulerSpec};

use super::SpecArgs;

#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    // The first of the fields: those below take their values away.
    #[command(flatten)]
    pub(crate) typed: Typed,
    /// A workload for a simulated run: a name (`slice:16`), several joined by `+`, or a file. With `--on host`, none:
    /// this machine is shown as it is
    pub(crate) workload: Option<String>,
    /// Source of the view: `sim` (the simulated machine, which the flags below describe), `host` (this machine: of the flags
    /// below it takes `--buffer` and `--interval`)
    #[arg(
        long,
        help_heading = "Target",
        value_delimiter = ',',
        default_value = "sim",
        value_name = "TARGET"
    )]
    pub(crate) on: Vec<String>,
    /// With `--on host`: memory for recorded events, KiB for each CPU
    #[arg(
        long,
        help_heading = "Target",
        value_name = "KIB",
        default_value_t = BUFFER_KIB_DEFAULT,
        value_parser = clap::value_parser!(u32).range(16..=4_194_304)
    )]
    pub(crate) buffer: u32,
    #[command(flatten)]
    pub(crate) sched: SpecArgs<SchedulerSpec>,
    #[command(flatten)]
    pub(crate) machine: SpecArgs<MachineSpec>,
    #[command(flatten)]
    pub(crate) locks: SpecArgs<LocksSpec>,
    /// Shares, slices and waits are those of the last interval of this length, at most 10 s
    #[arg(long, help_heading = "Measuring", value_name = "TIME", default_value = "1s")]
    pub(crate) interval: String,
    /// How fast a simulated run begins: the speed of the host's clock, doubled so many times (`3`: 8 times) or halved
    /// (`-3`)
    #[arg(
        long,
        help_heading = "View",
        value_name = "DOUBLINGS",
        default_value_t = 0,
        allow_negative_numbers = true
    )]
    pub(crate) speed: i32,
    /// Begin held, at time 0
    #[arg(long, help_heading = "View")]
    pub(crate) hold: bool,
}

/// The options that stand on the command line, `--` before each, in the order of their names. What has its value by
/// default or from the environment is not among them.
#[derive(Clone, Debug)]
pub(crate) struct Typed(pub(crate) Vec<String>);

impl FromArgMatches for Typed {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Typed, clap::Error> {
        let command = TopArgs::augment_args(clap::Command::new("top"))
            .arg(clap::Arg::new("format").long("format"));
        let options = command.get_arguments().filter(|argument| {
            let id = argument.get_id();
            // Asking for one that the command does not define is an error.
            let is_there = matches.ids().any(|there| there == id);
            is_there && matches.value_source(id.as_str()) == Some(ValueSource::CommandLine)
        });
        let mut typed: Vec<String> = options
            .filter_map(|option| option.get_long())
            .map(|long| format!("--{long}"))
            .collect();
        typed.sort();
        Ok(Typed(typed))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Typed::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Typed {
    fn augment_args(command: clap::Command) -> clap::Command {
        command
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        command
    }
}
