//! The machine that is simulated: its CPUs, its clock, its costs, and what the trace keeps.

use std::borrow::Cow;

use fairground_bpf::NullLoads;
use fairground_trace::Trace;
use fairground_workload::Workload;

use crate::{CostModel, MachineError, Topology, abi};

/// Events that the trace keeps beside those that every trace has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceOptions {
    /// Every callback of the scheduler ([`fairground_trace::EventKind::Callback`]).
    pub callbacks: bool,
    /// Every timer tick on a busy CPU ([`fairground_trace::EventKind::Tick`]).
    pub ticks: bool,
    /// Every call in which a task may wait, or may end another one's wait ([`fairground_trace::EventKind::CallEnter`]).
    pub calls: bool,
}

/// The longest lead-in of a workload, ns.
const LEAD_IN_NS_MAX: u64 = 10_000_000_000;

/// Default limit of the events of a trace: 3.2 GB.
pub const MAX_EVENTS_DEFAULT: usize = 100_000_000;

/// Timers that end tasks' sleeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SleepTimers {
    /// A timer of its own, to the nanosecond (high-resolution timers, and the timer slack of the cost model).
    #[default]
    Hrtimer,
    /// The tick, as on machines without high-resolution timers (x86-64 up to Linux 2.6.23): a sleep ends at the first
    /// tick at which the clock of the tick before is past its end (`hrtimer_run_queues`).
    Jiffies,
}

/// A machine to simulate. Two machines with equal configurations, policies, settings and workloads give the same bytes.
#[derive(Clone, Debug)]
pub struct MachineConfig {
    /// CPUs, cores, caches and nodes.
    pub topology: Topology,
    /// Timer ticks per second, 1…10,000: the kernel's `CONFIG_HZ` (100, 250, 300 or 1000).
    pub hz: u32,
    /// Timers that end tasks' sleeps.
    pub timers: SleepTimers,
    /// How long the tasks of the workload exist and sleep before their groups start, ns: they are made at time 0 and
    /// woken at the start of their group. 0: they are made there. The workload's time, and that of settings, counts
    /// from the end of the lead-in. At most 10 s.
    pub lead_in_ns: u64,
    /// Seed of every random number: those that tasks draw and those that the scheduler asks for.
    pub seed: u64,
    /// Costs of the kernel's steps.
    pub cost: CostModel,
    /// Upper bound of the watchdog's timeout, ns. The scheduler's own `timeout_ms` applies if it is shorter.
    pub watchdog_ns: u64,
    /// Events that the trace keeps.
    pub trace: TraceOptions,
    /// Check the invariants ([`crate::Invariant`]) after every step: of the tasks and CPUs that it touched, and
    /// periodically of all. The first violation ends the run with [`MachineError::Invariant`]. Otherwise the run is the
    /// same.
    pub check: bool,
    /// With [`MachineConfig::check`]: the longest time, ns, that a CPU may be idle while a task that may run there
    /// waits, if the scheduler promises one. `None`: no promise.
    pub idle_bound_ns: Option<u64>,
    /// With [`MachineConfig::check`]: the scheduler promises that a task which it takes out of a queue ordered by
    /// vtime, to run it, is the first one there that may run on that CPU.
    pub picks_in_order: bool,
    /// Tasks that may exist at the same time.
    pub max_tasks: u32,
    /// Instructions that one callback may execute; one more ejects the scheduler.
    pub fuel_per_call: u64,
    /// The effect of a load through a NULL pointer in the scheduler's program. With the kernel's JIT such a load of a
    /// kernel object reads 0; here it is an error by default.
    pub null_loads: NullLoads,
    /// Events that the trace may hold, of [`Trace::BYTES_PER_EVENT`] bytes each; one more ends the run with
    /// [`MachineError::TraceFull`], before the memory of this machine does.
    pub max_events: usize,
    /// Lines of the scheduler's own output (`bpf_printk`) that are kept; later ones are counted.
    pub max_log_lines: usize,
}

impl MachineConfig {
    /// This machine with the costs that it charges for a workload.
    pub(crate) fn charging(&self, workload: &Workload) -> Cow<'_, MachineConfig> {
        match workload.recorded {
            false => Cow::Borrowed(self),
            true => {
                Cow::Owned(MachineConfig { cost: self.cost.without_recorded(), ..self.clone() })
            }
        }
    }

    /// A machine of `cpus` CPUs that share one cache, at 1000 Hz, with the default costs.
    pub fn new(cpus: u32) -> MachineConfig {
        MachineConfig {
            topology: Topology::flat(cpus),
            hz: 1000,
            timers: SleepTimers::default(),
            lead_in_ns: 0,
            seed: 1,
            cost: CostModel::default(),
            watchdog_ns: abi::WATCHDOG_MAX_NS,
            trace: TraceOptions::default(),
            check: cfg!(debug_assertions),
            idle_bound_ns: None,
            picks_in_order: false,
            max_tasks: 131_072,
            fuel_per_call: 10_000_000,
            null_loads: NullLoads::Trap,
            max_events: MAX_EVENTS_DEFAULT,
            max_log_lines: 10_000,
        }
    }

    /// The number of CPUs.
    pub fn cpus(&self) -> u32 {
        self.topology.cpus()
    }

    /// The period of the tick, ns.
    pub fn tick_ns(&self) -> u64 {
        1_000_000_000 / u64::from(self.hz.max(1))
    }

    /// Rejects a configuration that cannot be simulated.
    pub(crate) fn validate(&self) -> Result<(), MachineError> {
        let refuse = |problem: String| Err(MachineError::Config(problem));
        let (cpus, max_cpus) = (self.cpus(), abi::MAX_CPUS);
        if cpus == 0 || cpus > max_cpus {
            return refuse(format!(
                "the machine has {cpus} CPUs; from 1 to {max_cpus} can be simulated"
            ));
        }
        if self.hz == 0 || self.hz > 10_000 {
            return refuse(format!(
                "HZ is {}; give a number from 1 to 10000 (kernels use 100, 250, 300 and 1000)",
                self.hz
            ));
        }
        if self.lead_in_ns > LEAD_IN_NS_MAX {
            let (lead_in_ns, most) = (self.lead_in_ns, LEAD_IN_NS_MAX);
            return refuse(format!("the lead-in is {lead_in_ns} ns; it may last {most} ns"));
        }
        let (tasks, most) = (self.max_tasks, 1 << 20);
        if tasks == 0 || tasks > most {
            return refuse(format!(
                "room for {tasks} tasks was asked for; from 1 to {most} are possible"
            ));
        }
        let (events, most) = (self.max_events, usize::MAX / Trace::BYTES_PER_EVENT);
        if events == 0 || events > most {
            return refuse(format!(
                "a trace of {events} events was asked for; from 1 to {most} are possible"
            ));
        }
        let (timeout_ns, most_ns) = (self.watchdog_ns, abi::WATCHDOG_MAX_NS);
        if timeout_ns == 0 || timeout_ns > most_ns {
            return refuse(format!(
                "the watchdog's timeout is {timeout_ns} ns; the kernel takes up to {most_ns} ns"
            ));
        }
        Ok(())
    }
}
