//! Options that take one of a few words.

use clap::ValueEnum;
use clap::builder::PossibleValue;
use fairground_machine::{Engine, KernelAbi, NullLoads, SleepTimers};
use fairground_realkernel::vm::VmMode;
use fairground_workload::LockModel;

use super::words::{self, as_words};

as_words!(EngineChoice, NullLoadsChoice, TimersChoice, LocksChoice, VmModeChoice, KernelAbiChoice);

/// How the scheduler's instructions are executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum EngineChoice {
    /// Machine code
    #[default]
    Jit,
    /// Instruction by instruction: the oracle
    Interpreter,
}

impl From<EngineChoice> for Engine {
    fn from(choice: EngineChoice) -> Self {
        match choice {
            EngineChoice::Jit => Engine::Jit,
            EngineChoice::Interpreter => Engine::Interpreter,
        }
    }
}

/// The release of Linux whose sched_ext interface the simulated kernel offers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelAbiChoice(pub KernelAbi);

impl KernelAbiChoice {
    /// Every release.
    const ALL: [KernelAbiChoice; KernelAbi::ALL.len()] = {
        let mut all = [KernelAbiChoice(KernelAbi::NEWEST); KernelAbi::ALL.len()];
        let mut at = 0;
        while at < all.len() {
            all[at] = KernelAbiChoice(KernelAbi::ALL[at]);
            at += 1;
        }
        all
    };
}

impl ValueEnum for KernelAbiChoice {
    fn value_variants<'a>() -> &'a [Self] {
        &KernelAbiChoice::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()).help(self.0.about()))
    }
}

/// What a load through a NULL pointer does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum NullLoadsChoice {
    /// End the run with an error
    #[default]
    Error,
    /// Read 0
    Zero,
}

impl From<NullLoadsChoice> for NullLoads {
    fn from(choice: NullLoadsChoice) -> Self {
        match choice {
            NullLoadsChoice::Error => NullLoads::Trap,
            NullLoadsChoice::Zero => NullLoads::ReadZero,
        }
    }
}

/// What ends a sleep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TimersChoice {
    /// A high-resolution timer: at its time
    #[default]
    Hrtimer,
    /// The tick: at the second tick after its end
    Jiffies,
}

impl From<TimersChoice> for SleepTimers {
    fn from(choice: TimersChoice) -> Self {
        match choice {
            TimersChoice::Hrtimer => SleepTimers::Hrtimer,
            TimersChoice::Jiffies => SleepTimers::Jiffies,
        }
    }
}

/// What spin locks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LocksChoice {
    /// Spinning, as the workload says
    Spin,
    /// Sleeping, as `CONFIG_PREEMPT_RT` makes them
    Rt,
    /// Sleeping, as the -rt kernels of 2006 made them: a task never spins for one that is taken, never overtakes a
    /// waiter, and an rwlock has one reader at a time
    #[value(name = "rt-2006")]
    Rt2006,
}

impl LocksChoice {
    /// The locks that a word names: `spin`, `rt`, `rt-2006`.
    ///
    /// # Errors
    /// If there is no such word: which there are.
    pub fn parse(word: &str) -> Result<LocksChoice, String> {
        words::read(word)
    }

    /// The word.
    pub fn word(self) -> &'static str {
        LockModel::from(self).word()
    }
}

impl From<LocksChoice> for LockModel {
    fn from(choice: LocksChoice) -> Self {
        match choice {
            LocksChoice::Spin => LockModel::Spin,
            LocksChoice::Rt => LockModel::Rt,
            LocksChoice::Rt2006 => LockModel::Rt2006,
        }
    }
}

/// How the time of a virtual machine advances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum VmModeChoice {
    /// By counted instructions, one CPU at a time: bit for bit the same in every run
    #[default]
    Deterministic,
    /// By the host's clock, CPUs side by side: for load, not for measuring
    Fast,
}

impl From<VmModeChoice> for VmMode {
    fn from(choice: VmModeChoice) -> Self {
        match choice {
            VmModeChoice::Deterministic => VmMode::Deterministic,
            VmModeChoice::Fast => VmMode::Fast,
        }
    }
}
