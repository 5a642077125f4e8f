//! From words to checked values. Past this point nothing asks whether an option was set.

use fairground_machine::{
    CostModel, MAX_EVENTS_DEFAULT, MachineConfig, Setting, Topology, TraceOptions,
};
use fairground_realkernel::job::HOLD_NS_MAX;
use fairground_realkernel::vm::VmConfig;
use fairground_workload::Workload;

use super::applies::check_effect;
use super::{
    COSTS_DEFAULT, CPUS_DEFAULT, MachineSpec, RunSpec, Targets, TopologySpec, VmModeChoice,
};
use crate::failure::Failure;
use crate::input::{
    Target, Variant, at_settings, find_topology, find_workload_noted, is_knob, is_published,
    parse_time, parse_time_if, topology_table, variants,
};

/// Ticks a second by default: what Debian's kernels have.
pub const HZ_DEFAULT: u32 = 250;
/// What kernels are built with (`CONFIG_HZ`).
pub(crate) const HZ_CHOICES: [u32; 4] = [100, 250, 300, 1000];
/// The lead-in of a simulated run beside one on a real kernel, whose tasks exist before the run, ns: long enough for
/// them to go to sleep. Published schedulers are for such systems: `scx_p2dq` takes a virtual time of 0, which a kernel
/// leaves behind with the first task that runs, for that of an empty queue.
const LEAD_IN_NS: u64 = 400_000_000;
/// A spec, checked. The workload and the schedulers are found apart: some commands have their own.
#[derive(Debug)]
pub struct Resolved {
    /// Where it runs; one at least.
    pub targets: Vec<Target>,
    /// The simulated machine.
    pub machine: MachineConfig,
    /// The combinations of what is set before a run; one at least.
    pub variants: Vec<Variant>,
    /// What is set during a run.
    pub later: Vec<Setting>,
    /// The length of a run, ns.
    pub duration_ns: u64,
    /// How much later the tasks start on a real kernel, ns.
    pub hold_ns: u64,
    /// What was chosen for the simulated machine because of the other targets, in words.
    pub notes: Vec<String>,
}

impl RunSpec {
    /// The workload with the locks of the spec, and notes on what has another meaning here than for the program whose
    /// file it is.
    ///
    /// # Errors
    /// If there is no such workload, or its file is wrong.
    pub fn find_workload(&self) -> Result<(Workload, Vec<String>), Failure> {
        let (mut workload, notes) = find_workload_noted(&self.workload)?;
        if let Some(locks) = self.locks.locks {
            workload.set_lock_model(locks.into());
        }
        Ok((workload, notes))
    }

    /// Checks every word. A run without a length takes that of the workload; with `callbacks` a simulated run
    /// also records each callback of its scheduler.
    ///
    /// # Errors
    /// If a word means nothing, or has no effect on any of the targets, in the words of the command line.
    pub fn resolve(&self, workload: &Workload, callbacks: bool) -> Result<Resolved, Failure> {
        let targets = self.targets()?;
        let variants = variants(&self.scheduler.set)?;
        let later = at_settings(&self.scheduler.at)?;
        let mut machine = self.machine(&targets, callbacks)?;
        let real = targets.iter().any(Target::is_real);
        let is_published = || self.scheduler.sched.iter().any(|sched| is_published(sched));
        if self.machine.lead_in.is_none() && (real || is_published()) {
            machine.lead_in_ns = LEAD_IN_NS;
        }
        if !real {
            refuse_knobs(variants.iter().flat_map(|variant| &variant.settings).chain(&later))?;
        }
        self.check_effects(&targets)?;
        if callbacks {
            check_effect("callbacks", Targets::SIM, None, &targets)?;
        }
        self.refuse_speed_without_guest(&targets)?;
        let duration_ns = self.duration_ns(workload)?;
        let hold_ns = self.hold_ns()?;
        let notes = self.preset_beside(&targets).map(|(preset, target)| {
            format!(
                "costs of the simulated machine: {preset}, for the kernel of {target} beside it; --costs takes others"
            )
        });
        let notes = notes.into_iter().collect();
        Ok(Resolved { targets, machine, variants, later, duration_ns, hold_ns, notes })
    }

    /// Where it runs.
    pub(super) fn targets(&self) -> Result<Vec<Target>, Failure> {
        let targets: Vec<_> =
            self.target.on.iter().map(|text| Target::parse(text)).collect::<Result<_, _>>()?;
        match targets.is_empty() {
            true => {
                Err(Failure::new("--on names no target").help("give `sim`, `host`, or `vm:KERNEL`"))
            }
            false => Ok(targets),
        }
    }

    /// The length of a run, ns: the stated one, else the workload's own.
    ///
    /// # Errors
    /// If it is no length, or 0.
    pub fn duration_ns(&self, workload: &Workload) -> Result<u64, Failure> {
        match parse_time_if("--duration", self.machine.duration.as_deref())? {
            Some(0) => Err(Failure::new("--duration 0 leaves nothing to measure")),
            Some(ns) => Ok(ns),
            None => Ok(workload.duration_ns),
        }
    }

    /// The time between two ticks of the simulated machine, ns.
    pub fn tick_ns(&self) -> u64 {
        1_000_000_000 / u64::from(self.machine.hz.unwrap_or(HZ_DEFAULT).max(1))
    }

    /// How much later the tasks start on a real kernel, ns.
    ///
    /// # Errors
    /// If it is no length, or a too long one.
    pub fn hold_ns(&self) -> Result<u64, Failure> {
        let Some(text) = &self.target.hold else { return Ok(0) };
        match parse_time("--hold", text)? {
            ns if ns > HOLD_NS_MAX => {
                let max_ms = HOLD_NS_MAX / 1_000_000;
                Err(Failure::new(format_args!("--hold: `{text}` is longer than {max_ms} ms"))
                    .help("it says where in a tick the run starts"))
            }
            ns => Ok(ns),
        }
    }

    /// The simulated machine alone.
    ///
    /// # Errors
    /// If one of its words means nothing.
    pub fn simulated_machine(&self) -> Result<MachineConfig, Failure> {
        self.machine(&[Target::Sim], false)
    }

    /// The simulated machine, beside the other targets.
    fn machine(&self, targets: &[Target], callbacks: bool) -> Result<MachineConfig, Failure> {
        let spec = &self.machine;
        let mut config = MachineConfig::new(CPUS_DEFAULT);
        match (&spec.topology, spec.cpus) {
            (Some(TopologySpec::Word(word)), _) => config.topology = find_topology(word)?,
            (Some(TopologySpec::Table(table)), _) => config.topology = topology_table(table)?,
            (None, Some(cpus)) => {
                let parsed = cpus.to_string().parse::<Topology>();
                config.topology = parsed.map_err(|e| Failure::new(format_args!("--cpus: {e}")))?;
            }
            (None, None) => {}
        }
        if let (Some(_), Some(cpus)) = (&spec.topology, spec.cpus)
            && cpus != config.cpus()
        {
            let has = config.cpus();
            return Err(Failure::new(format_args!("--cpus {cpus}: the topology has {has} CPUs"))
                .help("leave one of --cpus and --topology out, or make them agree"));
        }
        config.hz = spec.hz.unwrap_or(HZ_DEFAULT);
        if !HZ_CHOICES.contains(&config.hz) {
            return Err(Failure::new(format_args!("--hz {}: unsupported HZ", config.hz))
                .help("use 100, 250, 300 or 1000"));
        }
        config.timers = spec.timers.into();
        config.seed = spec.seed;
        config.cost = self.cost_model(targets)?;
        config.trace = TraceOptions { callbacks, ticks: true, calls: self.target.calls };
        config.null_loads = self.scheduler.null_loads.into();
        if let Some(text) = &spec.lead_in {
            config.lead_in_ns = parse_time("--lead-in", text)?;
        }
        config.max_events = spec.max_events.unwrap_or(MAX_EVENTS_DEFAULT);
        config.check = spec.check;
        config.idle_bound_ns = parse_time_if("--idle-bound", spec.idle_bound.as_deref())?;
        Ok(config)
    }

    /// The preset of costs that is taken because of a guest beside the simulated machine, with that guest: presets of
    /// kernels are of guests whose clock counts instructions.
    fn preset_beside<'t>(&self, targets: &'t [Target]) -> Option<(&'static str, &'t Target)> {
        let asked = self.machine.costs.is_some() || !targets.contains(&Target::Sim);
        if asked || self.target.vm_mode != VmModeChoice::Deterministic {
            return None;
        }
        targets.iter().find_map(|target| Some((target.cost_preset()?, target)))
    }

    /// The costs of the simulated machine among these targets.
    fn cost_model(&self, targets: &[Target]) -> Result<CostModel, Failure> {
        let beside = self.preset_beside(targets);
        self.machine.cost_model(beside.map_or(COSTS_DEFAULT, |(preset, _)| preset))
    }

    /// Refuses a speed that is none, or where nothing counts instructions.
    fn refuse_speed_without_guest(&self, targets: &[Target]) -> Result<(), Failure> {
        let Some(ns) = self.machine.instruction_ns else { return Ok(()) };
        if !VmConfig::INSTRUCTION_NS.contains(&ns) {
            return Err(Failure::new(format_args!("--instruction-ns {ns}: unsupported"))
                .help("use 1, 2, 4 or 8: QEMU has powers of two"));
        }
        let counts = |target: &Target| match target {
            Target::Sim => {
                self.cost_model(targets).is_ok_and(|costs| costs.instruction_ns().is_some())
            }
            Target::Vm(_) => self.target.vm_mode == VmModeChoice::Deterministic,
            Target::Host => false,
        };
        match targets.iter().any(counts) {
            true => Ok(()),
            false => Err(Failure::new("--instruction-ns: nothing counts instructions in this run")
                .help("add `--on vm:newest` without --vm-mode, or `--costs linux-7.2-scx`")),
        }
    }
}

fn refuse_knobs<'s>(mut settings: impl Iterator<Item = &'s Setting>) -> Result<(), Failure> {
    let Some(knob) = settings.find(|setting| is_knob(&setting.name)) else { return Ok(()) };
    Err(Failure::new(format_args!(
        "`{}` is a tunable of a real kernel, and `--on sim` has none",
        knob.name
    ))
    .help("name the scheduler's own tunable (`sched show` lists them), or add `--on vm:KERNEL`"))
}

impl MachineSpec {
    /// The machine's costs: of the preset that is named, else of the `usual` one.
    ///
    /// # Errors
    /// An unknown preset or cost, or a value that is none.
    pub fn cost_model(&self, usual: &str) -> Result<CostModel, Failure> {
        costs(self.costs.as_deref().unwrap_or(usual), self.instruction_ns(), &self.cost)
    }
}

fn costs(preset: &str, instruction_ns: u64, changes: &[String]) -> Result<CostModel, Failure> {
    let preset =
        CostModel::preset(preset).map_err(|e| Failure::new(format_args!("--costs: {e}")))?;
    let mut costs = preset.at_instruction_ns(instruction_ns);
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
