//! The machine that words describe.

use fairground_machine::{
    CostModel, MAX_EVENTS_DEFAULT, MachineConfig, NullLoads, SleepTimers, Topology, TraceOptions,
};

use super::parse_time;
use super::topology::find_topology;
use crate::failure::Failure;

/// CPUs when neither their number nor a topology is given.
pub const CPUS_DEFAULT: u32 = 2;
/// The costs when nobody says otherwise.
pub const COSTS_DEFAULT: &str = "modern";
/// The seed when nobody says otherwise.
pub const SEED_DEFAULT: u64 = 1;
/// Ticks a second when nobody says otherwise: what Debian's kernels have.
const HZ_DEFAULT: u32 = 250;
/// What kernels are built with (`CONFIG_HZ`).
const HZ_CHOICES: [u32; 4] = [100, 250, 300, 1000];

/// A simulated machine in words, as a person gives them.
#[derive(Clone, Debug)]
pub struct MachineSpec {
    /// The number of CPUs, without effect beside a topology; `None`: [`CPUS_DEFAULT`].
    pub cpus: Option<u32>,
    /// Sockets × cores × threads (`2x4x2`), or a topology file.
    pub topology: Option<String>,
    /// Ticks a second: 100, 250, 300 or 1000; `None`: 250.
    pub hz: Option<u32>,
    /// What ends a sleep.
    pub timers: SleepTimers,
    /// The seed of every random draw.
    pub seed: u64,
    /// What things cost: the name of a preset.
    pub costs: String,
    /// Changes of costs: `NAME=VALUE`.
    pub cost: Vec<String>,
    /// What a load through a NULL pointer does.
    pub null_loads: NullLoads,
    /// What the trace keeps.
    pub trace: TraceOptions,
    /// Whether the simulator's invariants are checked after each event.
    pub check: bool,
    /// How long a CPU may rest while a task waits that may run there, with its unit; only looked at with `check`.
    pub idle_bound: Option<String>,
    /// How long the tasks exist, asleep, before the run, with its unit.
    pub lead_in: Option<String>,
    /// Events that the trace may hold; `None`: [`MAX_EVENTS_DEFAULT`].
    pub max_events: Option<usize>,
}

impl Default for MachineSpec {
    fn default() -> Self {
        Self {
            cpus: None,
            topology: None,
            hz: None,
            timers: SleepTimers::default(),
            seed: SEED_DEFAULT,
            costs: COSTS_DEFAULT.to_owned(),
            cost: Vec::new(),
            null_loads: NullLoads::default(),
            trace: TraceOptions { callbacks: false, ticks: true },
            check: false,
            idle_bound: None,
            lead_in: None,
            max_events: None,
        }
    }
}

/// Builds the configuration.
///
/// # Errors
/// If a word means nothing, in the words of the command line.
pub fn machine_config(spec: &MachineSpec) -> Result<MachineConfig, Failure> {
    let mut config = MachineConfig::new(CPUS_DEFAULT);
    match (&spec.topology, spec.cpus) {
        (Some(form), _) => config.topology = find_topology(form)?,
        (None, Some(cpus)) => {
            let parsed = cpus.to_string().parse::<Topology>();
            config.topology = parsed.map_err(|e| Failure::new(format_args!("--cpus: {e}")))?;
        }
        (None, None) => {}
    }
    let hz = spec.hz.unwrap_or(HZ_DEFAULT);
    if !HZ_CHOICES.contains(&hz) {
        return Err(Failure::new(format_args!("--hz {hz}: no kernel ticks so"))
            .help("give 100, 250, 300 or 1000"));
    }
    config.hz = hz;
    config.timers = spec.timers;
    config.seed = spec.seed;
    config.cost = costs(&spec.costs, &spec.cost)?;
    config.trace = spec.trace;
    config.null_loads = spec.null_loads;
    if let Some(text) = &spec.lead_in {
        config.lead_in_ns = parse_time("--lead-in", text)?;
    }
    config.max_events = spec.max_events.unwrap_or(MAX_EVENTS_DEFAULT);
    config.check = spec.check;
    config.idle_bound_ns =
        spec.idle_bound.as_deref().map(|text| parse_time("--idle-bound", text)).transpose()?;
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
