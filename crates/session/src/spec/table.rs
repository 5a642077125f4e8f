//! The table of a run's options, by what they describe. A command takes the groups that mean something to it.

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;

use fairground_realkernel::vm::VmConfig;
use serde::{Deserialize, Serialize};

use super::applies::Targets;
use super::choices::{
    EngineChoice, KernelAbiChoice, LocksChoice, NullLoadsChoice, TimersChoice, VmModeChoice,
};
use super::option::{Kind, OptionType, options};

/// The default target: the simulated machine.
const TARGET_DEFAULT: &str = "sim";
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

const SIM: Targets = Targets::SIM;
const VM: Targets = Targets::VM;
const REAL: Targets = Targets::REAL;
const EVERYWHERE: Targets = Targets::EVERYWHERE;

options! {
    /// A run, or several that differ in target, scheduler or settings.
    pub struct RunSpec {
        /// A workload: a name (`slice:16`), several joined by `+`, or a file: TOML, or JSON of rt-app. `workload list`
        /// names them
        workload: String = String::new() => "WORKLOAD", EVERYWHERE, or_file;
    } with {
        /// Where it runs.
        target: TargetSpec,
        /// What schedules it.
        scheduler: SchedulerSpec,
        /// What is shown and required of its variables.
        variables: VariablesSpec,
        /// The machine.
        machine: MachineSpec,
        /// What its locks are.
        locks: LocksSpec,
    }

    /// Where a workload runs.
    pub struct TargetSpec under "Target" {
        /// Where to run: `sim` (the simulated machine), `vm:KERNEL` (a real kernel in a virtual machine; `kernels list`
        /// names them), `host` (this machine's kernel). `compare` takes several with commas
        on: Vec<String> = vec![TARGET_DEFAULT.to_owned()] => "--on TARGET", EVERYWHERE, commas, compared;

        /// The scheduler's own loader, a program with its arguments, in one word (`'./scx_bpfland -s 5000'`), on
        /// `vm:KERNEL`: it runs in the guest and attaches the scheduler there
        loader: Option<String> = None => "--loader COMMAND", VM, heading("Scheduler"),
            instead("the simulated machine takes the scheduler's object: --sched; on this machine start the loader \
                     yourself, and run with `--on host --sched kernel`");

        /// How the virtual machine's time advances: by counted instructions, the same in every run, or by the host's clock
        vm_mode: VmModeChoice = VmModeChoice::default() => "--vm-mode VM_MODE", VM;

        /// A kernel of your own (bzImage) for `--on vm`
        kernel: Option<PathBuf> = None => "--kernel FILE", VM;

        /// Memory of the virtual machine, MiB
        memory: u32 = MEMORY_MIB_DEFAULT => "--memory MIB", VM;

        /// A boot parameter for the virtual machine's kernel; may be given several times
        append: Vec<String> = Vec::new() => "--append PARAMETER", VM;

        /// Memory for recorded events on a real kernel, KiB for each CPU
        buffer: u32 = BUFFER_KIB_DEFAULT => "--buffer KIB", REAL;

        /// Record no events on a real kernel: nothing disturbs the run, and it reports no more than its tasks and the
        /// kernel's own accounting do
        record: bool = true => "--no-recording", REAL;

        /// Record a kernel stack with each switch, and waits for locks, on a real kernel
        stacks: bool = false => "--stacks", REAL, conflicts("record");

        /// Record the calls in which tasks may wait or wake others: futexes, pipes, sockets, polls, sleeps, waits for
        /// children
        calls: bool = false => "--calls", EVERYWHERE, conflicts("record");

        /// How long after a tick the tasks of a run on a real kernel start (with the deterministic clock;
        /// otherwise after this delay); at most 1 s
        hold: Option<String> = None => "--hold TIME", REAL, hyphens,
            instead("where in a tick a simulated run starts is its --lead-in");
    }

    /// The scheduler and what is set in it.
    pub struct SchedulerSpec under "Scheduler" {
        /// Scheduler: a name (`cfs`), a name with a parameter set (`cfs@6.1`), an object file (`./mine.bpf.o`), its source
        /// (`./mine.bpf.c`), a published one with options (`scx_lavd:power=powersave`), or, on a real kernel, `kernel`:
        /// that kernel's own. Several with commas [default: cfs in simulation, kernel elsewhere]
        sched: Vec<String> = Vec::new() => "--sched SCHED", EVERYWHERE, commas, compared, or_file;

        /// Set a tunable or feature before the run, or a part of one (`x[1].y=3`, `x[*]=cpus`; `kernel.NAME=VALUE`: one of
        /// a real kernel itself); with several values, `compare` runs each
        set: Vec<String> = Vec::new() => "--set NAME=VALUE[,VALUE]", EVERYWHERE, assigns;

        /// Set a tunable or feature during the run
        at: Vec<String> = Vec::new() => "--at TIME:NAME=VALUE", EVERYWHERE;

        /// A profile: what the object's own loader would set, as a file (`experiments/profiles/scx_qmap.toml`)
        profile: Vec<PathBuf> = Vec::new() => "--profile FILE.toml", EVERYWHERE, compared;

        /// How the scheduler's instructions are executed: both engines give the same result
        engine: EngineChoice = EngineChoice::default() => "--engine ENGINE", SIM;

        /// The release of Linux whose sched_ext interface the simulated kernel offers: an object takes the branches that it
        /// takes there
        kernel_abi: KernelAbiChoice = KernelAbiChoice::default() => "--kernel-abi RELEASE", SIM, heading("Machine");

        /// What a load through a NULL pointer does: an error, or 0 as in the kernel's exception table
        null_loads: NullLoadsChoice = NullLoadsChoice::default() => "--null-loads NULL_LOADS", SIM;
    }

    /// What a run shows of its scheduler's variables, and what it requires of them.
    pub struct VariablesSpec under "Scheduler" {
        /// Show what the scheduler's variables hold at the end of the run: all of them, or those that are named, or parts
        /// (`--show-globals=x,y[0..4].z`)
        show_globals: Vec<String> = Vec::new() => "--show-globals NAME,…", SIM, commas, alone(ALL_VARIABLES);

        /// Require a value of one of the scheduler's variables at the end of the run, or of a part (`x[1].y=3`); also with
        /// `!=`, `<`, `<=`, `>`, `>=`. Otherwise the exit code is 1. May be given several times
        expect: Vec<String> = Vec::new() => "--expect NAME=VALUE", SIM, assigns;
    }

    /// The machine: most options describe the simulated one only.
    pub struct MachineSpec under "Machine" {
        /// Number of CPUs, of the simulated machine or of the virtual one; beside --topology the same number
        cpus: Option<u32> = None => "--cpus CPUS", EVERYWHERE;

        /// Sockets × cores × threads (`2x4x2`), on so many NUMA nodes (`8x1x1,nodes=1`), or a topology file
        /// (`./laptop.toml`)
        topology: Option<TopologySpec> = None => "--topology TOPOLOGY", SIM, exclusive, or_file,
            instead("a virtual machine takes --cpus; its CPUs are cores of one socket");

        /// Ticks a second: 100, 250, 300 or 1000 [default: 250]. A real kernel has what it was built with
        hz: Option<u32> = None => "--hz HZ", SIM;

        /// What ends a sleep: a timer of its own, or a tick, as on x86-64 up to Linux 2.6.23
        timers: TimersChoice = TimersChoice::default() => "--timers TIMERS", SIM;

        /// Seed of every random draw
        seed: u64 = SEED_DEFAULT => "--seed SEED", EVERYWHERE, environment("FAIRGROUND_SEED");

        /// The cost preset [default: beside `vm:KERNEL` that of its kernel, else modern]
        costs: Option<String> = None => "--costs PRESET", SIM;

        /// What an instruction takes in a virtual machine whose clock counts them, ns: 1, 2, 4 or 8. At 1 the guest is as
        /// fast as a processor of today, and a run takes eight times as long. Costs that were measured in such a guest
        /// (`--costs linux-7.2-scx`) change in proportion [default: 8]
        instruction_ns: Option<u64> = None => "--instruction-ns NS", SIM.and(VM);

        /// Change one cost
        cost: Vec<String> = Vec::new() => "--cost NAME=VALUE", SIM, assigns;

        /// Check the simulator's invariants after each event: a run that breaks one ends with an error
        check: bool = false => "--check", SIM;

        /// With `--check`: no CPU may be idle for this long while a task that may run there waits
        idle_bound: Option<String> = None => "--idle-bound TIME", SIM, requires("check");

        /// How long to run, in simulated time; the workload's own length by default
        duration: Option<String> = None => "--duration DURATION", EVERYWHERE, hyphens;

        /// How long before a simulated run its tasks are created and sleep; they begin with a wake-up. Without it they
        /// begin as forks [default: 400ms beside a real kernel and under published schedulers, else none]
        lead_in: Option<String> = None => "--lead-in TIME", SIM, hyphens;

        /// How many events a simulated run may keep, 32 bytes of memory each: one more ends it with an error. A run that
        /// writes no trace and no page, and whose tasks leave no marks, keeps none [default:
        /// 100000000]
        max_events: Option<usize> = None => "--max-events N", SIM;
    }

    /// What the workload's locks are.
    #[derive(Copy)]
    pub struct LocksSpec under "Workload" {
        /// What the workload's spin locks are: themselves, or the sleeping locks with priority inheritance that PREEMPT_RT
        /// makes of them
        locks: Option<LocksChoice> = None => "--locks LOCKS", EVERYWHERE;
    }
}

impl MachineSpec {
    /// What an instruction takes in a virtual machine whose clock counts them, ns.
    pub fn instruction_ns(&self) -> u64 {
        self.instruction_ns.unwrap_or(INSTRUCTION_NS_DEFAULT)
    }
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

impl OptionType for TopologySpec {
    const KIND: Kind = Kind::Table;
}

impl FromStr for TopologySpec {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(TopologySpec::Word(text.to_owned()))
    }
}
