//! The options of a run by what they describe. A command takes the groups that mean something to it.

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{ArgAction, Args};
use fairground_realkernel::vm::VmConfig;
use serde::{Deserialize, Serialize};

use super::choices::{
    EngineChoice, KernelAbiChoice, LocksChoice, NullLoadsChoice, TimersChoice, VmModeChoice,
};
use super::words;

/// The default target: the simulated machine.
pub(crate) const TARGET_DEFAULT: &str = "sim";
/// Memory of a virtual machine by default, MiB.
const MEMORY_MIB_DEFAULT: u32 = 1024;
/// Memory for recorded events by default, KiB for each CPU.
pub const BUFFER_KIB_DEFAULT: u32 = 16 << 10;
/// CPUs when neither their number nor a topology is given.
pub const CPUS_DEFAULT: u32 = 2;
/// The preset of costs where none is given and no guest of a known kernel stands beside the simulated machine.
pub const COSTS_DEFAULT: &str = "modern";
/// What an instruction takes in a virtual machine by default, ns.
pub const INSTRUCTION_NS_DEFAULT: u64 = VmConfig::INSTRUCTION_NS_DEFAULT;
/// What stands for all variables of a scheduler.
pub(crate) const ALL_VARIABLES: &str = "*";
/// The default seed.
pub const SEED_DEFAULT: u64 = 1;

/// Where a workload runs.
#[derive(Clone, Debug, PartialEq, Args, Serialize, Deserialize)]
#[command(next_help_heading = "Target")]
#[serde(default)]
pub struct TargetSpec {
    /// Where to run: `sim` (the simulated machine), `vm:KERNEL` (a real kernel in a virtual machine; `kernels list`
    /// names them), `host` (this machine's kernel). `compare` takes several with commas
    #[arg(long, value_delimiter = ',', default_value = TARGET_DEFAULT, value_name = "TARGET")]
    #[serde(deserialize_with = "words::several")]
    pub on: Vec<String>,

    /// The scheduler's own loader, a program with its arguments, in one word (`'./scx_bpfland -s 5000'`), on
    /// `vm:KERNEL`: it runs in the guest and attaches the scheduler there
    #[arg(long, value_name = "COMMAND", help_heading = "Scheduler")]
    pub loader: Option<String>,

    /// How the virtual machine's time advances: by counted instructions, the same in every run, or by the host's clock
    #[arg(long, value_enum, default_value_t = VmModeChoice::Deterministic)]
    pub vm_mode: VmModeChoice,

    /// A kernel of your own (bzImage) for `--on vm`
    #[arg(long, value_name = "FILE")]
    pub kernel: Option<PathBuf>,

    /// Memory of the virtual machine, MiB
    #[arg(long, value_name = "MIB", default_value_t = MEMORY_MIB_DEFAULT)]
    pub memory: u32,

    /// A boot parameter for the virtual machine's kernel; may be given several times
    #[arg(long, value_name = "PARAMETER")]
    #[serde(deserialize_with = "words::several")]
    pub append: Vec<String>,

    /// Memory for recorded events on a real kernel, KiB for each CPU
    #[arg(long, value_name = "KIB", default_value_t = BUFFER_KIB_DEFAULT)]
    pub buffer: u32,

    /// Record no events on a real kernel: nothing disturbs the run, and it reports no more than its tasks and the
    /// kernel's own accounting do
    #[arg(long = "no-recording", action = ArgAction::SetFalse)]
    pub record: bool,

    /// Record a kernel stack with each switch, and waits for locks, on a real kernel
    #[arg(long, conflicts_with = "record")]
    pub stacks: bool,

    /// Record the calls in which tasks may wait or wake others: futexes, pipes, sockets, polls, sleeps, waits for
    /// children
    #[arg(long, conflicts_with = "record")]
    pub calls: bool,

    /// How long after a tick the tasks of a run on a real kernel start (with the deterministic clock;
    /// otherwise after this delay); at most 1 s
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub hold: Option<String>,
}

impl Default for TargetSpec {
    fn default() -> Self {
        Self {
            on: vec![TARGET_DEFAULT.to_owned()],
            loader: None,
            vm_mode: VmModeChoice::default(),
            kernel: None,
            memory: MEMORY_MIB_DEFAULT,
            append: Vec::new(),
            buffer: BUFFER_KIB_DEFAULT,
            record: true,
            stacks: false,
            calls: false,
            hold: None,
        }
    }
}

/// The scheduler and what is set in it.
#[derive(Clone, Debug, Default, PartialEq, Args, Serialize, Deserialize)]
#[command(next_help_heading = "Scheduler")]
#[serde(default)]
pub struct SchedulerSpec {
    /// Scheduler: a name (`cfs`), a name with a parameter set (`cfs@6.1`), an object file (`./mine.bpf.o`), its source
    /// (`./mine.bpf.c`), a published one with options (`scx_lavd:power=powersave`), or, on a real kernel, `kernel`:
    /// that kernel's own. Several with commas [default: cfs in simulation, kernel elsewhere]
    #[arg(long, value_delimiter = ',')]
    #[serde(deserialize_with = "words::several")]
    pub sched: Vec<String>,

    /// Set a tunable or feature before the run, or a part of one (`x[1].y=3`, `x[*]=cpus`; `kernel.NAME=VALUE`: one of
    /// a real kernel itself); with several values, `compare` runs each
    #[arg(long, value_name = "NAME=VALUE[,VALUE]")]
    #[serde(deserialize_with = "words::assignments")]
    pub set: Vec<String>,

    /// Set a tunable or feature during the run
    #[arg(long, value_name = "TIME:NAME=VALUE")]
    #[serde(deserialize_with = "words::several")]
    pub at: Vec<String>,

    /// A profile: what the object's own loader would set, as a file (`experiments/profiles/scx_qmap.toml`)
    #[arg(long, value_name = "FILE.toml")]
    #[serde(deserialize_with = "words::several")]
    pub profile: Vec<PathBuf>,

    /// How the scheduler's instructions are executed: both engines give the same result
    #[arg(long, value_enum, default_value_t = EngineChoice::Jit)]
    pub engine: EngineChoice,

    /// The release of Linux whose sched_ext interface the simulated kernel offers: an object takes the branches that it
    /// takes there
    #[arg(long, value_enum, default_value_t = KernelAbiChoice::default(), value_name = "RELEASE", help_heading = "Machine")]
    pub kernel_abi: KernelAbiChoice,

    /// What a load through a NULL pointer does: an error, or 0 as in the kernel's exception table
    #[arg(long, value_enum, default_value_t = NullLoadsChoice::Error)]
    pub null_loads: NullLoadsChoice,
}

/// What a run shows of its scheduler's variables, and what it requires of them.
#[derive(Clone, Debug, Default, PartialEq, Args, Serialize, Deserialize)]
#[command(next_help_heading = "Scheduler")]
#[serde(default)]
pub struct VariablesSpec {
    /// Show what the scheduler's variables hold at the end of the run: all of them, or those that are named, or parts
    /// (`--show-globals=x,y[0..4].z`)
    #[arg(
        long,
        value_delimiter = ',',
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = ALL_VARIABLES,
        value_name = "NAME,…"
    )]
    #[serde(deserialize_with = "words::several")]
    pub show_globals: Vec<String>,

    /// Require a value of one of the scheduler's variables at the end of the run, or of a part (`x[1].y=3`); also with
    /// `!=`, `<`, `<=`, `>`, `>=`. Otherwise the exit code is 1. May be given several times
    #[arg(long, value_name = "NAME=VALUE")]
    #[serde(deserialize_with = "words::assignments")]
    pub expect: Vec<String>,
}

/// A topology in words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TopologySpec {
    /// The short form (`2x4x2`), or the path of a file.
    Word(String),
    /// The content of a topology file.
    Table(serde_json::Map<String, serde_json::Value>),
}

impl FromStr for TopologySpec {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(TopologySpec::Word(text.to_owned()))
    }
}

/// The machine: most options describe the simulated one only.
#[derive(Clone, Debug, PartialEq, Args, Serialize, Deserialize)]
#[command(next_help_heading = "Machine")]
#[serde(default)]
pub struct MachineSpec {
    /// Number of CPUs, of the simulated machine or of the virtual one; beside --topology the same number
    #[arg(long)]
    pub cpus: Option<u32>,

    /// Sockets × cores × threads (`2x4x2`), on so many NUMA nodes (`8x1x1,nodes=1`), or a topology file
    /// (`./laptop.toml`)
    #[arg(long)]
    pub topology: Option<TopologySpec>,

    /// Ticks a second: 100, 250, 300 or 1000 [default: 250]. A real kernel has what it was built with
    #[arg(long)]
    pub hz: Option<u32>,

    /// What ends a sleep: a timer of its own, or a tick, as on x86-64 up to Linux 2.6.23
    #[arg(long, value_enum, default_value_t = TimersChoice::Hrtimer)]
    pub timers: TimersChoice,

    /// Seed of every random draw
    #[arg(long, default_value_t = SEED_DEFAULT, env = "FAIRGROUND_SEED")]
    pub seed: u64,

    /// The cost preset [default: beside `vm:KERNEL` that of its kernel, else modern]
    #[arg(long, value_name = "PRESET")]
    pub costs: Option<String>,

    /// What an instruction takes in a virtual machine whose clock counts them, ns: 1, 2, 4 or 8. At 1 the guest is as
    /// fast as a processor of today, and a run takes eight times as long. Costs that were measured in such a guest
    /// (`--costs linux-7.2-scx`) change in proportion [default: 8]
    #[arg(long, value_name = "NS")]
    pub instruction_ns: Option<u64>,

    /// Change one cost
    #[arg(long, value_name = "NAME=VALUE")]
    #[serde(deserialize_with = "words::assignments")]
    pub cost: Vec<String>,

    /// Check the simulator's invariants after each event: a run that breaks one ends with an error
    #[arg(long)]
    pub check: bool,

    /// With `--check`: no CPU may be idle for this long while a task that may run there waits
    #[arg(long, value_name = "TIME", requires = "check")]
    pub idle_bound: Option<String>,

    /// How long to run, in simulated time; the workload's own length by default
    #[arg(long, allow_hyphen_values = true)]
    pub duration: Option<String>,

    /// How long before a simulated run its tasks are created and sleep; they begin with a wake-up. Without it they
    /// begin as forks [default: 400ms beside a real kernel, else none]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub lead_in: Option<String>,

    /// How many events a simulated run may keep, 32 bytes of memory each: one more ends it with an error. A run that
    /// writes no trace and no page, and whose tasks leave no marks, keeps none [default:
    /// 100000000]
    #[arg(long, value_name = "N")]
    pub max_events: Option<usize>,
}

impl Default for MachineSpec {
    fn default() -> Self {
        Self {
            cpus: None,
            topology: None,
            hz: None,
            timers: TimersChoice::default(),
            seed: SEED_DEFAULT,
            costs: None,
            instruction_ns: None,
            cost: Vec::new(),
            check: false,
            idle_bound: None,
            duration: None,
            lead_in: None,
            max_events: None,
        }
    }
}

impl MachineSpec {
    /// What an instruction takes in a virtual machine whose clock counts them, ns.
    pub fn instruction_ns(&self) -> u64 {
        self.instruction_ns.unwrap_or(INSTRUCTION_NS_DEFAULT)
    }
}

/// What the workload's locks are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Args, Serialize, Deserialize)]
#[command(next_help_heading = "Workload")]
#[serde(default)]
pub struct LocksSpec {
    /// What the workload's spin locks are: themselves, or the sleeping locks with priority inheritance that PREEMPT_RT
    /// makes of them
    #[arg(long, value_enum)]
    pub locks: Option<LocksChoice>,
}
