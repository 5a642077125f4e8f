//! The machine that the flags describe.

use fairground_machine::{
    CostModel, MachineConfig, NullLoads, SleepTimers, Topology, TraceOptions,
};

use crate::args::{MachineArgs, NullLoadsArg, TimersArg};
use crate::failure::Failure;

use super::parse_time;
use super::topology::find_topology;

/// CPUs when neither `--cpus` nor `--topology` is given.
pub(crate) const CPUS_DEFAULT: u32 = 2;
/// Ticks a second when nobody says otherwise: what Debian's kernels have.
const HZ_DEFAULT: u32 = 250;
/// What kernels are built with (`CONFIG_HZ`).
const HZ_CHOICES: [u32; 4] = [100, 250, 300, 1000];

/// Builds the configuration.
pub(crate) fn machine_config(
    args: &MachineArgs,
    null_loads: NullLoadsArg,
    trace: TraceOptions,
) -> Result<MachineConfig, Failure> {
    let mut config = MachineConfig::new(CPUS_DEFAULT);
    match (&args.topology, args.cpus) {
        (Some(form), _) => config.topology = find_topology(form)?,
        (None, Some(cpus)) => {
            let parsed = cpus.to_string().parse::<Topology>();
            config.topology = parsed.map_err(|e| Failure::new(format_args!("--cpus: {e}")))?;
        }
        (None, None) => {}
    }
    let hz = args.hz.unwrap_or(HZ_DEFAULT);
    if !HZ_CHOICES.contains(&hz) {
        return Err(Failure::new(format_args!("--hz {hz}: no kernel ticks so"))
            .help("give 100, 250, 300 or 1000"));
    }
    config.hz = hz;
    config.timers = match args.timers {
        TimersArg::Hrtimer => SleepTimers::Hrtimer,
        TimersArg::Jiffies => SleepTimers::Jiffies,
    };
    config.seed = args.seed;
    config.cost = costs(&args.costs, &args.cost)?;
    config.trace = trace;
    config.null_loads = match null_loads {
        NullLoadsArg::Error => NullLoads::Trap,
        NullLoadsArg::Zero => NullLoads::ReadZero,
    };
    if let Some(text) = &args.lead_in {
        config.lead_in_ns = parse_time("--lead-in", text)?;
    }
    config.check = args.check;
    config.idle_bound_ns =
        args.idle_bound.as_deref().map(|text| parse_time("--idle-bound", text)).transpose()?;
    Ok(config)
}

fn costs(preset: &str, changes: &[String]) -> Result<CostModel, Failure> {
    let mut costs =
        CostModel::preset(preset).map_err(|e| Failure::new(format_args!("--costs: {e}")))?;
    for change in changes {
        let bad = || {
            Failure::new(format_args!("--cost: `{change}` is not NAME=VALUE, VALUE a whole number"))
        };
        let (name, value) = change.split_once('=').ok_or_else(bad)?;
        let value = value.parse().map_err(|_| bad())?;
        costs.set(name, value).map_err(|e| Failure::new(format_args!("--cost: {e}")))?;
    }
    Ok(costs)
}
