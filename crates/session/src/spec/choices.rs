//! Options that take one of a few words.

use fairground_machine::{Engine, KernelAbi, NullLoads, SleepTimers};
use fairground_realkernel::vm::VmMode;
use fairground_suggest::did_you_mean;
use fairground_workload::LockModel;

use super::option::{ChoiceWord, Kind, OptionType};

/// One of a few words.
pub trait NamedChoice: Copy + PartialEq + 'static {
    /// Every choice.
    const ALL: &'static [Self];
    /// The word of each, in the same order.
    const WORDS: &'static [ChoiceWord];

    /// The word.
    fn word(self) -> &'static str {
        let at = Self::ALL.iter().position(|choice| *choice == self);
        at.and_then(|at| Self::WORDS.get(at)).map_or("", |word| word.word)
    }

    /// The choice of a word.
    ///
    /// # Errors
    /// If there is no such word: the nearest one, and all.
    fn parse(text: &str) -> Result<Self, String> {
        let words = || Self::WORDS.iter().map(|word| word.word);
        let found = Self::ALL.iter().zip(words()).find(|(_, word)| *word == text);
        found.map(|(choice, _)| *choice).ok_or_else(|| {
            let near = did_you_mean(text, words());
            let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            let all = words().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
            format!("there is no `{text}`{near}: {all}")
        })
    }
}

/// Lets choices be options: read and written as their words.
macro_rules! as_words {
    ($($choice:ty),*) => {$(
        impl OptionType for $choice {
            const KIND: Kind = Kind::Choice(<$choice as NamedChoice>::WORDS);
        }

        impl serde::Serialize for $choice {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.word())
            }
        }

        impl<'de> serde::Deserialize<'de> for $choice {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let word = <String as serde::Deserialize>::deserialize(deserializer)?;
                <$choice as NamedChoice>::parse(&word).map_err(serde::de::Error::custom)
            }
        }
    )*};
}

/// Declares choices: each is its doc, its variant, its word, and what it stands for. The first one is the default.
macro_rules! choices {
    ($(
        $(#[$about:meta])*
        $choice:ident for $of:ty {$(
            $(#[doc = $doc:literal])+
            $variant:ident = $word:literal => $value:expr,
        )*}
    )*) => {$(
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $choice {$(
            $(#[doc = $doc])+
            $variant,
        )*}

        impl NamedChoice for $choice {
            const ALL: &'static [Self] = &[$($choice::$variant),*];
            const WORDS: &'static [ChoiceWord] =
                &[$(ChoiceWord { word: $word, doc: concat!($($doc),+).trim_ascii_start() }),*];
        }

        impl Default for $choice {
            fn default() -> Self {
                Self::ALL[0]
            }
        }

        impl From<$choice> for $of {
            fn from(choice: $choice) -> Self {
                match choice {
                    $($choice::$variant => $value,)*
                }
            }
        }
    )*
    as_words!($($choice),*);
    };
}

choices! {
    /// How the scheduler's instructions are executed.
    EngineChoice for Engine {
        /// Machine code
        Jit = "jit" => Engine::Jit,
        /// Instruction by instruction: the oracle
        Interpreter = "interpreter" => Engine::Interpreter,
    }

    /// What a load through a NULL pointer does.
    NullLoadsChoice for NullLoads {
        /// End the run with an error
        Error = "error" => NullLoads::Trap,
        /// Read 0
        Zero = "zero" => NullLoads::ReadZero,
    }

    /// What ends a sleep.
    TimersChoice for SleepTimers {
        /// A high-resolution timer: at its time
        Hrtimer = "hrtimer" => SleepTimers::Hrtimer,
        /// The tick: at the second tick after its end
        Jiffies = "jiffies" => SleepTimers::Jiffies,
    }

    /// What spin locks are.
    LocksChoice for LockModel {
        /// Spinning, as the workload says
        Spin = "spin" => LockModel::Spin,
        /// Sleeping, as `CONFIG_PREEMPT_RT` makes them
        Rt = "rt" => LockModel::Rt,
        /// Sleeping, as the -rt kernels of 2006 made them: a task never spins for one that is taken, never overtakes a
        /// waiter, and an rwlock has one reader at a time
        Rt2006 = "rt-2006" => LockModel::Rt2006,
    }

    /// How the time of a virtual machine advances.
    VmModeChoice for VmMode {
        /// By counted instructions, one CPU at a time: bit for bit the same in every run
        Deterministic = "deterministic" => VmMode::Deterministic,
        /// By the host's clock, CPUs side by side: for load, not for measuring
        Fast = "fast" => VmMode::Fast,
    }
}

/// The release of Linux whose sched_ext interface the simulated kernel offers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelAbiChoice(pub KernelAbi);

impl NamedChoice for KernelAbiChoice {
    const ALL: &'static [Self] = &{
        let mut all = [KernelAbiChoice(KernelAbi::NEWEST); KernelAbi::ALL.len()];
        let mut at = 0;
        while at < all.len() {
            all[at] = KernelAbiChoice(KernelAbi::ALL[at]);
            at += 1;
        }
        all
    };
    const WORDS: &'static [ChoiceWord] = &{
        let mut words = [ChoiceWord { word: "", doc: "" }; KernelAbi::ALL.len()];
        let mut at = 0;
        while at < words.len() {
            let release = KernelAbi::ALL[at];
            words[at] = ChoiceWord { word: release.name(), doc: release.about() };
            at += 1;
        }
        words
    };
}

as_words!(KernelAbiChoice);
